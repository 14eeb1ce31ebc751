"""scatter: updates combined into an array at computed places; places outside are skipped, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import TensorType
from treadle.compiler.ops.control import check_region
from treadle.compiler.ops.indexing import base_coordinates, batch_shape, flat_places, index_vector_size
from treadle.compiler.ops.registry import Array, Context, attr, define, fail, region_count
from treadle.compiler.ops.shape import check_dimensions, check_increasing, check_length


def _infer_scatter(op: Op) -> Sequence[TensorType]:
    region_count(op, 1)
    count = (len(op.operands) - 1) // 2
    if count < 1 or len(op.operands) != 2 * count + 1:
        fail(op, f"expected inputs, indices and as many updates as inputs, got {len(op.operands)} operands")
    inputs = [v.type for v in op.operands[:count]]
    indices = op.operands[count].type
    updates = [v.type for v in op.operands[count + 1 :]]
    for t, u in zip(inputs, updates, strict=True):
        if t.shape != inputs[0].shape or u.shape != updates[0].shape or t.dtype is not u.dtype:
            fail(op, "inputs must have one shape, updates one shape, and each update its input's element type")
    if not indices.dtype.is_integer:
        fail(op, f"expected integer indices, got {indices.dtype}")
    rank = inputs[0].rank
    vector_dim = attr(op, "index_vector_dim")
    if not 0 <= vector_dim <= indices.rank:
        fail(op, f"index_vector_dim = {vector_dim} is not within 0 .. {indices.rank}")
    window_dims = check_increasing(op, "update_window_dims", updates[0].rank)
    inserted = check_increasing(op, "inserted_window_dims", rank)
    batching = check_dimensions(op, "input_batching_dims", rank)
    index_batching = check_dimensions(op, "scatter_indices_batching_dims", indices.rank)
    check_dimensions(op, "scatter_dims_to_operand_dims", rank)
    check_length(op, "scatter_dims_to_operand_dims", index_vector_size(indices, vector_dim))
    if len(window_dims) + len(inserted) + len(batching) != rank:
        fail(op, f"window, inserted and batching dimensions must be {rank} in all, the rank of {inputs[0]}")
    if [inputs[0].shape[d] for d in batching] != [indices.shape[d] for d in index_batching]:
        fail(op, f"input dimensions {batching} and index dimensions {index_batching} must have the same extents")
    batch = tuple(n for d, n in enumerate(updates[0].shape) if d not in window_dims)
    if batch != batch_shape(indices, vector_dim):
        fail(op, f"updates have batch dimensions {batch}, indices {batch_shape(indices, vector_dim)}")
    kept = [n for d, n in enumerate(inputs[0].shape) if d not in inserted and d not in batching]
    if any(updates[0].shape[d] > n for d, n in zip(window_dims, kept, strict=True)):
        fail(op, f"the windows of {updates[0]} do not fit into {inputs[0]}")
    scalars = [TensorType(t.dtype, ()) for t in inputs]
    check_region(op, "update", op.regions[0], scalars * 2, scalars)
    return inputs


Combine = Callable[[Sequence[Array]], Sequence[Array]]


def combine_at(results: Sequence[Array], places: Array, updates: Sequence[Array], combine: Combine) -> None:
    """`results[places] = combine(results[places], updates)` one after another, on flat arrays.

    Updates to one place are applied in their order. Done in rounds: round k applies the k-th update of every place.
    """
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    run_start = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    turn = np.arange(len(ordered)) - run_start
    by_turn = np.argsort(turn, kind="stable")
    ends = np.searchsorted(turn[by_turn], np.arange(turn.max(initial=-1) + 1), side="right")
    begin = 0
    for end in ends:
        chosen = order[by_turn[begin:end]]
        at = places[chosen]
        new = combine([*(r[at] for r in results), *(u[chosen] for u in updates)])
        for result, value in zip(results, new, strict=True):
            result[at] = value
        begin = int(end)


@define("scatter", _infer_scatter)
def _scatter(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    count = len(op.results)
    operands, indices, updates = inputs[:count], inputs[count], inputs[count + 1 :]
    shape = operands[0].shape
    window_dims = attr(op, "update_window_dims")
    dropped = (*attr(op, "inserted_window_dims"), *attr(op, "input_batching_dims"))
    kept = [d for d in range(len(shape)) if d not in dropped]
    window = [1] * len(shape)
    for d, update_dim in zip(kept, window_dims, strict=True):
        window[d] = updates[0].shape[update_dim]
    base = base_coordinates(
        indices,
        attr(op, "index_vector_dim"),
        len(shape),
        attr(op, "scatter_dims_to_operand_dims"),
        attr(op, "input_batching_dims"),
        attr(op, "scatter_indices_batching_dims"),
    )
    order = [d for d in range(updates[0].ndim) if d not in window_dims] + list(window_dims)
    if not shape:
        batch = batch_shape(op.operands[count].type, attr(op, "index_vector_dim"))
        places, inside = np.zeros(batch, np.int64), np.ones(batch, bool)
    else:
        inside = np.ones(base[0].shape, bool)
        for b, n, w in zip(base, shape, window, strict=True):
            inside &= (b >= 0) & (b <= n - w)
        places = flat_places(base, window, dropped, shape)
        inside = np.broadcast_to(inside.reshape((*inside.shape, *([1] * len(kept)))), places.shape)
    results = [x.reshape(-1).copy() for x in operands]
    flat = [u.transpose(order)[inside] for u in updates]
    combine_at(results, places[inside], flat, lambda args: context.combine(op.regions[0], args))
    return [r.reshape(shape) for r in results]
