"""One bidirectional call, with a queue for what is sent and a deadline for its first answer."""
from __future__ import annotations

import queue
import threading
from typing import Any, Callable

import grpc

from .failures import UnreachableError, failure_of


class CallStream:
    """`receive` raises a `RefusedError` or an `UnreachableError` once the call is over."""

    def __init__(self, method: Callable[[Any], Any], service: str) -> None:
        self.service = service
        # At most one acknowledgement for each received frame, and those are bounded by the window.
        self._sending: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = method(iter(self._sending.get, None))

    def send(self, message: Any) -> None:
        self._sending.put(message)

    def receive(self) -> Any:
        try:
            return next(self._call)
        except StopIteration:
            raise UnreachableError(self.service, "the stream just ended") from None
        except grpc.RpcError as error:
            raise failure_of(error, self.service) from error

    def first(self, within_s: float) -> Any:
        """The first message; a call that is not answered in time will not be."""
        overdue = threading.Timer(within_s, self._call.cancel)
        overdue.daemon = True
        overdue.start()
        try:
            return self.receive()
        finally:
            overdue.cancel()

    def cancel(self) -> None:
        """Frees what the transport still holds, and lets the sending thread end."""
        self._call.cancel()
        self._sending.put(None)
