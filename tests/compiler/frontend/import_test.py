"""JAX functions, imported, mean what jaxlib's CPU backend computes."""

from __future__ import annotations

import io

import jax
import numpy as np
import pytest

from tests.compiler.frontend.cases import CASES
from tests.compiler.frontend.programs import artifact, imported
from treadle.compiler import interp
from treadle.compiler.ir.verifier import verify


@pytest.mark.parametrize("name", CASES)
def test_means_what_jaxlib_computes(name):
    function, arguments = CASES[name]
    program = imported(artifact(function, *arguments))
    verify(program)
    actual = interp.run(program, [np.asarray(a) for a in arguments])
    with jax.default_device(jax.devices("cpu")[0]):
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(actual) == len(expected)
    for got, want in zip(actual, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            # The interpreter rounds after each op and NumPy's functions are others than XLA's.
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-5, atol=2e-6)


def test_same_program_from_text_and_from_bytecode():
    function, arguments = CASES["softmax_gradient"]
    module = jax.jit(function).lower(*arguments).compiler_ir()
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    text = module.operation.get_asm(enable_debug_info=True)
    names = [[op.name for op in imported(p).entry.walk()] for p in (bytecode.getvalue(), text)]
    assert names[0] == names[1]
    assert len(names[0]) > 5
