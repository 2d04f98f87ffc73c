"""The state folder of a deployment: who may call, and where the services are."""
from __future__ import annotations

import getpass
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping


@dataclass(frozen=True)
class Identity:
    """A certificate with its key, and the root that services are checked against. All PEM."""

    certificate: bytes
    key: bytes
    root: bytes


@dataclass(frozen=True)
class Endpoints:
    """`host:port` of authority, and of data by node."""

    authority: str
    data: Mapping[str, str]


class StateFolder:
    """Reads, and never writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def default() -> StateFolder:
        """Where the command keeps it: WHEELHOUSE_STATE, else below XDG_STATE_HOME."""
        named = os.environ.get("WHEELHOUSE_STATE")
        if named:
            return StateFolder(Path(named))
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return StateFolder(Path(base) / "wheelhouse")

    def identity(self, role: str, name: str) -> Identity:
        """Raises an OSError when the folder has no such identity."""
        stem = self.path / "identities" / role / name
        return Identity(
            certificate=stem.with_name(f"{name}.crt").read_bytes(),
            key=stem.with_name(f"{name}.key").read_bytes(),
            root=(self.path / "ca" / "root.crt").read_bytes(),
        )

    def endpoints(self) -> Endpoints:
        """Raises an OSError when no services were started from the folder."""
        noted = json.loads((self.path / "endpoints.json").read_text("utf8"))
        data = noted["data"]
        return Endpoints(noted["authority"], {"local": data} if isinstance(data, str) else data)


def operator_name() -> str:
    """The current user as a name that an identity may carry."""
    name = re.sub(r"[^a-z0-9._-]", "-", getpass.getuser().lower())
    return re.sub(r"^[^a-z0-9]+", "", name)[:63] or "operator"
