"""Logarithms: ln x and ln(1 + x).

x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and ln x = k ln 2 + ln(1 + f).
"""

from __future__ import annotations

import dataclasses

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, Emitter, Value


@dataclasses.dataclass(frozen=True)
class _Format:
    """The layout of a float, and ln 2 in two parts of which k times the first is exact."""

    shift: int
    root_half: int  # the bits of sqrt(1/2)
    one: int  # the bits of 1
    smallest_normal: float
    bias: int
    raise_by: int  # 2 to this power makes every subnormal normal
    ln2_high: float
    ln2_low: float


_FORMATS = {
    FLOAT: _Format(
        shift=23,
        root_half=0x3F3504F3,
        one=0x3F800000,
        smallest_normal=2.0**-126,
        bias=127,
        raise_by=24,
        ln2_high=0.693359375,
        ln2_low=-2.12194440054690583e-4,
    ),
    DOUBLE: _Format(
        shift=52,
        root_half=0x3FE6A09E667F3BCD,
        one=0x3FF0000000000000,
        smallest_normal=2.0**-1022,
        bias=1023,
        raise_by=54,
        ln2_high=6.93147180369123816490e-01,
        ln2_low=1.90821492927058770002e-10,
    ),
}

INFINITY = float("inf")
NAN = float("nan")


def split(e: Emitter, x: Value) -> tuple[Value, Value]:
    """The exponent k, as a float, and 1 + f, for positive, normal and finite x."""
    k, mantissa, _ = _fields(e, x)
    return k, mantissa


def _fields(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """k as a float, 1 + f, and 2^(1 - k) (0 when that would be subnormal)."""
    form = _FORMATS[x.element]
    # Moves sqrt(1/2) to 1, where the exponent field steps. The sum of the two stays positive.
    moved = x.bits() + (form.one - form.root_half)
    field = moved >> form.shift
    mantissa = ((moved & ((1 << form.shift) - 1)) + form.root_half).as_float()
    inverse = ((2 * form.bias + 1 - field) << form.shift).as_float()
    return e.int_to_float(field) - form.bias, mantissa, inverse


def _combine(e: Emitter, k: Value, f: Value) -> Value:
    """k ln 2 + ln(1 + f)."""
    form = _FORMATS[f.element]
    half_square = f * f * 0.5
    if f.element == FLOAT:
        # ln(1 + f) = f - f^2/2 + f^3 q(f)
        tail = e.fma(f * f * f, e.polynomial(f, c.LOG_F32), k * form.ln2_low) - half_square
        return e.fma(k, form.ln2_high, f + tail)
    # With s = f / (2 + f): ln(1 + f) = f - (f^2/2 - s (f^2/2 + z R(z))), z = s^2 (fdlibm's form)
    s = f / (f + 2.0)
    z = s * s
    inner = e.fma(z, e.polynomial(z, c.LOG_F64), half_square)
    tail = e.fma(s, inner, k * form.ln2_low) - half_square
    return e.fma(k, form.ln2_high, f + tail)


def log(e: Emitter, x: Value) -> Value:
    """ln x; -inf at zero, NaN below."""
    form = _FORMATS[x.element]
    subnormal = x.lt(form.smallest_normal)
    k, mantissa = split(e, e.select(subnormal, x * 2.0**form.raise_by, x))
    k = e.select(subnormal, k - form.raise_by, k)
    result = _combine(e, k, mantissa - 1.0)
    return _ends(e, x, 0.0, result)


def log_plus_one(e: Emitter, x: Value) -> Value:
    """ln(1 + x), accurate near 0: what rounding 1 + x loses is put back into f."""
    rounded, lost = e.two_sum(x, e.const(x.element, 1.0))
    k, mantissa, inverse = _fields(e, rounded)
    f = e.fma(lost * inverse, 0.5, mantissa - 1.0)
    result = _ends(e, x, -1.0, _combine(e, k, f))
    return e.select(x.eq(0.0), x, result)


def _ends(e: Emitter, x: Value, pole: float, result: Value) -> Value:
    """`result`, but -inf at the pole, NaN below it, and inf and NaN as they are."""
    result = e.select(x.lt(INFINITY), result, x)
    below = e.select(x.eq(pole), -INFINITY, x * NAN)
    return e.select(x.gt(pole), result, below)
