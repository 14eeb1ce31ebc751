"""Convolutions of the runtime against StableHLO's definition, written out in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.math_library import (
    Geometry,
    MathError,
    bfloat16,
    convolution,
    empty_permuted,
    permuted,
)

Array = npt.NDArray[Any]
TYPES: list[npt.DTypeLike] = [np.float32, np.float64, np.float16, bfloat16]


def expected(lhs: Array, rhs: Array, geometry: Geometry) -> Array:
    """The definition: dilate, pad or crop, then one product per window position. N C spatial, O I spatial."""
    rank = lhs.ndim - 2
    lhs, rhs = lhs.astype(np.float64), rhs.astype(np.float64)
    for d in range(rank):
        n, step = lhs.shape[2 + d], geometry.lhs_dilation[d]
        dilated = np.zeros([*lhs.shape[: 2 + d], (n - 1) * step + 1, *lhs.shape[3 + d :]])
        dilated[(slice(None),) * (2 + d) + (slice(None, None, step),)] = lhs
        low, high = geometry.padding[d]
        widths = [(0, 0)] * lhs.ndim
        widths[2 + d] = (max(low, 0), max(high, 0))
        padded = np.pad(dilated, widths)
        end = padded.shape[2 + d] + min(high, 0)
        lhs = padded[(slice(None),) * (2 + d) + (slice(-min(low, 0), max(end, -min(low, 0))),)]
        if geometry.reversal[d]:
            rhs = np.flip(rhs, 2 + d)
    spatial = [
        (n - (k - 1) * step - 1) // stride + 1
        for n, k, step, stride in zip(
            lhs.shape[2:], rhs.shape[2:], geometry.rhs_dilation, geometry.strides, strict=True
        )
    ]
    fg, bg = geometry.feature_groups, geometry.batch_groups
    n, o, i = lhs.shape[0] // bg, rhs.shape[0], rhs.shape[1]
    out = np.zeros([n, o, *spatial])
    for window in itertools.product(*(range(k) for k in rhs.shape[2:])):
        places = tuple(
            slice(w * step, w * step + (size - 1) * stride + 1, stride)
            for w, step, size, stride in zip(window, geometry.rhs_dilation, spatial, geometry.strides, strict=True)
        )
        seen = lhs[(slice(None), slice(None), *places)]
        at: Any = (..., *window)
        weights = rhs[at]
        for f in range(o):
            group, batch = f // (o // fg), f // (o // bg)
            part = seen[batch * n : (batch + 1) * n, group * i : (group + 1) * i]
            out[:, f] += np.tensordot(part, weights[f], axes=(1, 0))
    return out


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[int], Geometry]:
    """Any geometry that has a result: small, and strange on purpose."""
    rank = draw(st.integers(1, 3))
    few = st.integers(1, 3)

    def each(strategy: st.SearchStrategy[Any]) -> tuple[Any, ...]:
        return tuple(draw(strategy) for _ in range(rank))

    groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (4, 1), (1, 2), (1, 4)]))
    batch, features, outputs = draw(few), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    # With more features the work is worth oneDNN's while.
    scale = draw(st.sampled_from([1, 8]))
    features, outputs = features * scale, outputs * scale
    lhs = [batch * groups[1], features * groups[0], *each(st.integers(1, 9 if rank < 3 else 5))]
    rhs = [outputs * groups[0] * groups[1], features, *each(st.integers(1, 5 if rank < 3 else 3))]
    plain = draw(st.booleans())
    one = st.just(1)
    geometry = Geometry(
        strides=each(one if plain else few),
        padding=each(st.tuples(st.integers(-2, 4), st.integers(-2, 4))),
        lhs_dilation=each(st.sampled_from([1, 1, 2, 3])),
        rhs_dilation=each(few),
        reversal=each(st.booleans()),
        feature_groups=groups[0],
        batch_groups=groups[1],
    )
    return lhs, rhs, geometry


@settings(max_examples=300, deadline=None)
@given(case=cases(), dtype=st.sampled_from(TYPES), seed=st.integers(0, 1 << 16), data=st.data())
def test_any_geometry(
    case: tuple[list[int], list[int], Geometry], dtype: npt.DTypeLike, seed: int, data: st.DataObject
) -> None:
    lhs_shape, rhs_shape, geometry = case
    spatial = geometry.out_spatial(lhs_shape[2:], rhs_shape[2:])
    if 0 in spatial:
        return
    rng = np.random.default_rng(seed)
    order = st.permutations(range(len(lhs_shape)))
    lhs = permuted(rng, lhs_shape, dtype, data.draw(order))
    rhs = permuted(rng, rhs_shape, dtype, data.draw(order))
    shape = [lhs_shape[0] // geometry.batch_groups, rhs_shape[0], *spatial]
    out = empty_permuted(shape, dtype, data.draw(order))
    convolution(lhs, rhs, out, geometry)
    # Sums of whole numbers are exact in f32; a 16-bit result is rounded once.
    np.testing.assert_array_equal(out, expected(lhs, rhs, geometry).astype(dtype))


LAYOUTS = {"features last": (0, 2, 3, 1), "features first": (0, 1, 2, 3)}
KERNEL_LAYOUTS = {"features last": (2, 3, 1, 0), "features first": (0, 1, 2, 3)}


def plain(**changes: Any) -> Geometry:
    values: dict[str, Any] = {
        "strides": (1, 1),
        "padding": ((0, 0), (0, 0)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "reversal": (False, False),
    }
    return Geometry(**(values | changes))


# Large enough for oneDNN: every form that training a network makes, by the shapes of the two operands.
FORMS: dict[str, tuple[list[int], list[int], Geometry]] = {
    "3x3": ([8, 16, 14, 14], [32, 16, 3, 3], plain(padding=((1, 1), (1, 1)))),
    "one input feature": ([8, 1, 28, 28], [32, 1, 3, 3], plain(padding=((1, 1), (1, 1)))),
    "one output feature": ([8, 24, 14, 14], [1, 24, 3, 3], plain(padding=((1, 1), (1, 1)))),
    "pointwise": ([4, 64, 9, 9], [48, 64, 1, 1], plain()),
    "strided": ([4, 16, 15, 15], [32, 16, 3, 3], plain(strides=(2, 2), padding=((1, 1), (0, 1)))),
    "dilated": ([4, 16, 15, 15], [32, 16, 3, 3], plain(rhs_dilation=(2, 2))),
    "cropped": ([4, 16, 15, 15], [32, 16, 3, 3], plain(padding=((-2, -1), (-1, 1)))),
    "reversed": ([4, 16, 15, 15], [32, 16, 3, 3], plain(reversal=(True, False))),
    "one image": ([1, 32, 40, 40], [32, 32, 3, 3], plain(padding=((1, 1), (1, 1)))),
    "grouped": ([4, 32, 10, 10], [64, 8, 3, 3], plain(feature_groups=4)),
    "depthwise": ([8, 64, 20, 20], [64, 1, 3, 3], plain(feature_groups=64, padding=((1, 1), (1, 1)))),
    "source gradient": (
        [4, 32, 7, 7],
        [16, 32, 3, 3],
        plain(lhs_dilation=(2, 2), padding=((1, 2), (1, 2))),
    ),
    "source gradient, reversed": (
        [4, 32, 7, 7],
        [16, 32, 3, 3],
        plain(lhs_dilation=(2, 2), padding=((1, 2), (2, 1)), reversal=(True, True)),
    ),
    "source gradient, grouped": (
        [4, 32, 7, 7],
        [32, 8, 3, 3],
        plain(lhs_dilation=(2, 2), padding=((2, 2), (2, 2)), feature_groups=4),
    ),
    "weight gradient": ([16, 8, 14, 14], [32, 8, 14, 14], plain(padding=((1, 1), (1, 1)))),
    "weight gradient, strided": (
        [16, 8, 15, 15],
        [32, 8, 7, 7],
        plain(rhs_dilation=(2, 2), padding=((0, 0), (0, 1))),
    ),
    "weight gradient, one image": ([32, 1, 40, 40], [32, 1, 40, 40], plain(padding=((1, 1), (1, 1)))),
    "weight gradient, grouped": (
        [32, 8, 14, 14],
        [64, 8, 14, 14],
        plain(padding=((1, 1), (1, 1)), batch_groups=4),
    ),
    "weight gradient, depthwise": (
        [32, 8, 14, 14],
        [32, 8, 14, 14],
        plain(padding=((1, 1), (1, 1)), batch_groups=32),
    ),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, layout: str, dtype: npt.DTypeLike) -> None:
    lhs_shape, rhs_shape, geometry = FORMS[form]
    rng = np.random.default_rng(0)
    lhs = permuted(rng, lhs_shape, dtype, LAYOUTS[layout])
    rhs = permuted(rng, rhs_shape, dtype, KERNEL_LAYOUTS[layout])
    spatial = geometry.out_spatial(lhs_shape[2:], rhs_shape[2:])
    shape = [lhs_shape[0] // geometry.batch_groups, rhs_shape[0], *spatial]
    exact = expected(lhs, rhs, geometry)
    for threads in (1, 3):
        out = empty_permuted(shape, dtype, LAYOUTS[layout])
        convolution(lhs, rhs, out, geometry, threads)
        np.testing.assert_array_equal(out, exact.astype(dtype))


def test_without_spatial_dimensions() -> None:
    rng = np.random.default_rng(0)
    lhs, rhs = permuted(rng, (5, 7), np.float32, (0, 1)), permuted(rng, (3, 7), np.float32, (1, 0))
    out = convolution(lhs, rhs, np.empty((5, 3), np.float32), Geometry((), (), (), (), ()))
    np.testing.assert_array_equal(out, lhs @ rhs.T)


def test_nothing_to_add_gives_zeros() -> None:
    lhs, rhs = np.empty((2, 0, 5), np.float32), np.empty((3, 0, 2), np.float32)
    out = np.full((2, 3, 4), 7, np.float32)
    convolution(lhs, rhs, out, Geometry((1,), ((0, 0),), (1,), (1,), (False,)))
    np.testing.assert_array_equal(out, np.zeros((2, 3, 4)))


def test_contradictions_are_errors() -> None:
    lhs, rhs = np.ones((2, 3, 5), np.float32), np.ones((4, 3, 2), np.float32)
    geometry = Geometry((1,), ((0, 0),), (1,), (1,), (False,))
    with pytest.raises(MathError, match="result has size 5; the operands give 4") as raised:
        convolution(lhs, rhs, np.empty((2, 4, 5), np.float32), geometry)
    assert raised.value.code == 3
    with pytest.raises(MathError, match="no convolution of types s32"):
        convolution(lhs.astype(np.int32), rhs.astype(np.int32), np.empty((2, 4, 4), np.int32), geometry)
