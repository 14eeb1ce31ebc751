"""Recognising what a combiner of several accumulators means.

A combiner made of nothing but comparisons, logic and choices does one of finitely many things: which operand it picks
depends only on how the operands compare. So it is tried on every outcome of those comparisons, and no spelling of it
has to be known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import const_value, index_bounds
from treadle.compiler.loops.ir import Apply, Const, Expr, Index, IndexValue, Param, Reduction
from treadle.compiler.loops.walk import postorder

# How the accumulated value compares with the new one: "<", "=", ">", or which of them is NaN.
_ORDERED = ("<", "=", ">")
_UNORDERED = ("left", "right", "both")
_HOLDS = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "=", "NE": "<>"}


def with_position_kind(reduction: Reduction) -> Reduction:
    """The reduction with kind "argmax" or "argmin" (see loops.ir.Reduction) where it is one; else as it is.

    The caller warrants that nobody reads the first accumulator if that is a float: where zeros of both signs tie, which
    of them it is depends on the order.
    """
    if len(reduction.inputs) != 2 or not _position_rises(reduction):
        return reduction
    dtype = reduction.acc_dtypes[0]
    if dtype is t.PRED:
        return reduction
    relations = _ORDERED + _UNORDERED if dtype.is_float else _ORDERED
    for kind, better in (("argmax", ">"), ("argmin", "<")):
        if all(_picks(reduction.combiner, relation, better) for relation in relations):
            return dataclasses.replace(reduction, kind=kind)
    return reduction


def _position_rises(reduction: Reduction) -> bool:
    """Whether the second input grows along the reduction, from no less than where it starts."""
    first, position = reduction.inits[1], reduction.inputs[1]
    if not (isinstance(first, Const) and isinstance(position, IndexValue) and position.dtype.is_integer):
        return False
    bounds = index_bounds(position.index)
    if bounds is None or bounds[1] > np.iinfo(position.dtype.numpy).max:
        return False
    start = int(const_value(first))  # type: ignore[call-overload]
    return bounds[0] >= start and _rises(position.index, reduction)


def _rises(index: Index, reduction: Reduction) -> bool:
    reach = 0
    for var in reversed(reduction.vars):
        coeff = index.coeff(var)
        if var.extent > 1 and coeff <= reach:
            return False
        reach += coeff * max(var.extent - 1, 0)
    return True


def _picks(combiner: Sequence[Expr], relation: str, better: str) -> bool:
    """Whether the combiner picks as it should where values compare like `relation`."""
    stays = relation in (better, "left", "both")
    # The accumulated position is below the new one, or equal to it: the first element may stand where the reduction
    # starts.
    for rises in (True, False):
        found = _outcome(combiner, relation, rises)
        if found is None:
            return False
        value, position = found
        if relation != "=" and value != (0 if stays else 2):
            return False
        if rises and position != (1 if stays or relation == "=" else 3):
            return False
    return True


def _outcome(combiner: Sequence[Expr], relation: str, rises: bool) -> tuple[int, int] | None:
    """Which operands the combiner picks, or None where it does anything but pick.

    Operands are numbered as Params: 0 and 1 are the accumulated value and position, 2 and 3 the new ones.
    """
    known: dict[Expr, object] = {}
    for node in postorder(combiner):
        known[node] = _evaluate(node, known, relation, rises)
        if known[node] is None:
            return None
    value, position = (known[node] for node in combiner)
    if not (isinstance(value, _Operand) and isinstance(position, _Operand)):
        return None
    return (value, position) if (value % 2, position % 2) == (0, 1) else None


class _Operand(int):
    """The number of a Param that a node stands for."""


def _evaluate(node: Expr, known: dict[Expr, object], relation: str, rises: bool) -> object:
    """A truth value, an operand, or None for what depends on more than comparisons."""
    if isinstance(node, Param):
        return _Operand(node.number)
    if isinstance(node, Const):
        return bool(node.bits) if node.dtype is t.PRED else None
    if not isinstance(node, Apply):
        return None
    operands = [known[x] for x in node.operands]
    if node.name == "select":
        return operands[1] if operands[0] else operands[2]
    if node.name == "compare":
        left, right = operands
        if not (isinstance(left, _Operand) and isinstance(right, _Operand)) or node.attr not in _HOLDS:
            return None
        between = _between(left, right, relation, rises)
        return None if between is None else _is(node.attr, between)
    if not all(isinstance(x, bool) for x in operands):
        return None
    if node.name == "not":
        return not operands[0]
    if node.name in ("and", "or", "xor"):
        left, right = bool(operands[0]), bool(operands[1])
        return {"and": left and right, "or": left or right, "xor": left != right}[node.name]
    return None


def _between(left: int, right: int, relation: str, rises: bool) -> str | None:
    """How two operands compare: one of _ORDERED, or "" for unordered; None for a value with a position."""
    if left % 2 != right % 2:
        return None
    if left % 2:
        return "=" if left == right or not rises else "<" if left < right else ">"
    nan = {"left": (0,), "right": (2,), "both": (0, 2)}.get(relation, ())
    if left in nan or right in nan:
        return ""
    if left == right:
        return "="
    return relation if left < right else {"<": ">", ">": "<", "=": "="}[relation]


def _is(direction: str, between: str) -> bool:
    return between in _HOLDS[direction] if between else direction == "NE"
