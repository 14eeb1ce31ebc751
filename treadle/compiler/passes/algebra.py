"""Arithmetic and logic that needs no computing, exact for NaN, infinities and signs of zero."""

from __future__ import annotations

import math

import numpy as np

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import DType, Kind, TensorType
from treadle.compiler.ops import registry
from treadle.compiler.passes.rewriter import (
    Replacement,
    Rewriter,
    RuleSet,
    as_number,
    is_negative_zero,
    is_positive_zero,
)

rules = RuleSet()

_INVERSE = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
_LOWEST = {Kind.PRED: False, Kind.FLOAT: -math.inf}
_HIGHEST = {Kind.PRED: True, Kind.FLOAT: math.inf}


def made_by(value: Value, name: str) -> Op | None:
    """The op that makes `value`, if its name is `name`."""
    return value.op if value.op is not None and value.op.name == name else None


def all_ones(dtype: DType) -> bool | int:
    """The number whose bits are all set."""
    return True if dtype.kind is Kind.PRED else -1 if dtype.is_signed else 2**dtype.bits - 1


def power_of_two(number: bool | int | float | None) -> int | None:
    """n where `number` is 2**n with n > 0."""
    if type(number) is not int or number < 2 or number & (number - 1):
        return None
    return number.bit_length() - 1


def _reassociate(op: Op, rewriter: Rewriter) -> Replacement:
    """(x op c) op d -> x op (c op d) for wrapping integers."""
    result = op.results[0].type
    if not result.dtype.is_integer:
        return None
    left, right = op.operands
    inner, second = (left, right) if rewriter.splat(right) is not None else (right, left)
    d, made = rewriter.splat(second), made_by(inner, op.name)
    if d is None or made is None:
        return None
    for x, other in (made.operands, made.operands[::-1]):
        c = rewriter.splat(other)
        if c is not None:
            both = [np.asarray(n, result.dtype.numpy) for n in (c, d)]
            with np.errstate(all="ignore"):
                number = both[0] + both[1] if op.name == "add" else both[0] * both[1]
            return rewriter.emit(op.name, [x, rewriter.full(as_number(number), result)])
    return None


@rules.on("add")
def _add(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    exact = is_negative_zero if x.type.dtype.is_float else _is_zero
    for this, other in ((x, y), (y, x)):
        if exact(rewriter.splat(other)):
            return this
        negated = made_by(other, "negate")
        if negated is not None:
            return rewriter.emit("subtract", [this, negated.operands[0]])
    return _reassociate(op, rewriter)


@rules.on("subtract")
def _subtract(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    exact = is_positive_zero if x.type.dtype.is_float else _is_zero
    if exact(rewriter.splat(y)):
        return x
    if x is y and x.type.dtype.is_integer:
        return rewriter.full(0, x.type)
    negated = made_by(y, "negate")
    return rewriter.emit("add", [x, negated.operands[0]]) if negated is not None else None


@rules.on("multiply")
def _multiply(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    dtype = x.type.dtype
    for this, other in ((x, y), (y, x)):
        number = rewriter.splat(other)
        if number is None:
            continue
        if number == 1:
            return this
        if number == 0 and not dtype.is_float:
            return other
        if number == -1 and dtype.kind is not Kind.COMPLEX:
            return rewriter.emit("negate", [this])
    return _reassociate(op, rewriter)


@rules.on("divide")
def _divide(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    dtype = x.type.dtype
    number = rewriter.splat(y)
    if number is None:
        return None
    if number == 1:
        return x
    if dtype.is_float:
        if number == -1:
            return rewriter.emit("negate", [x])
        if not number or not math.isfinite(number) or abs(math.frexp(number)[0]) != 0.5:
            return None
        with np.errstate(all="ignore"):
            inverse = np.asarray(1.0 / number).astype(dtype.numpy)
        smallest = {"f16": 2.0**-14, "f64": 2.0**-1022}.get(dtype.name, 2.0**-126)
        if float(inverse) != 1.0 / number or abs(float(inverse)) < smallest:
            return None
        return rewriter.emit("multiply", [x, rewriter.constant_value(inverse, x.type)])
    shift = power_of_two(number) if dtype.kind is Kind.UNSIGNED else None
    return rewriter.emit("shift_right_logical", [x, rewriter.full(shift, x.type)]) if shift else None


@rules.on("remainder")
def _remainder(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    number = rewriter.splat(y)
    if number is None or not x.type.dtype.is_integer:
        return None
    if number == 1:
        return rewriter.full(0, x.type)
    if x.type.dtype.kind is Kind.UNSIGNED and power_of_two(number):
        return rewriter.emit("and", [x, rewriter.full(int(number) - 1, x.type)])
    return None


@rules.on("maximum", "minimum")
def _extremum(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    if x is y:
        return x
    dtype = x.type.dtype
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min), int(info.max)
    elif dtype.kind in _LOWEST and dtype.bits in (1, 16, 32, 64):
        low, high = _LOWEST[dtype.kind], _HIGHEST[dtype.kind]  # type: ignore[assignment]
    else:
        return None
    neutral, winner = (low, high) if op.name == "maximum" else (high, low)
    for this, other in ((x, y), (y, x)):
        number = rewriter.splat(other)
        if number is None:
            continue
        if number == neutral:
            return this
        if number == winner and not dtype.is_float:
            return other
    return None


@rules.on("power")
def _power(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    dtype = x.type.dtype
    exponent = rewriter.splat(y)
    if exponent == 0:
        return rewriter.full(1, x.type)
    if exponent == 1:
        return x
    if exponent == 2:
        return rewriter.emit("multiply", [x, x])
    if exponent == 3 and (dtype.is_integer or dtype.bits >= 32):  # a second rounding would show in 16 bits
        return rewriter.emit("multiply", [rewriter.emit("multiply", [x, x]), x])
    if exponent == -1 and dtype.is_float:
        return rewriter.emit("divide", [rewriter.full(1, x.type), x])
    return None


@rules.on("negate", "not")
def _involution(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    twice = made_by(x, op.name)
    if twice is not None:
        return twice.operands[0]
    compare = made_by(x, "compare") if op.name == "not" else None
    if compare is None:
        return None
    direction = str(compare.attrs["comparison_direction"])
    ordered = not compare.operands[0].type.dtype.is_float or compare.attrs["compare_type"] == "TOTALORDER"
    if not ordered and direction not in ("EQ", "NE"):
        return None  # NaN: not (x < y) is no (x >= y)
    attrs = compare.attrs | {"comparison_direction": _INVERSE[direction]}
    return rewriter.emit("compare", compare.operands, None, attrs)


@rules.on("abs")
def _abs(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    if made_by(x, "abs") is not None:
        return x
    negated = made_by(x, "negate")
    return rewriter.emit("abs", negated.operands) if negated is not None else None


@rules.on("and", "or")
def _and_or(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    if x is y:
        return x
    ones = all_ones(x.type.dtype)
    neutral, winner = (ones, 0) if op.name == "and" else (0, ones)
    for this, other in ((x, y), (y, x)):
        number = rewriter.splat(other)
        if number is None:
            continue
        if number == neutral:
            return this
        if number == winner:
            return other
    return None


@rules.on("xor")
def _xor(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    if x is y:
        return rewriter.full(0, x.type)
    for this, other in ((x, y), (y, x)):
        number = rewriter.splat(other)
        if number is None:
            continue
        if number == 0:
            return this
        if number == all_ones(x.type.dtype):
            return rewriter.emit("not", [this])
    return None


@rules.on("shift_left", "shift_right_logical", "shift_right_arithmetic")
def _shift(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    number = rewriter.splat(y)
    if number == 0:
        return x
    if number is None or op.name == "shift_right_arithmetic" or 0 < number < x.type.dtype.bits:
        return None
    return rewriter.full(0, x.type)


@rules.on("select")
def _select(op: Op, rewriter: Rewriter) -> Replacement:
    pred, on_true, on_false = op.operands
    if on_true is on_false:
        return on_true
    known = rewriter.splat(pred)
    if known is not None:
        return on_true if known else on_false
    inverted = made_by(pred, "not")
    if inverted is not None:
        return rewriter.emit("select", [inverted.operands[0], on_false, on_true])
    if on_true.type == pred.type:
        values = rewriter.splat(on_true), rewriter.splat(on_false)
        if values == (True, False):
            return pred
        if values == (False, True):
            return rewriter.emit("not", [pred])
    inner = made_by(on_true, "select")
    if inner is not None and inner.operands[0] is pred:
        return rewriter.emit("select", [pred, inner.operands[1], on_false])
    inner = made_by(on_false, "select")
    if inner is not None and inner.operands[0] is pred:
        return rewriter.emit("select", [pred, on_true, inner.operands[2]])
    return None


@rules.on("compare")
def _compare(op: Op, rewriter: Rewriter) -> Replacement:
    x, y = op.operands
    direction = str(op.attrs["comparison_direction"])
    dtype = x.type.dtype
    if x is y and not dtype.is_float:
        return rewriter.full(direction in ("EQ", "LE", "GE"), op.results[0].type)
    number = rewriter.splat(y)
    if number is None:
        return None
    if dtype.kind is Kind.UNSIGNED and number == 0 and direction in ("LT", "GE"):
        return rewriter.full(direction == "GE", op.results[0].type)
    pred = x if dtype.kind is Kind.PRED else None
    converted = made_by(x, "convert")
    if converted is not None and converted.operands[0].type.dtype.kind is Kind.PRED:
        pred = converted.operands[0]
    if pred is None or op.attrs["compare_type"] == "TOTALORDER":
        return None
    # The comparison's value at false and at true says everything.
    outcomes = tuple(_compared(direction, value, number) for value in (0, 1))
    if outcomes == (False, True):
        return pred
    if outcomes == (True, False):
        return rewriter.emit("not", [pred])
    return rewriter.full(outcomes[0], op.results[0].type)


def _compared(direction: str, x: float, y: float) -> bool:
    return {"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}[direction]


@rules.on("clamp")
def _clamp(op: Op, rewriter: Rewriter) -> Replacement:
    low, x, high = op.operands
    if x.type.dtype.is_float and rewriter.splat(low) == -math.inf and rewriter.splat(high) == math.inf:
        return x
    return None


def _is_zero(number: bool | int | float | None) -> bool:
    return number is not None and number == 0


@rules.on("map")
def _map(op: Op, rewriter: Rewriter) -> Replacement:
    """The region's ops on whole arrays, when each of them is elementwise."""
    region = op.regions[0]
    shape = op.results[0].type.shape
    env = dict(zip(region.args, op.operands, strict=True))
    for inner in region.ops:
        definition = registry.find(inner.name)
        if inner.name != "constant" and (definition is None or definition.apply is None):
            return None
    for inner in region.ops:
        result = TensorType(inner.results[0].type.dtype, shape)
        if inner.name == "constant":
            value = inner.attrs["value"]
            assert isinstance(value, np.ndarray)
            env[inner.results[0]] = rewriter.constant_value(value, result)
        else:
            env[inner.results[0]] = rewriter.emit(inner.name, [env[v] for v in inner.operands], result, inner.attrs)
    return env[region.results[0]]
