"""Elementwise arithmetic, comparison, logic and mathematical functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import PRED, Kind, TensorType
from treadle.compiler.ops import numerics
from treadle.compiler.ops.registry import Array, Infer, attr, elementwise, fail, operand_count

_PRED = (Kind.PRED,)
_INTEGER = (Kind.SIGNED, Kind.UNSIGNED)
_FLOAT = (Kind.FLOAT, Kind.COMPLEX)
_NUMBER = _INTEGER + _FLOAT
_ANY = _PRED + _NUMBER


def _same_types(op: Op, count: int, kinds: Sequence[Kind]) -> TensorType:
    operand_count(op, count)
    first = op.operands[0].type
    for value in op.operands[1:]:
        if value.type != first:
            fail(op, f"operands must have one type, got {first} and {value.type}")
    if first.dtype.kind not in kinds:
        fail(op, f"expected elements of kind {' or '.join(k.value for k in kinds)}, got {first.dtype}")
    return first


def _rule(count: int, kinds: Sequence[Kind]) -> Infer:
    def infer(op: Op) -> Sequence[TensorType]:
        return (_same_types(op, count, kinds),)

    return infer


def _define(
    name: str, count: int, kinds: Sequence[Kind], function: Callable[..., Array], commutative: bool = False
) -> None:
    def apply(_: Op, *xs: Array) -> Array:
        return function(*xs)

    elementwise(name, _rule(count, kinds), commutative=commutative)(apply)


def _arithmetic(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *xs: numerics.in_arithmetic(function, *xs)


def _double(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *xs: numerics.in_double(function, *xs)


def _popcnt(x: Array) -> Array:
    return np.bitwise_count(numerics.unsigned(x)).astype(x.dtype)


_define("add", 2, _ANY, _arithmetic(np.add), commutative=True)
_define("subtract", 2, _NUMBER, _arithmetic(np.subtract))
_define("multiply", 2, _ANY, _arithmetic(np.multiply), commutative=True)
_define("divide", 2, _NUMBER, numerics.divide)
_define("remainder", 2, _NUMBER, numerics.remainder)
_define("maximum", 2, _ANY, numerics.maximum, commutative=True)
_define("minimum", 2, _ANY, numerics.minimum, commutative=True)
_define("power", 2, _NUMBER, numerics.power)
_define("atan2", 2, _FLOAT, _double(np.arctan2))

_define("negate", 1, _NUMBER, _arithmetic(np.negative))
_define("abs", 1, (Kind.SIGNED, Kind.FLOAT), _arithmetic(np.abs))
_define("sign", 1, (Kind.SIGNED, *_FLOAT), numerics.sign)
_define("ceil", 1, _FLOAT, _arithmetic(np.ceil))
_define("floor", 1, _FLOAT, _arithmetic(np.floor))
_define("round_nearest_even", 1, _FLOAT, _arithmetic(np.rint))
_define("round_nearest_afz", 1, _FLOAT, _arithmetic(numerics.round_half_away))

_define("sqrt", 1, _FLOAT, _arithmetic(np.sqrt))
_define("rsqrt", 1, _FLOAT, _double(lambda x: 1.0 / np.sqrt(x)))
_define("cbrt", 1, _FLOAT, _double(np.cbrt))
_define("exponential", 1, _FLOAT, _double(np.exp))
_define("exponential_minus_one", 1, _FLOAT, _double(np.expm1))
_define("log", 1, _FLOAT, _double(np.log))
_define("log_plus_one", 1, _FLOAT, _double(np.log1p))
_define("logistic", 1, _FLOAT, _double(numerics.logistic))
_define("sine", 1, _FLOAT, _double(np.sin))
_define("cosine", 1, _FLOAT, _double(np.cos))
_define("tan", 1, _FLOAT, _double(np.tan))
_define("tanh", 1, _FLOAT, _double(np.tanh))

_define("and", 2, _PRED + _INTEGER, np.bitwise_and, commutative=True)
_define("or", 2, _PRED + _INTEGER, np.bitwise_or, commutative=True)
_define("xor", 2, _PRED + _INTEGER, np.bitwise_xor, commutative=True)
_define("not", 1, _PRED + _INTEGER, np.invert)
_define("shift_left", 2, _INTEGER, numerics.shift_left)
_define("shift_right_logical", 2, _INTEGER, numerics.shift_right_logical)
_define("shift_right_arithmetic", 2, _INTEGER, numerics.shift_right_arithmetic)
_define("popcnt", 1, _INTEGER, _popcnt)
_define("count_leading_zeros", 1, _INTEGER, numerics.count_leading_zeros)


def _infer_is_finite(op: Op) -> Sequence[TensorType]:
    return (TensorType(PRED, _same_types(op, 1, (Kind.FLOAT,)).shape),)


@elementwise("is_finite", _infer_is_finite)
def _is_finite(_: Op, x: Array) -> Array:
    return np.isfinite(numerics.widen(x))


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
_COMPARE_TYPES = {
    Kind.PRED: ("UNSIGNED", "NOTYPE"),
    Kind.SIGNED: ("SIGNED", "NOTYPE"),
    Kind.UNSIGNED: ("UNSIGNED", "NOTYPE"),
    Kind.FLOAT: ("FLOAT", "TOTALORDER", "NOTYPE"),
    Kind.COMPLEX: ("FLOAT", "NOTYPE"),
}


def _infer_compare(op: Op) -> Sequence[TensorType]:
    operand = _same_types(op, 2, _ANY)
    direction, how = attr(op, "comparison_direction"), attr(op, "compare_type")
    if direction not in COMPARISONS:
        fail(op, f"comparison_direction must be one of {', '.join(COMPARISONS)}, got {direction!r}")
    if how not in _COMPARE_TYPES[operand.dtype.kind]:
        expected = " or ".join(_COMPARE_TYPES[operand.dtype.kind])
        fail(op, f"compare_type of {operand.dtype} elements must be {expected}, got {how!r}")
    return (TensorType(PRED, operand.shape),)


@elementwise("compare", _infer_compare)
def _compare(op: Op, x: Array, y: Array) -> Array:
    if op.attrs["compare_type"] == "TOTALORDER":
        x, y = numerics.total_order(x), numerics.total_order(y)
    return COMPARISONS[str(op.attrs["comparison_direction"])](numerics.widen(x), numerics.widen(y))


def _infer_select(op: Op) -> Sequence[TensorType]:
    operand_count(op, 3)
    pred, on_true, on_false = (v.type for v in op.operands)
    if on_true != on_false:
        fail(op, f"on_true and on_false must have one type, got {on_true} and {on_false}")
    if pred.dtype is not PRED or pred.shape not in ((), on_true.shape):
        fail(op, f"expected a predicate pred[] or {TensorType(PRED, on_true.shape)}, got {pred}")
    return (on_true,)


@elementwise("select", _infer_select)
def _select(_: Op, pred: Array, on_true: Array, on_false: Array) -> Array:
    return np.where(pred, on_true, on_false)


def _infer_clamp(op: Op) -> Sequence[TensorType]:
    operand_count(op, 3)
    low, operand, high = (v.type for v in op.operands)
    for bound in (low, high):
        if bound.dtype is not operand.dtype or bound.shape not in ((), operand.shape):
            fail(op, f"expected bounds {TensorType(operand.dtype, ())} or {operand}, got {bound}")
    return (operand,)


@elementwise("clamp", _infer_clamp)
def _clamp(_: Op, low: Array, x: Array, high: Array) -> Array:
    return numerics.minimum(numerics.maximum(low, x), high)
