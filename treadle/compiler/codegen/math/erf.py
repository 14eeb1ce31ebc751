"""The error function."""

from __future__ import annotations

from treadle.compiler.codegen.math import coefficients as c
from treadle.compiler.codegen.math.build import FLOAT, Emitter, Value
from treadle.compiler.codegen.math.exp import exponential


def erf(e: Emitter, x: Value) -> Value:
    """erf x. f32: x p(x^2 - 8) in f64 on all of |x| < 4, beyond which it rounds to 1.

    f64: x + x p(x^2) for |x| < 1, else 1 - e^(-x^2) q(x - 3) up to 6; the rounding of x^2 only
    matters where e^(-x^2) is small.
    """
    magnitude = e.abs(x)
    if x.element == FLOAT:
        cut = e.at_most(magnitude, 4.0).to_double()
        value = cut * e.polynomial(e.fma(cut, cut, -8.0), c.ERF_F32)
        return e.copysign(value.to_single(), x)
    cut = e.at_most(magnitude, 6.0)
    square = cut * cut
    small = e.fma(magnitude, e.polynomial(square, c.ERF_F64), magnitude)
    large = e.fma(-exponential(e, -square), e.polynomial(cut - 3.0, c.ERFCX_F64), 1.0)
    return e.copysign(e.select(magnitude.lt(1.0), small, large), x)
