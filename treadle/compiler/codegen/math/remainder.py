"""The remainder of truncated division (C's fmod), exact.

x - q y with q = trunc(x / y) is a floating point number, so it is found exactly as long as q is;
the rounding of x / y can only have made q one too large, which a wrong sign shows. Quotients
with too many bits are left to libm, in a branch taken only when a lane has one.
"""

from __future__ import annotations

from treadle.compiler.codegen.math.build import FLOAT, Emitter, Value
from treadle.compiler.codegen.math.cold import per_lane

INFINITY = float("inf")


def remainder(e: Emitter, x: Value, y: Value) -> Value:
    """x - trunc(x / y) y, with the sign of x."""
    dividend, divisor = e.abs(x), e.abs(y)
    if x.element == FLOAT:
        # In f64, where q y is exact: 29 + 24 bits.
        a, b = dividend.to_double(), divisor.to_double()
        quotient = e.trunc(a / b)
        rest = a - quotient * b
        slow = quotient.ge(2.0**29)
    else:
        a, b = dividend, divisor
        quotient = e.trunc(a / b)
        if e.has_fma:
            rest = e.fma(-quotient, b, a)
            slow = quotient.ge(2.0**52)
        else:
            # Dekker's product is exact only away from the ends of the range.
            product, error = e.two_product(quotient, b)
            rest = (a - product) - error
            slow = quotient.ge(2.0**52) | a.gt(2.0**990) | b.gt(2.0**990) | b.lt(2.0**-900)
    rest = e.select(rest.lt(0.0), rest + b, rest)
    rest = rest.to_single() if x.element == FLOAT else rest
    # Here q is 0, but 0 times infinity is not.
    rest = e.select(divisor.eq(INFINITY) & dividend.lt(INFINITY), dividend, rest)
    return per_lane(e, slow, "fmod", [x, y], e.copysign(rest, x))
