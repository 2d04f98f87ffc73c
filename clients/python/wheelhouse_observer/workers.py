"""Finds what a person calls by name: the worker, its generation, and its data node."""
from __future__ import annotations

from dataclasses import dataclass

import grpc
from wheelhouse.authority.v1 import authority_pb2, authority_pb2_grpc

from .failures import failure_of

_ANSWER_S = 10.0


@dataclass(frozen=True)
class Designated:
    """All a look names, and where it is asked for. `endpoint` is empty when authority knows none."""

    worker_ref: str
    generation: int
    node: str
    endpoint: str


def designate(authority: grpc.Channel, name: str) -> Designated:
    """
    The worker of a name as it stands now. Raises a `RefusedError` or an `UnreachableError`.

    A name that nobody has is passed on as it is, so that it is the services that say no.
    """
    stub = authority_pb2_grpc.AuthorityServiceStub(authority)
    try:
        listed = stub.ListWorkers(authority_pb2.ListWorkersRequest(), timeout=_ANSWER_S)
    except grpc.RpcError as error:
        raise failure_of(error, "authority") from error
    for worker in listed.workers:
        if name in (worker.name, worker.worker_ref):
            return Designated(
                worker.worker_ref,
                worker.worker_generation,
                worker.data_node or "local",
                worker.data_endpoint,
            )
    return Designated(name, 1, "local", "")
