"""JAX functions that together use every op and attribute that the frontend takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.compiler.frontend.programs import random_arguments

A = random_arguments
INTEGERS = ((4, 6), "int32")
NHWC = ("NHWC", "HWIO", "NHWC")


def _convolution(strides=(1, 1), padding="SAME", **options):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=NHWC, **options)


def _pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


Case = tuple[Callable[..., Any], list[Any]]

CASES: dict[str, Case] = {
    "elementwise": (lambda x, y: jnp.tanh(x) * jnp.maximum(x, y) - jnp.exp(x) / 3, A((4, 6), (4, 6))),
    "maths": (lambda x: (jnp.sin(x), jnp.log1p(jnp.abs(x)), jax.nn.sigmoid(x), lax.rsqrt(jnp.abs(x) + 1)), A((8,))),
    "erf": (jax.scipy.special.erf, A((8,))),
    "integer": (lambda x, y: (x // 3, x % 5, x << 2, x ^ y, lax.population_count(x)), A(INTEGERS, INTEGERS)),
    "compare": (lambda x, y: jnp.where(x < y, x, y) + jnp.isnan(x) + (x == y), A((4, 6), (4, 6))),
    "convert": (lambda x: (x.astype(jnp.int8), x.astype(jnp.bfloat16), x > 0), A((4, 6))),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.uint32), A((4,))),
    "clamp": (lambda x: lax.clamp(-1.0, x, 1.5), A((4, 6))),
    "shapes": (lambda x: jnp.transpose(x.reshape(6, 4)[:, None], (2, 1, 0))[::2, :, 1:5:2], A((4, 6))),
    "pad": (lambda x: lax.pad(x, 9.0, ((1, 2, 1), (0, -1, 0))), A((4, 6))),
    "concatenate": (lambda x, y: jnp.concatenate([x, jnp.flip(y, 0), x], 0), A((4, 6), (2, 6))),
    "iota": (lambda x: x + jnp.arange(6.0), A((4, 6))),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), [A((4, 6))[0], np.int32(9)]),
    "dynamic_update": (lambda x, i: lax.dynamic_update_slice(x, x[:1] * 2, (i, 0)), [A((4, 6))[0], np.int32(2)]),
    "gather": (lambda x, i: x[i, 1:3], [A((4, 6))[0], np.array([3, 0, 9, -1], np.int32)]),
    "scatter": (lambda x, i: x.at[i].add(1.5).at[0, 2].set(7.0), [A((4, 6))[0], np.array([3, 1, 3], np.int32)]),
    "scatter_batched": (
        jax.vmap(lambda x, i: x.at[i].multiply(2.0)),
        [A((4, 6))[0], np.array([[3, 1], [0, 0], [5, 4], [9, 2]], np.int32)],
    ),
    "reduce": (lambda x: (x.sum(), x.max(1), x.prod(0), jnp.argmax(x, 1), (x > 0).all()), A((4, 6))),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), lax.cummax(x)), A((4, 6))),
    "dot": (lambda x, y: x @ y, A((4, 6), (6, 3))),
    "dot_batched": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), A((2, 4, 6), (2, 3, 6))),
    "convolution": (_convolution(), A((2, 8, 8, 3), (3, 3, 3, 4))),
    "convolution_strided": (_convolution((2, 1), [(1, 0), (2, 1)]), A((2, 8, 8, 3), (3, 2, 3, 4))),
    "convolution_dilated": (
        _convolution((1, 1), [(1, 2), (0, 1)], lhs_dilation=(2, 1), rhs_dilation=(1, 2)), A((1, 5, 6, 2), (3, 3, 2, 2))
    ),
    "convolution_grouped": (_convolution(feature_group_count=2), A((1, 5, 6, 4), (3, 3, 2, 6))),
    "convolution_gradient": (
        jax.grad(lambda x, w: _pool(jnp.square(_convolution()(x, w))).sum(), (0, 1)), A((2, 8, 8, 1), (3, 3, 1, 2))
    ),
    "average_pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), ((1, 0), (0, 2))), A((4, 6))),
    "while": (lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), A((4, 6))),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * 2), x[0], x), A((4, 6))),
    "cond": (lambda p, x: lax.cond(p, lambda y: y * 2, lambda y: -y, x), [np.bool_(True), A((4, 6))[0]]),
    "switch": (
        lambda i, x: lax.switch(i, [lambda y: y * 2, lambda y: -y, lambda y: y + x], x), [np.int32(7), A((4, 6))[0]]
    ),
    "threefry": (lambda k: jax.random.bits(jax.random.wrap_key_data(k), (5, 3)), [np.array([3, 7], np.uint32)]),
    "normal": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (7,)), [np.array([3, 7], np.uint32)]),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 3), A((4, 6))),
    "barrier": (lambda x, y: lax.optimization_barrier((x * 2, y)), A((4,), (4,))),
    "softmax_gradient": (jax.grad(lambda x: jax.nn.log_softmax(x)[:, 1].sum()), A((4, 6))),
    "closed_over": (lambda x: x + np.arange(24, dtype=np.float32).reshape(4, 6), A((4, 6))),
    "mask": (lambda x: jnp.where(np.tri(4, 6, dtype=bool), x, -1.0), A((4, 6))),
    "empty": (lambda x: (jnp.concatenate([x[:0], x]), x[:, :0].sum(1)), A((4, 6))),
    "nothing": (lambda: jnp.float32(3.0), []),
    "same_twice": (lambda x: (x, x), A((4,))),
}  # fmt: skip
