"""Reads and writes at computed places: dynamic_slice, dynamic_update_slice, gather."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import TensorType
from treadle.compiler.ops.registry import Array, Context, attr, define, fail, operand_count
from treadle.compiler.ops.shape import check_dimensions, check_increasing, check_length


def as_index(x: Array) -> Array:
    """Indices as s64; unsigned ones beyond it become its largest value."""
    if x.dtype.kind == "u":
        x = np.minimum(x, np.iinfo(np.int64).max) if x.dtype.itemsize == 8 else x
    return x.astype(np.int64)


def clamped_starts(starts: Sequence[int], shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Where a slice of `sizes` really starts in an array of `shape`: moved so that it lies inside."""
    return tuple(min(max(s, 0), n - size) for s, n, size in zip(starts, shape, sizes, strict=True))


def _check_starts(op: Op, starts: Sequence[Value], rank: int) -> None:
    if len(starts) != rank:
        fail(op, f"expected {rank} start indices, got {len(starts)}")
    for value in starts:
        if not value.type.dtype.is_integer or value.type.shape or value.type != starts[0].type:
            fail(op, f"start indices must be integer scalars of one type, got {value.type}")


def _infer_dynamic_slice(op: Op) -> Sequence[TensorType]:
    operand = op.operands[0].type
    _check_starts(op, op.operands[1:], operand.rank)
    sizes = check_length(op, "slice_sizes", operand.rank)
    if any(not 0 <= s <= n for s, n in zip(sizes, operand.shape, strict=True)):
        fail(op, f"slice_sizes = {sizes} do not fit into {operand}")
    return (TensorType(operand.dtype, sizes),)


@define("dynamic_slice", _infer_dynamic_slice)
def _dynamic_slice(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    operand, sizes = inputs[0], attr(op, "slice_sizes")
    starts = clamped_starts([int(s) for s in inputs[1:]], operand.shape, sizes)
    return (operand[tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))],)


def _infer_dynamic_update_slice(op: Op) -> Sequence[TensorType]:
    if len(op.operands) < 2:
        fail(op, f"expected an operand, an update and start indices, got {len(op.operands)} operands")
    operand, update = op.operands[0].type, op.operands[1].type
    if update.dtype is not operand.dtype or update.rank != operand.rank:
        fail(op, f"expected an update of {operand.dtype} with rank {operand.rank}, got {update}")
    if any(s > n for s, n in zip(update.shape, operand.shape, strict=True)):
        fail(op, f"the update {update} does not fit into {operand}")
    _check_starts(op, op.operands[2:], operand.rank)
    return (operand,)


@define("dynamic_update_slice", _infer_dynamic_update_slice)
def _dynamic_update_slice(_: Op, inputs: list[Array], __: Context) -> Sequence[Array]:
    result, update = inputs[0].copy(), inputs[1]
    starts = clamped_starts([int(s) for s in inputs[2:]], result.shape, update.shape)
    result[tuple(slice(s, s + n) for s, n in zip(starts, update.shape, strict=True))] = update
    return (result,)


def batch_shape(indices: TensorType, index_vector_dim: int) -> tuple[int, ...]:
    """The shape of `indices` without the dimension that holds one index vector."""
    return tuple(n for d, n in enumerate(indices.shape) if d != index_vector_dim)


def index_vector_size(indices: TensorType, index_vector_dim: int) -> int:
    """How many numbers one index vector has: 1 when the dimension is left out of the shape."""
    return indices.shape[index_vector_dim] if index_vector_dim < indices.rank else 1


def _infer_gather(op: Op) -> Sequence[TensorType]:
    operand_count(op, 2)
    operand, indices = (v.type for v in op.operands)
    if not indices.dtype.is_integer:
        fail(op, f"expected integer indices, got {indices.dtype}")
    vector_dim = attr(op, "index_vector_dim")
    if not 0 <= vector_dim <= indices.rank:
        fail(op, f"index_vector_dim = {vector_dim} is not within 0 .. {indices.rank}")
    sizes = check_length(op, "slice_sizes", operand.rank)
    if any(not 0 <= s <= n for s, n in zip(sizes, operand.shape, strict=True)):
        fail(op, f"slice_sizes = {sizes} do not fit into {operand}")
    collapsed = check_dimensions(op, "collapsed_slice_dims", operand.rank)
    batching = check_dimensions(op, "operand_batching_dims", operand.rank)
    if any(sizes[d] != 1 for d in collapsed) or any(sizes[d] > 1 for d in batching):
        fail(op, f"slice_sizes = {sizes} must be 1 in collapsed and batching dimensions {collapsed + batching}")
    check_dimensions(op, "start_index_map", operand.rank)
    check_length(op, "start_index_map", index_vector_size(indices, vector_dim))
    index_batching = check_dimensions(op, "start_indices_batching_dims", indices.rank)
    if [operand.shape[d] for d in batching] != [indices.shape[d] for d in index_batching]:
        fail(op, f"operand dimensions {batching} and index dimensions {index_batching} must have the same extents")
    window = [n for d, n in enumerate(sizes) if d not in collapsed and d not in batching]
    batch = batch_shape(indices, vector_dim)
    check_length(op, "offset_dims", len(window))
    offset = check_increasing(op, "offset_dims", len(window) + len(batch))
    rest = iter(batch)
    extent = dict(zip(offset, window, strict=True))
    shape = tuple(extent[d] if d in extent else next(rest) for d in range(len(window) + len(batch)))
    return (TensorType(operand.dtype, shape),)


def base_coordinates(
    indices: Array,
    index_vector_dim: int,
    rank: int,
    start_index_map: Sequence[int],
    operand_batching_dims: Sequence[int],
    start_indices_batching_dims: Sequence[int],
) -> list[Array]:
    """For each operand dimension, the first coordinate of every window, in the shape of the index batch."""
    indices = as_index(indices)
    if index_vector_dim == indices.ndim:
        indices = indices[..., None]
    vectors = np.moveaxis(indices, index_vector_dim, -1)
    base = [np.zeros(vectors.shape[:-1], np.int64) for _ in range(rank)]
    for k, d in enumerate(start_index_map):
        base[d] = vectors[..., k]
    for d, index_dim in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
        axis = index_dim - (index_dim > index_vector_dim)
        line = np.arange(vectors.shape[axis]).reshape([-1 if a == axis else 1 for a in range(vectors.ndim - 1)])
        base[d] = np.broadcast_to(line, vectors.shape[:-1])
    return base


def flat_places(base: Sequence[Array], window: Sequence[int], dropped: Sequence[int], shape: Sequence[int]) -> Array:
    """Row-major places, in an array of `shape`, of every window element: batch dimensions, then window dimensions.

    `window` has an extent for each dimension of the array; the dimensions in `dropped` have extent 1 and do not appear.
    """
    kept = [d for d in range(len(shape)) if d not in dropped]
    places = np.zeros(base[0].shape if base else (), np.int64)
    step = 1
    for d in reversed(range(len(shape))):
        places = places + base[d] * step
        step *= shape[d]
    offsets = np.zeros([window[d] for d in kept], np.int64)
    step = 1
    for d in reversed(range(len(shape))):
        if d in kept:
            axis = kept.index(d)
            offsets = offsets + (np.arange(window[d]) * step).reshape(
                [-1 if a == axis else 1 for a in range(len(kept))]
            )
        step *= shape[d]
    return places.reshape((*places.shape, *([1] * len(kept)))) + offsets


@define("gather", _infer_gather)
def _gather(op: Op, inputs: list[Array], _: Context) -> Sequence[Array]:
    operand, indices = inputs
    sizes = attr(op, "slice_sizes")
    batching = attr(op, "operand_batching_dims")
    base = base_coordinates(
        indices,
        attr(op, "index_vector_dim"),
        operand.ndim,
        attr(op, "start_index_map"),
        batching,
        attr(op, "start_indices_batching_dims"),
    )
    if not operand.ndim:
        batch = batch_shape(op.operands[1].type, attr(op, "index_vector_dim"))
        return (np.broadcast_to(operand, batch),)
    base = [np.clip(b, 0, n - s) for b, n, s in zip(base, operand.shape, sizes, strict=True)]
    result = op.results[0].type.shape
    if not operand.size or not np.prod(result):
        return (np.zeros(result, operand.dtype),)
    places = flat_places(base, sizes, (*attr(op, "collapsed_slice_dims"), *batching), operand.shape)
    offset = attr(op, "offset_dims")
    batch_axes = [d for d in range(len(result)) if d not in offset]
    gathered = np.ascontiguousarray(operand).reshape(-1)[places]
    return (gathered.transpose(np.argsort([*batch_axes, *offset])),)
