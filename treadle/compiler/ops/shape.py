"""Ops that make arrays and move elements without computing: constants, iota, broadcast, reshape, slice, pad, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import Kind, TensorType
from treadle.compiler.ops import numerics
from treadle.compiler.ops.registry import Array, Context, attr, define, fail, operand_count


def check_dimensions(op: Op, name: str, rank: int) -> tuple[int, ...]:
    """The attribute `name` as distinct dimensions of an array of `rank`."""
    dims = tuple(attr(op, name))
    if len(set(dims)) != len(dims) or any(not 0 <= d < rank for d in dims):
        fail(op, f"{name} = {dims} must be distinct dimensions of an array of rank {rank}")
    return dims


def check_increasing(op: Op, name: str, rank: int) -> tuple[int, ...]:
    """The attribute `name` as increasing dimensions of an array of `rank`."""
    dims = check_dimensions(op, name, rank)
    if list(dims) != sorted(dims):
        fail(op, f"{name} = {dims} must be increasing")
    return dims


def check_length(op: Op, name: str, length: int) -> tuple[Any, ...]:
    """The attribute `name` as a tuple of `length` entries."""
    entries = tuple(attr(op, name))
    if len(entries) != length:
        fail(op, f"{name} = {entries} must have {length} entries")
    return entries


def _infer_constant(op: Op) -> Sequence[TensorType]:
    operand_count(op, 0)
    value = attr(op, "value")
    result = op.results[0].type
    if not isinstance(value, np.ndarray) or value.shape != result.shape or value.dtype != result.dtype.numpy:
        got = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
        fail(op, f"expected a value array of {result}, got {got}")
    return (result,)


@define("constant", _infer_constant, infers_result=False)
def _constant(op: Op, _: list[Array], __: Context) -> Sequence[Array]:
    return (attr(op, "value"),)


def _infer_iota(op: Op) -> Sequence[TensorType]:
    operand_count(op, 0)
    result = op.results[0].type
    dim = attr(op, "iota_dimension")
    if not 0 <= dim < result.rank:
        fail(op, f"iota_dimension = {dim} is not a dimension of {result}")
    if result.dtype.kind is Kind.PRED:
        fail(op, "expected numbers, got pred")
    return (result,)


@define("iota", _infer_iota, infers_result=False)
def _iota(op: Op, _: list[Array], __: Context) -> Sequence[Array]:
    result, dim = op.results[0].type, attr(op, "iota_dimension")
    line = numerics.convert(np.arange(result.shape[dim], dtype=np.int64), result.dtype)
    return (np.broadcast_to(line.reshape([-1 if d == dim else 1 for d in range(result.rank)]), result.shape),)


def _infer_broadcast_in_dim(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    operand, result = op.operands[0].type, op.results[0].type
    check_length(op, "broadcast_dimensions", operand.rank)
    dims = check_dimensions(op, "broadcast_dimensions", result.rank)
    for i, d in enumerate(dims):
        if operand.shape[i] not in (1, result.shape[d]):
            fail(op, f"dimension {i} of extent {operand.shape[i]} cannot become dimension {d} of {result}")
    return (TensorType(operand.dtype, result.shape),)


@define("broadcast_in_dim", _infer_broadcast_in_dim, infers_result=False)
def _broadcast_in_dim(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    (x,), shape, dims = inputs, op.results[0].type.shape, attr(op, "broadcast_dimensions")
    order = sorted(range(x.ndim), key=lambda i: dims[i])
    spread = [1] * len(shape)
    for i in order:
        spread[dims[i]] = x.shape[i]
    return (np.broadcast_to(x.transpose(order).reshape(spread), shape),)


def _infer_reshape(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    operand, result = op.operands[0].type, op.results[0].type
    if operand.size != result.size:
        fail(op, f"{operand.size} elements cannot become {result} with {result.size}")
    return (TensorType(operand.dtype, result.shape),)


@define("reshape", _infer_reshape, infers_result=False)
def _reshape(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    return (inputs[0].reshape(op.results[0].type.shape),)


def _infer_transpose(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    operand = op.operands[0].type
    check_length(op, "permutation", operand.rank)
    permutation = check_dimensions(op, "permutation", operand.rank)
    return (TensorType(operand.dtype, tuple(operand.shape[d] for d in permutation)),)


@define("transpose", _infer_transpose)
def _transpose(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    return (inputs[0].transpose(attr(op, "permutation")),)


def _infer_reverse(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    check_dimensions(op, "dimensions", op.operands[0].type.rank)
    return (op.operands[0].type,)


@define("reverse", _infer_reverse)
def _reverse(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    return (np.flip(inputs[0], attr(op, "dimensions")),)


def _infer_concatenate(op: Op) -> Sequence[TensorType]:
    if not op.operands:
        fail(op, "expected at least one operand")
    first = op.operands[0].type
    dim = attr(op, "dimension")
    if not 0 <= dim < first.rank:
        fail(op, f"dimension = {dim} is not a dimension of {first}")
    total = 0
    for value in op.operands:
        t = value.type
        same = t.dtype is first.dtype and t.rank == first.rank
        if not same or t.shape[:dim] + t.shape[dim + 1 :] != first.shape[:dim] + first.shape[dim + 1 :]:
            fail(op, f"operands may differ in dimension {dim} only, got {first} and {t}")
        total += t.shape[dim]
    return (TensorType(first.dtype, (*first.shape[:dim], total, *first.shape[dim + 1 :])),)


@define("concatenate", _infer_concatenate)
def _concatenate(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    return (np.concatenate(inputs, attr(op, "dimension")),)


def _infer_slice(op: Op) -> Sequence[TensorType]:
    operand_count(op, 1)
    operand = op.operands[0].type
    starts = check_length(op, "start_indices", operand.rank)
    limits = check_length(op, "limit_indices", operand.rank)
    strides = check_length(op, "strides", operand.rank)
    for d, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        if not 0 <= start <= limit <= operand.shape[d] or stride < 1:
            fail(op, f"[{start}:{limit}:{stride}] is no slice of dimension {d}")
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True))
    return (TensorType(operand.dtype, shape),)


@define("slice", _infer_slice)
def _slice(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    bounds = zip(attr(op, "start_indices"), attr(op, "limit_indices"), attr(op, "strides"), strict=True)
    return (inputs[0][tuple(slice(a, b, s) for a, b, s in bounds)],)


def _infer_pad(op: Op) -> Sequence[TensorType]:
    operand_count(op, 2)
    operand, value = (v.type for v in op.operands)
    if value != TensorType(operand.dtype, ()):
        fail(op, f"expected a padding value {TensorType(operand.dtype, ())}, got {value}")
    low = check_length(op, "edge_padding_low", operand.rank)
    high = check_length(op, "edge_padding_high", operand.rank)
    interior = check_length(op, "interior_padding", operand.rank)
    shape = []
    for d, extent in enumerate(operand.shape):
        if interior[d] < 0:
            fail(op, f"interior_padding of dimension {d} is negative")
        size = low[d] + extent + max(extent - 1, 0) * interior[d] + high[d]
        if size < 0:
            fail(op, f"negative padding leaves {size} elements of dimension {d}")
        shape.append(size)
    return (TensorType(operand.dtype, tuple(shape)),)


def pad(x: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`x` with padding at the edges (negative cuts off) and between elements."""
    spread_shape = [n + max(n - 1, 0) * i for n, i in zip(x.shape, interior, strict=True)]
    spread = np.full([s + max(a, 0) + max(b, 0) for s, a, b in zip(spread_shape, low, high, strict=True)], value)
    spread = spread.astype(x.dtype, copy=False)
    if math.prod(x.shape):
        places = zip(low, spread_shape, interior, strict=True)
        spread[tuple(slice(max(a, 0), max(a, 0) + s, i + 1) for a, s, i in places)] = x
    cut = zip(spread.shape, low, high, strict=True)
    return spread[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in cut)]


@define("pad", _infer_pad)
def _pad(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    low, high = attr(op, "edge_padding_low"), attr(op, "edge_padding_high")
    return (pad(inputs[0], inputs[1], low, high, attr(op, "interior_padding")),)
