"""`observe NAME`: prints the bytes of a worker's terminal until it ends."""
from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import IO, Iterator

import grpc

from .connect import connect
from .control_bind import ControlBind
from .failures import RefusedError, UnreachableError
from .presentation import Closed, Lost, Output, Presentation, Terms
from .state_folder import StateFolder, operator_name
from .transcript import Transcript
from .workers import Designated, designate

EXIT_DONE, EXIT_USAGE, EXIT_REFUSED, EXIT_UNREACHABLE = 0, 2, 3, 4
_HOLD_LIMIT_MAX_S = 30.0


def main() -> int:
    options = _parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _transcript_stream(options.transcript) as stream:
        transcript = Transcript(stream)
        try:
            return _observe(options, transcript)
        except RefusedError as error:
            transcript.refused(error.reason, error.facts)
            _say(f"refused: {error}")
            return EXIT_REFUSED
        except UnreachableError as error:
            transcript.write("unreachable", service=error.service)
            _say(f"unreachable: {error}")
            return EXIT_UNREACHABLE
        except OSError as error:
            _say(f"observe: {error}")
            return EXIT_USAGE
        except KeyboardInterrupt:
            return 128 + signal.SIGINT


def _observe(options: argparse.Namespace, transcript: Transcript) -> int:
    folder = StateFolder(Path(options.state)) if options.state else StateFolder.default()
    role, _, name = options.identity.partition("/")
    identity, endpoints = folder.identity(role, name), folder.endpoints()
    with contextlib.ExitStack() as owned:
        authority = owned.enter_context(connect(endpoints.authority, "authority", identity))
        if options.bind:
            owned.enter_context(ControlBind(authority))
            transcript.write("bound")
        worker = designate(authority, options.name)
        endpoint = worker.endpoint or endpoints.data.get(worker.node)
        if not endpoint:
            raise RefusedError("OWNER_UNREACHABLE", {"node": worker.node})
        data = owned.enter_context(connect(endpoint, "data", identity))
        return _look(data, _terms(options, worker), transcript, options.transcript != "-")


def _look(data: grpc.Channel, terms: Terms, transcript: Transcript, prints: bool) -> int:
    with Presentation(data, terms) as look:
        size = look.opened.geometry
        transcript.write(
            "opened", out_seq=str(look.opened.out_seq), rows=size.rows, cols=size.cols
        )
        try:
            for event in look:
                if isinstance(event, Output):
                    if prints:
                        _print(event.payload)
                    transcript.take(event.payload)
                else:
                    transcript.write(
                        "resized", out_seq=str(event.out_seq), rows=event.rows, cols=event.cols
                    )
        except (KeyboardInterrupt, BrokenPipeError):
            # Left, or whoever read stdout has: the program goes on.
            transcript.closed("DETACHED", acked_seq=str(look.taken_seq))
            return EXIT_DONE
    assert look.end is not None
    transcript.ended(look.end)
    return _report(look.end)


def _report(end: Closed | Lost) -> int:
    if isinstance(end, Lost):
        _say(f"closed: transport-lost acked={end.taken_seq} ({end.why})")
        return EXIT_UNREACHABLE
    name = end.reason.lower().replace("_", "-")
    _say(f"closed: {name} acked={end.acked_seq} sent={end.sent_seq} produced={end.produced_seq}")
    return EXIT_DONE if end.reason == "ENDED" else EXIT_REFUSED


def _print(payload: bytes) -> None:
    """Returns when the system has every byte: only then may they be acknowledged."""
    rest = memoryview(payload)
    while rest:
        rest = rest[os.write(1, rest) :]


def _terms(options: argparse.Namespace, worker: Designated) -> Terms:
    return Terms(
        worker_ref=worker.worker_ref,
        generation=options.generation or worker.generation,
        hold_limit_ms=options.hold_limit,
        replace=options.replace,
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="observe", description=__doc__)
    parser.add_argument("name", help="the worker")
    parser.add_argument("--state", help="the state folder of the deployment")
    parser.add_argument(
        "--as",
        dest="identity",
        metavar="ROLE/NAME",
        default=f"human-control/{operator_name()}",
        help="an identity of the folder (human-control and the current user)",
    )
    parser.add_argument("--generation", type=int, help="only this generation of the worker")
    parser.add_argument(
        "--hold-limit",
        type=_hold_limit_ms,
        metavar="SECONDS",
        help="how long this reader may hold the terminal: 0 to 30",
    )
    parser.add_argument("--replace", action="store_true", help="take the place of an older look")
    parser.add_argument(
        "--no-bind",
        dest="bind",
        action="store_false",
        help="rely on a Bind that another process holds with this certificate",
    )
    parser.add_argument(
        "--transcript", metavar="FILE|-", help="JSON lines; - takes the place of the bytes"
    )
    return parser.parse_args()


def _hold_limit_ms(text: str) -> int:
    seconds = float(text)
    if not 0 <= seconds <= _HOLD_LIMIT_MAX_S:
        raise ValueError(text)
    return round(seconds * 1000)


@contextlib.contextmanager
def _transcript_stream(target: str | None) -> Iterator[IO[str] | None]:
    if target is None:
        yield None
    elif target == "-":
        yield sys.stdout
    else:
        with open(target, "w", encoding="utf8") as stream:
            yield stream


def _say(line: str) -> None:
    print(line, file=sys.stderr)
