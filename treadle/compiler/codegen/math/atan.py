"""The angle of a point: atan2(y, x).

The ratio of the smaller to the larger of |x| and |y| lies in [0, 1]; its arc tangent, reflected
at the diagonal and at the axis, is the angle. f32 is computed in f64.
"""

from __future__ import annotations

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, Emitter, Value

INFINITY = float("inf")

# Multiples of pi/4 as high and low parts.
_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_PI = (3.141592653589793, 1.2246467991473532e-16)
_TAN_EIGHTH_PI = 0.41421356237309503


def atan2(e: Emitter, y: Value, x: Value) -> Value:
    """The angle of (x, y), between -pi and pi; the sign of a zero x or y counts."""
    return _atan2_single(e, y, x) if x.element == FLOAT else _atan2_double(e, y, x)


def _atan2_single(e: Emitter, y: Value, x: Value) -> Value:
    width, height = e.abs(x), e.abs(y)
    steep = height.gt(width)
    smaller, larger = e.select(steep, width, height), e.select(steep, height, width)
    ratio = smaller.to_double() / larger.to_double()
    # Both zero or both infinite: 0 and 1 instead of NaN.
    equal = e.select(larger.eq(0.0), e.const(DOUBLE, 0.0), 1.0)
    ratio = e.select(smaller.eq(larger), equal, ratio)
    angle = ratio * e.polynomial(ratio * ratio, c.ATAN_F32)
    angle = e.select(steep, _HALF_PI[0] - angle, angle)
    angle = e.select(x.bits().lt(0), _PI[0] - angle, angle)
    return e.copysign(angle.to_single(), y)


def _scaled(e: Emitter, smaller: Value, larger: Value) -> tuple[Value, Value]:
    """The same ratio with a denominator in f32's range, and 0/1 or 1/1 for zeros and infinities.

    The factor is 2^-k for the larger one's exponent k, with 2^-1022 for the last k (which would
    need a subnormal) and 2^1023 for subnormals.
    """
    field = larger.bits() >> 52
    field = e.select(field.gt(2045), 2045, field)
    scale = ((2046 - field) << 52).as_float()
    ends = larger.eq(0.0) | larger.eq(INFINITY)
    at_end = e.select(smaller.eq(INFINITY), 1.0, smaller - smaller)  # NaN stays NaN
    return e.select(ends, at_end, smaller * scale), e.select(ends, 1.0, larger * scale)


def _atan2_double(e: Emitter, y: Value, x: Value) -> Value:
    """Beyond tan(pi/8), atan(n/d) is pi/4 + atan((n - d) / (n + d)).

    angle = base + side * (t + tail) with base one of 0, pi/4, pi/2, 3 pi/4, pi.
    """
    width, height = e.abs(x), e.abs(y)
    steep = height.gt(width)
    smaller, larger = e.select(steep, width, height), e.select(steep, height, width)
    n, d = _scaled(e, smaller, larger)
    turned = n.gt(d * _TAN_EIGHTH_PI)
    difference, difference_low = e.fast_two_sum(-d, n)
    total, total_low = e.fast_two_sum(d, n)
    zero = e.const(DOUBLE, 0.0)
    top, top_low = e.select(turned, difference, n), e.select(turned, difference_low, zero)
    bottom, bottom_low = e.select(turned, total, d), e.select(turned, total_low, zero)
    t, t_low = e.divide_to_pair(top, top_low, bottom, bottom_low)
    z = t * t
    tail = e.fma(t * z, e.polynomial(z, c.ATAN_F64), t_low * (1.0 - z))
    base, base_low = e.select(turned, _QUARTER_PI[0], zero), e.select(turned, _QUARTER_PI[1], zero)
    negative = x.bits().lt(0)
    for mirrored, (axis, axis_low) in ((steep, _HALF_PI), (negative, _PI)):
        base = e.select(mirrored, axis - base, base)
        base_low = e.select(mirrored, axis_low - base_low, base_low)
    flip = e.select(steep ^ negative, e.const(DOUBLE, -1.0), 1.0)
    high, low = e.fast_two_sum(base, t * flip)
    return e.copysign(high + (low + e.fma(tail, flip, base_low)), y)
