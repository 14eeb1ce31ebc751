"""What a run of the nightly job is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

INJECTIONS = {
    "private-name": "the canary is told of a private name that no JAX has",
    "test": "the project's tests get one more, which expects a wrong value",
}

# A slice of JAX's own tests that takes minutes; in most of what it loses Treadle says UNIMPLEMENTED.
JAX_TESTS = ("lax_test", "random_test", "nn_test")


# The groups of Treadle's own tests; steps/project_tests.py says what is in each.
TESTS = ("registration", "frontend", "capi", "execution", "ops", "ops-x64")


@dataclass(frozen=True)
class Options:
    """The command line, with its defaults filled in."""

    root: Path
    out: Path
    index: str | None = None
    jaxlib: str | None = None
    python: str | None = None
    tests: tuple[str, ...] = TESTS
    jax_clone: Path | None = None
    jax_tests: tuple[str, ...] = JAX_TESTS
    workers: int = 1
    inject: str | None = None
    fresh: bool = False
    keep: int = 3
