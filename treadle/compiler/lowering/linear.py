"""Products of matrices as expressions: dot_general with a short contraction, and what library calls and nests share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.ir import Expr, Index
from treadle.compiler.lowering.attributes import ints
from treadle.compiler.lowering.context import Context
from treadle.compiler.lowering.registry import Coordinates, element_rule


def product_dtype(op: Op) -> DType:
    """The type in which products are summed: f32 for 16-bit floats, the result's otherwise."""
    dtype = op.result.type.dtype
    return t.F32 if dtype in (t.F16, t.BF16) else dtype


def dot_coordinates(op: Op, at: Coordinates, inner: Sequence[Index]) -> tuple[Coordinates, Coordinates]:
    """Coordinates in both operands of dot_general for result `at` and contracted position `inner`."""
    batch_l, batch_r = ints(op, "lhs_batching_dimensions"), ints(op, "rhs_batching_dimensions")
    contract_l, contract_r = ints(op, "lhs_contracting_dimensions"), ints(op, "rhs_contracting_dimensions")
    batch, rest = at[: len(batch_l)], iter(at[len(batch_l) :])
    sides = []
    for rank, batch_dims, contract in (
        (op.operands[0].type.rank, batch_l, contract_l),
        (op.operands[1].type.rank, batch_r, contract_r),
    ):
        place = {**dict(zip(batch_dims, batch, strict=True)), **dict(zip(contract, inner, strict=True))}
        sides.append(tuple(place[d] if d in place else next(rest) for d in range(rank)))
    return sides[0], sides[1]


def product(ctx: Context, op: Op, left: Expr, right: Expr) -> Expr:
    """left * right in the accumulator's type (and/or for pred)."""
    b = ctx.builder
    dtype = product_dtype(op)
    if dtype is t.PRED:
        return b.apply(t.PRED, "and", [left, right])
    return b.apply(dtype, "multiply", [b.apply(dtype, "convert", [left]), b.apply(dtype, "convert", [right])])


@element_rule("dot_general")
def dot_general(ctx: Context, op: Op, _result: int, at: Coordinates, mask: Expr | None) -> Expr:
    """The sum of products, term by term."""
    b = ctx.builder
    lhs, rhs = op.operands
    dtype = product_dtype(op)
    total: Expr | None = None
    extents = [lhs.type.shape[d] for d in ints(op, "lhs_contracting_dimensions")]
    for position in itertools.product(*map(range, extents)):
        left_at, right_at = dot_coordinates(op, at, [Index(p) for p in position])
        term = product(ctx, op, ctx.element(lhs, left_at, mask), ctx.element(rhs, right_at, mask))
        total = term if total is None else b.apply(dtype, "or" if dtype is t.PRED else "add", [total, term])
    if total is None:
        total = b.const(dtype, 0)
    return b.apply(op.result.type.dtype, "convert", [total])
