"""JAX programs that between them reach every kind of fusion, step and carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Example = tuple[Callable[..., Any], tuple[Any, ...]]


def _array(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def _layer_norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def _attention_loss(x: Any) -> Any:
    scores = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), jnp.einsum("bqd,bkd->bqk", x, x) / 4.0, -1e9)
    return jnp.sum(jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), x) ** 2)


def _sampling_loop(x: Any) -> Any:
    noise = jnp.log(jnp.abs(jnp.sin(x)) + 1.0)

    def body(i: Any, t: Any) -> Any:
        row = x[t % 16][i - 1]
        return t.at[i].set(jnp.argmax(row + noise[i]).astype(t.dtype))

    return jax.lax.fori_loop(3, 12, body, jnp.arange(12, dtype=jnp.int32))


def _swapping_loop(x: Any) -> Any:
    return jax.lax.fori_loop(0, 5, lambda i, c: (c[1], c[0] @ c[1].T @ c[1], c[2] + i), (x, x * 2, 0))


def _nested_loops(x: Any) -> Any:
    def inner(i: Any, c: Any) -> Any:
        return jax.lax.fori_loop(0, i, lambda j, y: jnp.sin(y) + y[::-1] * j, c)

    return jax.lax.fori_loop(0, 4, inner, x)


def _stacking_scan(x: Any) -> Any:
    return jax.lax.scan(lambda c, a: (c * 0.5 + a, (c, a.sum())), x[0], x)


def _branches(x: Any) -> Any:
    doubled = jax.lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: y.at[0].set(1.0), x)
    return jax.lax.switch(jnp.int32(x[1, 1]), [lambda y: y, lambda y: y.T @ y @ y.T, lambda y: y - 1], doubled[:8, :8])


def _pool_gradient(x: Any) -> Any:
    image = x.reshape(1, 16, 16, 1)

    def pooled(y: Any) -> Any:
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return jax.grad(lambda y: jnp.sum(pooled(y) ** 2))(image)


def _overlapping_pool_gradient(x: Any) -> Any:
    image = x.reshape(1, 16, 16, 1)

    def pooled(y: Any) -> Any:
        return jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")

    return jax.grad(lambda y: jnp.sum(pooled(y) ** 2))(image)


def _convolution_gradient(x: Any) -> Any:
    image, kernel = x.reshape(1, 16, 16, 1), x[:3, :3].reshape(3, 3, 1, 1)
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(i: Any, k: Any) -> Any:
        return jnp.sum(jax.lax.conv_general_dilated(i, k, (2, 2), "SAME", dimension_numbers=layout) ** 2)

    return jax.grad(loss, (0, 1))(image, kernel)


EXAMPLES: dict[str, Example] = {
    "elementwise": (lambda x: jnp.tanh(x) * x + 1, (_array(16, 16),)),
    "several results": (lambda x: (jnp.sin(x), jnp.sin(x) + x, x * 2), (_array(16, 16),)),
    "softmax": (jax.nn.softmax, (_array(16, 16),)),
    "layer norm": (_layer_norm, (_array(16, 16),)),
    "layer norm gradient": (jax.grad(lambda x: jnp.sum(_layer_norm(x) ** 3)), (_array(16, 16),)),
    "attention gradient": (jax.grad(_attention_loss), (_array(2, 8, 16),)),
    "column reductions": (lambda x: (x.sum(0), jnp.max(x * 2, 0), x.mean()), (_array(16, 16),)),
    "argmax": (lambda x: (jnp.argmax(x, -1), jnp.argmin(x, 0)), (_array(16, 16),)),
    "split reduction": (lambda x: (x.sum(), jnp.max(x)), (_array(512, 256),)),
    "concatenate and pad": (lambda x: (jnp.concatenate([x, x * 2], 1), jnp.pad(x, 1)), (_array(16, 16),)),
    "transposes": (lambda x: (x.T + 1, x.T, x.reshape(8, 32).T * x.reshape(32, 8)), (_array(16, 16),)),
    "gather": (lambda x: (x[jnp.array([3, 1, 2])], x[:, jnp.array([0, 5])] * 2), (_array(16, 16),)),
    "scatter": (lambda x: (x.at[3].set(1.0), x.at[jnp.array([1, 2, 1])].add(x[:3])), (_array(16, 16),)),
    "matmul chain": (lambda x: x @ x.T @ x + x, (_array(64, 64),)),
    "integer matmul": (lambda x: (x @ x.T).sum(0), (np.arange(64, dtype=np.int8).reshape(8, 8),)),
    "random": (lambda x: x + jax.random.normal(jax.random.key(1), x.shape), (_array(16, 16),)),
    "sampling loop": (_sampling_loop, (_array(16, 16),)),
    "swapping loop": (_swapping_loop, (_array(16, 16),)),
    "nested loops": (_nested_loops, (_array(16, 16),)),
    "scan": (_stacking_scan, (_array(16, 16),)),
    "branches": (_branches, (_array(16, 16),)),
    "pool gradient": (_pool_gradient, (_array(16, 16),)),
    "overlapping pool gradient": (_overlapping_pool_gradient, (_array(16, 16),)),
    "convolution gradient": (_convolution_gradient, (_array(16, 16),)),
    "cumulative sum": (lambda x: jnp.cumsum(x, 0), (_array(16, 16),)),
    "result is argument": (lambda x: (x, x.reshape(4, 64), jnp.zeros(3), x[0, 0]), (_array(16, 16),)),
    "empty": (lambda x: (x[:0].sum(), x[:0] + 1, jnp.concatenate([x[:0], x])), (_array(16, 16),)),
}
