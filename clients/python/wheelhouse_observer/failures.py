"""The two ways a call does not work: a named no, and no answer."""
from __future__ import annotations

from typing import Mapping

import grpc
from google.protobuf.message import DecodeError
from wheelhouse.refusal.v1 import status_pb2

_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class RefusedError(Exception):
    """The service ruled no. `reason` is in UPPER_SNAKE_CASE; `facts` is what the refused may know."""

    def __init__(self, reason: str, facts: Mapping[str, str]) -> None:
        told = ", ".join(f"{key}={facts[key]}" for key in sorted(facts))
        name = reason.lower().replace("_", "-")
        super().__init__(f"{name} ({told})" if told else name)
        self.reason = reason
        self.facts = dict(facts)


class UnreachableError(Exception):
    """No ruling came. What was asked may have happened. `service` is the plane that was asked."""

    def __init__(self, service: str, why: str) -> None:
        super().__init__(f"{service} gave no answer: {why}")
        self.service = service


def failure_of(error: grpc.RpcError, service: str) -> RefusedError | UnreachableError:
    """What a failed call means: a status without a refusal's name is never read as one."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            refusal = _refusal_in(value)
            if refusal is not None:
                return refusal
    return UnreachableError(service, f"{error.code().name}: {error.details()}")


def _refusal_in(raw: bytes) -> RefusedError | None:
    try:
        for detail in status_pb2.Status.FromString(raw).details:
            if detail.type_url == _ERROR_INFO:
                info = status_pb2.ErrorInfo.FromString(detail.value)
                if info.domain == "wheelhouse":
                    return RefusedError(info.reason, info.metadata)
    except DecodeError:
        pass
    return None
