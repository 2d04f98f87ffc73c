"""The operator's presence: everything they ask hangs on it and ends with it."""
from __future__ import annotations

from types import TracebackType

import grpc
from wheelhouse.authority.v1 import authority_pb2_grpc

from .call_stream import CallStream
from .failures import UnreachableError

_BINDING_S = 10.0


class ControlBind:
    """
    A Bind, held open for as long as the `with` block lasts.

    Entering raises a `RefusedError` or an `UnreachableError`. It does not renew the certificate: a
    look that outlives it is closed as CONTROL_UNBOUND.
    """

    def __init__(self, authority: grpc.Channel) -> None:
        self._stub = authority_pb2_grpc.AuthorityServiceStub(authority)
        self._stream: CallStream | None = None

    def __enter__(self) -> ControlBind:
        self._stream = CallStream(self._stub.Bind, "authority")
        try:
            first = self._stream.first(_BINDING_S)
            if first.WhichOneof("event") != "bound":
                raise UnreachableError("authority", "the bind did not begin with Bound")
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
        if self._stream is not None:
            self._stream.cancel()
