"""How long compiled programs run, one blocking call at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from benchmarks import measure, programs

GROUP = "run time"

Entry = tuple[str, Callable[..., Any], tuple[Any, ...]]


def array(*shape: int, dtype: Any = np.float32) -> Any:
    """Normal numbers."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def elementwise() -> Iterator[Entry]:
    """Chains of arithmetic, and the costly functions alone."""
    for size in (1_000, 100_000, 1_000_000, 16_000_000):
        x = array(size)
        yield f"a*x + y, {size:,}", lambda x, y: 2.5 * x + y, (x, x)
        if size < 16_000_000:
            yield f"gelu, {size:,}", jax.nn.gelu, (x,)
    x = np.abs(array(1_000_000)) + 0.1
    functions = {
        "exp": jnp.exp,
        "log": jnp.log,
        "sin": jnp.sin,
        "tan": jnp.tan,
        "power": lambda x: x**2.7,
        "cbrt": jnp.cbrt,
        "atan2": lambda x: jnp.arctan2(x, 1 - x),
        "erf": lax.erf,
    }
    for name, function in functions.items():
        yield f"{name}, 1,000,000", function, (x,)
    b = array(1_000_000, dtype=ml_dtypes.bfloat16)
    yield "a*x + y bf16, 1,000,000", lambda x, y: x * 2 + y, (b, b)
    yield "transpose 2000x2000", lambda x: x.T, (array(2000, 2000),)
    yield "concatenate 2 x 1,000,000", lambda x: jnp.concatenate([x, x]), (x,)


def rows_and_columns() -> Iterator[Entry]:
    """Reductions and what is made of them."""
    square, batch = array(2000, 2000), array(64, 128, 256)
    yield "sum of all, 2000x2000", jnp.sum, (square,)
    yield "sum of rows, 2000x2000", lambda x: x.sum(1), (square,)
    yield "sum of columns, 2000x2000", lambda x: x.sum(0), (square,)
    yield "argmax of rows, 2000x2000", lambda x: x.argmax(1), (square,)
    yield "softmax 64x128x256", jax.nn.softmax, (batch,)
    yield "layer norm 64x128x256", layer_norm, (batch,)
    yield "layer norm gradient 64x128x256", jax.grad(lambda x: jnp.sum(layer_norm(x) ** 3)), (batch,)
    yield "cumsum 1,000,000", jnp.cumsum, (array(1_000_000),)
    yield (
        "pairwise distances 1000x3",
        lambda x: jnp.sum(jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1) + 1e-6), 1),
        (array(1000, 3),),
    )


def layer_norm(x: Any) -> Any:
    """Mean 0 and variance 1 over the last axis."""
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def products() -> Iterator[Entry]:
    """Matrix products, attention, convolutions and their gradients."""
    for n in (16, 64, 256, 1000):
        yield f"matmul f32 {n}", jnp.matmul, (array(n, n), array(n, n))
    for n in (256, 1000):
        yield f"matmul bf16 {n}", jnp.matmul, (array(n, n, dtype=ml_dtypes.bfloat16),) * 2
    yield "matrix times vector 2000", jnp.matmul, (array(2000, 2000), array(2000))
    yield "batched matmul 64 x 32x32", jnp.matmul, (array(64, 32, 32), array(64, 32, 32))
    yield "chain of 20 4x4 products", chain, (array(4, 4) * 0.1,)
    qkv = (array(4, 128, 4, 64),) * 3
    yield "attention 4x128x4x64", attention, qkv
    yield "attention gradient 4x128x4x64", jax.grad(lambda *a: jnp.sum(attention(*a)), (0, 1, 2)), qkv
    x, k = array(16, 28, 28, 32), array(3, 3, 32, 64)
    yield "conv 3x3 16x28x28x32->64", conv, (x, k)
    yield "conv 3x3 gradient", jax.grad(lambda x, k: jnp.sum(conv(x, k) ** 2), (0, 1)), (x, k)
    yield "conv depthwise 16x28x28x32", lambda x, k: conv(x, k, groups=32), (x, array(3, 3, 1, 32))
    yield "max pool 2x2 gradient", jax.grad(lambda x: jnp.sum(pool(x) ** 2)), (x,)


def chain(x: Any) -> Any:
    """Twenty products in a row."""
    for _ in range(20):
        x = x @ x
    return x


def attention(q: Any, k: Any, v: Any) -> Any:
    """Softmax attention of (batch, position, head, feature) arrays."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def conv(x: Any, k: Any, groups: int = 1) -> Any:
    """A 3x3 convolution that keeps the size."""
    return lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )


def pool(x: Any) -> Any:
    """Maxima of 2x2 squares."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def loops() -> Iterator[Entry]:
    """Loops with little work per turn."""
    yield (
        "fori_loop of a scalar, 10,000",
        lambda x: lax.fori_loop(0, 10_000, lambda i, c: c * 0.999 + i, x),
        (np.float32(1),),
    )
    yield (
        "fori_loop 8x8 matvec, 1,000",
        lambda m, v: lax.fori_loop(0, 1000, lambda _, c: jnp.tanh(m @ c), v),
        (array(8, 8), array(8)),
    )
    yield (
        "scan of a vector of 64, 1,000",
        lambda x, xs: lax.scan(lambda c, e: (jnp.tanh(c) + e, c.sum()), x, xs),
        (array(64), array(1000, 64)),
    )
    yield (
        "row update in a loop, 1,000",
        lambda x: lax.fori_loop(0, 1000, lambda i, c: c.at[i].set(c[i - 1] + 1), x),
        (array(1000, 64),),
    )
    yield "RK4, 2 steps unrolled", *programs.unrolled_rk4(2)


def memory_and_random() -> Iterator[Entry]:
    """Gather, scatter and random numbers."""
    table, indices = array(50_000, 64), np.random.default_rng(1).integers(0, 50_000, 20_000, dtype=np.int32)
    key = np.array([0, 7], np.uint32)
    yield "gather 20,000 rows of 64", lambda t, i: t[i], (table, indices)
    yield "scatter-add 20,000 rows of 64", lambda t, i, u: t.at[i].add(u), (table, indices, array(20_000, 64))
    yield (
        "scatter-add 100,000 scalars",
        lambda t, i, u: t.at[i].add(u),
        (array(1000), np.random.default_rng(1).integers(0, 1000, 100_000, dtype=np.int32), array(100_000)),
    )
    yield "random bits 1,000,000", lambda k: jax.random.bits(k, (1_000_000,)), (key,)
    yield "random uniform 1,000,000", lambda k: jax.random.uniform(k, (1_000_000,)), (key,)
    yield "random normal 1,000,000", lambda k: jax.random.normal(k, (1_000_000,)), (key,)


def models() -> Iterator[Entry]:
    """Whole training steps."""
    yield "MLP, loss and gradients", *programs.mlp_step()
    yield "digits, training step", *programs.digits_step()
    yield "transformer, training step", *programs.transformer_step()


def rows(settings: measure.Settings) -> Iterator[measure.Row]:
    """A row per program."""
    for family in (elementwise, rows_and_columns, products, loops, memory_and_random, models):
        for name, function, arguments in family():
            if settings.wants(GROUP, name):
                ours, theirs = measure.run_time(function, arguments, settings.quick)
                yield measure.Row(GROUP, name, "us", ours * 1e6, theirs * 1e6)
