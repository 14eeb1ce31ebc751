"""Element rules of the ops whose coordinates come from data: dynamic_slice and gather."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op, Value
from treadle.compiler.loops.build import add_index, scale_index
from treadle.compiler.loops.ir import Expr, Index
from treadle.compiler.lowering.attributes import integer, ints
from treadle.compiler.lowering.context import Context
from treadle.compiler.lowering.registry import Coordinates, element_rule


def as_s64(ctx: Context, value: Expr) -> Expr:
    """An integer expression as s64; what an unsigned one has beyond that becomes the largest."""
    b = ctx.builder
    if value.dtype is t.U64:
        value = b.apply(t.U64, "minimum", [value, b.const(t.U64, (1 << 63) - 1)])
    return b.apply(t.S64, "convert", [value])


def clamped_start(ctx: Context, start: Expr, limit: int) -> Index:
    """clamp(0, start, limit) as an index."""
    b = ctx.builder
    if limit <= 0:
        return Index()
    zero, high = b.const(t.S64, 0), b.const(t.S64, limit)
    return b.dynamic_index(b.apply(t.S64, "clamp", [zero, as_s64(ctx, start), high]))


def dynamic_starts(
    ctx: Context, starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int], mask: Expr | None
) -> list[Index]:
    """The clamped start of a dynamic slice of `sizes` in `shape`, one index per dimension."""
    return [
        clamped_start(ctx, ctx.element(start, (), mask), extent - size)
        for start, extent, size in zip(starts, shape, sizes, strict=True)
    ]


@element_rule("dynamic_slice")
def dynamic_slice(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element, from the clamped start on."""
    operand = op.operands[0]
    starts = dynamic_starts(ctx, op.operands[1:], operand.type.shape, op.result.type.shape, mask)
    return ctx.element(operand, tuple(add_index(s, i) for s, i in zip(starts, at, strict=True)), mask)


@element_rule("dynamic_update_slice")
def dynamic_update_slice(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """As an expression (when its result is consumed on the fly): the update inside its window, the operand outside."""
    b = ctx.builder
    operand, update = op.operands[:2]
    starts = dynamic_starts(ctx, op.operands[2:], operand.type.shape, update.type.shape, mask)
    inside: Expr | None = None
    local: list[Index] = []
    for i, start, extent, size in zip(at, starts, operand.type.shape, update.type.shape, strict=True):
        position = i
        if size != extent:
            position = add_index(i, scale_index(start, -1))
            inside = b.both(inside, b.in_range(position, 0, size))
        local.append(position)
    new = ctx.element(update, tuple(local), b.both(mask, inside))
    if inside is None:
        return new
    return b.apply(op.result.type.dtype, "select", [inside, new, ctx.element(operand, at, mask)])


@element_rule("gather")
def gather(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """StableHLO gather: start indices are read along index_vector_dim and clamped so that the slice fits."""
    operand, indices = op.operands
    offset_dims = ints(op, "offset_dims")
    slice_sizes = ints(op, "slice_sizes")
    batch_at = tuple(i for d, i in enumerate(at) if d not in offset_dims)
    offset_at = iter([at[d] for d in offset_dims])
    skipped = {*ints(op, "collapsed_slice_dims"), *ints(op, "operand_batching_dims")}
    source: list[Index] = []
    vector_dim = integer(op, "index_vector_dim")
    start_index_map = ints(op, "start_index_map")
    batching = dict(zip(ints(op, "operand_batching_dims"), ints(op, "start_indices_batching_dims"), strict=True))
    for dim, extent in enumerate(operand.type.shape):
        position = Index() if dim in skipped else next(offset_at)
        if dim in batching:
            position = add_index(position, batch_coordinate(batch_at, batching[dim], vector_dim))
        if dim in start_index_map:
            start = index_component(ctx, indices, batch_at, vector_dim, start_index_map.index(dim), mask)
            position = add_index(position, clamped_start(ctx, start, extent - slice_sizes[dim]))
        source.append(position)
    return ctx.element(operand, tuple(source), mask)


def batch_coordinate(batch_at: Coordinates, indices_dim: int, vector_dim: int) -> Index:
    """Of the batch coordinates of a gather or scatter, the one along dimension `indices_dim` of the indices."""
    return batch_at[indices_dim - (1 if indices_dim > vector_dim else 0)]


def index_component(
    ctx: Context, indices: Value, batch_at: Coordinates, vector_dim: int, component: int, mask: Expr | None = None
) -> Expr:
    """Component `component` of the index vector at `batch_at`; the vectors lie along `vector_dim` or are scalars."""
    at = batch_at
    if vector_dim < indices.type.rank:
        at = (*batch_at[:vector_dim], Index(component), *batch_at[vector_dim:])
    return ctx.element(indices, at, mask)
