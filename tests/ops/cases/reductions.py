"""Reductions, cumulative operations and windows, with their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import BF16, DTYPES, F16, F32, FLOATS, INTEGERS, PRED, S32, U32, Case, fixed, specials, values

CUBE = (F32, (5, 7, 33))


def over_axes() -> Iterator[Case]:
    """sum and max over every set of axes of a cube, and over shapes that stress the schedules."""
    for count in range(1, 4):
        for axes in itertools.combinations(range(3), count):
            name = "".join(map(str, axes))
            yield Case(
                f"sum-axes-{name}",
                lambda x, a=axes: jnp.sum(x, a),
                values(CUBE),
                grad=(0,),
                accumulated=True,
                quick=True,
            )
            yield Case(f"max-axes-{name}", lambda x, a=axes: jnp.max(x, a), values(CUBE), grad=(0,), quick=True)
    for shape in (
        (1,),
        (3,),
        (17,),
        (1000,),
        (1025,),
        (100_003,),
        (3, 1),
        (1, 3),
        (1000, 3),
        (3, 1000),
        (257, 129),
        (2, 70_000),
        (70_000, 2),
        (600, 700),
    ):
        name = "x".join(map(str, shape))
        yield Case(
            f"sum-{name}",
            lambda x: tuple(jnp.sum(x, axis) for axis in (None, *range(x.ndim))),
            values((F32, shape)),
            grad=(0,),
            accumulated=True,
            eager=False,
            quick=len(shape) == 1,
        )
    for shape in ((0,), (0, 3), (3, 0)):
        name = "x".join(map(str, shape))
        yield Case(
            f"sum-empty-{name}",
            lambda x: (jnp.sum(x), jnp.sum(x, 0), jnp.prod(x, 0), jnp.any(x > 0, 0)),
            values((F32, shape)),
        )


def kinds() -> Iterator[Case]:
    """Every kind of reduction at every dtype it is for."""
    arithmetic: list[tuple[str, Callable[..., Any]]] = [("sum", jnp.sum), ("max", jnp.max), ("min", jnp.min)]
    for dtype in (*FLOATS, *INTEGERS):
        for name, function in arithmetic:
            yield Case(
                f"{name}-{dtype}",
                lambda x, f=function: (f(x), f(x, 0), f(x, 1)),
                values((dtype, (19, 45))),
                grad=(0,) if dtype in FLOATS else (),
                accumulated=True,
                eager=False,
                quick=dtype in (F32, S32, BF16),
            )
        yield Case(
            f"prod-{dtype}",
            lambda x: (jnp.prod(x, 0), jnp.prod(x, 1)),
            values((dtype, (9, 11), -3, 3)),
            accumulated=True,
            eager=False,
        )
        yield Case(
            f"argmax-{dtype}",
            lambda x: (jnp.argmax(x), jnp.argmax(x, 0), jnp.argmin(x, 1)),
            values((dtype, (19, 45), -9, 9)),
            eager=False,
            quick=True,
        )
    yield Case("sum-pred", lambda x: (jnp.sum(x), jnp.sum(x, 0), jnp.mean(x, 1)), values((PRED, (19, 45))))
    yield Case(
        "any-all", lambda x: (jnp.any(x), jnp.all(x), jnp.any(x, 0), jnp.all(x, 1)), values((PRED, (3, 5))), quick=True
    )
    for dtype in (S32, U32):
        yield Case(
            f"reduce-bitwise-{dtype}",
            lambda x: (lax.reduce_and(x, (0,)), lax.reduce_or(x, (1,)), lax.reduce_xor(x, (0, 1))),
            values((dtype, (9, 21))),
        )
    for dtype in (F32, BF16, F16):
        yield Case(
            f"extremes-with-special-values-{dtype}",
            lambda x: (jnp.max(x), jnp.min(x), jnp.nanmax(x), jnp.nanmin(x), jnp.argmax(x), jnp.nanargmin(x)),
            fixed(specials(dtype)),
            eager=False,
        )
    yield Case(
        "argmax-of-ties",
        lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)),
        fixed(np.array([[1, 3, 3, 0], [0, 0, 0, 0]], np.float32)),
        quick=True,
    )
    yield Case("reduce-two-operands", pairwise_maximum, values((F32, (7, 40)), (S32, (7, 40), 0, 999)), quick=True)
    yield Case(
        "reduce-custom",
        # (1 + a)(1 + b) - 1: associative, with identity 0, and no reduction that anyone has by name.
        lambda x: tuple(
            lax.reduce(x, np.float32(0), lambda a, b: a + b + a * b, axes) for axes in ((0,), (1,), (0, 1))
        ),
        values((F32, (9, 20), -0.2, 0.2)),
        accumulated=True,
        quick=True,
    )
    yield Case(
        "reduce-logical-of-comparisons", lambda x: jnp.all(x[:, None] <= x[None, :] + 9, 1), values((F32, (33,)))
    )


def pairwise_maximum(x: Any, n: Any) -> Any:
    """The greatest x of each row, and the n beside it: a reduction of two operands with its own combiner."""

    def greater(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    return lax.reduce((x, n), (np.float32(-np.inf), np.int32(0)), greater, (1,))


def composed() -> Iterator[Case]:
    """What statistics and networks make of reductions."""
    rows: list[tuple[str, Callable[..., Any]]] = [
        ("mean", lambda x: (jnp.mean(x), jnp.mean(x, 0))),
        ("variance", lambda x: (jnp.var(x), jnp.var(x, 1, ddof=1))),
        ("standard-deviation", lambda x: jnp.std(x, 0)),
        ("softmax", lambda x: jax.nn.softmax(x, -1)),
        ("softmax-columns", lambda x: jax.nn.softmax(x, 0)),
        ("log-softmax", jax.nn.log_softmax),
        ("logsumexp", lambda x: (jax.nn.logsumexp(x), jax.nn.logsumexp(x, 0))),
        ("norm", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1))),
        ("standardize", lambda x: jax.nn.standardize(x, axis=-1)),
        ("layer-norm", lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)),
        ("covariance", jnp.cov),
        ("correlation", jnp.corrcoef),
        ("average-weighted", lambda x: jnp.average(x, axis=1, weights=jnp.arange(1.0, 14.0))),
        ("peak-to-peak", jnp.ptp),
        ("pairwise-distances", lambda x: jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1) + 1e-3)),
        ("polyval", lambda x: jnp.polyval(jnp.array([1.0, -2.0, 0.5]), x)),
        ("trapezoid", lambda x: jax.scipy.integrate.trapezoid(x, dx=0.1)),
        ("normalise-rows", lambda x: x / jnp.sum(jnp.abs(x), 1, keepdims=True)),
        ("sum-then-broadcast", lambda x: x - jnp.sum(x, 0) + jnp.max(x)),
    ]
    for name, function in rows:
        yield Case(name, function, values((F32, (11, 13))), grad=(0,), accumulated=True, quick=True)
    yield Case(
        "softmax-of-masked",
        lambda x, m: jax.nn.softmax(jnp.where(m, x, -jnp.inf), -1),
        values((F32, (11, 13)), (PRED, (11, 13))),
        accumulated=True,
    )
    for dtype in FLOATS:
        yield Case(
            f"softmax-{dtype}", jax.nn.softmax, values((dtype, (9, 65))), grad=(0,), accumulated=True, eager=False
        )


def cumulative() -> Iterator[Case]:
    """cumsum and its like, forward and reversed, along both axes."""
    for name, function in (
        ("cumsum", lax.cumsum),
        ("cumprod", lax.cumprod),
        ("cummax", lax.cummax),
        ("cummin", lax.cummin),
        ("cumlogsumexp", lax.cumlogsumexp),
    ):
        yield Case(
            name,
            lambda x, f=function: (f(x, axis=0), f(x, axis=1, reverse=True)),
            values((F32, (9, 35))),
            grad=(0,),
            accumulated=True,
            tolerance=1e-4,
        )
    yield Case("cumsum-integers", lambda x: jnp.cumsum(x, 1), values((S32, (3, 100))), quick=True)
    yield Case("cumsum-long", jnp.cumsum, values((F32, (1025,))), grad=(0,), accumulated=True)
    yield Case(
        "associative-scan",
        lambda x: lax.associative_scan(jnp.multiply, x),
        values((F32, (17, 3), 0.5, 1.5)),
        grad=(0,),
        accumulated=True,
    )


def windows() -> Iterator[Case]:
    """reduce_window and its gradients (select_and_scatter) in the geometries of pooling."""
    picture = (F32, (2, 9, 11, 3))
    rows: list[tuple[str, tuple[int, ...], tuple[int, ...], str | list[tuple[int, int]]]] = [
        ("2x2", (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        ("3x3-same", (1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
        ("3x2-stride-2x3", (1, 3, 2, 1), (1, 2, 3, 1), "SAME"),
        ("explicit-padding", (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (2, 1), (0, 2), (0, 0)]),
        ("whole", (1, 9, 11, 1), (1, 1, 1, 1), "VALID"),
        ("channels", (1, 1, 1, 2), (1, 1, 1, 1), "VALID"),
    ]
    for name, window, strides, padding in rows:
        yield Case(
            f"max-pool-{name}",
            lambda x, w=window, s=strides, p=padding: lax.reduce_window(x, -jnp.inf, lax.max, w, s, p),
            values(picture),
            grad=(0,),
            accumulated=True,
            quick=True,
        )
        yield Case(
            f"sum-pool-{name}",
            lambda x, w=window, s=strides, p=padding: lax.reduce_window(x, 0.0, lax.add, w, s, p),
            values(picture),
            grad=(0,),
            accumulated=True,
            quick=True,
        )
    yield Case(
        "min-pool",
        lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        values(picture),
        grad=(0,),
        accumulated=True,
    )
    yield Case(
        "window-dilations",
        lambda x: lax.reduce_window(
            x,
            0.0,
            lax.add,
            (1, 3, 2, 1),
            (1, 1, 2, 1),
            "VALID",
            base_dilation=(1, 2, 1, 1),
            window_dilation=(1, 2, 3, 1),
        ),
        values(picture),
        accumulated=True,
    )
    yield Case(
        "window-product",
        lambda x: lax.reduce_window(x, np.float32(1), lax.mul, (3,), (2,), "SAME"),
        values((F32, (40,))),
        accumulated=True,
    )
    yield Case(
        "window-one-dimensional",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (7,), (1,), "SAME"),
        values((F32, (1025,))),
        grad=(0,),
        accumulated=True,
    )
    for dtype in DTYPES:
        if dtype == PRED:
            yield Case(
                "window-or",
                lambda x: lax.reduce_window(x, False, lax.bitwise_or, (2, 2), (1, 1), "VALID"),
                values((PRED, (6, 7))),
            )
            continue
        smallest = np.asarray(-np.inf if dtype in FLOATS else jnp.iinfo(dtype).min).astype(dtype)
        yield Case(
            f"window-{dtype}",
            lambda x, low=smallest: (
                lax.reduce_window(x, low, lax.max, (2, 3), (1, 2), "VALID"),
                lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (2, 2), (2, 2), "VALID"),
            ),
            values((dtype, (9, 14))),
            grad=(0,) if dtype in FLOATS else (),
            accumulated=True,
            eager=False,
        )
    yield Case(
        "max-pool-of-ties",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"),
        fixed(np.ones((4, 6), np.float32)),
        grad=(0,),
    )
    yield Case(
        "average-pool",
        lambda x: (
            lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
            / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        ),
        values(picture),
        grad=(0,),
        accumulated=True,
    )


CASES = [*over_axes(), *kinds(), *composed(), *cumulative(), *windows()]
