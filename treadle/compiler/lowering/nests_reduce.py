"""Reductions, windows, small products and convolutions: a nest with a reduction, and what follows in its stores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ir.types import DType, TensorType
from treadle.compiler.loops.build import add_index, index_of, linear_index, scale_index
from treadle.compiler.loops.ir import Acc, Expr, Index, Load, Nest, Reduction, Store, Var
from treadle.compiler.lowering.attributes import flags, integer, ints, pairs
from treadle.compiler.lowering.combiners import with_position_kind
from treadle.compiler.lowering.context import Context, combiner_kind, loop_vars
from treadle.compiler.lowering.kernels import FusionBody, KernelCall, KernelMaker
from treadle.compiler.lowering.linear import dot_coordinates, product, product_dtype
from treadle.compiler.lowering.reduction import (
    accumulator_dtype,
    reduce_coordinates,
    split_operands,
    window_coordinates,
)
from treadle.compiler.lowering.registry import Coordinates
from treadle.compiler.lowering.window import window_position

# A reduction of at least this many elements to fewer than SPLIT_RESULTS results is cut into partial reductions for the
# threads.
SPLIT_ELEMENTS = 1 << 16
SPLIT_RESULTS = 64
MAX_PARTS = 32


def lower_reduce(body: FusionBody) -> list[KernelCall]:
    """One nest, or two kernels for a long reduction to few results.

    The reducing op is number `attrs["root"]` of the region; ops before it are inlined, ops after it are in the stores.
    """
    root = body.region.ops[integer(body.op, "root")]
    if all(outside.type.size == 0 for _, outside in body.results):
        return []
    if root.name == "reduce":
        parts = _split_point(root)
        calls = _lower_split(body, root, parts) if parts is not None else None
        if calls is not None:
            return calls
    maker = body.maker()
    loops, at, reduction = _nest_of(maker, root, body.region)
    return [maker.finish([_finish_nest(maker, body, root, loops, at, reduction)])]


def make_reduction(
    ctx: Context,
    variables: Sequence[Var],
    inits: list[Expr],
    inputs: list[Expr],
    combiner: tuple[Expr, ...],
    reads_first: bool = True,
) -> Reduction:
    """A Reduction; 16-bit float sums are moved to f32. `reads_first`: whether the first result is ever used."""
    kind = combiner_kind(combiner)
    dtypes = tuple(accumulator_dtype(e.dtype, kind) for e in inits)
    if dtypes != tuple(e.dtype for e in inits):
        (wide,) = dtypes
        b = ctx.builder
        inits = [b.apply(wide, "convert", [inits[0]])]
        inputs = [b.apply(wide, "convert", [inputs[0]])]
        combiner = (b.apply(wide, cast(str, kind), [b.param(wide, 0), b.param(wide, 1)]),)
    reduction = Reduction(tuple(variables), tuple(inits), tuple(inputs), combiner, kind, dtypes)
    return with_position_kind(reduction) if kind is None and not (reads_first and dtypes[0].is_float) else reduction


def accumulated(ctx: Context, root: Op, reduction: Reduction) -> list[Expr]:
    """The results of `root` as expressions of its accumulators."""
    return [
        ctx.builder.apply(value.type.dtype, "convert", [Acc(dtype, i)])
        for i, (value, dtype) in enumerate(zip(root.results, reduction.acc_dtypes, strict=True))
    ]


def _nest_of(maker: KernelMaker, root: Op, region: Region) -> tuple[tuple[Var, ...], Coordinates, Reduction]:
    if root.name == "convolution":
        return _convolution_nest(maker, root)
    loops, at = loop_vars(root.results[0].type.shape)
    return loops, at, _reduction_of(maker.context, root, at, region)


def _reduction_of(ctx: Context, root: Op, at: Coordinates, region: Region) -> Reduction:
    if root.name == "dot_general":
        extents = [root.operands[0].type.shape[d] for d in ints(root, "lhs_contracting_dimensions")]
        variables, inner = loop_vars(extents)
        left_at, right_at = dot_coordinates(root, at, inner)
        term = product(ctx, root, ctx.element(root.operands[0], left_at), ctx.element(root.operands[1], right_at))
        return sum_of(ctx, product_dtype(root), variables, term)
    inputs, init_values = split_operands(root)
    inits = [ctx.element(v, ()) for v in init_values]
    combiner = ctx.combiner(root.regions[0])
    if root.name == "reduce":
        variables, inner = loop_vars([inputs[0].type.shape[d] for d in ints(root, "dimensions")])
        source = reduce_coordinates(root, at, inner)
        elements = [ctx.element(v, source) for v in inputs]
        return make_reduction(ctx, variables, inits, elements, combiner, _reads_first(root, region))
    variables, inner = loop_vars(ints(root, "window_dimensions"))
    source, inside = window_coordinates(ctx, root, at, inner)
    elements = []
    for value, init in zip(inputs, inits, strict=True):
        element = ctx.element(value, source, inside)
        if inside is not None:
            element = ctx.builder.apply(init.dtype, "select", [inside, element, init])
        elements.append(element)
    return make_reduction(ctx, variables, inits, elements, combiner)


def _reads_first(root: Op, region: Region) -> bool:
    """Whether anything uses the first result of `root`."""
    first = root.results[0]
    return first in region.results or any(first in op.operands for op in region.ops)


def sum_of(ctx: Context, dtype: DType, variables: Sequence[Var], term: Expr) -> Reduction:
    """The sum (disjunction for pred) of `term` over `variables`."""
    b = ctx.builder
    name = "or" if dtype is t.PRED else "add"
    combiner = (b.apply(dtype, name, [b.param(dtype, 0), b.param(dtype, 1)]),)
    return Reduction(tuple(variables), (b.const(dtype, 0),), (term,), combiner, name, (dtype,))


def _finish_nest(
    maker: KernelMaker, body: FusionBody, root: Op, loops: tuple[Var, ...], at: Coordinates, reduction: Reduction
) -> Nest:
    """Stores of all results of the fusion, elementwise work after the reduction included."""
    ctx = maker.context
    ctx.given.update(zip(root.results, accumulated(ctx, root, reduction), strict=True))
    shape = root.results[0].type.shape
    stores = []
    for inside, outside in body.results:
        own = ctx.reshaped(at, shape, inside.type.shape)
        value = ctx.element(inside, own)
        stores.append(Store(maker.output(outside), linear_index(own, inside.type.strides()), value))
    return Nest(loops, tuple(stores), reduction)


def _convolution_nest(maker: KernelMaker, op: Op) -> tuple[tuple[Var, ...], Coordinates, Reduction]:
    """Convolution as StableHLO defines it.

    The loop over output features is two, over groups and within a group, so that all indices are affine.
    """
    ctx, b = maker.context, maker.builder
    lhs, rhs = op.operands
    groups, batch_groups = integer(op, "feature_group_count"), integer(op, "batch_group_count")
    out_shape = op.result.type.shape
    batch_dim, feature_dim = integer(op, "output_batch_dimension"), integer(op, "output_feature_dimension")
    per_group = out_shape[feature_dim] // (groups * batch_groups)
    group, feature = Var(groups * batch_groups), Var(per_group)
    loops: list[Var] = []
    at: list[Index] = []
    for dim, extent in enumerate(out_shape):
        if dim == feature_dim:
            loops += [group, feature]
            at.append(add_index(index_of(group, per_group), index_of(feature)))
        else:
            loops.append(Var(extent))
            at.append(index_of(loops[-1]))
    in_features = rhs.type.shape[integer(op, "kernel_input_feature_dimension")]
    channel = Var(in_features)
    lhs_at: list[Index] = [Index()] * lhs.type.rank
    rhs_at: list[Index] = [Index()] * rhs.type.rank
    batch_size = out_shape[batch_dim]
    lhs_at[integer(op, "input_batch_dimension")] = (
        add_index(at[batch_dim], index_of(group, batch_size)) if batch_groups > 1 else at[batch_dim]
    )
    lhs_at[integer(op, "input_feature_dimension")] = (
        add_index(index_of(channel), index_of(group, in_features)) if groups > 1 else index_of(channel)
    )
    rhs_at[integer(op, "kernel_input_feature_dimension")] = index_of(channel)
    rhs_at[integer(op, "kernel_output_feature_dimension")] = at[feature_dim]
    spatial: list[Var] = []
    inside: Expr | None = None
    rows = zip(
        ints(op, "input_spatial_dimensions"), ints(op, "kernel_spatial_dimensions"),
        ints(op, "output_spatial_dimensions"), ints(op, "window_strides"), pairs(op, "padding"),
        ints(op, "lhs_dilation"), ints(op, "rhs_dilation"), flags(op, "window_reversal"), strict=True,
    )  # fmt: skip
    for in_dim, kernel_dim, out_dim, stride, (low, _high), base, dilation, reverse in rows:
        window = Var(rhs.type.shape[kernel_dim])
        spatial.append(window)
        w = index_of(window)
        rhs_at[kernel_dim] = add_index(Index(window.extent - 1), scale_index(w, -1)) if reverse else w
        extent = lhs.type.shape[in_dim]
        lhs_at[in_dim], condition = window_position(
            b, at[out_dim], w, extent=extent, stride=stride, low=low, window_dilation=dilation, base_dilation=base
        )
        inside = b.both(inside, condition)
    left = ctx.element(lhs, tuple(lhs_at), inside)
    # The padding is zero. So is a masked load outside of its mask; what was fused around one (x + 1) is not.
    if inside is not None and not (isinstance(left, Load) and left.mask is inside):
        left = b.apply(left.dtype, "select", [inside, left, b.const(left.dtype, 0)])
    term = product(ctx, op, left, ctx.element(rhs, tuple(rhs_at)))
    return tuple(loops), tuple(at), sum_of(ctx, product_dtype(op), [*spatial, channel], term)


def _split_point(root: Op) -> int | None:
    """Into how many parts the outermost reduced dimension is cut, or None when the reduction stays whole."""
    inputs, _ = split_operands(root)
    dims = ints(root, "dimensions")
    if not dims or root.results[0].type.size >= SPLIT_RESULTS:
        return None
    extents = [inputs[0].type.shape[d] for d in dims]
    if math.prod(extents) < SPLIT_ELEMENTS:
        return None
    return next((parts for parts in range(MAX_PARTS, 3, -1) if extents[0] % parts == 0), None)


def _lower_split(body: FusionBody, root: Op, parts: int) -> list[KernelCall] | None:
    """Two kernels: `parts` partial reductions, in parallel; then the reduction of those and everything that follows.

    None when the reduction has to run in order.
    """
    inputs, init_values = split_operands(root)
    dims = ints(root, "dimensions")
    shape = root.results[0].type.shape
    first = body.maker()
    ctx = first.context
    part = Var(parts)
    loops, at = loop_vars(shape)
    first_extent, *other_extents = (inputs[0].type.shape[d] for d in dims)
    inner_vars, inner = loop_vars([first_extent // parts, *other_extents])
    cut = (add_index(index_of(part, inner_vars[0].extent), inner[0]), *inner[1:])
    elements = [ctx.element(v, reduce_coordinates(root, at, cut)) for v in inputs]
    combiner = ctx.combiner(root.regions[0])
    simple = combiner_kind(combiner)
    if simple is not None:
        inits = [ctx.builder.const(elements[0].dtype, identity(simple, elements[0].dtype))]
    else:
        # Where the best is kept, what each part starts with may be met any number of times.
        inits = [ctx.element(v, ()) for v in init_values]
    reduction = make_reduction(ctx, inner_vars, inits, elements, combiner, _reads_first(root, body.region))
    if reduction.kind is None:
        return None
    partials = [Value(TensorType(dtype, (parts, *shape))) for dtype in reduction.acc_dtypes]
    stores = []
    for number, (partial, dtype) in enumerate(zip(partials, reduction.acc_dtypes, strict=True)):
        place = linear_index([index_of(part), *at], partial.type.strides())
        stores.append(Store(first.output(partial), place, Acc(dtype, number)))
    calls = [first.finish([Nest((part, *loops), tuple(stores), reduction)])]

    second = KernelMaker({**body.reads, **{partial: partial for partial in partials}})
    ctx = second.context
    loops, at = loop_vars(shape)
    (variable,), (position,) = loop_vars([parts])
    starts = zip(reduction.acc_dtypes, init_values, strict=True)
    inits = [ctx.builder.apply(dtype, "convert", [ctx.element(value, ())]) for dtype, value in starts]
    loads = [ctx.element(partial, (position, *at)) for partial in partials]
    # Partial results come in order, but their positions are read, not counted.
    kind = reduction.kind if simple is not None else None
    final = Reduction((variable,), tuple(inits), tuple(loads), reduction.combiner, kind, reduction.acc_dtypes)
    calls.append(second.finish([_finish_nest(second, body, root, loops, at, final)]))
    return calls


def identity(kind: str, dtype: DType) -> object:
    """The neutral element of a reassociable combiner."""
    if kind in ("add", "or", "xor"):
        # -0.0 is the neutral element of a float sum: 0.0 would turn a sum of nothing but -0.0 into 0.0.
        return -0.0 if kind == "add" and dtype.is_float else 0
    if kind == "multiply":
        return 1
    if kind == "and":
        return True if dtype is t.PRED else (1 << dtype.bits) - 1 if not dtype.is_signed else -1
    if dtype is t.PRED:
        return kind == "minimum"
    if dtype.is_float:
        return -np.inf if kind == "maximum" else np.inf
    info = np.iinfo(dtype.numpy)
    return info.min if kind == "maximum" else info.max
