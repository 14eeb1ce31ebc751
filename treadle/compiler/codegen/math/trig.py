"""sin, cos and tan.

x = n pi/2 + r with |r| <= pi/4 (Cody and Waite, pi/2 in several parts); n mod 4 chooses between
sin r and cos r, and the sign. f32 is computed in f64 throughout, which makes the result nearly
always the correctly rounded one. Arguments beyond `limit`, where the parts of pi/2 no longer
suffice, are left to libm in a branch that is taken only when a lane has one.
"""

from __future__ import annotations

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, Emitter, Value
from treadle.compiler.codegen.math.cold import per_lane

TWO_OVER_PI = 0.6366197723675814

# pi/2 in parts of 53 bits, for fused arithmetic.
_PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# In parts of which the first ones have so few bits that n times them is exact: 33 bits each for
# f64, where n < 2^20; 27 bits each for f32 in f64, where n < 2^26.
_PARTS_33 = (
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
)
_PARTS_27 = (1.570796325802803, 9.920935739593517e-10, 5.721188726109832e-18)


def _reduce_single(e: Emitter, x: Value) -> tuple[Value, Value]:
    """n and r for an f32 argument held in f64, |x| < 2^26."""
    n, whole = e.round_to_int(x * TWO_OVER_PI)
    r = x
    for part in _PARTS[:2] if e.has_fma else _PARTS_27:
        r = e.fma(whole, -part, r)
    return n, r


def _reduce_double(e: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """n, r and what r lacks, for an f64 argument below `limit`."""
    n, whole = e.round_to_int(x * TWO_OVER_PI)
    if e.has_fma:
        # The first step is exact: both sides are multiples of 2^-53, the result is below 1.
        first = e.fma(whole, -_PARTS[0], x)
        product, error = e.two_product(whole, e.const(DOUBLE, _PARTS[1]))
        r, lost = e.two_sum(first, -product)
        return n, r, e.fma(whole, -_PARTS[2], lost - error)
    first = x - whole * _PARTS_33[0]
    second, lost = e.two_sum(first, whole * -_PARTS_33[1])
    r, lost_too = e.two_sum(second, whole * -_PARTS_33[2])
    return n, r, (lost + lost_too) - whole * _PARTS_33[3]


def _sin_cos_single(e: Emitter, r: Value) -> tuple[Value, Value]:
    """sin r and cos r in f64, accurate enough for f32. The sign of zero stays."""
    z = r * r
    sine = r * e.fma(z, e.polynomial(z, c.SIN_F32), 1.0)
    cosine = e.fma(z, e.polynomial(z, (-0.5, *c.COS_F32)), 1.0)
    return sine, cosine


def _sin_cos_double(e: Emitter, r: Value, low: Value) -> tuple[Value, Value, Value, Value]:
    """sin(r + low) and cos(r + low), each as a value and a small rest still to be added."""
    z = r * r
    half = z * 0.5
    sine_rest = e.fma(r * z, e.polynomial(z, c.SIN_F64), low * (1.0 - half))
    cosine = 1.0 - half
    cosine_rest = e.fma(z * z, e.polynomial(z, c.COS_F64), ((1.0 - cosine) - half) - r * low)
    return r, sine_rest, cosine, cosine_rest


def _limit(e: Emitter, element: str) -> float:
    """From here on arguments are libm's."""
    return 2.0**26 if element == FLOAT else 2.0**30 if e.has_fma else 2.0**20


def _finish(e: Emitter, name: str, x: Value, fast: Value) -> Value:
    huge = e.abs(x).ge(_limit(e, x.element))
    return per_lane(e, huge, name, [x], fast)


def _wave(e: Emitter, name: str, x: Value, turn: int) -> Value:
    """sin(x + turn pi/2)."""
    if x.element == FLOAT:
        n, r = _reduce_single(e, x.to_double())
        sine, cosine = _sin_cos_single(e, r)
    else:
        n, r, low = _reduce_double(e, x)
        sine, sine_rest, cosine, cosine_rest = _sin_cos_double(e, r, low)
        sine, cosine = sine + sine_rest, cosine + cosine_rest
    if turn:
        n = n + turn
    odd = (n & 1).ne(0)
    sign = (n & 2) << 62
    value = (e.select(odd, cosine, sine).bits() ^ sign).as_float()
    if x.element == FLOAT:
        value = value.to_single()
    elif not turn:
        value = e.select(x.eq(0.0), x, value)
    return _finish(e, name, x, value)


def sine(e: Emitter, x: Value) -> Value:
    """sin x."""
    return _wave(e, "sin", x, 0)


def cosine(e: Emitter, x: Value) -> Value:
    """cos x."""
    return _wave(e, "cos", x, 1)


def tan(e: Emitter, x: Value) -> Value:
    """tan x = sin r / cos r for even n, -cos r / sin r for odd n."""
    if x.element == FLOAT:
        n, r = _reduce_single(e, x.to_double())
        sine, cosine = _sin_cos_single(e, r)
        odd, sign = (n & 1).ne(0), n << 63
        value = e.select(odd, cosine, sine) / e.select(odd, sine, cosine)
        return _finish(e, "tan", x, (value.bits() ^ sign).as_float().to_single())
    n, r, low = _reduce_double(e, x)
    r, sine_rest, base, cosine_rest = _sin_cos_double(e, r, low)
    sine, sine_low = e.fast_two_sum(r, sine_rest)
    cosine, cosine_low = e.fast_two_sum(base, cosine_rest)
    odd, sign = (n & 1).ne(0), n << 63
    top, top_low = e.select(odd, cosine, sine), e.select(odd, cosine_low, sine_low)
    bottom, bottom_low = e.select(odd, sine, cosine), e.select(odd, sine_low, cosine_low)
    quotient, rest = e.divide_to_pair(top, top_low, bottom, bottom_low)
    value = ((quotient + rest).bits() ^ sign).as_float()
    return _finish(e, "tan", x, e.select(x.eq(0.0), x, value))
