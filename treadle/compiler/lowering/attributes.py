"""Attributes of ops as typed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from treadle.compiler.ir.core import Op


def integer(op: Op, attr: str) -> int:
    """An integer attribute."""
    return cast(int, op.attrs[attr])


def ints(op: Op, attr: str) -> tuple[int, ...]:
    """An integer-tuple attribute."""
    return tuple(cast(Sequence[int], op.attrs[attr]))


def pairs(op: Op, attr: str) -> tuple[tuple[int, int], ...]:
    """An attribute that holds two numbers per dimension."""
    return tuple(cast(Sequence[tuple[int, int]], op.attrs[attr]))


def flags(op: Op, attr: str) -> tuple[bool, ...]:
    """An attribute that holds a truth value per dimension."""
    return tuple(cast(Sequence[bool], op.attrs[attr]))
