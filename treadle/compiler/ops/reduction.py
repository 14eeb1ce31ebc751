"""reduce, reduce_window and select_and_scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import PRED, TensorType
from treadle.compiler.ops.control import check_region
from treadle.compiler.ops.registry import Array, Context, attr, define, fail, operand_count, region_count
from treadle.compiler.ops.scatter import combine_at
from treadle.compiler.ops.shape import check_dimensions, check_length, pad


def _check_combiner(op: Op) -> list[TensorType]:
    """The input types of a reduction with inputs, as many inits, and a region (acc..., elem...) -> acc..."""
    region_count(op, 1)
    count = len(op.operands) // 2
    if count < 1 or len(op.operands) != 2 * count:
        fail(op, f"expected inputs and as many initial values, got {len(op.operands)} operands")
    inputs = [v.type for v in op.operands[:count]]
    for t, init in zip(inputs, op.operands[count:], strict=True):
        if t.shape != inputs[0].shape:
            fail(op, f"inputs must have one shape, got {inputs[0]} and {t}")
        if init.type != TensorType(t.dtype, ()):
            fail(op, f"expected an initial value {TensorType(t.dtype, ())}, got {init.type}")
    scalars = [TensorType(t.dtype, ()) for t in inputs]
    check_region(op, "reduction", op.regions[0], scalars * 2, scalars)
    return inputs


def _infer_reduce(op: Op) -> Sequence[TensorType]:
    inputs = _check_combiner(op)
    dims = check_dimensions(op, "dimensions", inputs[0].rank)
    shape = tuple(n for d, n in enumerate(inputs[0].shape) if d not in dims)
    return [TensorType(t.dtype, shape) for t in inputs]


@define("reduce", _infer_reduce)
def _reduce(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    """A balanced tree over neighbours: every order is right, this one is short and loses little precision."""
    count = len(op.results)
    region = op.regions[0]
    dims = attr(op, "dimensions")
    shape = op.results[0].type.shape
    kept = [d for d in range(inputs[0].ndim) if d not in dims]
    length = math.prod(inputs[0].shape[d] for d in dims)
    lines = [x.transpose([*sorted(dims), *kept]).reshape(length, *shape) for x in inputs[:count]]
    inits = [np.broadcast_to(x, shape) for x in inputs[count:]]
    if not length or not math.prod(shape):
        return inits
    while len(lines[0]) > 1:
        whole = len(lines[0]) // 2 * 2
        pairs = [x[0:whole:2] for x in lines] + [x[1:whole:2] for x in lines]
        combined = context.combine(region, pairs)
        lines = [np.concatenate([c, x[whole:]]) for c, x in zip(combined, lines, strict=True)]
    return context.combine(region, [*inits, *(x[0] for x in lines)])


def window_extent(op: Op, dim: int, extent: int, size: int, stride: int, window_dilation: int) -> int:
    """How many windows fit along one (padded, dilated) dimension."""
    if size < 1 or stride < 1 or window_dilation < 1:
        fail(op, f"window size, stride and dilation of dimension {dim} must be positive")
    reach = (size - 1) * window_dilation + 1
    return (extent - reach) // stride + 1 if extent >= reach else 0


def padded_extent(op: Op, dim: int, extent: int, dilation: int, padding: tuple[int, int]) -> int:
    """The extent of one dimension after dilation and padding."""
    if dilation < 1:
        fail(op, f"the dilation of dimension {dim} must be positive")
    padded = (extent - 1) * dilation + 1 + sum(padding) if extent else sum(padding)
    if padded < 0:
        fail(op, f"negative padding leaves {padded} elements of dimension {dim}")
    return padded


def _infer_reduce_window(op: Op) -> Sequence[TensorType]:
    inputs = _check_combiner(op)
    rank = inputs[0].rank
    sizes, strides = check_length(op, "window_dimensions", rank), check_length(op, "window_strides", rank)
    base, window = check_length(op, "base_dilations", rank), check_length(op, "window_dilations", rank)
    padding = check_length(op, "padding", rank)
    shape = []
    for d, extent in enumerate(inputs[0].shape):
        padded = padded_extent(op, d, extent, base[d], padding[d])
        shape.append(window_extent(op, d, padded, sizes[d], strides[d], window[d]))
    return [TensorType(t.dtype, tuple(shape)) for t in inputs]


@define("reduce_window", _infer_reduce_window)
def _reduce_window(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    count = len(op.results)
    shape = op.results[0].type.shape
    padding, base = attr(op, "padding"), attr(op, "base_dilations")
    strides, dilation = attr(op, "window_strides"), attr(op, "window_dilations")
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    inits = inputs[count:]
    padded = [pad(x, i, low, high, [b - 1 for b in base]) for x, i in zip(inputs[:count], inits, strict=True)]
    acc: list[Array] = [np.broadcast_to(i, shape) for i in inits]
    if not math.prod(shape):
        return acc
    for place in np.ndindex(*attr(op, "window_dimensions")):
        spans = [
            slice(p * w, p * w + (n - 1) * s + 1, s) for p, w, n, s in zip(place, dilation, shape, strides, strict=True)
        ]
        acc = context.combine(op.regions[0], [*acc, *(x[tuple(spans)] for x in padded)])
    return acc


def _infer_select_and_scatter(op: Op) -> Sequence[TensorType]:
    operand_count(op, 3)
    region_count(op, 2)
    operand, source, init = (v.type for v in op.operands)
    scalar = TensorType(operand.dtype, ())
    if init != scalar:
        fail(op, f"expected an initial value {scalar}, got {init}")
    sizes, strides = (
        check_length(op, "window_dimensions", operand.rank),
        check_length(op, "window_strides", operand.rank),
    )
    padding = check_length(op, "padding", operand.rank)
    shape = []
    for d, extent in enumerate(operand.shape):
        shape.append(window_extent(op, d, padded_extent(op, d, extent, 1, padding[d]), sizes[d], strides[d], 1))
    if source != TensorType(operand.dtype, tuple(shape)):
        fail(
            op,
            f"expected a source {TensorType(operand.dtype, tuple(shape))}, one element for each window, got {source}",
        )
    check_region(op, "select", op.regions[0], [scalar] * 2, [TensorType(PRED, ())])
    check_region(op, "scatter", op.regions[1], [scalar] * 2, [scalar])
    return (operand,)


@define("select_and_scatter", _infer_select_and_scatter)
def _select_and_scatter(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    operand, source, init = inputs
    if operand.size == 0:
        return (operand,)
    select, scatter = op.regions
    strides, padding = attr(op, "window_strides"), attr(op, "padding")
    starts = np.meshgrid(
        *(np.arange(n) * s - p[0] for n, s, p in zip(source.shape, strides, padding, strict=True)), indexing="ij"
    )
    chosen = np.zeros(source.shape, operand.dtype)
    chosen_at = np.full(source.shape, -1, np.int64)
    for place in np.ndindex(*attr(op, "window_dimensions")):
        inside = np.ones(source.shape, bool)
        at = np.zeros(source.shape, np.int64)
        for start, offset, extent in zip(starts, place, operand.shape, strict=True):
            coordinate = start + offset
            inside &= (coordinate >= 0) & (coordinate < extent)
            at = at * extent + np.clip(coordinate, 0, extent - 1)
        value = operand.reshape(-1)[at]
        keep = context.combine(select, [chosen, value])[0]
        take = inside & ((chosen_at < 0) | ~keep)
        chosen = np.where(take, value, chosen)
        chosen_at = np.where(take, at, chosen_at)
    result = np.full(operand.size, init).astype(operand.dtype, copy=False)
    hit = chosen_at >= 0
    combine_at([result], chosen_at[hit], [source[hit]], lambda args: context.combine(scatter, args))
    return (result.reshape(operand.shape),)
