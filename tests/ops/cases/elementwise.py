"""Unary, binary and ternary element-by-element functions: every dtype, special values, sizes."""

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
    INTEGERS,
    PRED,
    S32,
    SIGNED,
    U32,
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
    ("round-afz", lambda x: lax.round(x), lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), -40, 40, True),
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
    ("frexp", lambda x: jnp.frexp(x), None, -40, 40, False),
]

# Functions whose composition amplifies rounding, so that two good implementations differ by more than the table's tolerance:
# near a zero of the function, or where a large intermediate result cancels.
LOOSE = {"tan": 4, "digamma": 40, "lgamma": 40, "asinh": 8, "acosh": 8, "atanh": 8, "erfc": 40, "erf-inv": 8, "sinc": 8,
         "acos": 4, "asin": 4, "erf": 2, "sinh": 4, "softplus": 4}  # fmt: skip


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
            if oracle is not None and not (dtype == F64 and oracle in (scipy.special.erf, scipy.special.erfc, scipy.special.erfinv)):
                yield Case(
                    f"{name}-{dtype}-special",
                    function,
                    fixed(specials(dtype)),
                    expected=wider(oracle),
                    tolerance=tolerance,
                    # 1/sqrt and the like of NumPy give the sign of a NaN or of zero freely; these must be exact.
                    zero_signs=name in ("abs", "negate", "ceil", "floor", "sqrt", "tanh", "sin", "cbrt", "round-even", "expm1", "log1p"),
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
    yield Case("nextafter", lax.nextafter, fixed(*special_pairs(F32)), expected=np.nextafter, zero_signs=True)
    yield Case(
        "power-of-float-and-integer", lambda x, n: lax.pow(x, n), values((F32, SHAPE, -3, 3), (S32, SHAPE, -4, 4)), grad=(0,)
    )
    yield Case("integer-pow", lambda x: tuple(x**n for n in (0, 1, 2, 3, 4, 7, -1, -2)), values((F32, SHAPE, 0.2, 3)), grad=(0,))
    yield Case("square-root-of-sum", lambda x, y: jnp.sqrt(x * x + y * y), values((F32, SHAPE), (F32, SHAPE)), grad=(0, 1), quick=True)


BINARY_INTEGER: list[tuple[str, Function]] = [
    ("add", lax.add),
    ("subtract", lax.sub),
    ("multiply", lax.mul),
    ("maximum", lax.max),
    ("minimum", lax.min),
    ("and", lax.bitwise_and),
    ("or", lax.bitwise_or),
    ("xor", lax.bitwise_xor),
    ("divide", lax.div),
    ("remainder", lax.rem),
    ("floor-divide", jnp.floor_divide),
    ("mod", jnp.mod),
]

SHIFTS: list[tuple[str, Function]] = [
    ("shift-left", lax.shift_left),
    ("shift-right-logical", lax.shift_right_logical),
    ("shift-right-arithmetic", lax.shift_right_arithmetic),
]

UNARY_INTEGER: list[tuple[str, Function]] = [
    ("abs", jnp.abs),
    ("negate", lax.neg),
    ("sign", lax.sign),
    ("not", lax.bitwise_not),
    ("popcount", lax.population_count),
    ("count-leading-zeros", lax.clz),
    ("square", lax.square),
]


def integers() -> Iterator[Case]:
    """Every integer dtype: random values, then every pair of special values (division by zero and overflow included)."""
    for dtype in INTEGERS:
        first = dtype in (S32, U32)
        for name, function in UNARY_INTEGER:
            inputs = fixed(np.concatenate([specials(dtype), np.arange(100).astype(dtype)]))
            yield Case(f"{name}-{dtype}", function, inputs, eager=first, quick=first)
        for name, function in BINARY_INTEGER:
            yield Case(f"{name}-{dtype}", function, fixed(*special_pairs(dtype)), eager=first, quick=first)
        for name, function in SHIFTS:
            bits = 8 * dtype.itemsize
            counts = np.array([0, 1, 3, bits - 1, bits, bits + 1, 100], dtype)
            x, count = np.meshgrid(specials(dtype), counts, indexing="ij")
            yield Case(f"{name}-{dtype}", function, fixed(x.ravel(), count.ravel()), eager=False, quick=first)
    for dtype in SIGNED:
        yield Case(f"integer-pow-{dtype}", lambda x: (x**2, x**3, x**5), fixed(specials(dtype)), eager=False)
    for name, function in (("and", lax.bitwise_and), ("or", lax.bitwise_or), ("xor", lax.bitwise_xor), ("maximum", lax.max),
                           ("minimum", lax.min), ("add", jnp.add), ("multiply", jnp.multiply)):  # fmt: skip
        yield Case(f"{name}-pred", function, fixed(*special_pairs(PRED)), quick=True)
    yield Case("not-pred", lax.bitwise_not, fixed(specials(PRED)), quick=True)


COMPARISONS: list[tuple[str, Function]] = [
    ("eq", lax.eq),
    ("ne", lax.ne),
    ("lt", lax.lt),
    ("le", lax.le),
    ("gt", lax.gt),
    ("ge", lax.ge),
]


def comparisons() -> Iterator[Case]:
    """All six directions at every pair of special values of every dtype; total order too."""

    def six(x: Any, y: Any) -> tuple[Any, ...]:
        return tuple(function(x, y) for _, function in COMPARISONS)

    def six_numpy(x: Any, y: Any) -> tuple[Any, ...]:
        return x == y, x != y, x < y, x <= y, x > y, x >= y

    for dtype in DTYPES:
        yield Case(f"compare-{dtype}", six, fixed(*special_pairs(dtype)), expected=six_numpy, eager=False, quick=True)
    for dtype in FLOATS:
        order = lambda x, y: (lax.lt_to_p.bind(x, y), lax.le_to_p.bind(x, y), lax.eq_to_p.bind(x, y))  # noqa: E731
        yield Case(f"compare-total-order-{dtype}", order, fixed(*special_pairs(dtype)), eager=False)


def conversions() -> Iterator[Case]:
    """Every dtype to every other. Floats out of an integer's range saturate, and NaN becomes zero."""
    for source in DTYPES:

        def convert(x: Any) -> tuple[Any, ...]:
            return tuple(lax.convert_element_type(x, target) for target in DTYPES)

        yield Case(f"convert-{source}", convert, fixed(specials(source)), expected=convert_numpy, eager=False, quick=True)
        yield Case(f"convert-{source}-random", convert, values((source, SHAPE)), eager=False)
    yield Case(
        "bitcast",
        lambda x, y, z: (
            lax.bitcast_convert_type(x, np.int32),
            lax.bitcast_convert_type(y, np.float32),
            lax.bitcast_convert_type(z, np.int16),
            lax.bitcast_convert_type(x, np.uint8),
            lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.uint16), np.float32),
        ),
        fixed(specials(F32), np.arange(0x7F7FFFF0, 0x7F800001, dtype=np.uint32), specials(F16)),
        quick=True,
    )
    for exponent, mantissa in ((5, 10), (8, 7), (8, 23), (4, 3), (2, 1)):
        yield Case(
            f"reduce-precision-{exponent}-{mantissa}",
            lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m),
            fixed(np.concatenate([specials(F32)[np.abs(specials(F32)) != np.float32(1e-45)], np.linspace(-9, 9, 99, dtype=F32)])),
            quick=True,
        )
    yield Case("reduce-precision-gradient", lambda x: lax.reduce_precision(x, 5, 10), values((F32, SHAPE)), grad=(0,))


def convert_numpy(x: Any) -> tuple[Any, ...]:
    """What a conversion gives by StableHLO as XLA's CPU implements it: truncation, saturation, NaN to zero."""
    results = []
    for target in DTYPES:
        if jnp.issubdtype(x.dtype, np.floating) and jnp.issubdtype(target, np.integer):
            info = jnp.iinfo(target)
            wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
            exact = [min(max(int(value), int(info.min)), int(info.max)) for value in wide]
            results.append(np.array(exact, dtype=target))
        elif target == PRED:
            results.append(np.asarray(x != 0))
        else:
            with np.errstate(over="ignore"):
                # Through f32: ml_dtypes has no conversion between bf16 and every integer type.
                narrow = target in (BF16, F16) and x.dtype != F64
                results.append((x.astype(np.float32).astype(target)) if narrow else x.astype(target))
    return tuple(results)


def sizes() -> Iterator[Case]:
    """Scalars, empty, odd, vector-length and large shapes, for a chain of operations that fuses."""

    def chain(x: Any, y: Any) -> tuple[Any, ...]:
        z = jnp.exp(-x * x) + jnp.where(y > 0, y, 0.5 * x)
        return z, z * 2 > y, (z * 8).astype(jnp.int32)

    for shape in ((), (0,), (1,), (3,), (7,), (8,), (15,), (16,), (17,), (31,), (33,), (1000,), (1025,), (4, 0, 3), (2, 3, 5, 7), (1, 1, 1),
                  (300, 1111)):  # fmt: skip
        name = "x".join(map(str, shape)) or "scalar"
        yield Case(f"size-{name}", chain, values((F32, shape), (F32, shape)), grad=(0, 1), quick=True)
    for dtype in DTYPES:
        yield Case(f"size-1025-{dtype}", lambda x, y: (x + y, x * y) if x.dtype != bool else (x | y, x & y), values((dtype, (1025,)), (dtype, (1025,))), eager=False)  # fmt: skip


def ternary() -> Iterator[Case]:
    """select and clamp."""
    for dtype in DTYPES:
        yield Case(
            f"select-{dtype}", lambda p, x, y: lax.select(p, x, y), values((PRED, SHAPE), (dtype, SHAPE), (dtype, SHAPE)),
            grad=(1, 2) if dtype in FLOATS else (), eager=False, quick=True,
        )  # fmt: skip
        if dtype == PRED:
            continue
        low, high = (np.asarray(-1).astype(dtype), np.asarray(1).astype(dtype)) if dtype in (*FLOATS, *SIGNED) else (np.asarray(3, dtype), np.asarray(90, dtype))
        yield Case(f"clamp-{dtype}", lax.clamp, fixed(low, specials(dtype), high), eager=False, quick=True)
        yield Case(f"clamp-full-{dtype}", lax.clamp, values((dtype, SHAPE), (dtype, SHAPE), (dtype, SHAPE)), eager=False)
    yield Case("select-scalar-predicate", lambda p, x, y: lax.select(p, x, y), values((PRED, ()), (F32, SHAPE), (F32, SHAPE)), grad=(1, 2))
    yield Case("select-n", lambda w, *xs: lax.select_n(w, *xs), values((S32, SHAPE, 0, 3), *[(F32, SHAPE)] * 4), grad=(1, 2, 3, 4))
    yield Case("clamp-gradient", lax.clamp, values((F32, (), -1, -0.5), (F32, SHAPE), (F32, (), 0.5, 1)), grad=(1,))
    yield Case("clip", lambda x: jnp.clip(x, -1, 1), values((F32, SHAPE)), grad=(0,))
    yield Case("where-broadcast", lambda p, x: jnp.where(p[:, None], x, 1.0), values((PRED, (3,)), (F32, SHAPE)), grad=(1,), quick=True)
    yield Case("weak-types", lambda x, n: (x + 1, x * 2.5, n + 1, n * 2.5, n // 2, x > 0), values((F32, SHAPE), (S32, SHAPE, -99, 99)), quick=True)
    yield Case("mixed-dtypes", lambda a, b, c: (a + b, b * c, a - c), values((F32, SHAPE), (BF16, SHAPE), (S32, SHAPE, -9, 9)), quick=True)


CASES = [*unary(), *binary(), *integers(), *comparisons(), *conversions(), *sizes(), *ternary()]
