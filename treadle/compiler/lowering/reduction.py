"""Reductions written out inside an element's expression, being small, and what they share with reduction nests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.ir import Expr, Index
from treadle.compiler.lowering.attributes import ints, pairs
from treadle.compiler.lowering.context import Context
from treadle.compiler.lowering.registry import Coordinates, element_rule
from treadle.compiler.lowering.window import window_position


def accumulator_dtype(dtype: DType, kind: str | None) -> DType:
    """The type of an accumulator: f32 for sums and products of 16-bit floats, as with XLA on CPUs, else its own."""
    return t.F32 if kind in ("add", "multiply") and dtype in (t.F16, t.BF16) else dtype


def split_operands(op: Op) -> tuple[list[Value], list[Value]]:
    """(inputs, initial values) of reduce and reduce_window."""
    half = len(op.operands) // 2
    return op.operands[:half], op.operands[half:]


def reduced_count(op: Op) -> int:
    """How many elements go into one result of reduce, reduce_window or dot_general."""
    count = 1
    if op.name == "reduce":
        for dim in ints(op, "dimensions"):
            count *= op.operands[0].type.shape[dim]
    elif op.name == "reduce_window":
        for extent in ints(op, "window_dimensions"):
            count *= extent
    elif op.name == "dot_general":
        for dim in ints(op, "lhs_contracting_dimensions"):
            count *= op.operands[0].type.shape[dim]
    return count


def reduce_coordinates(op: Op, at: Coordinates, inner: Sequence[Index]) -> Coordinates:
    """Coordinates in a reduce's input: result coordinates `at` with `inner` put in at the reduced dimensions."""
    dims = ints(op, "dimensions")
    outer = iter(at)
    inside = dict(zip(dims, inner, strict=True))
    return tuple(inside[d] if d in inside else next(outer) for d in range(op.operands[0].type.rank))


def window_coordinates(
    ctx: Context, op: Op, at: Coordinates, window: Sequence[Index]
) -> tuple[Coordinates, Expr | None]:
    """Coordinates in a reduce_window's input of place `window` in the window of result `at`, and whether it has any."""
    b = ctx.builder
    inside: Expr | None = None
    source: list[Index] = []
    rows = zip(
        at, window, ints(op, "window_strides"), ints(op, "window_dilations"), ints(op, "base_dilations"),
        pairs(op, "padding"), op.operands[0].type.shape, strict=True,
    )  # fmt: skip
    for i, w, stride, dilation, base, (low, _high), extent in rows:
        position, condition = window_position(
            b, i, w, extent=extent, stride=stride, low=low, window_dilation=dilation, base_dilation=base
        )
        inside = b.both(inside, condition)
        source.append(position)
    return tuple(source), inside


def _fold(ctx: Context, region: Region, inits: list[Expr], elements: list[list[Expr]], result: int) -> Expr:
    """Applies a combiner to elements one after the other, in order."""
    accumulators = inits
    for element in elements:
        accumulators = ctx.region(region, [*accumulators, *element])
    return accumulators[result]


@element_rule("reduce")
def reduce(ctx: Context, op: Op, result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The combiner applied to one element after the other."""
    inputs, inits = split_operands(op)
    extents = [inputs[0].type.shape[d] for d in ints(op, "dimensions")]
    elements = []
    for position in itertools.product(*map(range, extents)):
        source = reduce_coordinates(op, at, [Index(p) for p in position])
        elements.append([ctx.element(v, source, mask) for v in inputs])
    return _fold(ctx, op.regions[0], [ctx.element(v, (), mask) for v in inits], elements, result)


@element_rule("reduce_window")
def reduce_window(ctx: Context, op: Op, result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The combiner applied to one place of the window after the other, with the initial value where no element is."""
    b = ctx.builder
    inputs, init_values = split_operands(op)
    inits = [ctx.element(v, (), mask) for v in init_values]
    elements = []
    for position in itertools.product(*map(range, ints(op, "window_dimensions"))):
        source, inside = window_coordinates(ctx, op, at, [Index(p) for p in position])
        row = []
        for value, init in zip(inputs, inits, strict=True):
            element = ctx.element(value, source, b.both(mask, inside))
            row.append(element if inside is None else b.apply(init.dtype, "select", [inside, element, init]))
        elements.append(row)
    return _fold(ctx, op.regions[0], inits, elements, result)
