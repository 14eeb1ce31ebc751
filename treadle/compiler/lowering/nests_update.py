"""Ops that change part of an array in place: dynamic_update_slice, scatter, and select_and_scatter.

The planner makes the result's buffer hold the operand's contents before the kernel runs (the same memory when the
operand dies there, a copy otherwise), so these kernels only touch what changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op, Value
from treadle.compiler.loops.build import add_index, index_of, linear_index
from treadle.compiler.loops.ir import Acc, Expr, Index, Nest, Reduction, Store, Var
from treadle.compiler.lowering.attributes import integer, ints, pairs
from treadle.compiler.lowering.context import Context, loop_vars
from treadle.compiler.lowering.indexing import as_s64, batch_coordinate, dynamic_starts, index_component
from treadle.compiler.lowering.kernels import FusionBody, KernelCall
from treadle.compiler.lowering.registry import Coordinates
from treadle.compiler.lowering.window import window_position

# Windows up to this many elements are unrolled by select_and_scatter when they do not overlap.
UNROLL_WINDOW = 16


def root_of(body: FusionBody) -> Op:
    """The op that produces every result of an update fusion."""
    root = body.region.results[0].op
    assert root is not None
    return root


def lower_update(body: FusionBody) -> list[KernelCall]:
    """dynamic_update_slice: stores over the window."""
    root = root_of(body)
    operand, update = root.operands[:2]
    if update.type.size == 0:
        return []
    maker = body.maker()
    ctx = maker.context
    starts = dynamic_starts(ctx, root.operands[2:], operand.type.shape, update.type.shape, None)
    loops, at = loop_vars(update.type.shape)
    target = [add_index(start, i) for start, i in zip(starts, at, strict=True)]
    index = linear_index(target, operand.type.strides())
    store = Store(maker.output(body.op.results[0]), index, ctx.element(update, at))
    return [maker.finish([Nest(loops, (store,))])]


def lower_scatter(body: FusionBody) -> list[KernelCall]:
    """scatter: a combining store per operand; update elements come in row-major order of their scatter dimensions."""
    root = root_of(body)
    count = (len(root.operands) - 1) // 2
    inputs, indices, updates = root.operands[:count], root.operands[count], root.operands[count + 1 :]
    if updates[0].type.size == 0 or inputs[0].type.size == 0:
        return []
    maker = body.maker()
    ctx = maker.context
    window_dims = ints(root, "update_window_dims")
    variables = [Var(extent) for extent in updates[0].type.shape]
    at = tuple(index_of(v) for v in variables)
    scatter_vars = [v for d, v in enumerate(variables) if d not in window_dims]
    window_vars = [variables[d] for d in window_dims]
    target, mask = _scatter_target(ctx, root, inputs[0], indices, at)
    index = linear_index(target, inputs[0].type.strides())
    combined = ctx.combiner(root.regions[0])
    stores = []
    for i, (update, outside, new) in enumerate(zip(updates, body.op.results, combined, strict=True)):
        replaces = new is ctx.builder.param(new.dtype, count + i)
        stores.append(Store(maker.output(outside), index, ctx.element(update, at), mask, None if replaces else new))
    if any(s.combine is None for s in stores) and any(s.combine is not None for s in stores):
        # One combining store makes all of them combining: parameters are counted over all stores of the nest.
        stores = [Store(s.buffer, s.index, s.value, s.mask, new) for s, new in zip(stores, combined, strict=True)]
    sequential = not root.attrs["unique_indices"]
    nest = Nest((*scatter_vars, *window_vars), tuple(stores), None, sequential, tuple(window_vars))
    return [maker.finish([nest], parallel=not sequential)]


def _scatter_target(
    ctx: Context, root: Op, operand: Value, indices: Value, at: Coordinates
) -> tuple[list[Index], Expr | None]:
    """Where the update element at `at` goes, and whether that is inside the operand (else it is dropped)."""
    b = ctx.builder
    window_dims = ints(root, "update_window_dims")
    vector_dim = integer(root, "index_vector_dim")
    batch_at = tuple(i for d, i in enumerate(at) if d not in window_dims)
    window_at = iter([at[d] for d in window_dims])
    window_sizes = iter([root.operands[-1].type.shape[d] for d in window_dims])
    skipped = {*ints(root, "inserted_window_dims"), *ints(root, "input_batching_dims")}
    to_operand = ints(root, "scatter_dims_to_operand_dims")
    batching = dict(zip(ints(root, "input_batching_dims"), ints(root, "scatter_indices_batching_dims"), strict=True))
    target: list[Index] = []
    mask: Expr | None = None
    for dim, extent in enumerate(operand.type.shape):
        size = 1 if dim in skipped else next(window_sizes)
        offset = Index() if dim in skipped else next(window_at)
        if dim in batching:
            offset = add_index(offset, batch_coordinate(batch_at, batching[dim], vector_dim))
        if dim in to_operand:
            component = index_component(ctx, indices, batch_at, vector_dim, to_operand.index(dim))
            start = b.dynamic_index(as_s64(ctx, component))
            # The whole window must fit: start in [0, extent - size].
            mask = b.both(mask, b.in_range(start, 0, extent - size + 1))
            offset = add_index(offset, start)
        target.append(offset)
    return target, mask


def lower_select_and_scatter(body: FusionBody) -> list[KernelCall]:
    """Pooling gradients: each source element goes to the place in its window that `select` picks."""
    root = root_of(body)
    if root.result.type.size == 0:
        return []
    calls = [_fill(body, root)]
    if root.operands[1].type.size == 0:
        return calls
    window, strides = ints(root, "window_dimensions"), ints(root, "window_strides")
    overlap = any(w > s for w, s in zip(window, strides, strict=True))
    if not overlap and math.prod(window) <= UNROLL_WINDOW:
        if _covers(root):
            calls = []
        return [*calls, _unrolled(body, root)]
    return [*calls, _general(body, root, overlap)]


def _fill(body: FusionBody, root: Op) -> KernelCall:
    maker = body.maker()
    loops, at = loop_vars(root.result.type.shape)
    value = maker.context.element(root.operands[2], ())
    store = Store(maker.output(body.op.results[0]), linear_index(at, root.result.type.strides()), value)
    return maker.finish([Nest(loops, (store,))])


def _covers(root: Op) -> bool:
    """Whether non-overlapping windows touch every element of the operand exactly once."""
    rows = zip(
        root.operands[0].type.shape, root.operands[1].type.shape, ints(root, "window_dimensions"),
        ints(root, "window_strides"), pairs(root, "padding"), strict=True,
    )  # fmt: skip
    return all(w == s and low == 0 and high <= 0 and n * s >= extent for extent, n, w, s, (low, high) in rows)


def _place(ctx: Context, root: Op, at: Coordinates, offset: Sequence[Index]) -> tuple[list[Index], Expr | None]:
    """Coordinates in the operand of window element `offset` of source element `at`, and whether they are inside."""
    inside: Expr | None = None
    place: list[Index] = []
    rows = zip(
        at, offset, ints(root, "window_strides"), pairs(root, "padding"), root.operands[0].type.shape, strict=True
    )
    for i, w, stride, (low, _high), extent in rows:
        position, condition = window_position(ctx.builder, i, w, extent=extent, stride=stride, low=low)
        inside = ctx.builder.both(inside, condition)
        place.append(position)
    return place, inside


def _unrolled(body: FusionBody, root: Op) -> KernelCall:
    """Windows that do not overlap: the selection is an expression, and every window element is stored once."""
    maker = body.maker()
    ctx, b = maker.context, maker.builder
    operand, source, init = root.operands
    loops, at = loop_vars(source.type.shape)
    offsets = list(itertools.product(*map(range, ints(root, "window_dimensions"))))
    places = [_place(ctx, root, at, [Index(o) for o in offset]) for offset in offsets]
    chosen: Expr | None = None
    best: Expr | None = None
    for number, (place, inside) in enumerate(places):
        element = ctx.element(operand, tuple(place), inside)
        me = b.const(t.S32, number)
        if best is None or chosen is None:
            # Nothing chosen yet: number -1 stands for "none" where the first elements lie outside.
            chosen = me if inside is None else b.apply(t.S32, "select", [inside, me, b.const(t.S32, -1)])
            best = element
            continue
        (keep,) = ctx.region(root.regions[0], [best, element])
        none = b.apply(t.PRED, "compare", [chosen, b.const(t.S32, 0)], "LT")
        keep = b.apply(t.PRED, "and", [keep, b.apply(t.PRED, "not", [none])])
        if inside is not None:
            keep = b.apply(t.PRED, "or", [keep, b.apply(t.PRED, "not", [inside])])
        chosen = b.apply(t.S32, "select", [keep, chosen, me])
        best = b.apply(element.dtype, "select", [keep, best, element])
    assert chosen is not None
    start = ctx.element(init, ())
    (hit,) = ctx.region(root.regions[1], [start, ctx.element(source, at)])
    stores = []
    for number, (place, inside) in enumerate(places):
        mine = b.apply(t.PRED, "compare", [chosen, b.const(t.S32, number)], "EQ")
        value = b.apply(hit.dtype, "select", [mine, hit, start])
        index = linear_index(place, operand.type.strides())
        stores.append(Store(maker.output(body.op.results[0]), index, value, inside))
    return maker.finish([Nest(loops, tuple(stores))])


def _general(body: FusionBody, root: Op, overlap: bool) -> KernelCall:
    """Any window: a reduction finds the place, a combining store adds to it."""
    maker = body.maker()
    ctx, b = maker.context, maker.builder
    operand, source, _ = root.operands
    dtype = operand.type.dtype
    variables = tuple(Var(extent) for extent in source.type.shape)
    at = tuple(index_of(v) for v in variables)
    window, offset = loop_vars(ints(root, "window_dimensions"))
    place, inside = _place(ctx, root, at, offset)
    element = ctx.element(operand, tuple(place), inside)
    position = b.index_value(linear_index(place, operand.type.strides()), t.S64)
    valid = b.const(t.PRED, True) if inside is None else inside
    # Accumulators: something chosen yet, its value, its position.
    found, best, where = b.param(t.PRED, 0), b.param(dtype, 1), b.param(t.S64, 2)
    new_valid, new, new_where = b.param(t.PRED, 3), b.param(dtype, 4), b.param(t.S64, 5)
    (keep,) = ctx.region(root.regions[0], [best, new])
    keep = b.apply(t.PRED, "or", [b.apply(t.PRED, "and", [keep, found]), b.apply(t.PRED, "not", [new_valid])])
    combiner = (
        b.apply(t.PRED, "or", [found, new_valid]),
        b.apply(dtype, "select", [keep, best, new]),
        b.apply(t.S64, "select", [keep, where, new_where]),
    )
    inits = (b.const(t.PRED, False), b.const(dtype, 0), b.const(t.S64, 0))
    reduction = Reduction(window, inits, (valid, element, position), combiner, None, (t.PRED, dtype, t.S64))
    index = b.dynamic_index(Acc(t.S64, 2))
    (combine,) = ctx.combiner(root.regions[1])
    store = Store(maker.output(body.op.results[0]), index, ctx.element(source, at), Acc(t.PRED, 0), combine)
    apart = tuple(
        v
        for v, w, s in zip(variables, ints(root, "window_dimensions"), ints(root, "window_strides"), strict=True)
        if w <= s
    )
    nest = Nest(variables, (store,), reduction, overlap, apart)
    return maker.finish([nest], parallel=not overlap)
