"""Scalar arithmetic of StableHLO, as NumPy on whole arrays.

The rules are those of jaxlib's CPU backend, measured, except that subnormals are kept (jaxlib flushes them):
- integers wrap; x/0 is all ones; MIN/-1 is MIN; x%0 is x; a shift by the width or more gives zeros (or the sign);
- floats narrower than 32 bits are computed in f32 and rounded to nearest even after every op;
- `maximum` and `minimum` hand on NaN and put -0 before +0;
- a float becomes an integer by cutting off, saturating, NaN -> 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from treadle.compiler.ir.types import DType, Kind, from_numpy
from treadle.compiler.ops.registry import Array

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)


def kind_of(x: Array) -> Kind:
    """The arithmetic family of an array's elements."""
    return from_numpy(x.dtype).kind


def is_float(x: Array) -> bool:
    """True for every floating-point type, ml_dtypes' included."""
    return kind_of(x) is Kind.FLOAT


def widen(x: Array) -> Array:
    """A float array in the type its arithmetic is done in: f32, or f64 for f64. Other arrays stay as they are."""
    return x.astype(_SINGLE) if is_float(x) and x.dtype.itemsize < 4 else x


def in_arithmetic(f: Callable[..., Array], *xs: Array) -> Array:
    """`f` of floats in their arithmetic type, rounded back; of other types directly."""
    return np.asarray(f(*(widen(x) for x in xs))).astype(xs[0].dtype, copy=False)


def in_double(f: Callable[..., Array], *xs: Array) -> Array:
    """`f` in double precision, rounded back: what transcendental functions are compared with."""
    return np.asarray(f(*(np.asarray(x, _DOUBLE) for x in xs))).astype(xs[0].dtype, copy=False)


def unsigned(x: Array) -> Array:
    """The same bits as unsigned integers."""
    return np.asarray(x).view(np.dtype(f"u{x.dtype.itemsize}"))


def signed(x: Array) -> Array:
    """The same bits as signed integers."""
    return np.asarray(x).view(np.dtype(f"i{x.dtype.itemsize}"))


def divide(x: Array, y: Array) -> Array:
    """Quotient, towards zero for integers."""
    if is_float(x):
        return in_arithmetic(np.divide, x, y)
    zero = y == 0
    if kind_of(x) is Kind.UNSIGNED:
        return np.where(zero, np.iinfo(x.dtype).max, x // np.where(zero, 1, y).astype(y.dtype)).astype(x.dtype)
    minus_one = y == -1
    safe = np.where(zero | minus_one, 1, y).astype(y.dtype)
    floor = x // safe
    rest = x - floor * safe
    quotient = floor + ((rest != 0) & ((x < 0) != (safe < 0)))
    return np.where(zero, -1, np.where(minus_one, np.negative(x), quotient)).astype(x.dtype)


def remainder(x: Array, y: Array) -> Array:
    """What `divide` leaves: it has the sign of `x`."""
    if is_float(x):
        return in_arithmetic(np.fmod, x, y)
    trivial = y == 0
    if kind_of(x) is Kind.SIGNED:
        trivial = trivial | (y == -1)
    rest = np.fmod(x, np.where(trivial, 1, y).astype(y.dtype))
    return np.where(y == 0, x, rest).astype(x.dtype)


def maximum(x: Array, y: Array) -> Array:
    """The larger one; NaN if either is; +0 above -0."""
    if not is_float(x):
        return np.maximum(x, y)
    a, b = widen(x), widen(y)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, a + b, np.maximum(a, b)).astype(x.dtype)


def minimum(x: Array, y: Array) -> Array:
    """The smaller one; NaN if either is; -0 below +0."""
    if not is_float(x):
        return np.minimum(x, y)
    a, b = widen(x), widen(y)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.negative(np.negative(a) + np.negative(b)), np.minimum(a, b)).astype(x.dtype)


def sign(x: Array) -> Array:
    """-1, 0 or 1; floats keep NaN and the sign of zero."""
    if not is_float(x):
        return np.sign(x)
    a = widen(x)
    return np.where((a == 0) | np.isnan(a), a, np.copysign(np.ones_like(a), a)).astype(x.dtype)


def round_half_away(x: Array) -> Array:
    """The nearest integer, halves away from zero."""
    whole = np.trunc(x)
    up = np.abs(x - whole) >= 0.5
    return np.copysign(np.where(up, whole + np.copysign(np.ones_like(x), x), whole), x)


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + np.exp(-x))


def power(x: Array, y: Array) -> Array:
    """x to the y; integers wrap, and a negative exponent gives 1 / x**-y cut to an integer (0 for x = 0)."""
    if is_float(x):
        return in_double(np.power, x, y)
    result = np.ones(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    base = x
    exponent = unsigned(y)
    for bit in range(8 * x.dtype.itemsize):
        odd = (exponent >> exponent.dtype.type(bit)) & exponent.dtype.type(1)
        result = np.where(odd != 0, result * base, result)
        base = base * base
    if kind_of(x) is Kind.SIGNED:
        odd = (y & 1) != 0
        inverse = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0))
        result = np.where(y < 0, inverse, result)
    return result.astype(x.dtype)


def shift_left(x: Array, y: Array) -> Array:
    """Bits moved up by `y`, read as unsigned; zeros from the width on."""
    width = 8 * x.dtype.itemsize
    by = unsigned(y)
    moved = unsigned(x) << np.where(by < width, by, 0).astype(by.dtype)
    return np.where(by < width, moved, 0).astype(by.dtype).view(x.dtype)


def shift_right_logical(x: Array, y: Array) -> Array:
    """Bits moved down by `y`, read as unsigned; zeros from the width on."""
    width = 8 * x.dtype.itemsize
    by = unsigned(y)
    moved = unsigned(x) >> np.where(by < width, by, 0).astype(by.dtype)
    return np.where(by < width, moved, 0).astype(by.dtype).view(x.dtype)


def shift_right_arithmetic(x: Array, y: Array) -> Array:
    """Bits moved down by `y`, read as unsigned, filling with the top bit."""
    last = 8 * x.dtype.itemsize - 1
    by = signed(np.minimum(unsigned(y), last))
    return (signed(x) >> by).view(x.dtype)


def count_leading_zeros(x: Array) -> Array:
    """Zero bits above the highest one bit."""
    width = 8 * x.dtype.itemsize
    rest = unsigned(x)
    one = rest.dtype.type(1)
    count = np.zeros_like(rest)
    step = width // 2
    while step:
        high_clear = rest < (one << rest.dtype.type(width - step))
        count = np.where(high_clear, count + rest.dtype.type(step), count)
        rest = np.where(high_clear, rest << rest.dtype.type(step), rest)
        step //= 2
    top_clear = rest < (one << rest.dtype.type(width - 1))
    return np.asarray(count + top_clear.astype(count.dtype)).view(x.dtype)


def total_order(x: Array) -> Array:
    """Integers that compare as the floats do in IEEE 754's total order: -NaN < -inf < ... < -0 < +0 < ... < NaN."""
    bits = signed(x)
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def convert(x: Array, to: DType) -> Array:
    """`x` as `to`: integers wrap, floats are rounded to nearest even, floats to integers saturate, NaN -> 0."""
    kind = kind_of(x)
    if kind is Kind.COMPLEX and to.kind is not Kind.COMPLEX:
        x = x.real
        kind = Kind.FLOAT
    if to.kind is Kind.PRED:
        return np.asarray(x != 0)
    if kind is Kind.FLOAT and to.is_integer:
        return _saturate(x, to)
    if to.kind is Kind.FLOAT and to.bits < 32:
        # Through f32, as XLA does: integers and doubles are rounded twice.
        x = x.astype(_DOUBLE) if x.dtype == _DOUBLE and to.name == "f16" else x.astype(_SINGLE)
    return x.astype(to.numpy)


def _saturate(x: Array, to: DType) -> Array:
    """Float to integer. Done in f64, where every bound of an integer type is exact or rounds up to one past it."""
    wide = np.trunc(np.nan_to_num(x.astype(_DOUBLE), nan=0.0, posinf=np.inf, neginf=-np.inf))
    low = -(2 ** (to.bits - 1)) if to.is_signed else 0
    high = 2 ** (to.bits - 1) - 1 if to.is_signed else 2**to.bits - 1
    above = wide >= float(high) if to.bits < 64 else wide >= float(high + 1)
    below = wide <= float(low)
    inside = np.where(above | below, 0.0, wide).astype(np.int64 if to.is_signed else np.uint64)
    return np.where(above, high, np.where(below, low, inside)).astype(to.numpy)


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """`x` as if stored with so many bits: to nearest even, overflow to infinity, underflow to zero."""
    formats = {2: (5, 10), 4: (8, 23), 8: (11, 52)}
    own_exponent, own_mantissa = formats[x.dtype.itemsize]
    if x.dtype.name == "bfloat16":
        own_exponent, own_mantissa = 8, 7
    bits = unsigned(x)
    integer = bits.dtype.type
    if mantissa_bits < own_mantissa:
        drop = own_mantissa - mantissa_bits
        last_kept = (bits >> integer(drop)) & integer(1)
        bits = bits + (integer((1 << (drop - 1)) - 1) + last_kept).astype(bits.dtype)
        bits = bits & integer(~((1 << drop) - 1) & (2 ** (8 * x.dtype.itemsize) - 1))
    if exponent_bits < own_exponent:
        sign_bit = bits & integer(1 << (8 * x.dtype.itemsize - 1))
        exponent = (bits >> integer(own_mantissa)) & integer((1 << own_exponent) - 1)
        bias, new_bias = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        infinity = integer(((1 << own_exponent) - 1) << own_mantissa)
        bits = np.where(exponent > bias + new_bias, sign_bit | infinity, bits)
        bits = np.where(exponent <= bias - new_bias, sign_bit, bits)
    rounded = bits.astype(unsigned(x).dtype).view(x.dtype)
    return np.where(np.isnan(widen(x)), x, rounded)
