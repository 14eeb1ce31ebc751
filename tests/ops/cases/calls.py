"""Functions of functions: nested jit, custom derivatives, transformations, unusual signatures, long programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import (
    BF16,
    F32,
    U32,
    Case,
    fixed,
    values,
)

VECTOR = (F32, (17,))


def calls() -> Iterator[Case]:
    """Functions of functions: nested jit, custom rules, checkpoints, transformations."""
    inner = jax.jit(lambda x: jnp.sin(x) * 2)

    @jax.custom_jvp
    def softened(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    softened.defjvps(lambda t, _, x: t * jax.nn.sigmoid(x))

    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 3

    clipped.defvjp(lambda x: (x * 3, x), lambda x, g: (jnp.clip(g, -0.1, 0.1) * jnp.sign(x),))

    def energy(x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * x**2)

    rows: list[tuple[str, Callable[..., Any], tuple[tuple[Any, ...], ...], tuple[int, ...]]] = [
        ("nested-jit", lambda x: inner(inner(x)) + inner(x + 1), (VECTOR,), (0,)),
        ("same-call-twice", lambda x: inner(x) + inner(x), (VECTOR,), (0,)),
        ("custom-jvp", softened, (VECTOR,), (0,)),
        ("custom-vjp", clipped, (VECTOR,), (0,)),
        ("checkpoint", jax.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x)))), (VECTOR,), (0,)),
        ("stop-gradient", lambda x: x * lax.stop_gradient(x), (VECTOR,), (0,)),
        ("optimization-barrier", lambda x, y: lax.optimization_barrier((x + 1, y * 2)), (VECTOR, VECTOR), ()),
        ("grad", jax.grad(energy), (VECTOR,), (0,)),
        ("hessian", jax.hessian(energy), ((F32, (5,)),), ()),
        ("jacobian", jax.jacobian(lambda x: jnp.outer(x, jnp.sin(x))), ((F32, (5,)),), ()),
        ("jvp", lambda x, t: jax.jvp(energy, (x,), (t,)), (VECTOR, VECTOR), ()),
        ("vmap-grad", jax.vmap(jax.grad(energy)), ((F32, (4, 5)),), ()),
        (
            "vmap-in-axes",
            jax.vmap(lambda a, b: a * b.sum(), in_axes=(0, 1), out_axes=1),
            ((F32, (4, 5)), (F32, (3, 4))),
            (0, 1),
        ),
        ("runge-kutta", runge_kutta, ((F32, (3,)),), (0,)),
        (
            "mixed-precision",
            lambda x, w: (x.astype(BF16) @ w.astype(BF16)).astype(F32).sum(),
            ((F32, (9, 16)), (F32, (16, 5))),
            (),
        ),
        ("identity", lambda x: x, (VECTOR,), ()),
        ("same-result-twice", lambda x: (x + 1, x + 1, x), (VECTOR,), ()),
        ("swap-arguments", lambda x, y: (y, x), (VECTOR, VECTOR), ()),
        ("unused-argument", lambda x, y: x * 2, (VECTOR, VECTOR), ()),
        ("no-results", lambda x: (), (VECTOR,), ()),
        ("result-is-constant", lambda x: jnp.arange(5), (VECTOR,), ()),
        ("nested-tree", lambda x: {"a": [x, (x * 2, None)], "b": {"c": x.sum()}}, (VECTOR,), ()),
    ]
    for name, function, specs, grad in rows:
        yield Case(
            name,
            function,
            values(*specs),
            grad=grad,
            accumulated=True,
            tolerance=3e-2 if name == "mixed-precision" else None,
            quick=True,
        )
    yield Case("no-arguments", lambda: (jnp.arange(4) * 2, jnp.sin(jnp.float32(1))), quick=True)
    many = [(F32, (k % 3 + 1,)) for k in range(200)]
    yield Case(
        "200-arguments",
        lambda *xs: (sum(x[0] for x in xs), xs[7] * 2, xs[199]),
        values(*many),
        accumulated=True,
        eager=False,
        quick=True,
    )
    yield Case("200-results", lambda x: tuple(x + k for k in range(200)), values(VECTOR), eager=False, quick=True)
    yield Case("long-chain", lambda x: chain(x, 200), values((F32, (33,))), accumulated=True, eager=False)
    yield Case(
        "pairwise-difference-energy",
        lambda x: jnp.sum(jnp.exp(-((x[:, None] - x[None, :]) ** 2))),
        values((F32, (65,))),
        grad=(0,),
        accumulated=True,
    )
    yield Case(
        "dropout-mask",
        lambda x, bits: jnp.where(bits < np.uint32(1 << 31), x / 0.5, 0),
        values(VECTOR, (U32, (17,))),
        grad=(0,),
    )
    yield Case(
        "histogram-by-comparison",
        lambda x: jnp.sum((x[:, None] // 10) == jnp.arange(10), 0),
        fixed(np.arange(100, dtype=np.int32)),
    )


def runge_kutta(state: Any) -> Any:
    """Unrolled steps of the Lorenz system. (Three: of ten, jaxlib compiles the gradient for two minutes.)"""

    def slope(s: Any) -> Any:
        return jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

    for _ in range(3):
        k1 = slope(state)
        k2 = slope(state + 0.005 * k1)
        k3 = slope(state + 0.005 * k2)
        k4 = slope(state + 0.01 * k3)
        state = state + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def chain(x: Any, length: int) -> Any:
    """A long straight line of small operations."""
    for k in range(length):
        x = jnp.cos(x) + x * 0.5 if k % 2 else jnp.sin(x) - 0.1
    return x


CASES = [*calls()]
