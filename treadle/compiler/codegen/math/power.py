"""x^y = 2^(y log2 |x|), with IEEE 754's special cases.

The product can be as large as 1075 and its absolute error is the result's relative one, so the
logarithm needs some eleven bits more than the result. f32 takes them from f64. f64 carries the
logarithm and the product as pairs of a high and a low part.
"""

from __future__ import annotations

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, Emitter, Value
from treadle.compiler.codegen.math.exp import scale_by_power
from treadle.compiler.codegen.math.log import split

INFINITY = float("inf")
NAN = float("nan")

# High and low parts.
_TWO_OVER_LN2 = (2.8853900817779268, 4.0710547481862066e-17)
_TWO_THIRDS_OVER_LN2 = (0.9617966939259756, 5.0577616648125907e-17)
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)


def power(e: Emitter, x: Value, y: Value) -> Value:
    """x^y."""
    magnitude = e.abs(x)
    result = (_power_single if x.element == FLOAT else _power_double)(e, magnitude, y)
    # |x| = 1 and y = 0 give 1 even where the other operand is infinite or NaN; that -1 to the
    # power of NaN is NaN all the same is seen to below.
    result = e.select(magnitude.eq(1.0) | y.eq(0.0), 1.0, result)
    whole = e.rint(y).eq(y)
    half = y * 0.5
    odd = whole & e.rint(half).ne(half)
    result = e.select(odd, e.copysign(result, x), result)
    no_power = x.lt(0.0) & x.ne(-INFINITY) & (whole ^ 1)
    return e.select(no_power, NAN, result)


def _log2_ends(e: Emitter, x: Value, log2: Value) -> Value:
    """`log2`, but -inf at zero, and infinity and NaN as they are; x is not negative."""
    log2 = e.select(x.lt(INFINITY), log2, x)
    return e.select(x.eq(0.0), -INFINITY, log2)


def _power_single(e: Emitter, x: Value, y: Value) -> Value:
    """For x >= 0, in f64: no f32 is subnormal there, and no result overflows."""
    wide = x.to_double()
    k, mantissa = split(e, wide)
    f = mantissa - 1.0
    log2 = _log2_ends(e, wide, e.fma(f, e.polynomial(f, c.LOG2_F32), k))
    exponent = y.to_double() * log2
    exponent = e.at_least(e.at_most(exponent, 200.0), -200.0)
    n, whole = e.round_to_int(exponent)
    fraction = e.polynomial(exponent - whole, c.EXP2_F32)
    return (fraction.bits() + (n << 52)).as_float().to_single()


def _log2_pair(e: Emitter, x: Value) -> tuple[Value, Value]:
    """log2 of a positive finite f64 as a high and a low part.

    With s = (m - 1) / (m + 1): log2 m = s (K0 + K1 s^2 + s^4 (...)), K0 = 2/ln 2, K1 = K0/3;
    all but the last term in pairs.
    """
    subnormal = x.lt(2.0**-1022)
    k, m = split(e, e.select(subnormal, x * 2.0**54, x))
    k = e.select(subnormal, k - 54.0, k)
    f, g = m - 1.0, m + 1.0
    s = f / g
    product, error = e.two_product(s, g)
    residual = ((f - product) - error) - s * (m - (g - 1.0))
    s_low = residual * (1.0 / g.to_single()).to_double()
    z, z_error = e.two_product(s, s)
    z_low = e.fma(s + s, s_low, z_error)
    inner, inner_low = e.fast_two_sum(e.const(DOUBLE, _TWO_THIRDS_OVER_LN2[0]), z * e.polynomial(z, c.LOG2_F64))
    term, term_low = _multiply(e, inner, inner_low + _TWO_THIRDS_OVER_LN2[1], z, z_low)
    factor, factor_low = e.fast_two_sum(e.const(DOUBLE, _TWO_OVER_LN2[0]), term)
    log2, log2_low = _multiply(e, factor, factor_low + (term_low + _TWO_OVER_LN2[1]), s, s_low)
    high, low = e.fast_two_sum(k, log2)
    return high, low + log2_low


def _multiply(e: Emitter, a: Value, a_low: Value, b: Value, b_low: Value) -> tuple[Value, Value]:
    """The product of two pairs as a pair (not normalised)."""
    product, error = e.two_product(a, b)
    return product, e.fma(a, b_low, e.fma(a_low, b, error))


def _power_double(e: Emitter, x: Value, y: Value) -> Value:
    """For x >= 0."""
    high, low = _log2_pair(e, x)
    high = _log2_ends(e, x, high)
    exponent, error = e.two_product(y, high)
    rest = e.fma(y, low, error)
    # Beyond the range of results the rest may be NaN (inf - inf); it does not matter there.
    rest = e.select(e.abs(exponent).lt(1100.0), rest, 0.0)
    exponent = e.at_least(e.at_most(exponent, 1100.0), -1100.0)
    n, whole = e.round_to_int(exponent)
    # 2^(r + rest) = e^(t + t_low) = e^t + t_low e^t, and e^t = 1 + t + t^2 q(t)
    r = exponent - whole
    t, t_error = e.two_product(r, e.const(DOUBLE, _LN2[0]))
    t_low = e.fma(rest, _LN2[0], e.fma(r, _LN2[1], t_error))
    tail = t * t * e.polynomial(t, c.EXP_F64)
    high, lost = e.fast_two_sum(e.const(DOUBLE, 1.0), t)
    tail = e.fma(t_low, high + tail, tail)
    return scale_by_power(e, high + (lost + tail), n)
