"""The kinds of break that the nightly job tells apart, the layer nearest to the bottom first."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What broke. The order is the order of blame: an earlier kind explains the later ones."""

    ENVIRONMENT = "environment"
    BUILD = "build"
    HEADER = "header"
    API = "api"
    STABLEHLO = "stablehlo"
    PRIVATE_API = "private-api"
    CRASH = "crash"
    UNIMPLEMENTED = "unimplemented"
    NUMERICS = "numerics"
    TEST = "test"
    OTHER = "other"
    INTERNAL = "internal"

    @property
    def exit_code(self) -> int:
        """The exit code of a run whose first break is of this kind."""
        return _EXIT_CODES[self]

    @property
    def meaning(self) -> str:
        """One line for people."""
        return _MEANINGS[self]


OK = 0
USAGE = 2
BUSY = 4

_EXIT_CODES = {
    Kind.INTERNAL: 1,
    Kind.ENVIRONMENT: 3,
    Kind.HEADER: 10,
    Kind.API: 11,
    Kind.STABLEHLO: 12,
    Kind.PRIVATE_API: 13,
    Kind.NUMERICS: 14,
    Kind.CRASH: 15,
    Kind.BUILD: 16,
    Kind.TEST: 17,
    Kind.UNIMPLEMENTED: 18,
    Kind.OTHER: 19,
}

_MEANINGS = {
    Kind.ENVIRONMENT: "nothing is known: the registry could not be reached, or something could not be installed",
    Kind.BUILD: "Treadle does not build, and its error does not name the PJRT header",
    Kind.HEADER: "the PJRT header that Treadle is built against and this jaxlib do not go together",
    Kind.API: "the PJRT C API refused something: a version, a struct's size, a slot",
    Kind.STABLEHLO: "this jaxlib's StableHLO or MLIR bytecode cannot be read",
    Kind.PRIVATE_API: "a private name or layout of JAX that Treadle relies on is gone or changed",
    Kind.CRASH: "a process died of a signal",
    Kind.UNIMPLEMENTED: "a program of Treadle's own tests now needs something that Treadle does not compile",
    Kind.NUMERICS: "a result is wrong",
    Kind.TEST: "a test failed for another reason",
    Kind.OTHER: "something else; the log's end is in the report",
    Kind.INTERNAL: "the nightly job itself failed",
}


def first_of(kinds: list[Kind]) -> Kind:
    """The kind that explains the others.

    Raises:
      ValueError: there is none.
    """
    return min(kinds, key=list(Kind).index)
