"""Elementwise ops against jaxlib's CPU backend, on values chosen for their edges, for every element type."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping

import numpy as np
import pytest

from tests.compiler.ops.oracle import assert_same, program, run_on_jaxlib
from treadle.compiler import interp
from treadle.compiler.ir.core import Value
from treadle.compiler.ir.types import BY_NAME, PRED, DType, TensorType
from treadle.compiler.ops.build import Builder

INTEGERS = ["s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]

# name -> units in the last place that jaxlib may be off (its approximations, not ours).
EXACT_UNARY_FLOAT = ["negate", "abs", "sign", "ceil", "floor", "round_nearest_even", "round_nearest_afz", "is_finite"]
MATHS_UNARY = {
    "sqrt": 1, "rsqrt": 3, "cbrt": 3, "exponential": 4, "exponential_minus_one": 5, "log": 4, "log_plus_one": 4,
    "logistic": 6, "sine": 4, "cosine": 4, "tan": 8, "tanh": 8,
}  # fmt: skip
UNARY_INTEGER = ["negate", "not", "popcnt", "count_leading_zeros"]
BINARY_INTEGER = [
    "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift_left",
    "shift_right_logical", "shift_right_arithmetic",
]  # fmt: skip
BINARY_FLOAT = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"]
DIRECTIONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]


@functools.cache
def edges(name: str) -> np.ndarray:
    """Values at which arithmetic of this type has corners, and some in between. No subnormals: jaxlib flushes those."""
    dtype = BY_NAME[name]
    if dtype is PRED:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        near = {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 63, 64, 100, info.max, info.max - 1, info.min, info.min + 1}
        return np.array(sorted(v for v in near | {-v for v in near} if info.min <= v <= info.max), dtype.numpy)
    values: list[float] = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        0.25,
        0.1,
        10.0,
        127.5,
        255.0,
        300.0,
        1e-3,
        5e4,
        np.inf,
        np.nan,
    ]
    if name != "f16":
        values += [1e9, 3e9, 1e18, 1e19, 1e20, 1e-20, 1e30]
    return np.array([*values, *(-v for v in values)]).astype(dtype.numpy)


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    values = edges(name)
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.reshape(-1), right.reshape(-1)


def check(names: list[str], dtype: DType, inputs: list[np.ndarray], ulps: Mapping[str, float], **attrs: object) -> None:
    """All ops of `names` in one program."""
    types = [TensorType(dtype, x.shape) for x in inputs]
    p = program(types, lambda b, *args: [b.op(name, *args, **attrs) for name in names])
    ours, theirs = interp.run(p, inputs), run_on_jaxlib(p, inputs)
    for name, a, b in zip(names, ours, theirs, strict=True):
        assert_same(a, b, ulps.get(name, 0), what=f"{name} {dtype}")


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    dtype = BY_NAME[name]
    check(UNARY_INTEGER + (["abs", "sign"] if dtype.is_signed else []), dtype, [edges(name)], {})
    check(BINARY_INTEGER, dtype, list(pairs(name)), {})


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_power(name: str) -> None:
    """Against Python's integers, cut to the width. jaxlib is no oracle for all of it.

    Of exponents above 63 it reads six bits, so that its 0**64 is 1; jaxlib 0.11 refuses unsigned integers.
    """
    dtype = BY_NAME[name]
    left, right = pairs(name)
    types = [TensorType(dtype, left.shape)] * 2
    (ours,) = interp.run(program(types, lambda b, x, y: b.op("power", x, y)), [left, right])
    natural = right >= 0
    exact = [pow(int(x), int(y), 2**dtype.bits) for x, y in zip(left[natural], right[natural], strict=True)]
    wrapped = np.array(exact, f"u{dtype.bytes}").view(dtype.numpy)
    np.testing.assert_array_equal(ours[natural], wrapped)
    if dtype.is_signed:
        small = right.astype(object) < 64
        check(["power"], dtype, [left[small], right[small]], {})


@pytest.mark.parametrize("name", FLOATS)
def test_exact_floats(name: str) -> None:
    dtype = BY_NAME[name]
    check(EXACT_UNARY_FLOAT, dtype, [edges(name)], {})
    check(BINARY_FLOAT, dtype, list(pairs(name)), {})


@pytest.mark.parametrize("name", FLOATS)
def test_mathematical_functions(name: str) -> None:
    dtype = BY_NAME[name]
    values = edges(name)
    values = values[~(np.abs(values.astype(np.float64)) > 1e5) | np.isinf(values.astype(np.float64))]
    check(list(MATHS_UNARY), dtype, [values], MATHS_UNARY)
    left, right = pairs(name)
    check(["power", "atan2"], dtype, [left, right], {"power": 4, "atan2": 4})


@pytest.mark.parametrize("name", ["pred", *INTEGERS, *FLOATS])
def test_comparisons(name: str) -> None:
    dtype = BY_NAME[name]
    kinds = ["TOTALORDER", "FLOAT"] if dtype.is_float else ["SIGNED" if dtype.is_signed else "UNSIGNED"]
    left, right = pairs(name)
    t = TensorType(dtype, left.shape)
    cases = list(itertools.product(DIRECTIONS, kinds))
    p = program(
        [t, t], lambda b, x, y: [b.op("compare", x, y, comparison_direction=d, compare_type=k) for d, k in cases]
    )
    for case, a, b in zip(cases, interp.run(p, [left, right]), run_on_jaxlib(p, [left, right]), strict=True):
        assert_same(a, b, what=f"compare {case} {name}")


def test_predicates() -> None:
    left, right = pairs("pred")
    check(["and", "or", "xor", "add", "multiply", "maximum", "minimum"], PRED, [left, right], {})
    check(["not"], PRED, [edges("pred")], {})


@pytest.mark.parametrize("source", ["pred", *INTEGERS, *FLOATS])
def test_conversions(source: str) -> None:
    targets = [BY_NAME[n] for n in ["pred", *INTEGERS, *FLOATS]]
    values = edges(source)
    rng = np.random.default_rng(0)
    if BY_NAME[source].is_float:
        more = (rng.standard_normal(500) * 10.0 ** rng.integers(-4, 4, 500)).astype(values.dtype)
        values = np.concatenate([values, more])
    elif source != "pred":
        info = np.iinfo(values.dtype)
        values = np.concatenate([values, rng.integers(info.min, info.max, 500, values.dtype, endpoint=True)])
    p = program(
        [TensorType(BY_NAME[source], values.shape)],
        lambda b, x: [b.op("convert", x, types=[TensorType(t, values.shape)]) for t in targets],
    )
    for target, a, b in zip(targets, interp.run(p, [values]), run_on_jaxlib(p, [values]), strict=True):
        assert_same(a, b, what=f"convert {source} -> {target}")


@pytest.mark.parametrize("name", ["pred", *INTEGERS, *FLOATS])
def test_select(name: str) -> None:
    dtype = BY_NAME[name]
    left, right = pairs(name)
    pred = np.arange(left.size) % 3 == 0
    t = TensorType(dtype, left.shape)
    p = program(
        [TensorType(PRED, ()), TensorType(PRED, left.shape), t, t],
        lambda b, s, v, x, y: [b.op("select", s, x, y), b.op("select", v, x, y)],
    )
    inputs = [np.array(True), pred, left, right]
    for a, b in zip(interp.run(p, inputs), run_on_jaxlib(p, inputs), strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_clamp(name: str) -> None:
    dtype = BY_NAME[name]
    values = edges(name)
    t, scalar = TensorType(dtype, values.shape), TensorType(dtype, ())
    p = program(
        [scalar, t, scalar, t], lambda b, lo, x, hi, v: [b.op("clamp", lo, x, hi), b.op("clamp", v, x, values_of(b, v))]
    )
    inputs = [dtype.numpy.type(2), values, dtype.numpy.type(100), values[::-1].copy()]
    inputs = [np.asarray(i, dtype.numpy) for i in inputs]
    for a, b in zip(interp.run(p, inputs), run_on_jaxlib(p, inputs), strict=True):
        assert_same(a, b)


def values_of(builder: Builder, value: Value) -> Value:
    """The same values in reverse: a second bound."""
    return builder.op("reverse", value, dimensions=(0,))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("bits", [(5, 2), (8, 7), (4, 3), (5, 10), (8, 23), (11, 52), (3, 0)])
def test_reduce_precision(name: str, bits: tuple[int, int]) -> None:
    dtype = BY_NAME[name]
    rng = np.random.default_rng(1)
    more = (rng.standard_normal(300) * 10.0 ** rng.integers(-4, 4, 300)).astype(dtype.numpy)
    values = np.concatenate([edges(name), more])
    check(["reduce_precision"], dtype, [values], {}, exponent_bits=bits[0], mantissa_bits=bits[1])


@pytest.mark.parametrize(
    ("source", "target", "shape", "result"),
    [
        ("f32", "s32", (3, 4), (3, 4)),
        ("f32", "u8", (3, 4), (3, 4, 4)),
        ("u16", "f64", (3, 4), (3,)),
        ("bf16", "u16", (8,), (8,)),
        ("s64", "u32", (), (2,)),
    ],
)
def test_bitcast_convert(source: str, target: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    x = np.random.default_rng(2).integers(0, 100, shape).astype(BY_NAME[source].numpy)
    p = program(
        [TensorType(BY_NAME[source], shape)],
        lambda b, v: b.op("bitcast_convert", v, types=[TensorType(BY_NAME[target], result)]),
    )
    (a,), (b,) = interp.run(p, [x]), run_on_jaxlib(p, [x])
    assert a.tobytes() == b.tobytes()
    assert a.shape == b.shape == result
