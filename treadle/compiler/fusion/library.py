"""Which products go to the runtime's library, and the form they must have to get there."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ir.types import TensorType
from treadle.compiler.lowering.attributes import ints

# The most batch dimensions of a TreadleDot, after merging (program_abi.h: TREADLE_MAX_BATCH), and spatial ones of a
# TreadleConvolution.
MAX_BATCH = 4
MAX_SPATIAL = 3

# Products with at most this many multiply-adds per batch element stay in generated code, where elementwise work can
# join them.
SMALL_PRODUCT = 2048

_DOT_TYPES = frozenset((t.F32, t.F64, t.BF16, t.F16, t.S8, t.S16, t.S32, t.S64, t.U8, t.U16, t.U32, t.U64))
_CONVOLUTION_TYPES = frozenset((t.F32, t.F64, t.BF16, t.F16))


@dataclasses.dataclass(frozen=True, slots=True)
class Axes:
    """One role (batch, m, n or k) of a product: its extents, and the strides in the arrays that have it."""

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


def merge_axes(extents: Sequence[int], strides: Sequence[Sequence[int]]) -> Axes:
    """Merges neighbouring dimensions that are contiguous in every array; drops dimensions of extent 1.

    Args:
      extents: per dimension, outermost first.
      strides: per array, the stride of each dimension.
    """
    out: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for i, extent in enumerate(extents):
        if extent == 1:
            continue
        if out and all(s[-1] == row[i] * extent for s, row in zip(steps, strides, strict=True)):
            out[-1] *= extent
            for s, row in zip(steps, strides, strict=True):
                s[-1] = row[i]
        else:
            out.append(extent)
            for s, row in zip(steps, strides, strict=True):
                s.append(row[i])
    return Axes(tuple(out), tuple(tuple(s) for s in steps))


@dataclasses.dataclass(frozen=True, slots=True)
class DotShape:
    """The roles of a dot_general's dimensions.

    Their strides are those in: batch (lhs, rhs, out), m (lhs, out), n (rhs, out), k (lhs, rhs).
    """

    batch: Axes
    m: Axes
    n: Axes
    k: Axes

    @property
    def is_large(self) -> bool:
        """Whether a call pays: products with vectors and small ones do better as loops."""
        m, n, k = (math.prod(axes.extents) for axes in (self.m, self.n, self.k))
        return min(m, n) > 1 and m * n * k > SMALL_PRODUCT

    @property
    def is_library_form(self) -> bool:
        """Whether a TreadleDot can say it."""
        return len(self.batch.extents) <= MAX_BATCH and all(len(a.extents) <= 1 for a in (self.m, self.n, self.k))


def dot_shape(op: Op) -> DotShape:
    """What each dimension of a dot_general is for."""
    lhs, rhs = (v.type for v in op.operands)
    dims = [ints(op, f"{side}_{role}_dimensions") for role in ("batching", "contracting") for side in ("lhs", "rhs")]
    return _dot_shape(lhs, rhs, op.result.type, *dims)


# A program has many products of few shapes, and each is asked about several times.
@functools.lru_cache(maxsize=1024)
def _dot_shape(
    lhs: TensorType,
    rhs: TensorType,
    out: TensorType,
    lb: tuple[int, ...],
    rb: tuple[int, ...],
    lc: tuple[int, ...],
    rc: tuple[int, ...],
) -> DotShape:
    ls, rs, os = lhs.strides(), rhs.strides(), out.strides()
    lm = [d for d in range(lhs.rank) if d not in lb and d not in lc]
    rn = [d for d in range(rhs.rank) if d not in rb and d not in rc]
    nb = len(lb)
    batch = merge_axes([lhs.shape[d] for d in lb], [[ls[d] for d in lb], [rs[d] for d in rb], os[:nb]])
    m = merge_axes([lhs.shape[d] for d in lm], [[ls[d] for d in lm], os[nb : nb + len(lm)]])
    n = merge_axes([rhs.shape[d] for d in rn], [[rs[d] for d in rn], os[nb + len(lm) :]])
    # The order of contracted dimensions is free: the left operand's memory order merges best.
    order = sorted(range(len(lc)), key=lambda i: -ls[lc[i]])
    k = merge_axes([lhs.shape[lc[i]] for i in order], [[ls[lc[i]] for i in order], [rs[rc[i]] for i in order]])
    return DotShape(batch, m, n, k)


def is_library_call(op: Op) -> bool:
    """Whether `op` is done by a runtime call rather than by generated code."""
    if _is_empty(op):
        return False
    if op.name == "convolution":
        dtype = op.operands[0].type.dtype
        spatial = len(ints(op, "input_spatial_dimensions"))
        return dtype in _CONVOLUTION_TYPES and spatial <= MAX_SPATIAL and _types_fit(op)
    if op.name != "dot_general":
        return False
    dtype = op.operands[0].type.dtype
    if dtype not in _DOT_TYPES or not _types_fit(op):
        return False
    shape = dot_shape(op)
    return shape.is_large and shape.is_library_form


def _is_empty(op: Op) -> bool:
    return any(v.type.size == 0 for v in (*op.operands, *op.results))


def _types_fit(op: Op) -> bool:
    """Whether the library multiplies operands of these types and gives such a result."""
    lhs, rhs, out = op.operands[0].type.dtype, op.operands[1].type.dtype, op.result.type.dtype
    if rhs is not lhs:
        return False
    if out is lhs or (lhs in (t.F16, t.BF16) and out is t.F32):
        return True
    return op.name == "dot_general" and lhs is t.S8 and out is t.S32


def canonical_products(region: Region) -> None:
    """Rewrites large dot_generals that no TreadleDot can say.

    Their operands are transposed to [batch, m, k] and [batch, k, n] first.
    """
    ops: list[Op] = []
    for op in region.ops:
        for inner in op.regions:
            canonical_products(inner)
        if op.name == "dot_general" and _wants_copy(op):
            ops += _canonical(op)
        ops.append(op)
    region.ops = ops


def _wants_copy(op: Op) -> bool:
    if _is_empty(op) or op.operands[0].type.dtype not in _DOT_TYPES:
        return False
    shape = dot_shape(op)
    return shape.is_large and not shape.is_library_form


def _canonical(op: Op) -> list[Op]:
    """Ops that lay the operands out anew; `op` is changed to use them, and its result keeps its type."""
    added: list[Op] = []
    batch_count = len(ints(op, "lhs_batching_dimensions"))
    for side, name in enumerate(("lhs", "rhs")):
        value = op.operands[side]
        batch, contract = ints(op, f"{name}_batching_dimensions"), ints(op, f"{name}_contracting_dimensions")
        free = [d for d in range(value.type.rank) if d not in batch and d not in contract]
        order = [*batch, *free, *contract] if side == 0 else [*batch, *contract, *free]
        op.operands[side] = _transposed(value, order, op, added)
        first = batch_count + (len(free) if side == 0 else 0)
        op.attrs[f"{name}_batching_dimensions"] = tuple(range(batch_count))
        op.attrs[f"{name}_contracting_dimensions"] = tuple(range(first, first + len(contract)))
    return added


def _transposed(value: Value, order: Sequence[int], at: Op, added: list[Op]) -> Value:
    if list(order) == list(range(value.type.rank)):
        return value
    shape = tuple(value.type.shape[d] for d in order)
    op = Op("transpose", [value], [TensorType(value.type.dtype, shape)], {"permutation": tuple(order)}, (), at.loc)
    added.append(op)
    return op.result
