"""Every elementwise op on every element type, against its NumPy definition: exact but for transcendental functions."""

import numpy as np
import pytest

from tests.compiler.codegen.cases import check_all, elementwise_kernel, random_array, special_floats
from tests.compiler.codegen.harness import AVX2, HOST, SSE
from treadle.compiler.ir import types as t

TARGETS = [pytest.param(HOST, id="host"), pytest.param(AVX2, id="avx2"), pytest.param(SSE, id="sse")]
INTEGERS = (t.S8, t.S16, t.S32, t.S64, t.U8, t.U16, t.U32, t.U64)
FLOATS = (t.F16, t.BF16, t.F32, t.F64)
SIZE = 100

BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
UNARY_FLOAT = ["abs", "ceil", "floor", "negate", "round_nearest_afz", "round_nearest_even", "sign", "sqrt"]
INTEGER_BINARY = [
    *BINARY, "divide", "remainder", "and", "or", "xor", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "power",
]  # fmt: skip
INTEGER_UNARY = ["abs", "negate", "not", "popcnt", "count_leading_zeros", "sign"]
DIRECTIONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]
# Bounds in the result's precision, for functions whose last bits differ from NumPy's.
TRANSCENDENTAL = {
    "exponential": 1, "exponential_minus_one": 1, "log": 1, "log_plus_one": 1, "logistic": 1, "tanh": 1, "sine": 1,
    "cosine": 1, "tan": 1, "cbrt": 1, "rsqrt": 1, "power": 2, "atan2": 2, "remainder": 2,
}  # fmt: skip


def operand(dtype, seed):
    values = random_array(dtype, SIZE, seed)
    if dtype.is_float:
        special = special_floats(dtype)
        rng = np.random.default_rng(seed + 100)
        places = rng.choice(SIZE, 2 * special.size, replace=False)
        values[places] = np.tile(special, 2)
    return values


def case(name, dtype, sources, attr=""):
    kernel = elementwise_kernel(name, dtype, sources, SIZE, attr)
    return kernel, [*[operand(d, i) for i, d in enumerate(sources)], np.zeros(SIZE, dtype.numpy)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype, target):
    cases = [case(name, dtype, (dtype, dtype)) for name in INTEGER_BINARY]
    cases += [case(name, dtype, (dtype,)) for name in INTEGER_UNARY]
    cases += [case("compare", t.PRED, (dtype, dtype), direction) for direction in DIRECTIONS]
    cases += [case("clamp", dtype, (dtype,) * 3), case("select", dtype, (t.PRED, dtype, dtype))]
    check_all(cases, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype, target):
    cases = [case(name, dtype, (dtype, dtype)) for name in [*BINARY, "divide"]]
    cases += [case(name, dtype, (dtype,)) for name in UNARY_FLOAT]
    cases += [case("is_finite", t.PRED, (dtype,))]
    for direction in DIRECTIONS:
        cases += [case("compare", t.PRED, (dtype, dtype), direction + total) for total in ("", "_TOTAL")]
    cases += [case("clamp", dtype, (dtype,) * 3), case("select", dtype, (t.PRED, dtype, dtype))]
    check_all(cases, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_preds(target):
    names = ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]
    cases = [case(name, t.PRED, (t.PRED, t.PRED)) for name in names]
    cases += [case("not", t.PRED, (t.PRED,)), case("select", t.PRED, (t.PRED,) * 3)]
    cases += [case("compare", t.PRED, (t.PRED, t.PRED), direction) for direction in DIRECTIONS]
    check_all(cases, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", sorted(t.COMPUTE_DTYPES, key=str), ids=str)
def test_convert(source, target):
    cases = [case("convert", to, (source,)) for to in sorted(t.COMPUTE_DTYPES, key=str)]
    bits = [to for to in t.COMPUTE_DTYPES if to.bytes == source.bytes and (t.PRED in (to, source)) == (to is source)]
    cases += [case("bitcast_convert", to, (source,)) for to in bits]
    check_all(cases, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_transcendental(dtype, target):
    cases = [case(name, dtype, (dtype,) * count) for name, count in TRANSCENDENTAL.items()]
    rtol = {t.F16: 1e-3, t.BF16: 8e-3, t.F32: 5e-7, t.F64: 1e-15}[dtype]
    check_all(cases, exact=False, rtol=rtol, target=target)
