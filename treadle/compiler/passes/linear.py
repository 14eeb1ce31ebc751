"""Transposes around a product become part of its dimension numbers: products read strided operands for free."""

from __future__ import annotations

import math
from typing import Any

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import TensorType
from treadle.compiler.passes.algebra import made_by
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet
from treadle.compiler.passes.shapes import broadcast, reshape

rules = RuleSet()


def _attr(op: Op, name: str) -> Any:
    return op.attrs[name]


def _free(op: Op, side: int) -> list[int]:
    """The operand's dimensions that are neither batching nor contracting."""
    which = ("lhs", "rhs")[side]
    taken = (*_attr(op, f"{which}_batching_dimensions"), *_attr(op, f"{which}_contracting_dimensions"))
    return [d for d in range(op.operands[side].type.rank) if d not in taken]


@rules.on("dot_general")
def _outer_product(op: Op, rewriter: Rewriter) -> Replacement:
    """A product that sums nothing up is elementwise, and fuses."""
    lhs = op.operands[0].type
    if math.prod(lhs.shape[d] for d in _attr(op, "lhs_contracting_dimensions")) != 1:
        return None
    result = op.results[0].type
    count = len(_attr(op, "lhs_batching_dimensions"))
    factors = []
    begin = count
    for side, which in enumerate(("lhs", "rhs")):
        value, summed = op.operands[side], _attr(op, f"{which}_contracting_dimensions")
        batching, free = list(_attr(op, f"{which}_batching_dimensions")), _free(op, side)
        left = [d for d in range(value.type.rank) if d not in summed]
        places = [batching.index(d) if d in batching else begin + free.index(d) for d in left]
        begin += len(free)
        if value.type.dtype is not result.dtype:
            value = rewriter.emit("convert", [value], TensorType(result.dtype, value.type.shape))
        value = reshape(rewriter, value, [value.type.shape[d] for d in left])
        factors.append(broadcast(rewriter, value, result.shape, places))
    return rewriter.emit("multiply", factors)


@rules.on("dot_general")
def _transposed_operands(op: Op, rewriter: Rewriter) -> Replacement:
    operands = list(op.operands)
    attrs = dict(op.attrs)
    for side, which in enumerate(("lhs", "rhs")):
        moved = made_by(operands[side], "transpose")
        if moved is None:
            continue
        permutation = _attr(moved, "permutation")
        free = [permutation[d] for d in _free(op, side)]
        if free != sorted(free):  # the result's dimensions would come in another order
            continue
        operands[side] = moved.operands[0]
        for name in (f"{which}_batching_dimensions", f"{which}_contracting_dimensions"):
            attrs[name] = tuple(permutation[d] for d in _attr(op, name))
    if operands == op.operands:
        return None
    return rewriter.emit("dot_general", operands, op.results[0].type, attrs)


@rules.on("transpose")
def _transposed_result(op: Op, rewriter: Rewriter) -> Replacement:
    """(a b)^T is b a with the dimension numbers exchanged, when the transpose exchanges just the two free groups."""
    dot = made_by(op.operands[0], "dot_general")
    if dot is None or not rewriter.used_once(op.operands[0]):
        return None
    batch = len(_attr(dot, "lhs_batching_dimensions"))
    left, right = len(_free(dot, 0)), len(_free(dot, 1))
    exchanged = [*range(batch), *range(batch + left, batch + left + right), *range(batch, batch + left)]
    if list(_attr(op, "permutation")) != exchanged:
        return None
    attrs = dict(dot.attrs)
    for kind in ("batching", "contracting"):
        lhs, rhs = f"lhs_{kind}_dimensions", f"rhs_{kind}_dimensions"
        attrs[lhs], attrs[rhs] = dot.attrs[rhs], dot.attrs[lhs]
    operands: list[Value] = [dot.operands[1], dot.operands[0]]
    return rewriter.emit("dot_general", operands, op.results[0].type, attrs)
