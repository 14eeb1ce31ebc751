"""Fusions that compute the same share their kernels; those that differ in a bit do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import as_fusion, assert_same, run_fusion
from tests.compiler.ops.checking import region, values
from tests.compiler.ops.oracle import program
from treadle.compiler import interp
from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import F32, TensorType
from treadle.compiler.lowering.fusions import Lowering

MATRIX = TensorType(F32, (3, 5))


def scaled(factor, types=(MATRIX, MATRIX)):
    def build(b, x, y):
        return b.op("add", b.op("multiply", x, b.constant(np.broadcast_to(np.float32(factor), (3, 5)))), y)

    return as_fusion(program(types, build), "loop")


def kernels(lowering, op):
    return [call.kernel for call in lowering.lower(op)]


def test_equal_fusions_share_kernels_and_keep_their_values():
    lowering = Lowering()
    first, second = scaled(2.0), scaled(2.0)
    assert kernels(lowering, first) == kernels(lowering, second)  # kernels are compared by identity
    for op in (first, second):
        (call,) = lowering.lower(op)
        assert set(call.arguments) == {*op.operands, *op.results}


@pytest.mark.parametrize("factor", [-0.0, 0.0, 3.0, np.nan])
def test_another_constant_is_another_kernel(factor):
    lowering = Lowering()
    known = kernels(lowering, scaled(0.0))
    same = np.float32(factor).tobytes() == np.float32(0).tobytes()
    assert (kernels(lowering, scaled(factor)) == known) is same


def test_another_shape_is_another_kernel():
    lowering = Lowering()
    other = TensorType(F32, (5, 3))

    def build(b, x):
        return b.op("negate", x)

    ops = [as_fusion(program([type_], build), "loop") for type_ in (MATRIX, other, MATRIX)]
    found = [kernels(lowering, op) for op in ops]
    assert found[0] == found[2] != found[1]


def test_one_value_given_twice_is_one_parameter():
    lowering = Lowering()
    apart, together = scaled(2.0), scaled(2.0)
    together = Op("fusion", [together.operands[0]] * 2, [MATRIX], together.attrs, together.regions)
    (call,) = lowering.lower(apart)
    assert len(call.arguments) == 3
    (call,) = lowering.lower(together)
    assert len(call.arguments) == 2


def test_the_second_of_two_equal_fusions_runs_right(monkeypatch):
    """Its kernels pass a temporary on, which is neither operand nor result."""
    monkeypatch.setattr("treadle.compiler.lowering.nests_reduce.SPLIT_ELEMENTS", 16)
    types = [TensorType(F32, (8, 3, 2)), TensorType(F32, ())]

    def build(b, x, init):
        return b.op("reduce", x, init, dimensions=(0, 2), regions=[region(F32, "maximum")])

    lowering = Lowering()
    first, second = (as_fusion(program(types, build), "reduce", root=0) for _ in range(2))
    assert len(lowering.lower(first)) == 2
    arrays = [values(type_) for type_ in types]
    assert_same(interp.run(program(types, build), arrays), run_fusion(second, arrays, lowering.lower))
