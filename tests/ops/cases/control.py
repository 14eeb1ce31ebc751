"""Loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import DTYPES, F32, FLOATS, PRED, S32, Case, Inputs, draw, values

VECTOR = (F32, (17,))


def loops() -> Iterator[Case]:
    """while_loop, fori_loop and scan: trip counts, carries, nesting, updates in place."""
    for trips in (0, 1, 2, 10, 1000):
        yield Case(
            f"fori-scalar-{trips}",
            lambda x, n=trips: lax.fori_loop(0, n, lambda i, c: c * 0.99 + i, x),
            values((F32, ())),
            accumulated=True,
            quick=True,
        )
    rows: list[tuple[str, Callable[..., Any], tuple[tuple[Any, ...], ...], tuple[int, ...]]] = [
        ("fori-vector", lambda x: lax.fori_loop(0, 20, lambda i, c: jnp.sin(c) + i, x), (VECTOR,), (0,)),
        ("fori-dynamic-bound", lambda n, x: lax.fori_loop(2, n, lambda i, c: c + i, x), ((S32, (), 0, 40), VECTOR), ()),
        (
            "fori-matmul",
            lambda m, v: lax.fori_loop(0, 9, lambda i, c: jnp.tanh(m @ c), v),
            ((F32, (8, 8)), (F32, (8,))),
            (),
        ),
        ("while-scalar", lambda x: lax.while_loop(lambda c: c < 1000, lambda c: c * 2 + 1, x), ((S32, (), 1, 9),), ()),
        (
            "while-zero-trips",
            lambda x: lax.while_loop(lambda c: c[0] > 1e9, lambda c: (c[0] * 2, c[1] + 1), (x, 0)),
            ((F32, ()),),
            (),
        ),
        ("while-collatz", collatz, ((S32, (), 3, 60),), ()),
        ("while-newton", newton, ((F32, (), 1, 9),), ()),
        (
            "while-vector-condition",
            lambda x: lax.while_loop(lambda c: jnp.max(c) < 50, lambda c: c * 1.5, x),
            ((F32, (17,), 1, 2),),
            (),
        ),
        (
            "while-swap",
            lambda x, y: lax.fori_loop(0, 7, lambda i, c: (c[1], c[0] + c[1]), (x, y)),
            (VECTOR, VECTOR),
            (0, 1),
        ),
        (
            "while-rotate-three",
            lambda x, y, z: lax.fori_loop(0, 4, lambda i, c: (c[1], c[2], c[0]), (x, y, z)),
            (VECTOR, VECTOR, VECTOR),
            (0, 1, 2),
        ),
        ("while-captures", lambda x, w: lax.fori_loop(0, 5, lambda i, c: c * w + w[i], x), (VECTOR, VECTOR), (0, 1)),
        (
            "while-carry-shift",
            lambda x: lax.fori_loop(0, 6, lambda i, c: jnp.concatenate([c[1:], c[:1] * 2]), x),
            (VECTOR,),
            (0,),
        ),
        (
            "fori-update-slice",
            lambda x: lax.fori_loop(0, 12, lambda i, c: lax.dynamic_update_slice(c, c[i][None] * 2 + i, (i + 1,)), x),
            (VECTOR,),
            (),
        ),
        (
            "fori-set-row",
            lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(c[i - 1] + 1), x),
            ((F32, (5, 9)),),
            (0,),
        ),
        (
            "fori-read-after-write",
            lambda x: lax.fori_loop(0, 8, lambda i, c: (c[0].at[i].add(1.0), c[1] + c[0][i]), (x, jnp.float32(0))),
            (VECTOR,),
            (0,),
        ),
        (
            "nested-fori",
            lambda x: lax.fori_loop(0, 5, lambda i, c: lax.fori_loop(0, i, lambda j, d: d + j * x, c), x),
            (VECTOR,),
            (),
        ),
        ("nested-triangular", triangular, ((F32, (9, 9)),), ()),
        ("scan-cumulative", lambda x: lax.scan(lambda c, e: (c + e, c * e), jnp.float32(0), x), (VECTOR,), (0,)),
        ("scan-rnn", rnn, ((F32, (5,)), (F32, (5, 5)), (F32, (12, 5))), (0, 1, 2)),
        (
            "scan-reverse",
            lambda x: lax.scan(lambda c, e: (c * 0.5 + e, c), jnp.float32(1), x, reverse=True),
            (VECTOR,),
            (0,),
        ),
        ("scan-unrolled", lambda x: lax.scan(lambda c, e: (c + e, c), jnp.float32(1), x, unroll=4), (VECTOR,), (0,)),
        ("scan-no-inputs", lambda x: lax.scan(lambda c, _: (c * 1.1, c[0]), x, None, length=7), (VECTOR,), (0,)),
        ("scan-no-carry", lambda x: lax.scan(lambda c, e: (c, jnp.sin(e)), None, x)[1], (VECTOR,), (0,)),
        ("scan-empty", lambda x: lax.scan(lambda c, e: (c + e.sum(), c), jnp.float32(1), x), ((F32, (0, 3)),), (0,)),
        (
            "scan-many-outputs",
            lambda x: lax.scan(lambda c, e: (c + 1, (c * e, e[0], e > 0)), 0, x),
            ((F32, (6, 4)),),
            (),
        ),
        (
            "scan-of-scan",
            lambda x: lax.scan(lambda c, row: lax.scan(lambda d, e: (d + e, d * e), c, row), jnp.float32(0), x),
            ((F32, (4, 6)),),
            (0,),
        ),
        ("map", lambda x: lax.map(lambda r: jnp.sum(r) * r, x), ((F32, (7, 5)),), (0,)),
        ("map-batched", lambda x: lax.map(lambda r: jnp.sum(r) * r, x, batch_size=3), ((F32, (7, 5)),), (0,)),
        (
            "scan-checkpointed",
            lambda x: lax.scan(jax.checkpoint(lambda c, e: (jnp.sin(c) * e, c)), x[0], x),
            (VECTOR,),
            (0,),
        ),
        ("vmapped-while", jax.vmap(newton), ((F32, (9,), 1, 9),), ()),
        ("vmapped-scan", jax.vmap(lambda r: lax.scan(lambda c, e: (c + e, c * e), 0.0, r)), ((F32, (3, 8)),), (0,)),
        ("game-of-life", life, ((S32, (12, 12), 0, 1),), ()),
        ("mandelbrot", mandelbrot, ((F32, (16,)), (F32, (12,))), ()),
    ]
    for name, function, specs, grad in rows:
        yield Case(
            name,
            function,
            values(*specs),
            grad=grad,
            accumulated=True,
            tolerance=1e-4 if name == "while-newton" else None,
            quick=True,
        )
    for dtype in DTYPES:

        def body(i: Any, c: Any) -> Any:
            return jnp.logical_xor(c, i % 2 == 0) if c.dtype == bool else c + i.astype(c.dtype)

        yield Case(
            f"carry-{dtype}",
            lambda x, b=body: lax.fori_loop(0, 5, b, x),
            values((dtype, (5,))),
            accumulated=True,
            eager=False,
        )
        yield Case(
            f"carry-scalar-{dtype}",
            lambda x, b=body: lax.fori_loop(0, 5, b, x),
            values((dtype, ())),
            accumulated=True,
            eager=False,
        )
        yield Case(
            f"scan-{dtype}", lambda x: lax.scan(lambda c, e: (e, c), x[0], x), values((dtype, (6, 3))), eager=False
        )


def collatz(n: Any) -> Any:
    """Steps to reach 1."""
    return lax.while_loop(
        lambda c: c[0] > 1, lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0)
    )


def newton(x: Any) -> Any:
    """The square root by iteration until it settles, at most 50 times."""
    start = (x, x * 0 + 2 * x + 1, 0)
    return lax.while_loop(
        lambda c: (jnp.abs(c[0] - c[1]) > 1e-5 * c[0]) & (c[2] < 50),
        lambda c: (0.5 * (c[0] + x / c[0]), c[0], c[2] + 1),
        start,
    )[0]


def triangular(m: Any) -> Any:
    """Forward substitution with a loop in a loop, both writing one array."""

    def row(i: Any, x: Any) -> Any:
        total = lax.fori_loop(0, i, lambda j, s: s + m[i, j] * x[j], jnp.float32(0))
        return x.at[i].set((1 - total) / (3 + m[i, i]))

    return lax.fori_loop(0, m.shape[0], row, jnp.zeros_like(m[0]))


def rnn(state: Any, weights: Any, inputs: Any) -> Any:
    """A recurrent cell."""

    def cell(c: Any, e: Any) -> Any:
        c = jnp.tanh(weights @ c + e)
        return c, c

    return lax.scan(cell, state, inputs)


def life(board: Any) -> Any:
    """Conway's game for ten generations."""

    def generation(_: Any, b: Any) -> Any:
        around = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return ((around == 3) | ((b == 1) & (around == 2))).astype(b.dtype)

    return lax.fori_loop(0, 10, generation, board)


def mandelbrot(x: Any, y: Any) -> Any:
    """How often z*z + c stays small, without complex numbers."""

    def step(_: Any, c: Any) -> Any:
        re, im, count = c
        inside = re * re + im * im < 4
        new = jnp.where(inside, re * re - im * im + x[None], re), jnp.where(inside, 2 * re * im + y[:, None], im)
        return *new, count + inside

    zeros = jnp.zeros((y.size, x.size))
    return lax.fori_loop(0, 30, step, (zeros, zeros, zeros.astype(jnp.int32)))[2]


def then_vectors(first: Any, count: int) -> Inputs:
    """The given argument, then random vectors."""
    return lambda generator: [first, *(draw(generator, *VECTOR) for _ in range(count))]


def branches() -> Iterator[Case]:
    """cond and switch: predicates, indices out of range, operands, nesting, inside loops and vmap."""
    for flag in (True, False):
        yield Case(
            f"cond-{flag}",
            lambda p, x: lax.cond(p, lambda a: jnp.sin(a) * 2, lambda a: a - 1, x),
            then_vectors(np.bool_(flag), 1),
            grad=(1,),
            quick=True,
        )
        yield Case(
            f"cond-several-{flag}",
            lambda p, x, y: lax.cond(p, lambda: (x, y + 1, 3), lambda: (y, x * 2, 4)),
            then_vectors(np.bool_(flag), 2),
            grad=(1, 2),
            quick=True,
        )
    for index in (-3, 0, 1, 2, 99):
        yield Case(
            f"switch-{index}",
            lambda i, x: lax.switch(i, [jnp.sin, lambda a: a * 2, lambda a: a[::-1]], x),
            then_vectors(np.int32(index), 1),
            grad=(1,),
            quick=True,
        )
    yield Case("cond-of-constant", lambda x: lax.cond(True, jnp.sin, jnp.cos, x), values(VECTOR), grad=(0,))
    yield Case(
        "cond-nested",
        lambda p, q, x: lax.cond(p, lambda: lax.cond(q, lambda: x, lambda: -x), lambda: x * 2),
        values((PRED, ()), (PRED, ()), VECTOR),
        grad=(2,),
    )
    yield Case(
        "cond-in-loop",
        lambda x: lax.fori_loop(0, 9, lambda i, c: lax.cond(i % 2 == 0, lambda v: v + i, lambda v: v * 0.5, c), x),
        values(VECTOR),
        grad=(0,),
    )
    yield Case(
        "loop-in-cond",
        lambda p, x: lax.cond(p, lambda: lax.fori_loop(0, 5, lambda i, c: c * 1.1, x), lambda: x),
        values((PRED, ()), VECTOR),
        grad=(1,),
        accumulated=True,
    )
    yield Case(
        "switch-in-scan",
        lambda i, x: lax.scan(lambda c, k: (lax.switch(k, [jnp.sin, jnp.cos, jnp.tanh], c), c), x, i),
        values((S32, (8,), 0, 2), VECTOR),
        grad=(1,),
        accumulated=True,
    )
    yield Case(
        "vmapped-cond",
        jax.vmap(lambda q, v: lax.cond(q, jnp.sin, jnp.cos, v)),
        values((PRED, (9,)), (F32, (9, 3))),
        grad=(1,),
    )
    yield Case(
        "switch-20-branches",
        lambda i, x: lax.switch(i, [lambda v, k=k: v * k + jnp.sin(v) for k in range(20)], x),
        values((S32, (), 0, 19), VECTOR),
        quick=True,
    )
    for dtype in (*FLOATS, S32, PRED):
        yield Case(
            f"cond-{dtype}",
            lambda p, x, y: lax.cond(p, lambda: (x, y), lambda: (y, x)),
            values((PRED, ()), (dtype, (5,)), (dtype, (5,))),
            eager=False,
        )


CASES = [*loops(), *branches()]
