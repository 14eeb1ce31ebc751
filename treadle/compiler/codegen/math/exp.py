"""The exponential family: e^x, e^x - 1, logistic and tanh.

Reduction (Cody and Waite): x = k ln 2 + r with |r| <= ln(2)/2, k an integer. ln 2 is split in two
parts of which the first has so few bits that k times it is exact. Then
e^r = 1 + r + r^2 q(r) with a minimax q, and e^x = 2^k e^r.
"""

from __future__ import annotations

import dataclasses

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, Emitter, Value

LOG2_E = 1.4426950408889634


@dataclasses.dataclass(frozen=True)
class _Constants:
    """What differs between the two types."""

    ln2_high: float
    ln2_low: float
    overflow: float  # from here on e^x is infinite
    underflow: float  # up to here e^x is zero
    expm1_floor: float  # up to here e^x - 1 is -1
    tanh_limit: float  # where 2 |x| may be cut: tanh is 1
    tiny: float  # up to here e^x - 1 rounds to x
    exp: tuple[float, ...]
    expm1: tuple[float, ...]
    tanh: tuple[float, ...]


_CONSTANTS = {
    FLOAT: _Constants(
        ln2_high=0.693359375,
        ln2_low=-2.12194440054690583e-4,
        overflow=89.0,
        underflow=-104.5,
        expm1_floor=-18.0,
        tanh_limit=20.0,
        tiny=2.0**-26,
        exp=c.EXP_F32,
        expm1=c.EXPM1_F32,
        tanh=c.TANH_F32,
    ),
    DOUBLE: _Constants(
        ln2_high=6.93147180369123816490e-01,
        ln2_low=1.90821492927058770002e-10,
        overflow=710.0,
        underflow=-746.0,
        expm1_floor=-40.0,
        tanh_limit=40.0,
        tiny=2.0**-54,
        exp=c.EXP_F64,
        expm1=c.EXPM1_F64,
        tanh=c.TANH_F64,
    ),
}


def _reduce(e: Emitter, x: Value, fit: tuple[float, ...]) -> tuple[Value, Value, Value]:
    """The integer k, t = x - k ln2_high (exact), and e^r - 1 - t for r = t - k ln2_low.

    Keeping t apart saves the rounding of r. For NaN k is arbitrary and the others are NaN.
    """
    constants = _CONSTANTS[x.element]
    exponent, whole = e.round_to_int(x * LOG2_E)
    t = e.fma(whole, -constants.ln2_high, x)
    low = whole * constants.ln2_low
    r = t - low
    return exponent, t, e.fma(r * r, e.polynomial(r, fit), -low)


def scale_by_power(e: Emitter, x: Value, exponent: Value) -> Value:
    """x * 2^exponent for |exponent| <= 2 * 1022 (f32: 2 * 126).

    In two steps, so that the exponent may reach from the smallest subnormal to overflow; only the second step rounds.
    """
    # A logical shift of a biased number: AVX2 has no arithmetic shift of 64-bit lanes.
    bias = 4096 if exponent.element != "i32" else 512
    half = ((exponent + bias) >> 1) - bias // 2
    return (x * e.exponent_scale(half)) * e.exponent_scale(exponent - half)


def exponential(e: Emitter, x: Value) -> Value:
    """e^x."""
    constants = _CONSTANTS[x.element]
    clamped = e.at_least(e.at_most(x, constants.overflow), constants.underflow)
    exponent, t, tail = _reduce(e, clamped, constants.exp)
    high, low = e.fast_two_sum(e.const(x.element, 1.0), t)
    return scale_by_power(e, high + (low + tail), exponent)


def _expm1(e: Emitter, x: Value) -> tuple[Value, Value]:
    """(e^x - 1) / 2 as a high and a low part, for x between expm1_floor and overflow; loses the sign of zero.

    2^k (1 + p) - 1 = (2^k - 1) + 2^k p with p = e^r - 1, of which the first is never the smaller
    one unless it is zero. The half of it, since 2^k overflows for the last k.
    """
    exponent, t, tail = _reduce(e, x, _CONSTANTS[x.element].expm1)
    scale = e.exponent_scale(exponent - 1)
    high, low = e.fast_two_sum(scale - 0.5, t * scale)
    return e.fast_two_sum(high, e.fma(tail, scale, low))


def exponential_minus_one(e: Emitter, x: Value) -> Value:
    """e^x - 1, accurate near 0."""
    constants = _CONSTANTS[x.element]
    clamped = e.at_least(e.at_most(x, constants.overflow), constants.expm1_floor)
    result = _expm1(e, clamped)[0] * 2.0
    # Halving and doubling loses the last bit of a subnormal; there e^x - 1 rounds to x.
    return e.select(e.abs(x).lt(constants.tiny), x, result)


def logistic(e: Emitter, x: Value) -> Value:
    """1 / (1 + e^-x): as 1 / (1 + t) or t / (1 + t) with t = e^-|x|, which cannot overflow."""
    t = exponential(e, -e.abs(x))
    total, lost = e.fast_two_sum(e.const(x.element, 1.0), t)
    top = e.select(x.lt(0.0), t, 1.0)
    ratio = top / total
    # What the rounding of 1 + t (and, if it can be had, of the division) did, with 1 / (1 + t) taken as 1 - t/2.
    residual = e.fma(-ratio, lost, e.fma(-ratio, total, top)) if e.has_fma else -(ratio * lost)
    return e.fma(residual, e.fma(t, -0.5, 1.0), ratio)


def rough_exponential(e: Emitter, x: Value) -> Value:
    """e^x to about 1.2 ulp, for an x whose result is a normal number."""
    exponent, t, tail = _reduce(e, x, _CONSTANTS[x.element].exp)
    return (1.0 + (t + tail)) * e.exponent_scale(exponent)


def tanh(e: Emitter, x: Value) -> Value:
    """For |x| < 5/8 an odd polynomial, beyond it tanh |x| = 1 - 2 / (e^(2 |x|) + 1)."""
    constants = _CONSTANTS[x.element]
    magnitude = e.abs(x)
    z = x * x
    small = e.fma(x * z, e.polynomial(z, constants.tanh), x)
    twice = e.at_most(magnitude + magnitude, constants.tanh_limit)
    exponent, t, tail = _reduce(e, twice, constants.exp)
    total = e.fma(1.0 + (t + tail), e.exponent_scale(exponent), 1.0)
    return e.copysign(e.select(magnitude.lt(0.625), small, 1.0 - 2.0 / total), x)
