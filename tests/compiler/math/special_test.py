"""What IEEE 754 and C's annex F say about NaN, infinities, zeros and subnormals: exact answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.compiler.math import machine
from treadle.compiler.ir import types as t

INF, NAN = float("inf"), float("nan")

UNARY = {
    "exponential": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (1e5, INF), (-1e5, 0)],
    "exponential_minus_one": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (-1e5, -1), (1e5, INF)],
    "log": [(0, -INF), (-0.0, -INF), (1, 0), (INF, INF), (-INF, NAN), (-1, NAN), (-1e-40, NAN), (NAN, NAN)],
    "log_plus_one": [(0, 0), (-0.0, -0.0), (-1, -INF), (-2, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "logistic": [(0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (NAN, NAN), (1e5, 1), (-1e5, 0)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (1e30, 1), (-1e30, -1)],
    "sine": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cosine": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "sqrt": [(0, 0), (-0.0, -0.0), (4, 2), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)],
    "rsqrt": [(0, INF), (-0.0, -INF), (4, 0.5), (INF, 0), (-1, NAN), (-INF, NAN), (NAN, NAN)],
    "cbrt": [(0, 0), (-0.0, -0.0), (27, 3), (-8, -2), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (7, 1), (-7, -1)],
}

POWER = [
    (NAN, 0, 1), (NAN, -0.0, 1), (INF, 0, 1), (0, 0, 1), (1, NAN, 1), (1, INF, 1), (1, -INF, 1), (-1, INF, 1),
    (-1, -INF, 1), (-1, NAN, NAN), (NAN, 1, NAN), (2, NAN, NAN), (0, 3, 0), (-0.0, 3, -0.0), (-0.0, 2, 0),
    (-0.0, 0.5, 0), (0, -1, INF), (-0.0, -1, -INF), (-0.0, -2, INF), (-0.0, -0.5, INF), (0, INF, 0), (0, -INF, INF),
    (0.5, INF, 0), (0.5, -INF, INF), (2, INF, INF), (2, -INF, 0), (-2, INF, INF), (-0.5, -INF, INF), (INF, 2, INF),
    (INF, -2, 0), (INF, 1e-3, INF), (-INF, 3, -INF), (-INF, 2, INF), (-INF, -3, -0.0), (-INF, -2, 0),
    (-INF, 0.5, INF), (-8, 1 / 3, NAN), (-2, 3, -8), (-2, 2, 4), (-2, -1, -0.5), (10, 2, 100), (3, 4, 81),
    (-1, 16777215, -1), (-1, 16777216, 1), (0.5, 1e30, 0), (2, 1e30, INF), (-1, 1e30, 1),
]  # fmt: skip

PI = np.pi
ATAN2 = [
    (0, 0, 0), (-0.0, 0, -0.0), (0, -0.0, PI), (-0.0, -0.0, -PI), (0, 1, 0), (-0.0, 1, -0.0), (0, -1, PI),
    (-0.0, -1, -PI), (1, 0, PI / 2), (1, -0.0, PI / 2), (-1, 0, -PI / 2), (1, INF, 0), (-1, INF, -0.0),
    (1, -INF, PI), (-1, -INF, -PI), (INF, 1, PI / 2), (-INF, 1, -PI / 2), (INF, INF, PI / 4),
    (INF, -INF, 3 * PI / 4), (-INF, INF, -PI / 4), (-INF, -INF, -3 * PI / 4), (1, 1, PI / 4), (1, -1, 3 * PI / 4),
    (NAN, 1, NAN), (1, NAN, NAN), (NAN, 0, NAN), (0, NAN, NAN), (NAN, INF, NAN), (INF, NAN, NAN),
]  # fmt: skip

REMAINDER = [
    (5, 3, 2), (-5, 3, -2), (5, -3, 2), (6, 3, 0), (-6, 3, -0.0), (0, 3, 0), (-0.0, 3, -0.0), (3, INF, 3),
    (-3, -INF, -3), (-0.0, INF, -0.0), (INF, 3, NAN), (3, 0, NAN), (0, 0, NAN), (INF, INF, NAN), (NAN, 1, NAN),
    (1, NAN, NAN), (INF, NAN, NAN), (0.5, 0.25, 0), (2**53, 3, 2), (2**100, 7, 2), (-(2**120), 5, -1),
]  # fmt: skip

CPUS = {"host": machine.HOST, "without FMA": machine.NO_FMA}


def check(name: str, rows: Sequence[tuple[float, ...]], cpu: machine.Cpu) -> None:
    table = np.array(rows)
    for dtype, lanes in ((t.F32, 4), (t.F64, 4)):
        *columns, want = [table[:, i].astype(dtype.numpy) for i in range(table.shape[1])]
        got = machine.compiled(name, dtype, lanes, cpu)(*columns)
        same = (got == want) & (np.signbit(got) == np.signbit(want)) | (np.isnan(got) & np.isnan(want))
        wrong = [f"{row} gave {value!r}" for row, value, ok in zip(rows, got, same, strict=True) if not ok]
        assert not wrong, f"{name} {dtype}: {wrong}"


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name: str, cpu: str):
    check(name, UNARY[name], CPUS[cpu])


@pytest.mark.parametrize("cpu", CPUS)
def test_power(cpu: str):
    check("power", POWER, CPUS[cpu])


@pytest.mark.parametrize("cpu", CPUS)
def test_atan2(cpu: str):
    check("atan2", ATAN2, CPUS[cpu])


@pytest.mark.parametrize("cpu", CPUS)
def test_remainder(cpu: str):
    check("remainder", REMAINDER, CPUS[cpu])


def test_subnormals_are_kept():
    """Functions that are x near zero return subnormals unchanged; others reach into them."""
    for dtype in (t.F32, t.F64):
        tiny = np.finfo(dtype.numpy).smallest_subnormal
        x = np.array([tiny, -tiny, 5 * tiny, np.finfo(dtype.numpy).tiny / 2], dtype.numpy)
        for name in ("sine", "tan", "tanh", "exponential_minus_one", "log_plus_one"):
            np.testing.assert_array_equal(machine.compiled(name, dtype, 4)(x), x, name)
        whole = np.array([1, 2, 4, 8], dtype.numpy)
        exponent = {t.F32: -150, t.F64: -1075}[dtype]
        result = machine.compiled("power", dtype, 4)(np.full(4, 2, dtype.numpy), exponent + whole)
        np.testing.assert_array_equal(result, np.ldexp(tiny, whole.astype(int) - 1))
