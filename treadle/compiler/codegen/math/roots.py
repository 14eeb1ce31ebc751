"""Square root, its inverse, and the cube root."""

from __future__ import annotations

from treadle.compiler.codegen.math.build import DOUBLE, FLOAT, I32, Emitter, Value

INFINITY = float("inf")

# For y = a^(-1/3), bits(y) is about bits(1) * 4/3 - bits(a) / 3; the constants below are that,
# moved to balance the error of the estimate (3.4 %) on both sides.
_GUESS_F32 = 0x54A1F000
_GUESS_F64_HIGH = 0x553EE800  # of the upper 32 bits


def sqrt(e: Emitter, x: Value) -> Value:
    """The square root, correctly rounded."""
    return e.sqrt(x)


def rsqrt(e: Emitter, x: Value) -> Value:
    """1 / sqrt x; infinity of x's sign at zero."""
    return 1.0 / e.sqrt(x)


def cbrt(e: Emitter, x: Value) -> Value:
    """The cube root: y = |x|^(-1/3) without division, then |x| y^2.

    With h = 1 - a y^3, a^(-1/3) = y (1 - h)^(-1/3) = y (1 + h/3 + 2 h^2/9 + 14 h^3/81 + ...).
    """
    magnitude = e.abs(x)
    if x.element == FLOAT:
        small = magnitude.lt(2.0**-126)
        root = _cbrt_single(e, e.select(small, magnitude * 2.0**24, magnitude))
        root = e.select(small, root * 2.0**-8, root)
    else:
        # Away from both ends, so that the cube of the root neither over- nor underflows.
        small, large = magnitude.lt(2.0**-900), magnitude.gt(2.0**900)
        factor = e.select(small, e.const(DOUBLE, 2.0**180), 1.0)
        back = e.select(small, e.const(DOUBLE, 2.0**-60), 1.0)
        factor, back = e.select(large, 2.0**-180, factor), e.select(large, 2.0**60, back)
        root = _cbrt_double(e, magnitude * factor) * back
    root = e.select(magnitude.eq(INFINITY), magnitude, root)
    return e.copysign(root, x)


def _cbrt_single(e: Emitter, a: Value) -> Value:
    """Of a normal or zero f32: one step in f32, one in f64."""
    guess = e.fma(e.convert("sitofp", a.bits(), FLOAT), -1 / 3, float(_GUESS_F32))
    y = e.convert("fptosi", guess, I32).as_float()
    h = 1.0 - (a * y) * (y * y)
    y = e.fma(y, h * e.fma(h, 2 / 9, 1 / 3), y)
    wide, y = a.to_double(), y.to_double()
    root = wide * (y * y)
    h = e.fma(-root, y, 1.0)
    return e.fma(root * h, e.fma(h, 5 / 9, 2 / 3), root).to_single()


def _cbrt_double(e: Emitter, a: Value) -> Value:
    """Of a normal or zero f64: two steps, then Newton's on the cube for the last bits."""
    guess = e.fma(e.int_to_float(a.bits() >> 32), -1 / 3, float(_GUESS_F64_HIGH))
    y = (e.round_to_int(guess)[0] << 32).as_float()
    for _ in range(2):
        h = e.fma(-(a * y), y * y, 1.0)
        y = e.fma(y * h, e.polynomial(h, (1 / 3, 2 / 9, 14 / 81)), y)
    square = y * y
    root = a * square
    # root^3 - a, where root^2 is taken with its rounding error.
    high, low = e.two_product(root, root)
    cube, cube_low = e.two_product(high, root)
    excess = (cube - a) + e.fma(low, root, cube_low)
    return e.fma(excess * square, -1 / 3, root)
