"""No pass changes what a program computes: random programs, interpreted before and after."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.passes.checking import assert_equal
from tests.compiler.passes.random_programs import random_program
from treadle.compiler import interp, passes
from treadle.compiler.ir.core import UNKNOWN_LOCATION
from treadle.compiler.ir.printer import print_program
from treadle.compiler.ir.verifier import verify

PASSES: dict[str, passes.Pass] = {
    **{name: functools.partial(passes.rewrite, rules=rules.table) for name, rules in passes.RULE_SETS.items()},
    "cse": passes.eliminate_common_subexpressions,
    "dead-code": passes.eliminate_dead_code,
    "barriers": passes.remove_barriers,
    "simplify": passes.simplify,
    "optimise": passes.optimise,
}


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_passes_preserve_meaning(name: str, seed: int) -> None:
    program, inputs = random_program(seed)
    verify(program)
    text = print_program(program)
    before = interp.run(program, inputs)
    after = PASSES[name](program)
    verify(after)
    assert_equal(before, interp.run(after, inputs), f"{text}\n{print_program(after)}")
    located = [op for op in after.entry.walk() if op.name not in ("constant",)]
    assert all(op.loc is not UNKNOWN_LOCATION for op in located if op.results and op in after.entry.ops)
