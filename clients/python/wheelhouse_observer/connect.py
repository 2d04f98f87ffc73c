"""Dials one plane as one identity: TLS both ways, and only that plane's certificate will do."""
from __future__ import annotations

import grpc

from .state_folder import Identity

_OPTIONS = (
    # A retried act is a second act.
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A Bind is silent for days; without this, gRPC stops asking after two questions.
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
    # A connection of its own, so that closing the channel closes it.
    ("grpc.use_local_subchannel_pool", 1),
)


def connect(endpoint: str, plane: str, identity: Identity) -> grpc.Channel:
    """Dials lazily: the first call makes the connection. `endpoint` is `host:port`."""
    credentials = grpc.ssl_channel_credentials(
        root_certificates=identity.root,
        private_key=identity.key,
        certificate_chain=identity.certificate,
    )
    name = ("grpc.ssl_target_name_override", f"{plane}.wheelhouse.internal")
    return grpc.secure_channel(endpoint, credentials, options=(*_OPTIONS, name))
