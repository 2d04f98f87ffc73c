"""Looks at the terminal of a Wheelhouse worker: exact bytes, acknowledged as they are taken."""
from .connect import connect
from .control_bind import ControlBind
from .failures import RefusedError, UnreachableError
from .presentation import Closed, Lost, Output, Presentation, Resized, Terms
from .state_folder import Identity, StateFolder
from .workers import Designated, designate

__all__ = [
    "Closed",
    "ControlBind",
    "Designated",
    "Identity",
    "Lost",
    "Output",
    "Presentation",
    "RefusedError",
    "Resized",
    "StateFolder",
    "Terms",
    "UnreachableError",
    "connect",
    "designate",
]
