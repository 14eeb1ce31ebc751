"""How far the maths functions are from the true values, in ulps, over the whole range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.math import inputs, machine, reference
from treadle.compiler.codegen.math import NAMES
from treadle.compiler.ir import types as t

# The largest error seen over f32 (sweep.py) and over many f64, rounded up.
BOUNDS = {
    "exponential": (0.85, 0.85),
    "exponential_minus_one": (1.2, 1.2),
    "log": (0.95, 0.85),
    "log_plus_one": (1.5, 1.4),
    "logistic": (1.98, 1.9),
    "tanh": (1.4, 1.4),
    "sine": (0.6, 0.85),
    "cosine": (0.6, 0.85),
    "tan": (0.6, 1.1),
    "sqrt": (0.501, 0.501),
    "rsqrt": (1.5, 1.5),
    "cbrt": (0.51, 0.51),
    "power": (0.6, 0.85),
    "atan2": (0.51, 1.5),
    "remainder": (0.0, 0.0),
    "erf": (1.35, 1.3),
}
CPUS = {"host": machine.HOST, "without FMA": machine.NO_FMA}


def worst(name: str, operands: list[np.ndarray], dtype: t.DType, lanes: int, cpu: machine.Cpu) -> tuple[float, str]:
    got = machine.compiled(name, dtype, lanes, cpu)(*operands)
    distance = reference.ulps(got, reference.true_values(name, operands))
    at = int(np.argmax(distance))
    return float(distance[at]), f"{name}({', '.join(repr(x[at]) for x in operands)}) = {got[at]!r}"


def test_every_function_has_a_bound():
    assert set(BOUNDS) == NAMES == set(reference.FUNCTIONS)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_single_precision(name: str, cpu: str):
    """Every 4099th f32 (a stride that visits all low bits), or pairs."""
    if name in machine.ARITY:
        operands = inputs.operands(name, 2, np.dtype(np.float32), 20_000)
    else:
        stride = 4099 * (8 if name == "erf" else 1)
        operands = [np.concatenate([inputs.singles(stride), inputs.corners(np.dtype(np.float32))])]
    error, where = worst(name, operands, t.F32, 8, CPUS[cpu])
    assert error <= BOUNDS[name][0], where


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_double_precision(name: str, cpu: str):
    count = 500 if name == "erf" else 20_000
    operands = inputs.operands(name, machine.ARITY.get(name, 1), np.dtype(np.float64), count)
    if name in {"sine", "cosine", "tan"}:
        operands[0] = np.concatenate([operands[0], inputs.near_multiples_of_half_pi(20_000, 2**20, 3)])
    error, where = worst(name, operands, t.F64, 4, CPUS[cpu])
    assert error <= BOUNDS[name][1], where


@pytest.mark.parametrize("name", ["sine", "cosine", "tan"])
@pytest.mark.parametrize("scale", [2.0**25, 2.0**27, 2.0**31, 1e10, 1e22])
def test_large_angles(name: str, scale: float):
    """On both sides of the limit beyond which libm takes over, lanes of both kinds mixed."""
    rng = np.random.default_rng(5)
    for dtype, lanes, column in ((t.F32, 16, 0), (t.F64, 8, 1)):
        angle = (rng.uniform(-1, 1, 4000) * np.where(rng.random(4000) < 0.5, scale, 3.0)).astype(dtype.numpy)
        error, where = worst(name, [angle], dtype, lanes, machine.HOST)
        assert error <= BOUNDS[name][column], where


def test_ulps_of_known_distances():
    one = np.array([1.0, np.inf, np.nan, 0.0, -0.0], np.float32)
    true = np.array([1 + 2.0**-23, 2.0**128, 1.0, 0.0, 0.0])
    assert list(reference.ulps(one, true)) == [1.0, 0.0, np.inf, 0.0, np.inf]


def test_erf_reference_against_digits():
    """Values from tables: erf(0.5), erf(1), erf(3)."""
    known = {0.5: "0.52049987781304653768", 1.0: "0.84270079294971486934", 3.0: "0.99997790950300141456"}
    for x, digits in known.items():
        got = reference.true_values("erf", [np.array([x])])[0]
        assert abs(got - np.longdouble(digits)) < 3e-19
