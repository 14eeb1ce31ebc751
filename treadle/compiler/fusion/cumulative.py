"""Cumulative sums and their like: a reduce_window whose window reaches from one end, done in blocks.

As a window, element i costs i operations: the square of the extent. In blocks of BLOCK elements, it is cumulated
inside every block, then over the blocks' totals (in blocks again, if they are many), and the totals before a block
are combined with its elements: about BLOCK operations an element, all of them on whole vectors. StableHLO leaves the
order of a reduce_window open, so the result is as good.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from treadle.compiler.ir.core import Location, Op, Region, Value, clone_region, replace_uses
from treadle.compiler.ir.types import TensorType
from treadle.compiler.lowering.attributes import ints
from treadle.compiler.lowering.elementwise import is_splat
from treadle.compiler.lowering.nests_reduce import identity

BLOCK = 16

# Up to this extent the plain window is kept.
PLAIN_EXTENT = 32

_KINDS = frozenset(("add", "multiply", "maximum", "minimum", "and", "or"))


def expand_cumulative(region: Region) -> None:
    """Rewrites every long cumulative reduce_window of a region and of the regions in it."""
    ops: list[Op] = []
    mapping: dict[Value, Value] = {}
    for op in region.ops:
        for inner in op.regions:
            expand_cumulative(inner)
        found = _cumulated_dimension(op)
        if found is None:
            ops.append(op)
            continue
        builder = _Builder(op, *found)
        mapping[op.result] = builder.cumulated(op.operands[0])
        ops += builder.ops
    if mapping:
        region.ops = ops
        replace_uses(region, mapping)


def _cumulated_dimension(op: Op) -> tuple[int, bool] | None:
    """(dimension, whether from the end) of a cumulative reduce_window worth rewriting; None for anything else."""
    if op.name != "reduce_window" or len(op.operands) != 2 or op.operands[0].type.size == 0:
        return None
    shape, window = op.operands[0].type.shape, ints(op, "window_dimensions")
    long = [d for d, w in enumerate(window) if w != 1]
    plain = all(v == 1 for name in ("window_strides", "base_dilations", "window_dilations") for v in ints(op, name))
    if len(long) != 1 or not plain or window[long[0]] != shape[long[0]] or shape[long[0]] <= PLAIN_EXTENT:
        return None
    padding = cast("tuple[tuple[int, int], ...]", op.attrs["padding"])
    reach = shape[long[0]] - 1
    if any(tuple(p) != (0, 0) for d, p in enumerate(padding) if d != long[0]):
        return None
    if tuple(padding[long[0]]) not in ((reach, 0), (0, reach)) or not _starts_neutral(op):
        return None
    return long[0], tuple(padding[long[0]]) == (0, reach)


def _starts_neutral(op: Op) -> bool:
    """Whether the combiner is known and starts with its neutral element, which may then be combined in repeatedly."""
    body = op.regions[0]
    start = op.operands[1].op
    if len(body.ops) != 1 or body.ops[0].name not in _KINDS or set(body.ops[0].operands) != set(body.args):
        return False
    if start is None or start.name != "constant" or not is_splat(cast(np.ndarray, start.attrs["value"])):
        return False
    dtype = op.operands[0].type.dtype
    neutral = np.asarray(identity(body.ops[0].name, dtype), dtype.numpy)
    return bool(cast(np.ndarray, start.attrs["value"]).flat[0] == neutral)


class _Builder:
    """Makes the ops that cumulate along one dimension."""

    def __init__(self, op: Op, dim: int, from_end: bool):
        self.op = op
        self.dim = dim
        self.from_end = from_end
        self.combine = op.regions[0].ops[0].name
        self.loc: Location = op.loc
        self.ops: list[Op] = []

    def _add(self, name: str, operands: list[Value], shape: tuple[int, ...], attrs: dict[str, object]) -> Value:
        type_ = TensorType(operands[0].type.dtype, shape)
        regions = [clone_region(self.op.regions[0])] if name == "reduce_window" else []
        op = Op(name, operands, [type_], attrs, regions, self.loc)
        self.ops.append(op)
        return op.result

    def _window(self, x: Value, dim: int) -> Value:
        """The plain cumulative window along `dim`."""
        rank, reach = x.type.rank, x.type.shape[dim] - 1
        padding = [(0, 0)] * rank
        padding[dim] = (0, reach) if self.from_end else (reach, 0)
        ones = (1,) * rank
        attrs: dict[str, object] = {
            "window_dimensions": tuple(reach + 1 if d == dim else 1 for d in range(rank)),
            "window_strides": ones,
            "base_dilations": ones,
            "window_dilations": ones,
            "padding": tuple(padding),
        }
        return self._add("reduce_window", [x, self.op.operands[1]], x.type.shape, attrs)

    def _pad(self, x: Value, dim: int, low: int, high: int) -> Value:
        shape = tuple(e + low + high if d == dim else e for d, e in enumerate(x.type.shape))
        if low == high == 0:
            return x
        zeros = (0,) * x.type.rank
        attrs: dict[str, object] = {
            "edge_padding_low": tuple(low if d == dim else 0 for d in range(x.type.rank)),
            "edge_padding_high": tuple(high if d == dim else 0 for d in range(x.type.rank)),
            "interior_padding": zeros,
        }
        return self._add("pad", [x, self.op.operands[1]], shape, attrs)

    def _slice(self, x: Value, dim: int, start: int, extent: int) -> Value:
        shape = x.type.shape
        attrs: dict[str, object] = {
            "start_indices": tuple(start if d == dim else 0 for d in range(x.type.rank)),
            "limit_indices": tuple(start + extent if d == dim else e for d, e in enumerate(shape)),
            "strides": (1,) * x.type.rank,
        }
        return self._add("slice", [x], tuple(extent if d == dim else e for d, e in enumerate(shape)), attrs)

    def cumulated(self, x: Value) -> Value:
        """`x` cumulated along the dimension."""
        dim, shape = self.dim, x.type.shape
        extent = shape[dim]
        if extent <= PLAIN_EXTENT:
            return self._window(x, dim)
        blocks = -(-extent // BLOCK)
        missing = blocks * BLOCK - extent
        whole = self._pad(x, dim, missing if self.from_end else 0, 0 if self.from_end else missing)
        split = (*shape[:dim], blocks, BLOCK, *shape[dim + 1 :])
        inside = self._window(self._add("reshape", [whole], split, {}), dim + 1)
        per_block = (*shape[:dim], blocks, *shape[dim + 1 :])
        last = self._slice(inside, dim + 1, 0 if self.from_end else BLOCK - 1, 1)
        totals = self.cumulated(self._add("reshape", [last], per_block, {}))
        # What lies before a block is the total up to the block before it.
        before = self._pad(totals, dim, -1, 1) if self.from_end else self._pad(totals, dim, 1, -1)
        dims = tuple(d if d <= dim else d + 1 for d in range(x.type.rank))
        spread = self._add("broadcast_in_dim", [before], split, {"broadcast_dimensions": dims})
        both = self._add(self.combine, [spread, inside], split, {})
        flat = self._add("reshape", [both], whole.type.shape, {})
        return self._slice(flat, dim, missing if self.from_end else 0, extent) if missing else flat
