"""From a fusion to its kernels.

A fusion is an op named "fusion" whose one region computes its results from its operands (the region's arguments);
`kind` says which of the shapes of code below it becomes. The kinds live in `nests_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.lowering import nests_loop, nests_reduce, nests_row, nests_update
from treadle.compiler.lowering.kernels import FusionBody, KernelCall

_KINDS: dict[str, Callable[[FusionBody], list[KernelCall]]] = {
    "loop": nests_loop.lower_loop,
    "concatenate": nests_loop.lower_concatenate,
    "reduce": nests_reduce.lower_reduce,
    "row": nests_row.lower_row,
    "update": nests_update.lower_update,
    "scatter": nests_update.lower_scatter,
    "select_and_scatter": nests_update.lower_select_and_scatter,
}


# Fusions that hold a constant array of more bytes than this are not compared with others.
_COMPARED_BYTES = 256


class Lowering:
    """Lowers the fusions of one program. Fusions that compute the same share their kernels.

    Models repeat their layers, and unrolled loops their bodies: making the loops of each copy anew, only to find
    afterwards that their code is the same, took half of such a program's compilation.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Op, list[KernelCall]]] = {}

    def lower(self, op: Op) -> list[KernelCall]:
        """The kernels of a fusion, in execution order, with the values of this fusion bound to them."""
        key = _key(op)
        if key is None:
            return lower_fusion(op)
        known = self._known.get(key)
        if known is None:
            calls = lower_fusion(op)
            self._known[key] = (op, calls)
            return calls
        like, calls = known
        # What is neither operand nor result is a temporary, named within one fusion only: it can serve again.
        bound = dict(zip([*like.operands, *like.results], [*op.operands, *op.results], strict=True))
        return [KernelCall(call.kernel, [bound.get(v, v) for v in call.arguments]) for call in calls]


def _key(op: Op) -> Hashable | None:
    """Equal for fusions whose kernels are equal; None for those that are not compared."""
    numbers: dict[Value, int] = {}
    # Which operands are one value decides about the parameters.
    operands = tuple(numbers.setdefault(v, len(numbers)) for v in op.operands)
    region = _region_key(op.regions[0])
    return None if region is None else (repr(op.attrs), operands, region)


def _region_key(region: Region) -> Hashable | None:
    numbers: dict[Value, int] = {}
    parts: list[Hashable] = [_types(region.args)]
    for value in region.args:
        numbers[value] = len(numbers)
    for op in region.ops:
        if op.name == "constant":
            array = op.attrs["value"]
            assert isinstance(array, np.ndarray)
            if array.size and not any(array.strides):
                array = array[(0,) * array.ndim]  # one element for all
            if array.nbytes > _COMPARED_BYTES:
                return None
            what: Hashable = array.tobytes()
        else:
            # Written out, attributes that compare equal and are not the same (0.0, -0.0, False) differ.
            what = repr(op.attrs)
        nested = tuple(_region_key(r) for r in op.regions)
        if None in nested:
            return None
        # A combiner is closed; what a nested region takes from outside would have no number.
        parts.append((op.name, what, tuple(numbers[v] for v in op.operands), _types(op.results), nested))
        for value in op.results:
            numbers[value] = len(numbers)
    parts.append(tuple(numbers[v] for v in region.results))
    return tuple(parts)


def _types(values: list[Value]) -> Hashable:
    return tuple((v.type.dtype, v.type.shape) for v in values)


def lower_fusion(op: Op) -> list[KernelCall]:
    """The kernels of a fusion, in execution order. Results without elements need none."""
    return _KINDS[str(op.attrs["kind"])](FusionBody(op))
