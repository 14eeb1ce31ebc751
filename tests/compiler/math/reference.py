"""The true values of the maths functions, in wider arithmetic, and the distance to them in ulps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

# Working digits of the integer series for erf.
_BITS = 300


def _erf(x: float) -> np.longdouble:
    """2/sqrt(pi) e^(-x^2) (x + 2 x^3/3 + 4 x^5/15 + ...), the sum in integers scaled by 2^300.

    Every term is positive. e^(-x^2) and 2/sqrt(pi) are `longdouble`'s; beyond 1 the complement
    would lose nothing that matters at 64 bits.
    """
    if not math.isfinite(x) or abs(x) > 7:
        return np.longdouble(math.erf(x))
    two_over_root_pi = np.longdouble("1.1283791670955125738961589031215")
    if abs(x) < 2.0**-100:  # the integers below would have too few digits
        return two_over_root_pi * np.longdouble(x)
    numerator, denominator = abs(x).as_integer_ratio()
    term = (numerator << _BITS) // denominator
    square = term * term >> _BITS
    total, k = 0, 1
    while term:
        total += term
        term = (2 * term * square >> _BITS) // (2 * k + 1)
        k += 1
    # Three 53-bit pieces carry more than a longdouble holds.
    wide = np.longdouble(0)
    for _ in range(3):
        piece = total / (1 << _BITS) if total else 0.0
        wide += np.longdouble(piece)
        total -= int(math.ldexp(piece, _BITS)) if piece else 0
    gauss = np.exp(-np.longdouble(x) * np.longdouble(x))
    value = np.minimum(two_over_root_pi * gauss * wide, np.longdouble(1))
    return np.longdouble(np.copysign(value, np.longdouble(x)))


def _erf_array(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.float64:  # the reference of f32: C's, good to one ulp of f64
        return np.array([math.erf(v) for v in x])
    return np.array([_erf(float(v)) for v in x], np.longdouble)


FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "power": np.power,
    "atan2": np.arctan2,
    "remainder": np.fmod,
    "erf": _erf_array,
}

# The precision of each type, and the exponent of its smallest subnormal.
_FORMATS = {np.dtype(np.float32): (24, -149, 128), np.dtype(np.float64): (53, -1074, 1024)}


def true_values(name: str, operands: list[np.ndarray]) -> np.ndarray:
    """f(operands): f64 for f32 operands (longdouble for powers), longdouble for f64 operands."""
    single = operands[0].dtype == np.float32 and name != "power"
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](*[x.astype(np.float64 if single else np.longdouble) for x in operands])


def ulps(got: np.ndarray, true: np.ndarray) -> np.ndarray:
    """|got - true| in units of the last place of `got`'s type at `true`.

    Infinity counts as the power of two that is one step above the largest number. A NaN on one
    side only, and a zero of the wrong sign, are infinitely far.
    """
    precision, smallest, overflow = _FORMATS[got.dtype]
    one = true.dtype.type(1)
    with np.errstate(all="ignore"):
        limit = np.ldexp(one, overflow)
        regular = np.isfinite(true) & (true != 0)
        exponent = np.frexp(np.where(regular, true, one))[1]
        unit = np.ldexp(one, np.maximum(np.minimum(exponent, overflow) - precision, smallest))
        there = np.where(np.isinf(got), np.copysign(limit, got), got.astype(true.dtype))
        here = np.where(np.abs(true) >= limit, np.copysign(limit, true), true)
        distance = np.abs(there - here) / unit
    distance = np.where(np.isnan(true) & np.isnan(got), 0, distance)
    wrong_zero = (got == 0) & (np.signbit(got) != np.signbit(true)) & ~np.isnan(true)
    return np.where(np.isnan(true) != np.isnan(got), np.inf, np.where(wrong_zero, np.inf, distance))
