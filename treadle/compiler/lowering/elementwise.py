"""Element rules of the elementwise ops: the same coordinates go to every operand."""

from __future__ import annotations

import numpy as np

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op
from treadle.compiler.loops.ir import Expr, Index
from treadle.compiler.lowering.attributes import integer
from treadle.compiler.lowering.context import Context
from treadle.compiler.lowering.registry import Coordinates, element_rule

UNARY = (
    "abs", "cbrt", "ceil", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one", "floor",
    "is_finite", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh", "convert", "bitcast_convert",
)  # fmt: skip
BINARY = (
    "add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
)  # fmt: skip


def _operands(ctx: Context, op: Op, at: Coordinates, mask: Expr | None) -> list[Expr]:
    """Elements of all operands at `at`; rank-0 operands (of select and clamp) are broadcast."""
    return [ctx.element(v, at if v.type.rank == len(at) else (), mask) for v in op.operands]


@element_rule(*(name for name in UNARY if name != "bitcast_convert"), *BINARY, "select", "clamp")
def elementwise(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The same op on elements."""
    return ctx.builder.apply(op.result.type.dtype, op.name, _operands(ctx, op, at, mask))


@element_rule("compare")
def compare(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The same comparison of elements; the order goes into the direction."""
    direction = str(op.attrs["comparison_direction"])
    if op.attrs["compare_type"] == "TOTALORDER" and op.operands[0].type.dtype.is_float:
        direction += "_TOTAL"
    return ctx.builder.apply(t.PRED, "compare", _operands(ctx, op, at, mask), direction)


@element_rule("bitcast_convert")
def bitcast_convert(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """Same width: a reinterpretation. Narrower or wider elements: shifts over the extra minor dimension."""
    b = ctx.builder
    source, to = op.operands[0].type, op.result.type
    if source.dtype.bytes == to.dtype.bytes:
        return b.apply(to.dtype, "bitcast_convert", [ctx.element(op.operands[0], at, mask)])
    unsigned = {1: t.U8, 2: t.U16, 4: t.U32, 8: t.U64}
    wide, narrow = unsigned[max(source.dtype.bytes, to.dtype.bytes)], unsigned[min(source.dtype.bytes, to.dtype.bytes)]
    if source.dtype.bytes > to.dtype.bytes:
        # One wide element becomes several: the last coordinate picks its part, least significant first.
        whole = b.apply(wide, "bitcast_convert", [ctx.element(op.operands[0], at[:-1], mask)])
        amount = b.apply(wide, "multiply", [b.index_value(at[-1], wide), b.const(wide, narrow.bits)])
        part = b.apply(narrow, "convert", [b.apply(wide, "shift_right_logical", [whole, amount])])
        return b.apply(to.dtype, "bitcast_convert", [part])
    total: Expr | None = None
    for i in range(source.shape[-1]):
        part = b.apply(narrow, "bitcast_convert", [ctx.element(op.operands[0], (*at, Index(i)), mask)])
        piece = b.apply(wide, "shift_left", [b.apply(wide, "convert", [part]), b.const(wide, narrow.bits * i)])
        total = piece if total is None else b.apply(wide, "or", [total, piece])
    assert total is not None
    return b.apply(to.dtype, "bitcast_convert", [total])


@element_rule("reduce_precision")
def reduce_precision(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """Rounds to fewer exponent and mantissa bits, to nearest even, in integer arithmetic on the representation."""
    b = ctx.builder
    dtype = op.result.type.dtype
    exponent_bits, mantissa_bits = integer(op, "exponent_bits"), integer(op, "mantissa_bits")
    have_exponent, have_mantissa = {t.F16: (5, 10), t.BF16: (8, 7), t.F32: (8, 23), t.F64: (11, 52)}[dtype]
    u = {16: t.U16, 32: t.U32, 64: t.U64}[dtype.bits]
    x = ctx.element(op.operands[0], at, mask)
    bits = b.apply(u, "bitcast_convert", [x])
    if mantissa_bits < have_mantissa:
        drop = have_mantissa - mantissa_bits
        last = b.apply(u, "and", [b.apply(u, "shift_right_logical", [bits, b.const(u, drop)]), b.const(u, 1)])
        bias = b.apply(u, "add", [last, b.const(u, (1 << (drop - 1)) - 1)])
        kept = ((1 << dtype.bits) - 1) & ~((1 << drop) - 1)
        bits = b.apply(u, "and", [b.apply(u, "add", [bits, bias]), b.const(u, kept)])
    if exponent_bits < have_exponent:
        # Beyond the largest finite value of the small format: infinity. Below its smallest normal: zero (as XLA does).
        sign = b.apply(u, "and", [bits, b.const(u, 1 << (dtype.bits - 1))])
        bias_old, bias_new = (1 << (have_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        largest = (bias_old + bias_new) << have_mantissa | ((1 << have_mantissa) - 1)
        smallest = (bias_old - bias_new + 1) << have_mantissa
        magnitude = b.apply(u, "and", [bits, b.const(u, (1 << (dtype.bits - 1)) - 1)])
        infinity = b.const(u, ((1 << have_exponent) - 1) << have_mantissa)
        over = b.apply(t.PRED, "compare", [magnitude, b.const(u, largest)], "GT")
        under = b.apply(t.PRED, "compare", [magnitude, b.const(u, smallest)], "LT")
        clipped = b.apply(u, "select", [over, infinity, b.apply(u, "select", [under, b.const(u, 0), magnitude])])
        bits = b.apply(u, "or", [sign, clipped])
    rounded = b.apply(dtype, "bitcast_convert", [bits])
    is_nan = b.apply(t.PRED, "compare", [x, x], "NE")
    return b.apply(dtype, "select", [is_nan, x, rounded])


@element_rule("optimization_barrier")
def optimization_barrier(ctx: Context, op: Op, result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element: the barrier has done its work in the passes."""
    return ctx.element(op.operands[result], at, mask)


@element_rule("constant")
def constant(ctx: Context, op: Op, _result: int, at: Coordinates, _mask: Expr | None) -> Expr:
    """A literal: other constants than splats, at coordinates not constant, are bound to a buffer beforehand."""
    value = op.attrs["value"]
    assert isinstance(value, np.ndarray)
    if is_splat(value):
        return ctx.builder.const(op.result.type.dtype, value.flat[0])
    assert all(not i.terms and not i.dynamic for i in at), "a non-splat constant must be bound to a buffer"
    return ctx.builder.const(op.result.type.dtype, value[tuple(i.const for i in at)])


def is_splat(value: np.ndarray) -> bool:
    """Whether every element is the same object in memory (a broadcast scalar) or there is one element."""
    return value.size == 1 or (value.size > 0 and not any(value.strides))
