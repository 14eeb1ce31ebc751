"""What is known of integers: between which bounds they lie, and what follows from that.

Loop counters, iota and constants are where knowledge begins. With it go the checks for negative indices that JAX puts
before every indexing, and the high halves of 64-bit counters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import DType, Kind
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet

rules = RuleSet()

Range = tuple[int, int]

# How many ops deep a question goes, and the size of the constants that are looked at.
_DEPTH = 8
_CONSTANT_BYTES = 4096

_MOVING = ("broadcast_in_dim", "reshape", "transpose", "slice", "reverse", "dynamic_slice", "gather")


def full_range(dtype: DType) -> Range:
    """The range that says nothing."""
    if dtype.kind is Kind.PRED:
        return 0, 1
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def integer_range(value: Value, rewriter: Rewriter, depth: int = _DEPTH) -> Range:
    """Bounds of the elements of `value`, an array of integers or predicates that has elements."""
    known = rewriter.ranges.get(value)
    if known is not None:
        return known
    full = full_range(value.type.dtype)
    if value.op is None or not depth:
        return full
    low, high = _result_range(value.op, full, rewriter, depth - 1)
    if low < full[0] or high > full[1]:  # it may wrap
        low, high = full
    rewriter.ranges[value] = (low, high)
    return low, high


def _result_range(op: Op, full: Range, rewriter: Rewriter, depth: int) -> Range:
    name = op.name
    if name == "constant":
        array = np.asarray(op.attrs["value"])
        if not array.size or (array.nbytes > _CONSTANT_BYTES and any(array.strides)):
            return full
        return int(array.min()), int(array.max())
    if name == "iota":
        dim = op.attrs["iota_dimension"]
        assert isinstance(dim, int)
        return 0, op.results[0].type.shape[dim] - 1
    if any(not (v.type.dtype.is_integer or v.type.dtype.kind is Kind.PRED) for v in op.operands):
        return full

    def of(i: int) -> Range:
        return integer_range(op.operands[i], rewriter, depth)

    if name in _MOVING or name == "convert":
        return of(0)
    if name == "select":
        (a, b), (c, d) = of(1), of(2)
        return min(a, c), max(b, d)
    if name == "clamp":
        (a, b), (c, d), (e, f) = of(0), of(1), of(2)
        return min(max(a, c), e), min(max(b, d), f)
    rule = _ARITHMETIC.get(name)
    return rule(of(0), of(1), full) if rule is not None else full


def _multiply(x: Range, y: Range, _: Range) -> Range:
    products = [a * b for a in x for b in y]
    return min(products), max(products)


def _and(x: Range, y: Range, full: Range) -> Range:
    bounds = [high for low, high in (x, y) if low >= 0]
    return (0, min(bounds)) if bounds else full


def _shift_right(x: Range, y: Range, full: Range) -> Range:
    bits = (full[1] - full[0]).bit_length()
    if x[0] < 0 or y[0] < 0:
        return full
    return x[0] >> min(y[1], bits), x[1] >> min(y[0], bits)


def _remainder(x: Range, y: Range, full: Range) -> Range:
    if y[0] <= 0:
        return full
    most = y[1] - 1
    return (0 if x[0] >= 0 else max(-most, x[0])), min(most, max(x[1], 0))


def _divide(x: Range, y: Range, full: Range) -> Range:
    return (x[0] // y[1], x[1] // y[0]) if x[0] >= 0 and y[0] > 0 else full


_ARITHMETIC: dict[str, Callable[[Range, Range, Range], Range]] = {
    "add": lambda x, y, _: (x[0] + y[0], x[1] + y[1]),
    "subtract": lambda x, y, _: (x[0] - y[1], x[1] - y[0]),
    "multiply": _multiply,
    "minimum": lambda x, y, _: (min(x[0], y[0]), min(x[1], y[1])),
    "maximum": lambda x, y, _: (max(x[0], y[0]), max(x[1], y[1])),
    "and": _and,
    "shift_right_logical": _shift_right,
    "remainder": _remainder,
    "divide": _divide,
}


@rules.on("compare")
def _compare(op: Op, rewriter: Rewriter) -> Replacement:
    """A comparison that all numbers of the ranges decide alike."""
    x, y = op.operands
    if not x.type.dtype.is_integer or not x.type.size:
        return None
    (a, b), (c, d) = integer_range(x, rewriter), integer_range(y, rewriter)
    direction = str(op.attrs["comparison_direction"])
    always, never = {
        "LT": (b < c, a >= d),
        "LE": (b <= c, a > d),
        "GT": (a > d, b <= c),
        "GE": (a >= d, b < c),
        "EQ": (a == b == c == d, b < c or d < a),
        "NE": (b < c or d < a, a == b == c == d),
    }[direction]
    return rewriter.full(always, op.results[0].type) if always or never else None


@rules.on("shift_right_logical", "and", "minimum", "maximum", "clamp", "remainder", "divide")
def _single(op: Op, rewriter: Rewriter) -> Replacement:
    """Integers with one possible value; bounds that are never reached."""
    result = op.results[0]
    if not result.type.dtype.is_integer or not result.type.size:
        return None
    low, high = integer_range(result, rewriter)
    if low == high:
        return rewriter.full(low, result.type)
    if op.name in ("minimum", "maximum"):
        x, y = op.operands
        (a, b), (c, d) = integer_range(x, rewriter), integer_range(y, rewriter)
        smaller = x if b <= c else y if d <= a else None
        if smaller is not None:
            return smaller if op.name == "minimum" else y if smaller is x else x
    if op.name == "clamp":
        bottom, x, top = op.operands
        a, b = integer_range(x, rewriter)
        if integer_range(bottom, rewriter)[1] <= a and b <= integer_range(top, rewriter)[0]:
            return x
    return None
