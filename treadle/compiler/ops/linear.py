"""dot_general and convolution. Products are summed in f64 (floats) or in the result's type (integers)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import DType, Kind, TensorType
from treadle.compiler.ops import numerics
from treadle.compiler.ops.reduction import padded_extent, window_extent
from treadle.compiler.ops.registry import Array, Context, attr, define, fail, operand_count
from treadle.compiler.ops.shape import check_dimensions, check_length, pad


def _accumulator(x: Array, result: DType) -> Array:
    """`x` in the type that products are summed in."""
    if result.kind is Kind.PRED:
        return x.astype(np.int64)
    return x.astype(np.float64) if result.is_float else x.astype(result.numpy)


def _rounded(x: Array, result: DType) -> Array:
    return x.astype(result.numpy) if result.kind is not Kind.FLOAT else numerics.convert(x, result)


def _same_kind(op: Op, lhs: DType, rhs: DType, result: DType) -> None:
    if lhs.is_float != rhs.is_float or lhs.is_float != result.is_float or lhs.kind is Kind.TOKEN:
        fail(op, f"elements of {lhs} and {rhs} cannot be summed up as {result}")


def _infer_dot_general(op: Op) -> Sequence[TensorType]:
    operand_count(op, 2)
    lhs, rhs = (v.type for v in op.operands)
    dims = []
    for side, t in (("lhs", lhs), ("rhs", rhs)):
        batching = check_dimensions(op, f"{side}_batching_dimensions", t.rank)
        contracting = check_dimensions(op, f"{side}_contracting_dimensions", t.rank)
        if set(batching) & set(contracting):
            fail(op, f"{side} dimensions {batching} and {contracting} overlap")
        free = [d for d in range(t.rank) if d not in batching and d not in contracting]
        dims.append(([t.shape[d] for d in batching], [t.shape[d] for d in contracting], [t.shape[d] for d in free]))
    (lhs_batch, lhs_sum, lhs_free), (rhs_batch, rhs_sum, rhs_free) = dims
    if lhs_batch != rhs_batch or lhs_sum != rhs_sum:
        fail(op, f"batching extents {lhs_batch} and {rhs_batch}, contracting {lhs_sum} and {rhs_sum} must be equal")
    result = op.results[0].type.dtype if op.results else lhs.dtype
    _same_kind(op, lhs.dtype, rhs.dtype, result)
    return (TensorType(result, (*lhs_batch, *lhs_free, *rhs_free)),)


@define("dot_general", _infer_dot_general, infers_result=False)
def _dot_general(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    result = op.results[0].type
    lhs, rhs = (_accumulator(x, result.dtype) for x in inputs)
    lhs_batch, rhs_batch = attr(op, "lhs_batching_dimensions"), attr(op, "rhs_batching_dimensions")
    lhs_sum, rhs_sum = attr(op, "lhs_contracting_dimensions"), attr(op, "rhs_contracting_dimensions")
    lhs_free = [d for d in range(lhs.ndim) if d not in lhs_batch and d not in lhs_sum]
    rhs_free = [d for d in range(rhs.ndim) if d not in rhs_batch and d not in rhs_sum]
    batch = math.prod(lhs.shape[d] for d in lhs_batch)
    length = math.prod(lhs.shape[d] for d in lhs_sum)
    rows = math.prod(lhs.shape[d] for d in lhs_free)
    columns = math.prod(rhs.shape[d] for d in rhs_free)
    left = lhs.transpose([*lhs_batch, *lhs_free, *lhs_sum]).reshape(batch, rows, length)
    right = rhs.transpose([*rhs_batch, *rhs_sum, *rhs_free]).reshape(batch, length, columns)
    # A single product is itself, also when it is -0: no sum with a zero is made.
    product = left * right if length == 1 else np.matmul(left, right)
    return (_rounded(product, result.dtype).reshape(result.shape),)


@dataclasses.dataclass(frozen=True, slots=True)
class _ConvolutionShape:
    """Where the dimensions of a convolution's arrays are: (batch, feature, *spatial) and (input, output, *spatial)."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    out: tuple[int, ...]


def _convolution_shape(op: Op) -> _ConvolutionShape:
    lhs = (
        attr(op, "input_batch_dimension"),
        attr(op, "input_feature_dimension"),
        *attr(op, "input_spatial_dimensions"),
    )
    rhs = (
        attr(op, "kernel_input_feature_dimension"),
        attr(op, "kernel_output_feature_dimension"),
        *attr(op, "kernel_spatial_dimensions"),
    )
    out = (
        attr(op, "output_batch_dimension"),
        attr(op, "output_feature_dimension"),
        *attr(op, "output_spatial_dimensions"),
    )
    return _ConvolutionShape(lhs, rhs, out)


def _infer_convolution(op: Op) -> Sequence[TensorType]:
    operand_count(op, 2)
    lhs, rhs = (v.type for v in op.operands)
    dims = _convolution_shape(op)
    rank = lhs.rank
    for side, places in (("input", dims.lhs), ("kernel", dims.rhs), ("output", dims.out)):
        if rhs.rank != rank or sorted(places) != list(range(rank)):
            fail(op, f"the {side} dimension numbers {places} must be all {rank} dimensions")
    spatial = rank - 2
    strides, padding = check_length(op, "window_strides", spatial), check_length(op, "padding", spatial)
    lhs_dilation, rhs_dilation = check_length(op, "lhs_dilation", spatial), check_length(op, "rhs_dilation", spatial)
    check_length(op, "window_reversal", spatial)
    features, batches = attr(op, "feature_group_count"), attr(op, "batch_group_count")
    batch, feature = lhs.shape[dims.lhs[0]], lhs.shape[dims.lhs[1]]
    kernel_in, kernel_out = rhs.shape[dims.rhs[0]], rhs.shape[dims.rhs[1]]
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        fail(op, f"feature_group_count = {features} and batch_group_count = {batches}: one of them must be 1")
    if feature != kernel_in * features or kernel_out % features or batch % batches or kernel_out % batches:
        fail(op, f"{features} feature groups and {batches} batch groups do not divide {lhs} and {rhs}")
    shape = [0] * rank
    shape[dims.out[0]], shape[dims.out[1]] = batch // batches, kernel_out
    for i in range(spatial):
        padded = padded_extent(op, i, lhs.shape[dims.lhs[2 + i]], lhs_dilation[i], padding[i])
        shape[dims.out[2 + i]] = window_extent(op, i, padded, rhs.shape[dims.rhs[2 + i]], strides[i], rhs_dilation[i])
    result = op.results[0].type.dtype if op.results else lhs.dtype
    _same_kind(op, lhs.dtype, rhs.dtype, result)
    return (TensorType(result, tuple(shape)),)


def _correlate(lhs: Array, rhs: Array, strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """(N, C, *in) with (C, O, *window) -> (N, *out, O), no padding left to do."""
    spatial = len(strides)
    reach = [(k - 1) * d + 1 for k, d in zip(rhs.shape[2:], dilation, strict=True)]
    axes = tuple(range(2, 2 + spatial))
    windows = np.lib.stride_tricks.sliding_window_view(lhs, reach, axes) if spatial else lhs
    outer = [slice(None, None, s) for s in strides]
    inner = [slice(None, None, d) for d in dilation]
    windows = windows[(slice(None), slice(None), *outer, *inner)]
    summed = [1, *range(2 + spatial, 2 + 2 * spatial)]
    return np.tensordot(windows, rhs, (summed, [0, *range(2, 2 + spatial)]))


@define("convolution", _infer_convolution, infers_result=False)
def _convolution(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    result = op.results[0].type
    if not result.size:
        return (np.zeros(result.shape, result.dtype.numpy),)
    dims = _convolution_shape(op)
    lhs = _accumulator(inputs[0], result.dtype).transpose(dims.lhs)
    rhs = _accumulator(inputs[1], result.dtype).transpose(dims.rhs)
    padding = attr(op, "padding")
    low, high = [0, 0, *(p[0] for p in padding)], [0, 0, *(p[1] for p in padding)]
    lhs = pad(lhs, np.zeros((), lhs.dtype), low, high, [0, 0, *(d - 1 for d in attr(op, "lhs_dilation"))])
    rhs = np.flip(rhs, tuple(2 + i for i, reverse in enumerate(attr(op, "window_reversal")) if reverse))
    features, batches = attr(op, "feature_group_count"), attr(op, "batch_group_count")
    groups = max(features, batches)
    parts = []
    for left, right in zip(
        np.split(lhs, groups, axis=1 if features > 1 else 0), np.split(rhs, groups, axis=1), strict=True
    ):
        parts.append(_correlate(left, right, attr(op, "window_strides"), attr(op, "rhs_dilation")))
    whole = np.concatenate(parts, axis=-1)
    ours = (dims.out[0], *dims.out[2:], dims.out[1])
    return (_rounded(whole, result.dtype).transpose(np.argsort(ours)),)
