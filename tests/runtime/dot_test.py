"""Matrix products of the runtime against NumPy, over types, layouts, sizes and thread counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.math_library import MathError, bfloat16, dot, empty_permuted, permuted

FLOATS: list[npt.DTypeLike] = [np.float32, np.float64, np.float16, bfloat16]
INTEGERS: list[npt.DTypeLike] = [
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
]


def expected(lhs: npt.NDArray[Any], rhs: npt.NDArray[Any], out: npt.DTypeLike) -> npt.NDArray[Any]:
    """Integers wrap; whole numbers this small are exact in f64, and rounded once into a 16-bit result."""
    wide = np.int64 if np.dtype(out).kind in "iu" else np.float64
    product: npt.NDArray[Any] = np.matmul(lhs.astype(wide), rhs.astype(wide))
    return product.astype(out)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[list[int], int, int, int]:
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    edge = st.one_of(st.integers(0, 9), st.integers(10, 70), st.sampled_from([16, 32, 64, 96, 128]))
    return batch, draw(edge), draw(edge), draw(edge)


@settings(max_examples=150, deadline=None)
@given(
    sizes=sizes(),
    dtype=st.sampled_from(FLOATS + INTEGERS),
    seed=st.integers(0, 1 << 16),
    threads=st.sampled_from([1, 2, 3]),
    data=st.data(),
)
def test_any_layout(
    sizes: tuple[list[int], int, int, int],
    dtype: npt.DTypeLike,
    seed: int,
    threads: int,
    data: st.DataObject,
) -> None:
    batch, m, n, k = sizes
    rng = np.random.default_rng(seed)
    order = st.permutations(range(len(batch) + 2))
    lhs = permuted(rng, [*batch, m, k], dtype, data.draw(order))
    rhs = permuted(rng, [*batch, k, n], dtype, data.draw(order))
    out = empty_permuted([*batch, m, n], dtype, data.draw(order))
    dot(lhs, rhs, out, threads)
    np.testing.assert_array_equal(out, expected(lhs, rhs, dtype))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("shape", [(1, 300, 257), (300, 1, 257), (4, 1000, 300), (333, 250, 419)])
def test_large(dtype: npt.DTypeLike, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    lhs, rhs = permuted(rng, (m, k), dtype, (0, 1)), permuted(rng, (k, n), dtype, (0, 1))
    for a in (lhs, np.asfortranarray(lhs)):
        for b in (rhs, np.asfortranarray(rhs)):
            out = dot(a, b, np.empty((m, n), dtype), threads=3)
            np.testing.assert_array_equal(out, expected(lhs, rhs, dtype))


@pytest.mark.parametrize(("inputs", "result"), [(np.float16, np.float32), (bfloat16, np.float32), (np.int8, np.int32)])
@pytest.mark.parametrize("edge", [5, 130])
def test_wider_result(inputs: npt.DTypeLike, result: npt.DTypeLike, edge: int) -> None:
    rng = np.random.default_rng(1)
    lhs = permuted(rng, (2, edge, edge), inputs, (0, 1, 2))
    rhs = permuted(rng, (2, edge, edge), inputs, (0, 2, 1))
    out = dot(lhs, rhs, np.empty((2, edge, edge), result))
    np.testing.assert_array_equal(out, expected(lhs, rhs, result))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype: npt.DTypeLike) -> None:
    info = np.iinfo(np.dtype(dtype))
    lhs = np.full((3, 40), info.max, dtype)
    rhs = np.full((40, 35), info.max - 1, dtype)
    # max is -1 (unsigned) or -1 + 2^(w-1) (signed) modulo 2^w: Python's integers tell.
    value = 40 * int(info.max) * (int(info.max) - 1) % (1 << info.bits)
    value -= (1 << info.bits) if value > info.max else 0
    np.testing.assert_array_equal(dot(lhs, rhs, np.empty((3, 35), dtype)), np.full((3, 35), value, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_specials_propagate(dtype: npt.DTypeLike) -> None:
    for edge in (7, 64, 200):
        lhs, rhs = np.ones((edge, edge), dtype), np.ones((edge, edge), dtype)
        lhs[2, 3], lhs[4, 1], rhs[5, 6] = np.nan, np.inf, -np.inf
        out = dot(lhs, rhs, np.empty((edge, edge), dtype)).astype(np.float64)
        assert np.isnan(out[2]).all()
        assert np.isnan(out[4, 6]) and (np.delete(out[4], 6) == np.inf).all()
        rest = np.delete(out, [2, 4], axis=0)
        assert (rest[:, 6] == -np.inf).all() and (np.delete(rest, 6, axis=1) == edge).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_is_close(dtype: npt.DTypeLike) -> None:
    rng = np.random.default_rng(2)
    lhs = rng.standard_normal((150, 300)).astype(dtype)
    rhs = rng.standard_normal((300, 170)).astype(dtype)
    exact = np.matmul(lhs.astype(np.float64), rhs.astype(np.float64))
    out = dot(lhs, rhs, np.empty((150, 170), dtype)).astype(np.float64)
    # Sums in f32 (f64), then one rounding to the result.
    epsilon = 2.0 ** {2: -8, 4: -19, 8: -48}[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(out, exact, rtol=epsilon, atol=epsilon * 40)


def test_same_bits_on_every_thread_count() -> None:
    rng = np.random.default_rng(3)
    lhs = rng.standard_normal((700, 300)).astype(np.float32)
    rhs = rng.standard_normal((300, 500)).astype(np.float32)
    results = [dot(lhs, rhs, np.empty((700, 500), np.float32), threads) for threads in (1, 2, 3, 5)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_types_that_have_no_product() -> None:
    with pytest.raises(MathError, match="no product of types f32 and f32 into f64") as raised:
        dot(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), np.ones((2, 2), np.float64))
    assert raised.value.code == 12
