"""jax.random: the bits are exact, and what is computed from them is close."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.ops.harness import BF16, F16, F32, FLOATS, S8, S32, U32, Case, fixed

KEY = np.array([123, 456789], np.uint32)


def exact() -> Iterator[Case]:
    """Bits and integers, which must agree to the last bit."""
    rows: list[tuple[str, Callable[[Any], Any]]] = [
        ("key", lambda k: jax.random.key_data(jax.random.key(k[0]))),
        ("split", lambda k: jax.random.split(k, 5)),
        ("split-many", lambda k: jax.random.split(k, 1000)),
        ("fold-in", lambda k: jax.random.fold_in(k, k[1] % 77)),
        ("bits-32", lambda k: jax.random.bits(k, (37,), np.uint32)),
        ("bits-scalar", lambda k: jax.random.bits(k, (), np.uint32)),
        ("bits-8", lambda k: jax.random.bits(k, (7, 3), np.uint8)),
        ("bits-16", lambda k: jax.random.bits(k, (7, 3), np.uint16)),
        ("bits-large", lambda k: jax.random.bits(k, (10_001,), np.uint32)),
        ("bits-empty", lambda k: jax.random.bits(k, (0, 3), np.uint32)),
        ("randint", lambda k: jax.random.randint(k, (55,), -7, 100)),
        ("randint-full-range", lambda k: jax.random.randint(k, (55,), np.iinfo(np.int32).min, np.iinfo(np.int32).max)),
        ("randint-8", lambda k: jax.random.randint(k, (55,), -5, 6, np.int8)),
        ("bernoulli", lambda k: jax.random.bernoulli(k, 0.3, (101,))),
        ("rademacher", lambda k: jax.random.rademacher(k, (101,))),
        ("split-in-loop", lambda k: jax.lax.fori_loop(0, 6, lambda i, c: jax.random.split(c)[1], k)),
        ("vmapped-bits", lambda k: jax.vmap(lambda c: jax.random.bits(c, (4,), np.uint32))(jax.random.split(k, 6))),
    ]
    for name, function in rows:
        yield Case(f"random-{name}", function, fixed(KEY), quick=True)


def approximate() -> Iterator[Case]:
    """Distributions of floats."""
    rows: list[tuple[str, Callable[[Any], Any]]] = [
        ("uniform", lambda k: jax.random.uniform(k, (1025,), minval=-3, maxval=5)),
        ("uniform-scalar", jax.random.uniform),
        ("normal", lambda k: jax.random.normal(k, (33, 31))),
        (
            "normal-in-loop",
            lambda k: jax.lax.scan(
                lambda c, i: (c, jax.random.normal(jax.random.fold_in(c, i), (3,))), k, np.arange(5)
            )[1],
        ),
        ("truncated-normal", lambda k: jax.random.truncated_normal(k, -2, 2, (101,))),
        ("exponential", lambda k: jax.random.exponential(k, (101,))),
        ("laplace", lambda k: jax.random.laplace(k, (101,))),
        ("logistic", lambda k: jax.random.logistic(k, (101,))),
        ("gumbel", lambda k: jax.random.gumbel(k, (101,))),
        ("cauchy", lambda k: jax.random.cauchy(k, (101,))),
        ("rayleigh", lambda k: jax.random.rayleigh(k, 1.0, (101,))),
        ("glorot", lambda k: jax.nn.initializers.glorot_uniform()(k, (17, 9), np.float32)),
        ("he-normal", lambda k: jax.nn.initializers.he_normal()(k, (17, 9), np.float32)),
        ("dropout", lambda k: jnp.where(jax.random.bernoulli(k, 0.5, (64,)), jnp.arange(64.0) / 0.5, 0)),
        (
            "multivariate-normal-by-hand",
            lambda k: jax.random.normal(k, (50, 3)) @ jnp.array([[1.0, 0, 0], [0.5, 1, 0], [0.1, 0.2, 1]]),
        ),
    ]
    for name, function in rows:
        # Distributions with a pole amplify a last-bit difference in the logarithm.
        yield Case(f"random-{name}", function, fixed(KEY), accumulated=True, quick=True)
    for dtype in FLOATS:
        yield Case(
            f"random-uniform-{dtype}",
            lambda k, d=dtype: jax.random.uniform(k, (77,), d),
            fixed(KEY),
            accumulated=True,
            eager=False,
        )
        yield Case(
            f"random-normal-{dtype}",
            lambda k, d=dtype: jax.random.normal(k, (77,), d),
            fixed(KEY),
            accumulated=True,
            eager=False,
        )
    logits = np.linspace(-2, 2, 40, dtype=np.float32).reshape(4, 10)
    yield Case("random-categorical", lambda k, x: jax.random.categorical(k, x, axis=-1), fixed(KEY, logits), quick=True)
    yield Case("random-categorical-many", lambda k, x: jax.random.categorical(k, x, shape=(25, 4)), fixed(KEY, logits))
    yield Case("random-poisson-free-of-sort", lambda k: jax.random.poisson(k, 4.0, (20,)), fixed(KEY))


def implementations() -> Iterator[Case]:
    """Keys of the default generator made, used and unwrapped inside the program."""
    yield Case(
        "random-new-style-key",
        lambda s: jax.random.normal(jax.random.key(s), (9,)),
        fixed(np.uint32(7)),
        accumulated=True,
        quick=True,
    )
    yield Case(
        "random-seed-types",
        lambda s, t: (jax.random.PRNGKey(s), jax.random.PRNGKey(t)),
        fixed(S32.type(-3), U32.type(2**32 - 1)),
    )
    for dtype in (F32, BF16, F16, S8):
        yield Case(
            f"random-bits-as-{dtype}",
            lambda k, d=dtype: jax.random.bits(k, (9,), np.uint32).astype(d),
            fixed(KEY),
            eager=False,
        )


CASES = [*exact(), *approximate(), *implementations()]
