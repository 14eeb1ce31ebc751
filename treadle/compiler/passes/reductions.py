"""Reductions over broadcasts, transposes and single elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ir.types import Kind
from treadle.compiler.passes.algebra import all_ones
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet, is_negative_zero
from treadle.compiler.passes.shapes import broadcast, reshape

rules = RuleSet()

_IDEMPOTENT = ("maximum", "minimum", "and", "or")


def _attr(op: Op, name: str) -> Any:
    return op.attrs[name]


def combiner(region: Region) -> str | None:
    """The name of the one op on both arguments that a combiner region is, if it is that."""
    if len(region.args) != 2 or len(region.ops) != 1:
        return None
    (op,) = region.ops
    if (
        op.attrs
        or len(op.operands) != 2
        or len(op.results) != 1
        or region.results[0] is not op.results[0]
        or set(op.operands) != set(region.args)
    ):
        return None
    return op.name if op.operands == region.args or op.name in ("add", "multiply", "xor", *_IDEMPOTENT) else None


def _is_neutral(name: str, init: Value, rewriter: Rewriter) -> bool:
    """Whether combining with `init` changes nothing."""
    number = rewriter.splat(init)
    dtype = init.type.dtype
    if number is None:
        return False
    if name == "add":
        return is_negative_zero(number) if dtype.is_float else number == 0
    if name == "multiply":
        return number == 1
    if name in ("or", "xor"):
        return number == 0
    if name == "and":
        return number == all_ones(dtype)
    if name in ("maximum", "minimum"):
        if dtype.is_float:
            return number == (-math.inf if name == "maximum" else math.inf)
        if dtype.kind is Kind.PRED:
            return number is (name == "minimum")
        info = np.iinfo(dtype.numpy)
        return number == int(info.min if name == "maximum" else info.max)
    return False


def _combined(name: str, init: Value, x: Value, rewriter: Rewriter) -> Value:
    """`name(init, x)` for an array x."""
    if _is_neutral(name, init, rewriter):
        return x
    return rewriter.emit(name, [broadcast(rewriter, init, x.type.shape, ()), x])


@rules.on("reduce")
def _reduce(op: Op, rewriter: Rewriter) -> Replacement:
    if len(op.operands) != 2:
        return None
    x, init = op.operands
    name = combiner(op.regions[0])
    if name is None or not x.type.size:
        return None
    dims = _attr(op, "dimensions")
    if all(x.type.shape[d] == 1 for d in dims):
        return _combined(name, init, reshape(rewriter, x, op.results[0].type.shape), rewriter)
    if x.op is None:
        return None
    if x.op.name == "broadcast_in_dim":
        return _of_broadcast(op, x.op, name, rewriter)
    if x.op.name == "transpose":
        return _of_transpose(op, x.op, rewriter)
    return None


def _of_broadcast(op: Op, inner: Op, name: str, rewriter: Rewriter) -> Replacement:
    """Equal elements: one of them for max and the like, a multiple for sums. The rest is reduced as before."""
    source, dims = inner.operands[0], _attr(op, "dimensions")
    placed = _attr(inner, "broadcast_dimensions")
    shape = op.operands[0].type.shape
    # A dimension repeats when no dimension of the source with more than one element stands for it.
    standing = {d for d, n in zip(placed, source.type.shape, strict=True) if n > 1 or shape[d] == 1}
    repeated = [d for d in dims if d not in standing]
    dtype = source.type.dtype
    if not repeated or len(repeated) != len(dims) or (name not in _IDEMPOTENT and name != "add"):
        return None
    if name == "add" and dtype.kind is Kind.PRED:
        return None
    count = math.prod(shape[d] for d in repeated)
    if name == "add" and dtype.is_float and (dtype.bits < 32 or count > 2**24):
        return None
    kept = [d for d in range(len(shape)) if d not in dims]
    # Dimensions of the source that stand for a reduced one have extent 1: they go first.
    alive = [i for i, d in enumerate(placed) if d in kept]
    thin = reshape(rewriter, source, [source.type.shape[i] for i in alive])
    if name == "add":
        factor = rewriter.full(float(count) if dtype.is_float else _wrapped(count, dtype.numpy), thin.type)
        thin = rewriter.emit("multiply", [thin, factor])
    thin = _combined(name, op.operands[1], thin, rewriter)
    return broadcast(rewriter, thin, op.results[0].type.shape, [kept.index(placed[i]) for i in alive])


def _wrapped(count: int, dtype: np.dtype[Any]) -> int:
    return int(np.asarray(count % 2 ** (8 * dtype.itemsize), np.uint64).astype(dtype))


def _of_transpose(op: Op, inner: Op, rewriter: Rewriter) -> Replacement:
    """Reduces the untransposed array, where what is left keeps its order."""
    permutation, dims = _attr(inner, "permutation"), _attr(op, "dimensions")
    kept = [permutation[d] for d in range(len(permutation)) if d not in dims]
    if kept != sorted(kept):
        return None
    reduced = tuple(sorted(permutation[d] for d in dims))
    types = [op.results[0].type]
    new = Op("reduce", [inner.operands[0], op.operands[1]], types, {"dimensions": reduced}, op.regions, op.loc)
    return rewriter.emit_op(new)
