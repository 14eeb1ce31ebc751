"""The fuse stage: it keeps what a program computes, and groups what belongs together."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.frontend.programs import artifact, context
from tests.compiler.fused_programs import EXAMPLES
from treadle.compiler import interp
from treadle.compiler.check import Checker
from treadle.compiler.driver import run
from treadle.compiler.fusion.fuse import fuse
from treadle.compiler.ir.core import Op, Program
from treadle.compiler.ir.verifier import verify


def optimised(function, arguments) -> Program:
    program = run(context(artifact(function, *arguments)), "optimise")
    assert isinstance(program, Program)
    return program


def kinds(function, *arguments) -> Counter[str]:
    """How many units of each kind a program becomes: kinds of fusion, and names of other ops that own memory."""
    program = fuse(optimised(function, arguments))
    return Counter(
        str(op.attrs.get("kind", op.name)) for op in program.entry.ops if op.results[0].type.rank or op.regions
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_fusing_keeps_the_meaning(name):
    program = optimised(*EXAMPLES[name])
    checker = Checker(program)
    fused = fuse(program)
    verify(fused)
    checker.after("fuse", fused)  # the interpreter's results before and after


X = np.ones((32, 64), np.float32)


def test_a_chain_of_elementwise_ops_is_one_kernel():
    assert kinds(lambda x: jnp.exp(jnp.sin(x) + 1) * x, X) == {"loop": 1}


def test_values_needed_twice_are_further_results_of_the_kernel():
    assert kinds(lambda x: (jnp.sin(x), jnp.sin(x) * 2, jnp.sin(x) + x), X) == {"loop": 1}


@pytest.mark.parametrize(
    "function", [jax.nn.softmax, jax.nn.log_softmax, jax.nn.standardize], ids=["softmax", "log_softmax", "standardize"]
)
def test_a_normalisation_of_rows_is_one_kernel(function):
    assert kinds(function, X) == {"row": 1}


def test_one_row_is_a_row_too():
    assert kinds(jax.nn.softmax, X[0]) == {"row": 1}
    assert kinds(jax.nn.softmax, X[:1]) == {"row": 1}


def test_the_gradient_of_softmax_is_one_kernel():
    assert kinds(lambda x, g: jax.vjp(jax.nn.softmax, x)[1](g)[0], X, X) == {"row": 1}


def test_a_column_sum_takes_its_input_and_output_along():
    assert kinds(lambda x: jnp.sqrt(jnp.sum(x * x, 0)) + 1, X) == {"reduce": 1}


def test_a_transpose_is_read_where_it_is_used():
    assert kinds(lambda x: jnp.exp(x).T + 1, X) == {"loop": 1}


def test_matrix_products_of_some_size_are_library_calls_and_small_ones_are_not():
    assert kinds(lambda x: x @ x.T, X) == {"dot_general": 1}
    assert kinds(lambda x: x[:4, :4] @ x[:4, :4] + 1, X) == {"loop": 1}
    assert kinds(lambda x: x @ x[0] + 1, X) == {"reduce": 1}


def test_no_cycle_through_a_library_call():
    """sin(x) is used before and after the product: the two sides must not become one kernel."""
    counted = kinds(lambda x: jnp.sin(x) @ jnp.ones((64, 64), np.float32) + jnp.sin(x), X)
    assert counted["dot_general"] == 1
    assert counted["loop"] == 3  # sin, the constant operand, the sum


def test_every_op_ends_up_somewhere():
    for function, arguments in EXAMPLES.values():
        fused = fuse(optimised(function, arguments))
        for op in fused.entry.walk():
            assert isinstance(op, Op)
            assert op.name != "reduce" or op not in fused.entry.ops, "a reduction outside a fusion has no code"


def test_a_long_chain_of_moves_is_cut_before_it_is_deep():
    def turn(x):
        for _ in range(200):
            x = jnp.flip(jax.lax.optimization_barrier(x)[:, 1:], 0)
        return x

    fused = fuse(optimised(turn, (np.zeros((2, 300), np.float32),)))
    deepest = max(len(op.regions[0].ops) for op in fused.entry.ops if op.name == "fusion")
    assert deepest <= 60


def test_an_element_is_not_computed_over_and_over():
    """associative_scan reads each level at several positions of the next: levels must be stored, not folded."""

    def scan(x):
        return jax.lax.associative_scan(jnp.add, x)

    fused = fuse(optimised(scan, (np.zeros(1 << 12, np.float32),)))
    bodies = [len(op.regions[0].ops) for op in fused.entry.ops if op.name == "fusion"]
    assert len(bodies) > 10
    assert max(bodies) < 40


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(33,), (1000,), (4, 300), (300, 4), (2, 65, 3)])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("function", [jax.lax.cumsum, jax.lax.cumprod, jax.lax.cummax, jax.lax.cummin])
def test_cumulating_in_blocks_is_cumulating(function, axis, shape, reverse):
    x = np.random.default_rng(0).integers(-2, 3, shape).astype(np.float32)
    program = optimised(lambda a: function(a, axis=axis % a.ndim, reverse=reverse), (x,))
    (result,) = interp.run(fuse(program), [x])
    by_numpy = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}
    turned = np.flip(x, axis) if reverse else x
    expected = by_numpy[function.__name__].accumulate(turned, axis)
    np.testing.assert_array_equal(result, np.flip(expected, axis) if reverse else expected)


@pytest.mark.parametrize("power", [12, 15])
def test_the_work_of_a_cumulative_sum_grows_with_its_size(power):
    """Twice the size is about twice the operations, as the kernels are written."""

    def flops(size):
        code = run(context(artifact(jnp.cumsum, np.zeros(size, np.float32))), "codegen")
        return code.flops

    assert flops(2 << power) < 3 * flops(1 << power)
