"""Changes of element type: by value, by bits, and in precision only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import Kind, TensorType
from treadle.compiler.ops import numerics
from treadle.compiler.ops.registry import Array, Context, attr, define, elementwise, fail, operand_count


def _infer_convert(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    result = op.results[0].type
    if result.dtype.kind is Kind.TOKEN or op.operands[0].type.dtype.kind is Kind.TOKEN:
        fail(op, f"a token has no elements to convert, got a result of type {result}")
    return (TensorType(result.dtype, op.operands[0].type.shape),)


@elementwise("convert", _infer_convert, infers_result=False)
def _convert(op: Op, x: Array) -> Array:
    return numerics.convert(x, op.results[0].type.dtype)


def _infer_bitcast_convert(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    operand, result = op.operands[0].type, op.results[0].type.dtype
    source = operand.dtype
    if result.bits == source.bits:
        return (TensorType(result, operand.shape),)
    if result.bits < source.bits:
        if source.bits % result.bits:
            fail(op, f"{source.bits} bits do not split into elements of {result}")
        return (TensorType(result, (*operand.shape, source.bits // result.bits)),)
    if not operand.shape or operand.shape[-1] * source.bits != result.bits:
        fail(op, f"the last dimension must hold the {result.bits} bits of one {result}")
    return (TensorType(result, operand.shape[:-1]),)


@define("bitcast_convert", _infer_bitcast_convert, infers_result=False)
def _bitcast_convert(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    result = op.results[0].type
    flat = np.ascontiguousarray(inputs[0]).reshape(-1)
    return (flat.view(result.dtype.numpy).reshape(result.shape),)


def _infer_reduce_precision(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    operand = op.operands[0].type
    if not operand.dtype.is_float:
        fail(op, f"expected floats, got {operand.dtype}")
    if attr(op, "exponent_bits") < 1 or attr(op, "mantissa_bits") < 0:
        fail(op, "expected at least one exponent bit and no negative number of mantissa bits")
    return (operand,)


@elementwise("reduce_precision", _infer_reduce_precision)
def _reduce_precision(op: Op, x: Array) -> Array:
    return numerics.reduce_precision(x, attr(op, "exponent_bits"), attr(op, "mantissa_bits"))
