"""The errors of the compiler, each with the code that PJRT will report.

Everything that leaves the compiler is a `CompileError`; `IrError` is what the verifier and the type
rules raise inside it. A message says what was asked, what is wrong, where (a JAX source location)
and what to do.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from treadle.compiler.ir.core import UNKNOWN_LOCATION, Location


class StatusCode(enum.IntEnum):
    """PJRT_Error_Code, by value."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class CompileError(Exception):
    """A compile that failed, as PJRT reports it: a code and a text."""

    def __init__(self, code: StatusCode, message: str):
        super().__init__(message)
        self.code = code
        self.message = message


class IrError(Exception):
    """The IR breaks one of its own rules.

    Raised by the verifier and the type rules. Before the first pass it means that the user's
    program is wrong; after a pass, that the pass is.
    """

    def __init__(self, message: str, loc: Location = UNKNOWN_LOCATION):
        super().__init__(f"{message} ({loc})" if loc is not UNKNOWN_LOCATION else message)
        self.message = message
        self.loc = loc


class UnsupportedError(CompileError):
    """The program is valid and asks for things that Treadle does not have.

    One error lists them all, because a user who has to find them one compile at a time gives up.

    Attributes:
      items: what is missing and where it is used, in program order.
    """

    def __init__(self, items: Sequence[tuple[str, Location]]):
        super().__init__(StatusCode.UNIMPLEMENTED, unsupported_message(items))
        self.items = tuple(items)


# Uses of one missing thing that a message spells out; the rest is counted.
_PLACES_SHOWN = 3


def unsupported_message(items: Sequence[tuple[str, Location]]) -> str:
    """The text of an UnsupportedError: one line for each missing thing, with where it is used."""
    places: dict[str, list[Location]] = {}
    for what, loc in items:
        places.setdefault(what, []).append(loc)
    lines = []
    for what, locs in places.items():
        distinct = list(dict.fromkeys(str(loc) for loc in locs))
        shown = "; ".join(distinct[:_PLACES_SHOWN])
        more = len(distinct) - _PLACES_SHOWN
        lines.append(f"  - {what}: {shown}" + (f" and {more} more places" if more > 0 else ""))
    things = "1 thing" if len(places) == 1 else f"{len(places)} things"
    return (
        f"The program uses {things} that Treadle cannot compile:\n"
        + "\n".join(lines)
        + "\nRun it on another backend, for example with jax.default_device(jax.devices('cpu')[0]),"
        " or write it with other operations."
    )
