"""Operands for the maths functions: corners of the types, and samples of the whole range."""

from __future__ import annotations

import itertools

import numpy as np


def corners(dtype: np.dtype) -> np.ndarray:
    """Zeros, infinities, NaN, ends of the normal and subnormal range, and known thresholds."""
    info = np.finfo(dtype)
    values = [
        0, 1, 2, 3, 0.5, 0.25, 1.5, 10, 40, 88.7, 89, 103.9, 104, 709.7, 710, 745.1, 746, np.pi / 2, np.pi,
        np.e, 0.625, 0.7071, 0.4142, 1e-5, 1e-10, 1e5, 1e10, 2**24 - 1, 2**24, 2**26, 2**30, 2**52, 2**53,
        info.max, info.max / 2, info.tiny, info.smallest_subnormal, info.tiny / 3, info.eps,
        1 + info.eps, 1 - info.eps / 2, np.inf, np.nan,
    ]  # fmt: skip
    array = np.array(values, dtype)
    return np.concatenate([array, -array])


def singles(stride: int, start: int = 0) -> np.ndarray:
    """Every `stride`-th f32, in the order of their bits."""
    return np.arange(start, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


def spread(dtype: np.dtype, count: int, seed: int) -> np.ndarray:
    """Random bits, magnitudes around 1, values close to 1, small integers and halves, `count` each."""
    rng = np.random.default_rng(seed)
    bits = np.uint32 if dtype == np.float32 else np.uint64
    digits = np.finfo(dtype).nmant
    sign = rng.choice([-1.0, 1.0], count)
    return np.concatenate(
        [
            rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype),
            (sign * np.exp2(rng.uniform(-20, 20, count))).astype(dtype),
            (rng.uniform(-1, 1, count) * 30).astype(dtype),
            (1 + sign * np.exp2(rng.uniform(-digits, -1, count))).astype(dtype),
            (rng.integers(-80, 80, count) / 2).astype(dtype),
        ]
    )


def near_multiples_of_half_pi(count: int, largest: int, seed: int) -> np.ndarray:
    """The f64 numbers nearest to n pi/2: where the reduction of an angle loses most."""
    n = np.random.default_rng(seed).integers(-largest, largest, count)
    half_pi = np.longdouble("1.5707963267948966192313216916397514")
    return (n * half_pi).astype(np.float64)


def operands(name: str, arity: int, dtype: np.dtype, count: int, seed: int = 1) -> list[np.ndarray]:
    """Operands of one function: samples, and the corners (each with each for two operands)."""
    first = spread(dtype, count, seed)
    edge = corners(dtype)
    if arity == 1:
        return [np.concatenate([first, edge])]
    second = spread(dtype, count, seed + 1)
    shuffled = np.random.default_rng(seed).permutation(second)
    pairs = np.array(list(itertools.product(edge, edge)), dtype)
    return [
        np.concatenate([first, first, pairs[:, 0]]),
        np.concatenate([second, shuffled, pairs[:, 1]]),
    ]
