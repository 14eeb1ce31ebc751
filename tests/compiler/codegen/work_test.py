"""Estimates of work: what decides about threads, and what cost_analysis says."""

import numpy as np
import pytest

from tests.compiler.frontend.programs import artifact, context
from treadle.compiler.codegen.program import ProgramCode
from treadle.compiler.driver import run


def code_of(function, *arguments) -> ProgramCode:
    code = run(context(artifact(function, *arguments)), "codegen")
    assert isinstance(code, ProgramCode)
    return code


@pytest.mark.parametrize("size", [4, 8, 64])
def test_a_product_is_two_operations_per_multiply_add_whoever_does_it(size):
    x = np.ones((size, size), np.float32)
    assert code_of(lambda a, b: a @ b, x, x).flops == 2 * size**3 - (size**2 if size <= 8 else 0)


def test_elementwise_ops_count_once_per_element():
    x = np.ones((30, 40), np.float32)
    assert code_of(lambda a: (a + 1) * a, x).flops == 2 * 30 * 40
    assert code_of(lambda a: a.sum(1), x).flops == 30 * 40


def test_small_kernels_run_in_one_piece_and_large_ones_do_not():
    assert "treadle_parallel_for" not in code_of(lambda a: a + 1, np.ones(1000, np.float32)).main
    assert "treadle_parallel_for" in code_of(lambda a: a + 1, np.ones(4_000_000, np.float32)).main
