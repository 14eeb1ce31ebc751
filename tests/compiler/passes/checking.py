"""What the tests of passes share: optimise, verify, interpret before and after."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compiler.ops.oracle import program
from tests.compiler.passes.random_programs import numbers
from treadle.compiler import interp, passes
from treadle.compiler.ir.core import Program
from treadle.compiler.ir.printer import print_program
from treadle.compiler.ir.types import DType, TensorType
from treadle.compiler.ir.verifier import verify


def assert_equal(before: Sequence[np.ndarray], after: Sequence[np.ndarray], text: str) -> None:
    """NaN where NaN was, infinities and zeros with their signs; sums may be rounded in another order."""
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "biu":
            same = a == b
        else:
            x, y = a.astype(np.float64), b.astype(np.float64)
            with np.errstate(all="ignore"):
                close = np.abs(x - y) <= 1e-3 * np.abs(x)
            same = (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y))) | (close & (x != 0))
        assert same.all(), f"result {i} was {a.tolist()}, is {b.tolist()} in\n{text}"


def tensor(dtype: DType, *shape: int) -> TensorType:
    return TensorType(dtype, shape)


def optimised(types: Sequence[TensorType], build: Callable[..., Any], seed: int = 0) -> Program:
    """The optimised program, after a look at whether it still computes the same."""
    inputs = [numbers(random.Random(seed + i), t) for i, t in enumerate(types)]
    p = program(types, build)
    verify(p)
    before, text = interp.run(p, inputs), print_program(p)
    after = passes.optimise(p)
    verify(after)
    assert_equal(before, interp.run(after, inputs), f"{text}\n{print_program(after)}")
    return after


def names(p: Program) -> list[str]:
    """The ops at the top, constants aside."""
    return [op.name for op in p.entry.ops if op.name != "constant"]
