"""The best element and where it is: reductions of kind "argmax" and "argmin", spread over lanes.

A lane meets its elements in the order of their positions, so it only moves on for a better one; lanes are merged by
value first and position second. The first NaN is better than every number.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.codegen.elementwise import emit_apply
from treadle.compiler.codegen.narrow import is_narrow, widen
from treadle.compiler.codegen.text import FunctionBuilder, register_type, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType


def move_on(
    fb: FunctionBuilder, kind: str, dtypes: Sequence[DType], old: Sequence[str], new: Sequence[str], lanes: int
) -> list[str]:
    """(value, position) of the better of two elements, of which `old` comes first."""
    better = _better(fb, kind, dtypes[0], new[0], old[0], lanes)
    return _select(fb, dtypes, better, new, old, lanes)


def merge(
    fb: FunctionBuilder, kind: str, dtypes: Sequence[DType], a: Sequence[str], b: Sequence[str], lanes: int
) -> list[str]:
    """(value, position) of the better of two elements in no particular order."""
    flags = vector("i1", lanes)
    better = _better(fb, kind, dtypes[0], b[0], a[0], lanes)
    worse = _better(fb, kind, dtypes[0], a[0], b[0], lanes)
    below = emit_apply(fb, "compare", "LT", t.PRED, [(b[1], dtypes[1]), (a[1], dtypes[1])], lanes)
    tie = fb.op(f"xor {flags} {worse}, {fb.const(t.PRED, 1, lanes)}")
    earlier = fb.op(f"and {flags} {tie}, {below}")
    return _select(fb, dtypes, fb.op(f"or {flags} {better}, {earlier}"), b, a, lanes)


def _better(fb: FunctionBuilder, kind: str, dtype: DType, x: str, than: str, lanes: int) -> str:
    """Whether `x` wins over an earlier `than` (which does not win over itself)."""
    if dtype.is_integer:
        direction = "GT" if kind == "argmax" else "LT"
        return emit_apply(fb, "compare", direction, t.PRED, [(x, dtype), (than, dtype)], lanes)
    if is_narrow(dtype):
        x, than, dtype = widen(fb, dtype, x, lanes), widen(fb, dtype, than, lanes), t.F32
    ty, flags = vector(register_type(dtype), lanes), vector("i1", lanes)
    number = fb.op(f"fcmp ord {ty} {than}, {than}")
    # True also where one of them is NaN: `x`, then, as the other is a number.
    over = fb.op(f"fcmp {'ugt' if kind == 'argmax' else 'ult'} {ty} {x}, {than}")
    return fb.op(f"and {flags} {number}, {over}")


def _select(
    fb: FunctionBuilder, dtypes: Sequence[DType], flags: str, x: Sequence[str], y: Sequence[str], lanes: int
) -> list[str]:
    types = [vector(register_type(dtype), lanes) for dtype in dtypes]
    mask = vector("i1", lanes)
    return [fb.op(f"select {mask} {flags}, {ty} {a}, {ty} {b}") for ty, a, b in zip(types, x, y, strict=True)]
