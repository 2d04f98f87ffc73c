"""An operator's look at a worker's terminal."""
from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Iterator, Union

import grpc
from wheelhouse.data.v1 import data_pb2, data_pb2_grpc
from wheelhouse.refusal.v1 import refusal_pb2

from .ack_ledger import AckLedger
from .call_stream import CallStream
from .failures import RefusedError, UnreachableError

_OPENING_S = 15.0

# A stream may be closed before it began; where the reason is also a refusal's, that is what is raised.
_REFUSAL_BY = {
    "WORKER_CLOSED": "WORKER_CLOSED",
    "GENERATION_ADVANCED": "WORKER_GENERATION_ADVANCED",
    "CONTROL_UNBOUND": "CONTROL_CHANNEL_NOT_BOUND",
    "AUTHORITY_UNREACHABLE": "AUTHORITY_UNREACHABLE",
    "DRAINING": "SERVICE_DRAINING",
}


@dataclass(frozen=True)
class Terms:
    """What a look names, and how it reads. `hold_limit_ms` is the service's own when None."""

    worker_ref: str
    generation: int
    hold_limit_ms: int | None = None
    replace: bool = False


@dataclass(frozen=True)
class Output:
    """The next bytes, exactly as the program wrote them, from byte position `seq` on."""

    seq: int
    payload: bytes


@dataclass(frozen=True)
class Resized:
    """The terminal has another size from byte position `out_seq` on."""

    out_seq: int
    rows: int
    cols: int


@dataclass(frozen=True)
class Closed:
    """The service said why, with positions. At most one of the exits is set."""

    reason: str
    acked_seq: int
    sent_seq: int
    produced_seq: int
    exit_code: int | None
    exit_signal: int | None


@dataclass(frozen=True)
class Lost:
    """The transport broke before a reason came. Every byte before `taken_seq` is here, and no other."""

    taken_seq: int
    why: str


class Presentation:
    """
    Iterate over it for `Output` and `Resized`. Asking for the next says that the last is taken, and
    nothing is acknowledged before; `end` says how it ended. Leaving the `with` block leaves the look,
    and the program goes on. Entering raises a `RefusedError` or an `UnreachableError`.
    """

    def __init__(self, data: grpc.Channel, terms: Terms) -> None:
        self.end: Closed | Lost | None = None
        self.opened = data_pb2.Opened()
        self._stub = data_pb2_grpc.DataServiceStub(data)
        self._terms = terms
        self._program_end: data_pb2.End | None = None

    @property
    def taken_seq(self) -> int:
        """Next byte that the consumer does not have."""
        return self._ledger.taken

    def __enter__(self) -> Presentation:
        self._stream = CallStream(self._stub.Present, "data")
        try:
            self._stream.send(_open_request(self._terms))
            self._begin(self._stream.first(_OPENING_S))
        except BaseException:
            self._stream.cancel()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.cancel()

    def __iter__(self) -> Iterator[Union[Output, Resized]]:
        while self.end is None:
            try:
                response = self._stream.receive()
            except (RefusedError, UnreachableError) as error:
                self._lose(str(error))
                return
            yield from self._pass_on(response)

    def _begin(self, response: data_pb2.PresentResponse) -> None:
        event = response.WhichOneof("event")
        if event == "closed":
            reason = _close_reason(response.closed.reason)
            if reason in _REFUSAL_BY:
                raise RefusedError(_REFUSAL_BY[reason], {})
        if event != "opened":
            raise UnreachableError("data", f"the stream began with {event}")
        self.opened = response.opened
        self._ledger = AckLedger(self.opened.out_seq, self.opened.window_bytes)

    def _pass_on(self, response: data_pb2.PresentResponse) -> Iterator[Union[Output, Resized]]:
        event = response.WhichOneof("event")
        if event == "output":
            frame = response.output
            if not self._ledger.receive(frame.seq, len(frame.payload)):
                self._lose(f"a frame at {frame.seq} where {self._ledger.received} was due")
                return
            yield Output(frame.seq, frame.payload)
            self._ledger.take()
            if self._ledger.is_due(len(frame.payload)):
                self._acknowledge()
        elif event == "geometry":
            size = response.geometry.geometry
            yield Resized(response.geometry.out_seq, size.rows, size.cols)
        elif event == "end":
            self._program_end = response.end
            self._acknowledge()
        elif event == "closed":
            self._close(response.closed)
        # Anything else is an event of a newer service.

    def _acknowledge(self) -> None:
        ledger = self._ledger
        if ledger.taken > ledger.acked:
            ack = data_pb2.OutputAck(next_seq=ledger.taken)
            self._stream.send(data_pb2.PresentRequest(ack=ack))
            ledger.acked = ledger.taken

    def _close(self, closed: data_pb2.Closed) -> None:
        reason = _close_reason(closed.reason)
        if reason is None:
            self._lose(f"it closed for a reason unknown here ({closed.reason})")
            return
        # What was acknowledged may still have been on its way when the service closed.
        acked = max(closed.acked_seq, self._ledger.acked)
        positions = (acked, closed.sent_seq, closed.produced_seq)
        self.end = Closed(reason, *positions, *_exit_of(closed))

    def _lose(self, why: str) -> None:
        """After End every byte is here all the same, and the program's end is known."""
        taken, end = self._ledger.taken, self._program_end
        if end is not None and end.out_seq == taken:
            self.end = Closed("ENDED", taken, taken, taken, *_exit_of(end))
        else:
            self.end = Lost(taken, why)


def _open_request(terms: Terms) -> data_pb2.PresentRequest:
    opening = data_pb2.PresentOpen(
        worker_ref=terms.worker_ref,
        expected_worker_generation=terms.generation,
        replace=terms.replace,
    )
    if terms.hold_limit_ms is not None:
        opening.hold_limit_ms = terms.hold_limit_ms
    return data_pb2.PresentRequest(open=opening)


def _close_reason(number: int) -> str | None:
    """None for a number that these stubs do not know: enums are open, and grow."""
    value = refusal_pb2.CloseReason.DESCRIPTOR.values_by_number.get(number)
    return None if value is None else value.name.removeprefix("CLOSE_REASON_")


def _exit_of(message: data_pb2.Closed | data_pb2.End) -> tuple[int | None, int | None]:
    how = message.exit.WhichOneof("how")
    code = message.exit.code if how == "code" else None
    signal = message.exit.signal if how == "signal" else None
    return code, signal
