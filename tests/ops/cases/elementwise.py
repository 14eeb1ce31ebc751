"""Element-by-element functions of floats, selection and clamping; special values, sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import lax

from tests.ops.harness import (
    BF16,
    DTYPES,
    F16,
    F32,
    F64,
    FLOATS,
    PRED,
    S32,
    SIGNED,
    Case,
    fixed,
    special_pairs,
    specials,
    values,
)

Function = Callable[..., Any]

SHAPE = (3, 43)

# (name, function, NumPy's function for special values, lower bound, upper bound, has a gradient)
UNARY_FLOAT: list[tuple[str, Function, Function | None, float, float, bool]] = [
    ("abs", lax.abs, np.abs, -4, 4, True),
    ("negate", lax.neg, np.negative, -4, 4, True),
    ("sign", lax.sign, np.sign, -4, 4, True),
    ("ceil", lax.ceil, np.ceil, -40, 40, True),
    ("floor", lax.floor, np.floor, -40, 40, True),
    ("round-afz", lax.round, lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), -40, 40, True),
    ("round-even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint, -40, 40, True),
    ("is-finite", lax.is_finite, np.isfinite, -4, 4, False),
    ("is-nan", jnp.isnan, np.isnan, -4, 4, False),
    ("sign-bit", jnp.signbit, np.signbit, -4, 4, False),
    ("square", lax.square, np.square, -10, 10, True),
    ("sqrt", lax.sqrt, np.sqrt, 0, 100, True),
    ("rsqrt", lax.rsqrt, lambda x: 1 / np.sqrt(x), 0.01, 100, True),
    ("cbrt", lax.cbrt, np.cbrt, -100, 100, True),
    ("reciprocal", lax.reciprocal, lambda x: 1 / x, 0.1, 20, True),
    ("exp", lax.exp, np.exp, -10, 10, True),
    ("exp2", lax.exp2, None, -10, 10, True),
    ("expm1", lax.expm1, np.expm1, -5, 5, True),
    ("log", lax.log, np.log, 0.01, 1000, True),
    ("log1p", lax.log1p, np.log1p, -0.9, 100, True),
    ("logistic", lax.logistic, scipy.special.expit, -12, 12, True),
    ("tanh", lax.tanh, np.tanh, -6, 6, True),
    ("sin", lax.sin, np.sin, -30, 30, True),
    ("cos", lax.cos, np.cos, -30, 30, True),
    ("tan", lax.tan, np.tan, -1.5, 1.5, True),
    ("asin", lax.asin, np.arcsin, -0.99, 0.99, True),
    ("acos", lax.acos, np.arccos, -0.99, 0.99, True),
    ("atan", lax.atan, np.arctan, -10, 10, True),
    ("sinh", lax.sinh, np.sinh, -5, 5, True),
    ("cosh", lax.cosh, np.cosh, -5, 5, True),
    ("asinh", lax.asinh, np.arcsinh, -50, 50, True),
    ("acosh", lax.acosh, np.arccosh, 1.1, 50, True),
    ("atanh", lax.atanh, np.arctanh, -0.95, 0.95, True),
    ("erf", lax.erf, scipy.special.erf, -4, 4, True),
    ("erfc", lax.erfc, scipy.special.erfc, -3, 5, True),
    ("erf-inv", lax.erf_inv, scipy.special.erfinv, -0.99, 0.99, True),
    ("lgamma", lax.lgamma, None, 0.1, 20, True),
    ("digamma", lax.digamma, None, 0.5, 20, True),
    ("relu", jax.nn.relu, lambda x: np.maximum(x, 0), -4, 4, True),
    ("gelu", jax.nn.gelu, None, -4, 4, True),
    ("silu", jax.nn.silu, None, -4, 4, True),
    ("softplus", jax.nn.softplus, None, -8, 8, True),
    ("elu", jax.nn.elu, None, -4, 4, True),
    ("trunc", jnp.trunc, np.trunc, -40, 40, False),
    ("deg2rad", jnp.deg2rad, np.deg2rad, -400, 400, True),
    ("sinc", jnp.sinc, None, 0.3, 4, True),
    ("nan-to-num", jnp.nan_to_num, None, -4, 4, True),
    ("frexp", jnp.frexp, None, -40, 40, False),
]

# Functions whose composition amplifies rounding, so that two good implementations differ by more than the table's
# tolerance: near a zero of the function, or where a large intermediate result cancels.
LOOSE = {
    "tan": 4,
    "digamma": 40,
    "lgamma": 40,
    "asinh": 8,
    "acosh": 8,
    "atanh": 8,
    "erfc": 40,
    "erf-inv": 8,
    "sinc": 8,
    "acos": 4,
    "asin": 4,
    "erf": 2,
    "sinh": 4,
    "softplus": 4,
}


def wider(function: Function) -> Function:
    """The function computed by NumPy in the next wider type and rounded once."""

    def oracle(*arguments: Any) -> Any:
        dtype = arguments[0].dtype
        wide = np.longdouble if dtype == F64 else np.float64
        with np.errstate(all="ignore"):
            result = np.asarray(function(*(argument.astype(wide) for argument in arguments)))
            return result if result.dtype == PRED else result.astype(dtype)

    return oracle


def tolerance_of(name: str, dtype: Any) -> float | None:
    """The row's tolerance, if it is not the table's."""
    base = {F64: 1e-13, F32: 4e-6, BF16: 1.6e-2, F16: 2e-3}[np.dtype(dtype)]
    return base * LOOSE[name] if name in LOOSE and np.dtype(dtype) in (F32, F64) else None


def unary() -> Iterator[Case]:
    """Each function at random values in its domain, then at special values."""
    for name, function, oracle, low, high, differentiable in UNARY_FLOAT:
        for dtype in FLOATS:
            tolerance = tolerance_of(name, dtype)
            yield Case(
                f"{name}-{dtype}",
                function,
                values((dtype, SHAPE, low, high)),
                grad=(0,) if differentiable else (),
                accumulated=name == "gelu",  # far below zero it is a difference of nearly equal numbers
                tolerance=tolerance,
                eager=dtype == F32,
                quick=dtype == F32,
            )
            if oracle is not None and not (
                dtype == F64 and oracle in (scipy.special.erf, scipy.special.erfc, scipy.special.erfinv)
            ):
                yield Case(
                    f"{name}-{dtype}-special",
                    function,
                    fixed(specials(dtype)),
                    expected=wider(oracle),
                    tolerance=tolerance,
                    # 1/sqrt and the like of NumPy give the sign of a NaN or of zero freely; these must be exact.
                    zero_signs=name
                    in (
                        "abs",
                        "negate",
                        "ceil",
                        "floor",
                        "sqrt",
                        "tanh",
                        "sin",
                        "cbrt",
                        "round-even",
                        "expm1",
                        "log1p",
                    ),
                    eager=False,
                )


BINARY_FLOAT: list[tuple[str, Function, Function, bool]] = [
    ("add", lax.add, np.add, True),
    ("subtract", lax.sub, np.subtract, True),
    ("multiply", lax.mul, np.multiply, True),
    ("divide", lax.div, np.divide, True),
    ("maximum", lax.max, np.maximum, True),
    ("minimum", lax.min, np.minimum, True),
    ("power", lax.pow, np.power, True),
    ("remainder", lax.rem, np.fmod, True),
    ("atan2", lax.atan2, np.arctan2, True),
]

BINARY_JNP: list[tuple[str, Function]] = [
    ("hypot", jnp.hypot),
    ("logaddexp", jnp.logaddexp),
    ("float-power", jnp.float_power),
    ("floor-divide", jnp.floor_divide),
    ("mod", jnp.mod),
    ("copysign", jnp.copysign),
    ("xlogy", jax.scipy.special.xlogy),
    ("heaviside", jnp.heaviside),
]


def next_after(x: Any, y: Any) -> Any:
    """NumPy's nextafter, which may well reach infinity."""
    with np.errstate(over="ignore"):
        return np.nextafter(x, y)


def binary() -> Iterator[Case]:
    """Each function at random values, then at every pair of special values."""
    for name, function, oracle, _ in BINARY_FLOAT:
        for dtype in FLOATS:
            # A base below zero has no real power; the derivative of a remainder jumps.
            low = 0.1 if name == "power" else -4
            yield Case(
                f"{name}-{dtype}",
                function,
                values((dtype, SHAPE, low, 4), (dtype, SHAPE, 0.3 if name in ("divide", "remainder") else -4, 4)),
                grad=(0, 1),
                tolerance=4 * {F64: 1e-13, F32: 4e-6}[dtype] if name == "power" and dtype in (F32, F64) else None,
                eager=dtype == F32,
                quick=dtype == F32,
            )
            yield Case(
                f"{name}-{dtype}-special",
                function,
                fixed(*special_pairs(dtype)),
                expected=wider(oracle),
                zero_signs=name in ("add", "subtract", "multiply", "divide", "atan2"),
                eager=False,
            )
    for name, function in BINARY_JNP:
        yield Case(name, function, values((F32, SHAPE, 0.1, 4), (F32, SHAPE, 0.2, 4)), quick=True)
    yield Case("nextafter", lax.nextafter, fixed(*special_pairs(F32)), expected=next_after, zero_signs=True)
    yield Case(
        "power-of-float-and-integer",
        lax.pow,
        values((F32, SHAPE, -3, 3), (S32, SHAPE, -4, 4)),
        grad=(0,),
    )
    yield Case(
        "integer-pow",
        lambda x: tuple(x**n for n in (0, 1, 2, 3, 4, 7, -1, -2)),
        values((F32, SHAPE, 0.2, 3)),
        grad=(0,),
    )
    yield Case(
        "square-root-of-sum",
        lambda x, y: jnp.sqrt(x * x + y * y),
        values((F32, SHAPE), (F32, SHAPE)),
        grad=(0, 1),
        quick=True,
    )


def sizes() -> Iterator[Case]:
    """Scalars, empty, odd, vector-length and large shapes, for a chain of operations that fuses."""

    def chain(x: Any, y: Any) -> tuple[Any, ...]:
        z = jnp.exp(-x * x) + jnp.where(y > 0, y, 0.5 * x)
        return z, z * 2 > y, (z * 8).astype(jnp.int32)

    for shape in (
        (),
        (0,),
        (1,),
        (3,),
        (7,),
        (8,),
        (15,),
        (16,),
        (17,),
        (31,),
        (33,),
        (1000,),
        (1025,),
        (4, 0, 3),
        (2, 3, 5, 7),
        (1, 1, 1),
        (300, 1111),
    ):
        name = "x".join(map(str, shape)) or "scalar"
        yield Case(
            f"size-{name}",
            chain,
            values((F32, shape), (F32, shape)),
            grad=(0, 1),
            accumulated=True,  # the sum of the chain crosses zero
            quick=True,
        )
    for dtype in DTYPES:
        yield Case(
            f"size-1025-{dtype}",
            lambda x, y: (x + y, x * y) if x.dtype != bool else (x | y, x & y),
            values((dtype, (1025,)), (dtype, (1025,))),
            eager=False,
        )


def ternary() -> Iterator[Case]:
    """select and clamp."""
    for dtype in DTYPES:
        yield Case(
            f"select-{dtype}",
            lax.select,
            values((PRED, SHAPE), (dtype, SHAPE), (dtype, SHAPE)),
            grad=(1, 2) if dtype in FLOATS else (),
            eager=False,
            quick=True,
        )
        if dtype == PRED:
            continue
        low, high = (
            (np.asarray(-1).astype(dtype), np.asarray(1).astype(dtype))
            if dtype in (*FLOATS, *SIGNED)
            else (np.asarray(3, dtype), np.asarray(90, dtype))
        )
        yield Case(f"clamp-{dtype}", lax.clamp, fixed(low, specials(dtype), high), eager=False, quick=True)
        yield Case(
            f"clamp-full-{dtype}", lax.clamp, values((dtype, SHAPE), (dtype, SHAPE), (dtype, SHAPE)), eager=False
        )
    yield Case(
        "select-scalar-predicate",
        lax.select,
        values((PRED, ()), (F32, SHAPE), (F32, SHAPE)),
        grad=(1, 2),
    )
    yield Case(
        "select-n",
        lax.select_n,
        values((S32, SHAPE, 0, 3), *[(F32, SHAPE)] * 4),
        grad=(1, 2, 3, 4),
    )
    yield Case("clamp-gradient", lax.clamp, values((F32, (), -1, -0.5), (F32, SHAPE), (F32, (), 0.5, 1)), grad=(1,))
    yield Case("clip", lambda x: jnp.clip(x, -1, 1), values((F32, SHAPE)), grad=(0,))
    yield Case(
        "where-broadcast",
        lambda p, x: jnp.where(p[:, None], x, 1.0),
        values((PRED, (3,)), (F32, SHAPE)),
        grad=(1,),
        quick=True,
    )
    yield Case(
        "weak-types",
        lambda x, n: (x + 1, x * 2.5, n + 1, n * 2.5, n // 2, x > 0),
        values((F32, SHAPE), (S32, SHAPE, -99, 99)),
        quick=True,
    )
    yield Case(
        "mixed-dtypes",
        lambda a, b, c: (a + b, b * c, a - c),
        values((F32, SHAPE), (BF16, SHAPE), (S32, SHAPE, -9, 9)),
        quick=True,
    )


CASES = [*unary(), *binary(), *sizes(), *ternary()]
