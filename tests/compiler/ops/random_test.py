"""Whole random programs: the interpreter and jaxlib's CPU backend agree."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.ops.oracle import run_on_jaxlib
from tests.compiler.passes.random_programs import random_program
from treadle.compiler import interp
from treadle.compiler.ir.printer import print_program


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    program, inputs = random_program(seed, count=12, neutral=True)
    ours, theirs = interp.run(program, inputs), run_on_jaxlib(program, inputs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= 1e-3 * np.abs(x))
        assert same.all(), f"result {i}: {a.tolist()} and {b.tolist()}\n{print_program(program)}"
