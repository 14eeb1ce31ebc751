"""From a fusion to its kernels.

A fusion is an op named "fusion" whose one region computes its results from its operands (the region's arguments);
`kind` says which of the shapes of code below it becomes. The kinds live in `nests_*.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.compiler.ir.core import Op
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


def lower_fusion(op: Op) -> list[KernelCall]:
    """The kernels of a fusion, in execution order. Results without elements need none."""
    return _KINDS[str(op.attrs["kind"])](FusionBody(op))
