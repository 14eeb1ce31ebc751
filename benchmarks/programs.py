"""What more than one group of measurements uses: the examples' training steps, a small MLP, unrolled RK4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examples import digits, transformer

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def add_one(extent: int = 8) -> Program:
    """x + 1."""
    return lambda x: x + 1, (np.arange(extent, dtype=np.float32),)


def mlp_step() -> Program:
    """Loss and gradients of a two-layer perceptron."""
    generator = np.random.default_rng(0)
    sizes = ((64, 128), (128,), (128, 10), (10,))
    weights = tuple((generator.normal(size=size) * 0.1).astype(np.float32) for size in sizes)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = weights
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2) * y, -1))

    x = generator.normal(size=(32, 64)).astype(np.float32)
    y = np.eye(10, dtype=np.float32)[generator.integers(0, 10, 32)]
    return jax.value_and_grad(loss), (weights, x, y)


def digits_step() -> Program:
    """One training step of the digits example."""
    images, labels, *_ = digits.load_data()
    parameters = digits.initial_parameters()
    zeros = jax.tree.map(np.zeros_like, parameters)
    batch = images[: digits.BATCH], labels[: digits.BATCH]
    return digits.train_step, (parameters, (zeros, zeros), np.float32(0), *batch)


def transformer_step() -> Program:
    """One training step of the transformer example."""
    parameters = transformer.initial_parameters(100)
    zeros = jax.tree.map(np.zeros_like, parameters)
    shape = transformer.BATCH, transformer.WINDOW + 1
    windows = np.random.default_rng(0).integers(0, 100, shape, dtype=np.int32)
    return transformer.train_step, (parameters, (zeros, zeros), np.float32(0), windows)


def unrolled_rk4(steps: int) -> Program:
    """Runge-Kutta steps of the Lorenz system, written out."""

    def slope(s: Any) -> Any:
        return jnp.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

    def program(s: Any) -> Any:
        for _ in range(steps):
            k1 = slope(s)
            k2 = slope(s + 0.005 * k1)
            k3 = slope(s + 0.005 * k2)
            k4 = slope(s + 0.01 * k3)
            s = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s

    return program, (np.ones(3, np.float32),)


def switch_with(branches: int) -> Program:
    """A switch with many small branches."""

    def program(i: Any, x: Any) -> Any:
        return jax.lax.switch(i, [lambda v, k=k: jnp.sin(v) * k + v for k in range(branches)], x)

    return program, (np.int32(3), np.ones(16, np.float32))
