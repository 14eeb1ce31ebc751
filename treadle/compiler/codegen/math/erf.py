"""The error function."""

from __future__ import annotations

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import FLOAT, Emitter, Value
from treadle.compiler.codegen.math.exp import rough_exponential


def erf(e: Emitter, x: Value) -> Value:
    """erf x. Near zero x + x p(x^2); then, up to where the result rounds to 1, 1 minus erfc x.

    f32 takes erfc x = e^-q(x), f64 e^(-x^2) q(x - 3); the rounding of x^2 only matters where e^(-x^2) is small.
    """
    magnitude = e.abs(x)
    if x.element == FLOAT:
        seam, square = 0.9375, x * x
        cut = e.at_most(magnitude, 3.95)
        small_fit: tuple[float, ...] = c.ERF_F32
        # Horner's last step is the only one whose rounding matters.
        exponent = e.fma(cut, e.polynomial(cut, c.LOG_ERFC_F32[1:]), c.LOG_ERFC_F32[0])
        large = 1.0 - rough_exponential(e, -exponent)
    else:
        seam, cut = 1.0, e.at_most(magnitude, 6.0)
        square = cut * cut
        small_fit = c.ERF_F64
        large = e.fma(-rough_exponential(e, -square), e.polynomial(cut - 3.0, c.ERFCX_F64), 1.0)
    small = e.fma(magnitude, e.polynomial(square, small_fit), magnitude)
    return e.copysign(e.select(magnitude.lt(seam), small, large), x)
