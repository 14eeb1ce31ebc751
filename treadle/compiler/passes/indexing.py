"""Indexing whose places are known, in whole or in shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import S64, TensorType
from treadle.compiler.ops.indexing import as_index, clamped_starts
from treadle.compiler.passes.algebra import made_by
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet
from treadle.compiler.passes.shapes import reshape, take, transpose

rules = RuleSet()


def _attr(op: Op, name: str) -> Any:
    return op.attrs[name]


def _known_starts(starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int], rewriter: Rewriter) -> Any:
    """Where a slice starts, if that does not depend on data: known numbers, or no room to move."""
    known = []
    for value, extent, size in zip(starts, shape, sizes, strict=True):
        number = 0 if extent == size else rewriter.splat(value)
        if number is None:
            return None
        known.append(int(number))
    return clamped_starts(known, shape, sizes)


@rules.on("dynamic_slice")
def _dynamic_slice(op: Op, rewriter: Rewriter) -> Replacement:
    operand, sizes = op.operands[0], _attr(op, "slice_sizes")
    starts = _known_starts(op.operands[1:], operand.type.shape, sizes, rewriter)
    if starts is None:
        return None
    return take(rewriter, operand, starts, [s + n for s, n in zip(starts, sizes, strict=True)])


@rules.on("dynamic_update_slice")
def _dynamic_update_slice(op: Op, _: Rewriter) -> Replacement:
    operand, update = op.operands[:2]
    if update.type.shape == operand.type.shape:
        return update
    return None if update.type.size else operand


@rules.on("gather")
def _gather(op: Op, rewriter: Rewriter) -> Replacement:
    operand, indices = op.operands
    sizes = _attr(op, "slice_sizes")
    if not operand.type.size or not op.results[0].type.size or not operand.type.rank:
        return None
    if indices.type.size == len(_attr(op, "start_index_map")) > 0 and not _attr(op, "operand_batching_dims"):
        return _gather_of_one(op, rewriter)
    line = _evenly_spaced(op, rewriter)
    if line is None:
        return None
    dim, first, step, count = line
    offset = _attr(op, "offset_dims")
    batch = [d for d in range(op.results[0].type.rank) if d not in offset]
    others = [d for d in range(operand.type.rank) if d != dim]
    if len(batch) != 1 or any(sizes[d] != operand.type.shape[d] for d in others):
        return None
    starts, limits, strides = [0] * operand.type.rank, list(operand.type.shape), [1] * operand.type.rank
    starts[dim], limits[dim], strides[dim] = first, first + (count - 1) * step + 1, step
    sliced = take(rewriter, operand, starts, limits, strides)
    # The gathered dimension comes first, then the others; then each goes to its place.
    gathered = [dim, *others]
    return transpose(rewriter, sliced, [gathered[p] for p in np.argsort([batch[0], *offset])])


def _gather_of_one(op: Op, rewriter: Rewriter) -> Value:
    """A gather of a single window is a dynamic_slice: both move the window inside."""
    operand, indices = op.operands
    sizes, mapped = _attr(op, "slice_sizes"), _attr(op, "start_index_map")
    vector = reshape(rewriter, indices, (indices.type.size,))
    scalar = [reshape(rewriter, take(rewriter, vector, [k], [k + 1]), ()) for k in range(len(mapped))]
    zero = rewriter.full(0, scalar[0].type)
    starts = [scalar[mapped.index(d)] if d in mapped else zero for d in range(operand.type.rank)]
    window = rewriter.emit("dynamic_slice", [operand, *starts], None, {"slice_sizes": tuple(sizes)})
    return reshape(rewriter, window, op.results[0].type.shape)


def _evenly_spaced(op: Op, rewriter: Rewriter) -> tuple[int, int, int, int] | None:
    """(dimension, first, step, count) when a gather takes single rows, in order, at evenly spaced places inside."""
    operand, indices = op.operands
    if _attr(op, "operand_batching_dims") or len(_attr(op, "start_index_map")) != 1:
        return None
    (dim,) = _attr(op, "start_index_map")
    if tuple(_attr(op, "collapsed_slice_dims")) != (dim,):
        return None
    count, extent = indices.type.size, operand.type.shape[dim]
    if sum(n > 1 for n in indices.type.shape) != 1:
        return None
    known = rewriter.constant(indices)
    if known is not None:
        places = as_index(known).reshape(-1)
        step = int(places[1] - places[0])
        if step < 1 or (np.diff(places) != step).any() or places[0] < 0 or places[-1] >= extent:
            return None
        return dim, int(places[0]), step, count
    counted = made_by(indices, "iota")
    if counted is None:
        inner = made_by(indices, "reshape")
        counted = made_by(inner.operands[0], "iota") if inner is not None else None
    if counted is None or count > extent:
        return None
    # An iota along a dimension of extent 1 is all zeros, and one along a part of the others does not run through.
    if counted.results[0].type.shape[_attr(counted, "iota_dimension")] != count:
        return None
    return dim, 0, 1, count


@rules.on("scatter")
def _scatter(op: Op, rewriter: Rewriter) -> Replacement:
    """One window, known to lie inside, that replaces what is there: a dynamic_update_slice."""
    if len(op.operands) != 3:
        return None
    operand, indices, updates = op.operands
    if not updates.type.size or not operand.type.size:
        return operand
    region = op.regions[0]
    if region.results[0] is not region.args[1] or _attr(op, "input_batching_dims"):
        return None
    mapped, window_dims = _attr(op, "scatter_dims_to_operand_dims"), _attr(op, "update_window_dims")
    known = rewriter.constant(indices)
    if known is None or indices.type.size != max(len(mapped), 1):
        return None
    inserted = _attr(op, "inserted_window_dims")
    extents = iter(updates.type.shape[d] for d in window_dims)
    window = [1 if d in inserted else next(extents) for d in range(operand.type.rank)]
    places = as_index(known).reshape(-1)
    starts = [int(places[mapped.index(d)]) if d in mapped else 0 for d in range(operand.type.rank)]
    if any(s < 0 or s + w > n for s, w, n in zip(starts, window, operand.type.shape, strict=True)):
        return operand
    scalars = [rewriter.constant_value(np.asarray(s, np.int64), TensorType(S64, ())) for s in starts]
    return rewriter.emit("dynamic_update_slice", [operand, reshape(rewriter, updates, window), *scalars])
