"""What the tests of ops share: a check against jaxlib's CPU backend, and small regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compiler.ops.oracle import assert_same, program, run_on_jaxlib
from treadle.compiler import interp
from treadle.compiler.ir.core import Region
from treadle.compiler.ir.types import PRED, DType, TensorType
from treadle.compiler.ir.verifier import verify
from treadle.compiler.ops.build import Builder

RNG = np.random.default_rng(3)


def values(t: TensorType) -> np.ndarray:
    """Small whole numbers: sums and products of them are exact in every type and order."""
    if t.dtype is PRED:
        return RNG.integers(0, 2, t.shape).astype(bool)
    low = 0 if t.dtype.numpy.kind == "u" else -4
    return RNG.integers(low, 5, t.shape).astype(t.dtype.numpy)


def check(
    types: Sequence[TensorType],
    build: Callable[..., Any],
    inputs: Sequence[np.ndarray] | None = None,
    **tolerance: float,
) -> None:
    p = program(types, build)
    verify(p)
    arrays = [values(t) for t in types] if inputs is None else list(inputs)
    for i, (a, b) in enumerate(zip(interp.run(p, arrays), run_on_jaxlib(p, arrays), strict=True)):
        assert_same(a, b, what=f"result {i}", **tolerance)


def region(dtype: DType, name: str, count: int = 2) -> Region:
    """(a, b) -> name(a, b) on scalars."""
    r = Region([TensorType(dtype, ())] * count)
    r.results = [Builder(r).op(name, *r.args)]
    return r


def compare_region(dtype: DType, direction: str) -> Region:
    r = Region([TensorType(dtype, ())] * 2)
    kind = "FLOAT" if dtype.is_float else "SIGNED"
    r.results = [Builder(r).op("compare", *r.args, comparison_direction=direction, compare_type=kind)]
    return r


def second(dtype: DType) -> Region:
    """(a, b) -> b: what `x.at[i].set(v)` makes."""
    r = Region([TensorType(dtype, ())] * 2)
    r.results = [r.args[1]]
    return r
