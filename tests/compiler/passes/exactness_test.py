"""Rules change no bit: every op with every special constant, every chain of conversions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.compiler.ops.oracle import program
from tests.compiler.passes.checking import assert_equal
from treadle.compiler import interp, passes
from treadle.compiler.ir.core import Value
from treadle.compiler.ir.types import BF16, F16, F32, F64, PRED, S8, S32, S64, U8, U32, DType, TensorType
from treadle.compiler.ops.build import Builder

FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, np.inf, -np.inf, np.nan, 1e-7, 6e4]
CONSTANTS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 4.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, S8, U8, S32, U32, PRED], ids=repr)
def test_every_op_with_every_constant(dtype: DType) -> None:
    """Each binary op with each special constant, on either side, on all edges, bit for bit."""
    if dtype.is_float:
        values, constants = np.array(FLOAT_EDGES).astype(dtype.numpy), CONSTANTS
        ops = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "power", "atan2"]
    elif dtype is PRED:
        values, constants = np.array([False, True]), [False, True]
        ops = ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]
    else:
        info = np.iinfo(dtype.numpy)
        edges = sorted({0, 1, 2, 3, 7, 31, 32, int(info.min), int(info.max), int(info.max) - 1, int(info.min) + 1})
        values = np.array(edges, dtype.numpy)
        constants = [c for c in (0, 1, 2, 3, 4, 8, 16, 64, info.min, info.max, -1) if info.min <= c <= info.max]
        ops = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "power"]
        ops += ["shift_left", "shift_right_logical", "shift_right_arithmetic"]
    t = TensorType(dtype, values.shape)

    def build(b: Builder, x: Value) -> list[Value]:
        results = []
        for op, constant in itertools.product(ops, constants):
            other = b.constant(np.asarray(constant, dtype.numpy), t.shape)
            results += [b.op(op, x, other), b.op(op, other, x), b.op(op, other, other)]
        results += [b.op(op, x, x) for op in ops]
        return results

    p = program([t], build)
    before = interp.run(p, [values])
    after = interp.run(passes.optimise(p), [values])
    cubes = [i for i, case in enumerate(itertools.product(ops, constants)) if case == ("power", 3)]
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        if i // 3 in cubes and dtype.is_float:  # x * x * x is rounded twice
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=3e-7)
            continue
        nan = np.isnan(a.astype(np.float64))
        np.testing.assert_array_equal(nan, np.isnan(b.astype(np.float64)))
        bits = [np.where(nan, np.zeros_like(x), x).tobytes() for x in (a, b)]
        assert bits[0] == bits[1], (
            list(itertools.product(ops, constants))[min(i // 3, len(ops) * len(constants) - 1)],
            a,
            b,
        )


DTYPES = [PRED, S8, S32, S64, U8, U32, F16, BF16, F32, F64]


@pytest.mark.parametrize("first", DTYPES, ids=repr)
def test_chains_of_conversions(first: DType) -> None:
    """All chains of two conversions, on all edges."""
    if first.is_float:
        values = np.array([*FLOAT_EDGES, 300.0, 2049.0, 65504.0, -1e9, 1e9, 3e9, 1e20]).astype(first.numpy)
    elif first is PRED:
        values = np.array([False, True])
    else:
        info = np.iinfo(first.numpy)
        values = np.array(sorted({0, 1, 100, int(info.min), int(info.max), int(info.max) // 3}), first.numpy)
    t = TensorType(first, values.shape)

    def build(b: Builder, x: Value) -> list[Value]:
        results = []
        for middle, last in itertools.product(DTYPES, DTYPES):
            once = b.op("convert", x, types=[TensorType(middle, t.shape)])
            results.append(b.op("convert", once, types=[TensorType(last, t.shape)]))
        return results

    p = program([t], build)
    count = len(p.entry.ops)
    before = interp.run(p, [values])
    after = passes.optimise(p)
    assert len(after.entry.ops) < count * 0.7
    for pair, a, b in zip(itertools.product(DTYPES, DTYPES), before, interp.run(after, [values]), strict=True):
        assert_equal([a], [b], f"{first} -> {pair}")
        assert a.dtype.kind in "biu" or (a.tobytes() == b.tobytes()) or np.isnan(a.astype(np.float64)).any(), pair
