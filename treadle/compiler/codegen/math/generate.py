"""Makes the polynomial coefficients in coefficients.py: `python -m treadle.compiler.codegen.math.generate`.

Each row of `_fits` names a function, the interval, the degree and the weight of the error; the
coefficients are the weighted minimax ones, found by Remez's second algorithm on a dense grid in
60-digit decimal arithmetic (nothing but the standard library), then rounded to the working type.
The development environment needs this file only when a fit changes; a test runs it again and
compares.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext

Function = Callable[[Decimal], Decimal]

PRECISION = 60
ONE = Decimal(1)
HALF = Decimal("0.5")


# ---- functions in decimal arithmetic (power series; the arguments are small)


@functools.lru_cache(maxsize=1)
def pi() -> Decimal:
    """By Machin's formula."""
    return 4 * (4 * atan(ONE / 5) - atan(ONE / 239))


def _series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """first * (1 + ratio(1) + ratio(1) ratio(2) + ...)."""
    total = term = first
    k = 1
    while term != 0 and total + term != total:
        term = term * ratio(k)
        total += term
        k += 1
    return total


def sin(x: Decimal) -> Decimal:
    """By the power series."""
    return _series(x, lambda k: -x * x / ((2 * k) * (2 * k + 1)))


def cos(x: Decimal) -> Decimal:
    """By the power series."""
    return _series(ONE, lambda k: -x * x / ((2 * k - 1) * (2 * k)))


def atan(x: Decimal) -> Decimal:
    """Halves the angle twice, then sums the series."""
    for _ in range(2):
        x = x / (1 + (1 + x * x).sqrt())
    return 4 * _series(x, lambda k: -x * x * (2 * k - 1) / (2 * k + 1))


def erf(x: Decimal) -> Decimal:
    """2/sqrt(pi) e^(-x^2) x (1 + 2x^2/3 + ...): all terms positive, nothing cancels."""
    total = _series(x, lambda k: 2 * x * x / (2 * k + 1))
    return 2 / pi().sqrt() * (-x * x).exp() * total


def log1p(x: Decimal) -> Decimal:
    """ln(1 + x)."""
    return (1 + x).ln()


# ---- Remez


def _solve(matrix: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """Gaussian elimination with partial pivoting."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(n):
        pivot = max(range(column, n), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(column + 1, n):
            factor = rows[i][column] / rows[column][column]
            for j in range(column, n + 1):
                rows[i][j] -= factor * rows[column][j]
    solution = [Decimal(0)] * n
    for i in reversed(range(n)):
        known = sum((rows[i][j] * solution[j] for j in range(i + 1, n)), Decimal(0))
        solution[i] = (rows[i][n] - known) / rows[i][i]
    return solution


def evaluate(coefficients: Sequence[Decimal], x: Decimal) -> Decimal:
    """The polynomial's value, by Horner's rule."""
    result = Decimal(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def remez(f: Function, low: Decimal, high: Decimal, degree: int, weight: Function) -> tuple[list[Decimal], Decimal]:
    """Coefficients p of `degree` that minimise max |(p - f) * weight|, and that maximum."""
    count = degree + 2
    size = 24 * count
    middle, radius = (low + high) / 2, (high - low) / 2
    grid = [middle - radius * cos(pi() * (2 * i + 1) / (2 * size)) for i in range(size)]
    grid = [x for x in grid if weight(x) != 0]
    values = [f(x) for x in grid]
    weights = [weight(x) for x in grid]
    reference = [round(i * (len(grid) - 1) / (count - 1)) for i in range(count)]
    coefficients: list[Decimal] = []
    worst = Decimal(0)
    for _ in range(40):
        matrix = []
        for sign, i in enumerate(reference):
            powers = [grid[i] ** j if j else ONE for j in range(degree + 1)]
            matrix.append([*powers, (-1) ** sign / weights[i]])
        *coefficients, level = _solve(matrix, [values[i] for i in reference])
        errors = [(evaluate(coefficients, x) - v) * w for x, v, w in zip(grid, values, weights, strict=True)]
        worst = max(abs(e) for e in errors)
        if worst <= abs(level) * Decimal("1.001"):
            break
        reference = _alternation(errors, count, reference)
    return coefficients, worst


def _alternation(errors: list[Decimal], count: int, previous: list[int]) -> list[int]:
    """The largest error of every run of one sign, thinned to `count` points."""
    extrema: list[int] = []
    for i, error in enumerate(errors):
        if extrema and (errors[extrema[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > count:
        extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
    return extrema if len(extrema) == count else previous


# ---- the fits


@dataclasses.dataclass(frozen=True)
class Fit:
    """One polynomial: `function` on [low, high], error measured times `weight`."""

    name: str
    function: Function
    low: Decimal
    high: Decimal
    degree: int
    weight: Function
    double: bool


def _fits() -> list[Fit]:
    """Every polynomial of this package. The docstrings of its users say how each one is used."""
    half_ln2 = Decimal(2).ln() / 2 * Decimal("1.0001")
    root = Decimal(2).sqrt()

    def exp_tail(r: Decimal) -> Decimal:
        return (r.exp() - 1 - r) / (r * r)

    def exp_weight(r: Decimal) -> Decimal:
        return r * r / r.exp()

    def expm1_weight(r: Decimal) -> Decimal:
        return r * r / (r.exp() - 1)

    def log_tail(f: Decimal) -> Decimal:
        return (log1p(f) - f + f * f / 2) / f**3

    def log_weight(f: Decimal) -> Decimal:
        return f**3 / log1p(f)

    def atanh_tail(z: Decimal) -> Decimal:
        s = z.sqrt()
        return (((1 + s) / (1 - s)).ln() / s - 2) / z

    def sin_tail(z: Decimal) -> Decimal:
        x = z.sqrt()
        return (sin(x) / x - 1) / z

    def sin_weight(z: Decimal) -> Decimal:
        return z * z.sqrt() / sin(z.sqrt())

    def cos_tail(z: Decimal) -> Decimal:
        return (cos(z.sqrt()) - 1 + z / 2) / z**2

    def cos_weight(z: Decimal) -> Decimal:
        return z**2 / cos(z.sqrt())

    def tanh_tail(z: Decimal) -> Decimal:
        x = z.sqrt()
        t = (2 * x).exp() - 1
        return (t / (t + 2) / x - 1) / z

    def tanh_weight(z: Decimal) -> Decimal:
        return z

    def log2_ratio(f: Decimal) -> Decimal:
        return log1p(f) / f / ln2

    def log2_weight(f: Decimal) -> Decimal:
        return f * ln2 / log1p(f)

    def log2_tail(z: Decimal) -> Decimal:
        s = z.sqrt()
        return (((1 + s) / (1 - s)).ln() / s / ln2 - 2 / ln2 - 2 / (3 * ln2) * z) / z**2

    def exp2(r: Decimal) -> Decimal:
        return (r * ln2).exp()

    def atan_ratio(z: Decimal) -> Decimal:
        return atan(z.sqrt()) / z.sqrt()

    def atan_tail(z: Decimal) -> Decimal:
        return (atan_ratio(z) - 1) / z

    def erf_ratio(z: Decimal) -> Decimal:
        return erf(z.sqrt()) / z.sqrt()

    def erf_excess(z: Decimal) -> Decimal:
        return erf_ratio(z) - 1

    def minus_log_erfc(x: Decimal) -> Decimal:
        return -(1 - erf(x)).ln()

    def shifted_erfcx(u: Decimal) -> Decimal:
        x = u + 3
        return (x * x).exp() * (1 - erf(x))

    def shifted_erfcx_weight(u: Decimal) -> Decimal:
        x = u + 3
        return (-x * x).exp()

    ln2 = Decimal(2).ln()
    erf_seam = Decimal("0.9375")
    quarter = (pi() / 4) ** 2 * Decimal("1.0001")
    tanh_high = Decimal("0.625") ** 2
    log_low, log_high = root / 2 - 1, root - 1
    z_high = (log_high / (2 + log_high)) ** 2 * Decimal("1.0001")
    z_low = Decimal("1e-12")
    tangent = log_high**2 * Decimal("1.0001")  # tan(pi/8) is sqrt(2) - 1
    return [
        Fit("EXP_F32", exp_tail, -half_ln2, half_ln2, 4, exp_weight, False),
        Fit("EXPM1_F32", exp_tail, -half_ln2, half_ln2, 5, expm1_weight, False),
        Fit("LOG_F32", log_tail, log_low, log_high, 7, log_weight, False),
        Fit("EXP_F64", exp_tail, -half_ln2, half_ln2, 9, exp_weight, True),
        Fit("EXPM1_F64", exp_tail, -half_ln2, half_ln2, 10, expm1_weight, True),
        Fit("LOG_F64", atanh_tail, z_low, z_high, 6, lambda z: z, True),
        # The trigonometric functions of f32 are computed in f64.
        Fit("SIN_F32", sin_tail, z_low, quarter, 2, sin_weight, True),
        Fit("COS_F32", cos_tail, z_low, quarter, 2, cos_weight, True),
        Fit("SIN_F64", sin_tail, z_low, quarter, 5, sin_weight, True),
        Fit("COS_F64", cos_tail, z_low, quarter, 5, cos_weight, True),
        Fit("TANH_F32", tanh_tail, z_low, tanh_high, 4, tanh_weight, False),
        Fit("TANH_F64", tanh_tail, z_low, tanh_high, 10, tanh_weight, True),
        # pow: f32 in f64; f64 with a pair of numbers for everything but these terms.
        Fit("LOG2_F32", log2_ratio, log_low, log_high, 12, log2_weight, True),
        Fit("EXP2_F32", exp2, -HALF, HALF, 6, lambda r: 1 / exp2(r), True),
        Fit("LOG2_F64", log2_tail, z_low, z_high, 6, lambda z: z**2, True),
        # atan2: f32 in f64.
        Fit("ATAN_F32", atan_ratio, z_low, ONE, 10, lambda z: 1 / atan_ratio(z), True),
        Fit("ATAN_F64", atan_tail, z_low, tangent, 10, lambda z: z / atan_ratio(z), True),
        Fit("ERF_F32", erf_excess, z_low, erf_seam**2, 6, lambda z: 1 / erf_ratio(z), False),
        Fit("LOG_ERFC_F32", minus_log_erfc, erf_seam, Decimal("3.95"), 6, lambda x: 1 - erf(x), False),
        Fit("ERF_F64", erf_excess, z_low, ONE, 11, lambda z: 1 / erf_ratio(z), True),
        Fit("ERFCX_F64", shifted_erfcx, -2 * ONE, 3 * ONE, 21, shifted_erfcx_weight, True),
    ]


def _round(value: Decimal, double: bool) -> float:
    number = float(value)
    return number if double else float(struct.unpack("<f", struct.pack("<f", number))[0])


def _render(fit: Fit) -> str:
    coefficients, worst = remez(fit.function, fit.low, fit.high, fit.degree, fit.weight)
    exponent = float(worst.ln() / Decimal(2).ln())
    rows = "".join(f"    {_round(c, fit.double)!r},\n" for c in coefficients)
    return f"# largest weighted error 2^{exponent:.1f}\n{fit.name} = (\n{rows})\n"


def render() -> str:
    """The text of coefficients.py."""
    with localcontext() as context:
        context.prec = PRECISION
        head = '"""Minimax coefficients, constant term first. Written by generate.py; do not edit."""\n'
        return "\n".join([head, *(_render(fit) for fit in _fits())])


if __name__ == "__main__":
    pathlib.Path(__file__).with_name("coefficients.py").write_text(render())
