"""Versions of Python packages: their order, and whether one lies in a range.

The part of PEP 440 that releases, pre-releases and nightly builds of the packages around JAX use. Importing the library
that knows all of it would make every user of JAX install one more package.
"""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|rc|alpha|beta|c|pre|preview)[-_.]?\d*)?(?:[-_.]?post\d*)?", re.I)
_DEVELOPMENT = re.compile(r"[-_.]?dev\d*", re.I)


def public(version: str) -> str:
    """The version without what a builder adds to it after a plus sign."""
    return version.partition("+")[0]


def order(version: str) -> tuple[tuple[int, ...], int]:
    """What two versions are compared by: the numbers, and whether it comes before (-1) their release.

    Raises:
      ValueError: it begins with no number.
    """
    match = _VERSION.match(version)
    if match is None:
        raise ValueError(f"{version!r} is no version of a Python package")
    numbers = [int(number) for number in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    before = bool(match[2]) or _DEVELOPMENT.search(public(version)) is not None
    return tuple(numbers), -1 if before else 0


def is_within(version: str, minimum: str = "", below: str = "") -> bool:
    """Whether minimum <= version < below; an empty bound does not bind.

    As pip does, a pre-release of `below` is not below it: 0.13.0rc1 does not fit <0.13.

    Raises:
      ValueError: one of them is no version.
    """
    key = order(version)
    if minimum and key < order(minimum):
        return False
    return not below or key[0] < order(below)[0]
