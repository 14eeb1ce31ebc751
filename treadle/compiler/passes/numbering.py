"""Value numbering: which ops compute the same thing.

Two ops are equal when name, operands, attributes, result types and, for reductions and the like, regions are equal.
Constants are equal when their bytes are; big ones are compared only when their ends already agree.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ops import registry
from treadle.compiler.ops.registry import Array

# Constants up to this size are compared as a whole, by hash; of bigger ones the hash sees so much of each end.
_WHOLE_BYTES = 256
_END_ELEMENTS = 16


class Numbers:
    """The ops seen so far whose results may be used here."""

    def __init__(self) -> None:
        self._table: dict[Hashable, Op] = {}
        self._trail: list[Hashable] = []

    def find(self, op: Op) -> Op | None:
        """An equal op seen before; otherwise remembers `op` and gives None."""
        key = _key(op)
        if key is None:
            return None
        try:
            known = self._table.setdefault(key, op)
        except TypeError:  # an attribute that cannot be hashed
            return None
        if known is op:
            self._trail.append(key)
            return None
        if op.name == "constant" and not _same_bytes(known, op):
            return None
        return known

    def enter(self) -> int:
        """Begins a region whose values cannot be used after it. Gives what `leave` takes."""
        return len(self._trail)

    def leave(self, mark: int) -> None:
        """Forgets everything since `enter`."""
        for key in self._trail[mark:]:
            del self._table[key]
        del self._trail[mark:]


def _key(op: Op) -> Hashable | None:
    name = op.name
    if name == "constant":
        return _constant_key(op)
    definition = registry.find(name)
    if definition is None or definition.control_flow or definition.side_effect or name == "optimization_barrier":
        return None
    operands: tuple[Value, ...] = tuple(op.operands)
    if definition.commutative and id(operands[0]) > id(operands[1]):
        operands = (operands[1], operands[0])
    attrs = tuple(op.attrs.items()) if op.attrs else ()
    if op.regions:
        regions = tuple(_region_key(r) for r in op.regions)
        return None if None in regions else (name, operands, attrs, regions)
    if definition.infers_result:
        return (name, operands, attrs)
    result = op.results[0].type
    return (name, operands, attrs, result.dtype, result.shape)


def _constant_key(op: Op) -> Hashable:
    value = op.attrs["value"]
    assert isinstance(value, np.ndarray)
    result = op.results[0].type
    if value.ndim == 0 or (value.size and not any(value.strides)):
        return ("constant", result.dtype, result.shape, value[(0,) * value.ndim].tobytes())
    if value.nbytes <= _WHOLE_BYTES:
        return ("constant", result.dtype, result.shape, "whole", value.tobytes())
    flat = value.reshape(-1) if value.flags.c_contiguous else value.flat
    first, last = np.asarray(flat[:_END_ELEMENTS]), np.asarray(flat[-_END_ELEMENTS:])
    return ("constant", result.dtype, result.shape, first.tobytes(), last.tobytes())


def _same_bytes(a: Op, b: Op) -> bool:
    x, y = a.attrs["value"], b.attrs["value"]
    assert isinstance(x, np.ndarray)
    assert isinstance(y, np.ndarray)
    if x is y or x.nbytes <= _WHOLE_BYTES or not any(x.strides):
        return True
    return bool(np.array_equal(_raw(x), _raw(y)))


def _raw(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def _region_key(region: Region) -> Hashable | None:
    """What a closed region computes, with its values numbered in order; None for regions not worth comparing."""
    names: dict[Value, int] = {v: i for i, v in enumerate(region.args)}
    ops: list[Hashable] = []
    for op in region.ops:
        operands = tuple(names[v] for v in op.operands)
        types = tuple((r.type.dtype, r.type.shape) for r in op.results)
        if op.name == "constant":
            if op.results[0].type.shape:
                return None
            ops.append(_constant_key(op))
        else:
            ops.append((op.name, operands, tuple(op.attrs.items()), types, tuple(_region_key(r) for r in op.regions)))
        for value in op.results:
            names[value] = len(names)
    args = tuple((v.type.dtype, v.type.shape) for v in region.args)
    return (args, tuple(ops), tuple(names[v] for v in region.results))
