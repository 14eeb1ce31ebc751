"""A JAX program that the release runs on Treadle and on jaxlib's CPU backend, and compares.

Run with JAX_PLATFORMS=treadle,cpu in the environment that is tested. It imports nothing of the checkout.
"""

import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def attention(query: jax.Array, key: jax.Array, value: jax.Array) -> jax.Array:
    """Products, a softmax over the last axis, and a mask."""
    scores = query @ key.T / jnp.sqrt(query.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones_like(scores)) > 0, scores, -jnp.inf)
    return jax.nn.softmax(scores) @ value


def loss(weights: jax.Array, image: jax.Array) -> jax.Array:
    """A convolution and a reduction."""
    return jnp.tanh(jax.lax.conv(image, weights, (1, 1), "SAME")).var()


def walk(start: jax.Array) -> jax.Array:
    """A loop that carries an array and gathers from it."""
    return jax.lax.fori_loop(0, 20, lambda i, x: x.at[i % x.size].add(jnp.cos(x[(3 * i) % x.size])), start)


def main() -> int:
    """Runs each function on both backends; 1 if a result differs or the backend is not Treadle."""
    treadle, reference = jax.devices("treadle")[0], jax.devices("cpu")[0]
    if jax.default_backend() != "cpu" or jax.devices()[0].device_kind != "Treadle CPU":
        print(f"the default device is {jax.devices()[0]!r}, not Treadle's")
        return 1
    random = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    cases: dict[str, tuple[Callable[..., jax.Array], list[Any]]] = {
        "attention": (jax.jit(attention), [array(64, 32), array(64, 32), array(64, 32)]),
        "gradient of a convolution": (jax.jit(jax.grad(loss)), [array(8, 3, 3, 3), array(4, 3, 16, 16)]),
        "loop": (jax.jit(walk), [array(10)]),
        "random": (jax.jit(lambda seed: jax.random.normal(jax.random.key(seed), (100,))), [np.uint32(7)]),
    }
    failed = 0
    for name, (function, arguments) in cases.items():
        results = []
        for device in (treadle, reference):
            with jax.default_device(device):
                results.append(np.asarray(function(*arguments)))
        worst = float(np.max(np.abs(results[0] - results[1])))
        good = np.allclose(results[0], results[1], rtol=1e-4, atol=1e-5)
        failed += not good
        print(f"{name}: {'ok' if good else 'DIFFERS'}, largest difference {worst:.1e}")
    versions = ", ".join(
        f"{package} {metadata.version(package)}" for package in ("treadle", "jax", "jaxlib", "llvmlite")
    )
    print(f"Python {sys.version.split()[0]}, {versions}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
