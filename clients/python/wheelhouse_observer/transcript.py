"""What a look was, as one JSON object a line, the same from a client in any language."""
from __future__ import annotations

import hashlib
import json
from typing import IO

from .presentation import Closed, Lost


class Transcript:
    """Writes as it happens, and totals in place of chunks. Positions are strings: they are 64 bits."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self._bytes = 0

    def write(self, event: str, **fields: object) -> None:
        if self._stream is not None:
            entry = {"event": event, **fields}
            text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
            self._stream.write(text + "\n")
            self._stream.flush()

    def take(self, payload: bytes) -> None:
        self._hash.update(payload)
        self._bytes += len(payload)

    def refused(self, reason: str, facts: dict[str, str]) -> None:
        self.write("refused", reason=reason, facts=dict(sorted(facts.items())))

    def ended(self, end: Closed | Lost) -> None:
        if isinstance(end, Lost):
            self.closed("TRANSPORT_LOST", acked_seq=str(end.taken_seq))
            return
        exits = {"exit_code": end.exit_code, "exit_signal": end.exit_signal}
        self.closed(
            end.reason,
            acked_seq=str(end.acked_seq),
            sent_seq=str(end.sent_seq),
            produced_seq=str(end.produced_seq),
            **{key: value for key, value in exits.items() if value is not None},
        )

    def closed(self, reason: str, **positions: object) -> None:
        self.write("output", bytes=str(self._bytes), sha256=self._hash.hexdigest())
        self.write("closed", reason=reason, **positions)
