"""Element rules of the ops that only move elements: the coordinates change, the value does not."""

from __future__ import annotations

from treadle.compiler.ir.core import Op
from treadle.compiler.loops.build import add_index, scale_index
from treadle.compiler.loops.ir import Expr, Index
from treadle.compiler.lowering.attributes import integer, ints
from treadle.compiler.lowering.context import Context
from treadle.compiler.lowering.registry import Coordinates, element_rule
from treadle.compiler.lowering.window import undilated


@element_rule("broadcast_in_dim")
def broadcast_in_dim(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element, at the coordinates that it has dimensions for."""
    operand = op.operands[0]
    picked = tuple(
        Index() if extent == 1 else at[dim]
        for extent, dim in zip(operand.type.shape, ints(op, "broadcast_dimensions"), strict=True)
    )
    return ctx.element(operand, picked, mask)


@element_rule("reshape")
def reshape(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element with the same linear index."""
    operand = op.operands[0]
    return ctx.element(operand, ctx.reshaped(at, op.result.type.shape, operand.type.shape), mask)


@element_rule("transpose")
def transpose(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element, coordinates permuted."""
    permutation = ints(op, "permutation")
    source: list[Index] = [Index()] * len(permutation)
    for i, dim in enumerate(permutation):
        source[dim] = at[i]
    return ctx.element(op.operands[0], tuple(source), mask)


@element_rule("slice")
def slice_(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element `stride` times as far from the start."""
    source = tuple(
        add_index(scale_index(i, stride), Index(start))
        for i, start, stride in zip(at, ints(op, "start_indices"), ints(op, "strides"), strict=True)
    )
    return ctx.element(op.operands[0], source, mask)


@element_rule("reverse")
def reverse(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element, counted from the other end."""
    dims = ints(op, "dimensions")
    shape = op.result.type.shape
    source = tuple(add_index(Index(shape[d] - 1), scale_index(i, -1)) if d in dims else i for d, i in enumerate(at))
    return ctx.element(op.operands[0], source, mask)


@element_rule("iota")
def iota(ctx: Context, op: Op, _result: int, at: Coordinates, _mask: Expr | None) -> Expr:
    """The coordinate itself."""
    return ctx.builder.index_value(at[integer(op, "iota_dimension")], op.result.type.dtype)


@element_rule("pad")
def pad(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The operand's element where the coordinates fall on one, the padding value elsewhere."""
    b = ctx.builder
    operand, padding = op.operands
    low, interior = ints(op, "edge_padding_low"), ints(op, "interior_padding")
    fill = ctx.element(padding, (), mask)
    if operand.type.size == 0:
        return fill
    inside: Expr | None = None
    source: list[Index] = []
    for i, first, gap, extent in zip(at, low, interior, operand.type.shape, strict=True):
        position, condition = undilated(b, add_index(i, Index(-first)), extent, gap + 1)
        inside = b.both(inside, condition)
        source.append(position)
    if inside is None:
        return ctx.element(operand, tuple(source), mask)
    value = ctx.element(operand, tuple(source), b.both(mask, inside))
    return b.apply(op.result.type.dtype, "select", [inside, value, fill])


@element_rule("concatenate")
def concatenate(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """A chain of selects by position; each operand's memory is touched only inside its own part."""
    b = ctx.builder
    dim = integer(op, "dimension")
    dtype = op.result.type.dtype
    start = 0
    parts: list[tuple[Expr | None, Expr]] = []
    for operand in op.operands:
        extent = operand.type.shape[dim]
        if extent == 0:
            continue
        condition = b.in_range(at[dim], start, start + extent)
        inner = (*at[:dim], add_index(at[dim], Index(-start)), *at[dim + 1 :])
        parts.append((condition, ctx.element(operand, inner, b.both(mask, condition))))
        start += extent
    value = parts[-1][1]
    for condition, part in reversed(parts[:-1]):
        value = part if condition is None else b.apply(dtype, "select", [condition, part, value])
    return value
