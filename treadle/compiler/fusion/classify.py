"""What kind of code an op becomes, looked at by itself."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import numpy as np

from treadle.compiler.fusion.library import is_library_call
from treadle.compiler.ir.core import Op, Value
from treadle.compiler.lowering import registry
from treadle.compiler.lowering.attributes import ints
from treadle.compiler.lowering.elementwise import BINARY, UNARY, is_splat
from treadle.compiler.lowering.reduction import reduced_count

# Reductions and products of up to so many elements are written out inside their consumers.
INLINE_REDUCTION = 8

# Rows of row fusions: shorter ones vectorise badly, longer ones leave the cache.
MIN_ROW = 8
MAX_ROW = 8192

POINTWISE = frozenset((*UNARY, *BINARY, "compare", "select", "clamp", "reduce_precision", "optimization_barrier"))

# Ops without work of their own: copied into every kernel that uses them instead of being stored.
_ALWAYS_VIRTUAL = frozenset(("iota", "broadcast_in_dim", "reshape", "slice", "reverse"))


class Class(enum.Enum):
    """What becomes of an op."""

    VIRTUAL = "a change of coordinates, copied into its users"
    SCALAR = "rank 0: straight-line code in the program's main function"
    POINTWISE = "elementwise: joins the kernels of its operands"
    LEAF = "gives elements at any coordinates, reads its operands at others"
    ROW_REDUCE = "a reduction over a trailing row"
    REDUCE = "any other reduction, window, or small product: a nest of its own, with elementwise work after it"
    CONCATENATE = "a kernel per part"
    UPDATE = "dynamic_update_slice: in place"
    SCATTER = "scatter: in place"
    SELECT_AND_SCATTER = "select_and_scatter"
    LIBRARY = "a call into the runtime"
    CONTROL = "control flow"
    CONSTANT = "data of the program"


def classify(op: Op, uses: Mapping[Value, int]) -> Class:
    """The class of `op`; `uses` counts the uses of values in its region (uses in nested regions count too)."""
    name = op.name
    if name in registry.CONTROL_OPS:
        return Class.CONTROL
    if name == "constant":
        value = op.attrs["value"]
        assert isinstance(value, np.ndarray)
        return Class.VIRTUAL if is_splat(value) else Class.CONSTANT
    if is_library_call(op):
        return Class.LIBRARY
    if name == "scatter":
        return Class.SCATTER
    if name == "select_and_scatter":
        return Class.SELECT_AND_SCATTER
    if name == "reduce":
        return _classify_reduce(op)
    if name in ("reduce_window", "dot_general", "convolution"):
        small = name != "convolution" and reduced_count(op) <= INLINE_REDUCTION
        return Class.LEAF if small else Class.REDUCE
    if op.results[0].type.rank == 0 and len(op.results) == 1:
        return Class.SCALAR
    if name in _ALWAYS_VIRTUAL or (name == "transpose" and uses.get(op.result, 0) == 1):
        return Class.VIRTUAL
    if name == "dynamic_update_slice":
        return Class.UPDATE
    if name == "concatenate":
        return Class.CONCATENATE
    if name == "bitcast_convert" and op.operands[0].type.rank != op.result.type.rank:
        return Class.LEAF
    if name in POINTWISE:
        return Class.POINTWISE
    return Class.LEAF


def _classify_reduce(op: Op) -> Class:
    shape = op.operands[0].type.shape
    dims = ints(op, "dimensions")
    count = reduced_count(op)
    if count <= INLINE_REDUCTION:
        return Class.LEAF
    trailing = tuple(range(len(shape) - len(dims), len(shape)))
    rows = op.results[0].type.size
    if tuple(sorted(dims)) == trailing and MIN_ROW <= count <= MAX_ROW and rows > 0:
        return Class.ROW_REDUCE
    return Class.REDUCE
