"""Whole random programs: fused, and run kernel by kernel."""

from __future__ import annotations

import pytest

from tests.compiler.lowering.running import check_program
from tests.compiler.passes.random_programs import random_program


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    program, inputs = random_program(seed, count=12, neutral=True)
    check_program(program, inputs)
