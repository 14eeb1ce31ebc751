"""A small program set that says whether Treadle works with the JAX that is installed: a file of its own.

    python smoke.py [--quick] [--cache FOLDER]

Needs nothing but JAX, NumPy and an installed Treadle; `version_sync matrix` runs it in fresh environments.
Every value is compared with jaxlib's CPU backend in the same process. One line of JSON on stdout.
With --cache the programs go through JAX's compilation cache in that folder, and the answer counts its
hits: a second process that hits has loaded programs which the first one serialized.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Program = Callable[..., Any]
Inputs = tuple[Any, ...]


def _normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def matmul_and_gradient(x: jax.Array, w: jax.Array, b: jax.Array) -> Any:
    """A layer, its loss and the gradients to every argument."""

    def loss(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.mean(jnp.tanh(x @ w + b) ** 2)

    return jax.value_and_grad(loss, argnums=(0, 1, 2))(x, w, b)


def while_loop(start: jax.Array) -> Any:
    """The lengths of Collatz sequences: as many trips as the data says."""

    def body(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        number, steps = carry
        running = number > 1
        following = jnp.where(number % 2 == 0, number // 2, 3 * number + 1)
        return jnp.where(running, following, number), steps + running

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0] > 1), body, (start, jnp.zeros_like(start)))


def scan(state: jax.Array, inputs: jax.Array, w: jax.Array) -> Any:
    """A recurrent network over time, and the gradient through it."""

    def run(w: jax.Array) -> jax.Array:
        def step(carry: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            following = jnp.tanh(carry @ w + x)
            return following, following.sum(axis=-1)

        last, sums = jax.lax.scan(step, state, inputs)
        return (last**2).sum() + sums.mean()

    return jax.value_and_grad(run)(w)


def convolution_training(images: jax.Array, labels: jax.Array, kernel: jax.Array, dense: jax.Array) -> Any:
    """Three steps of gradient descent on a small convolutional classifier."""

    def loss(weights: tuple[jax.Array, jax.Array]) -> jax.Array:
        kernel, dense = weights
        dimensions = ("NHWC", "HWIO", "NHWC")
        hidden = jax.nn.relu(jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=dimensions))
        pooled = jax.lax.reduce_window(hidden, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        scores = jax.nn.log_softmax(pooled.reshape(len(images), -1) @ dense)
        return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()

    weights = (kernel, dense)
    losses = []
    for _ in range(3):
        value, gradients = jax.value_and_grad(loss)(weights)
        weights = jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients)
        losses.append(value)
    return losses, weights


def random_bits(key: jax.Array) -> Any:
    """Threefry's bits, exactly, and what is made of them."""
    first, second = jax.random.split(key)
    return jax.random.bits(first, (1001,)), jax.random.uniform(second, (7, 9)), jax.random.normal(first, (64,))


def reductions(x: jax.Array) -> Any:
    """Sums, extremes, their places, running sums, and a softmax, over odd shapes."""
    return (
        x.sum(axis=0),
        x.max(axis=1),
        jnp.argmin(x, axis=0),
        jnp.cumsum(x, axis=1),
        jax.nn.softmax(x, axis=-1),
        jax.nn.logsumexp(x),
        x.var(),
    )


def indexing(table: jax.Array, rows: jax.Array, updates: jax.Array) -> Any:
    """Gather, scatter with repeated indices, dynamic slices."""
    return (
        table[rows],
        table.at[rows].add(updates),
        jax.lax.dynamic_slice(table, (rows[0], 1), (3, 2)),
        jax.lax.dynamic_update_slice(table, updates[:2], (rows[1], 0)),
    )


def element_types(x: jax.Array, n: jax.Array) -> Any:
    """bfloat16, float16, small integers and booleans."""
    half = x.astype(jnp.bfloat16)
    return (
        (half * 3 + 1).astype(jnp.float32),
        jnp.exp(x.astype(jnp.float16)),
        (n << 3) ^ (n >> 1),
        n.astype(jnp.int8) + jnp.int8(100),
        (x > 0) & (n % 2 == 0),
        jax.lax.population_count(n),
    )


# Name, program, its arguments, and the error that two correct implementations may differ by, relative
# to the largest element (0: every bit is defined).
PROGRAMS: list[tuple[str, Program, Callable[[], Inputs], float]] = [
    (
        "matmul and gradient",
        matmul_and_gradient,
        lambda: (_normal(33, 17), _normal(17, 9, seed=1), _normal(9, seed=2)),
        2e-5,
    ),
    ("while loop", while_loop, lambda: (np.arange(1, 40, dtype=np.int32),), 0),
    (
        "scan and gradient",
        scan,
        lambda: (_normal(4, 8), _normal(12, 4, 8, seed=1), 0.3 * _normal(8, 8, seed=2)),
        5e-5,
    ),
    (
        "convolution training",
        convolution_training,
        lambda: (
            _normal(8, 10, 10, 3),
            np.arange(8, dtype=np.int32) % 5,
            0.2 * _normal(3, 3, 3, 6, seed=1),
            0.1 * _normal(150, 5, seed=2),
        ),
        1e-4,
    ),
    ("random bits", random_bits, lambda: (np.array([7, 11], dtype=np.uint32),), 4e-6),
    ("reductions", reductions, lambda: (_normal(37, 65),), 2e-5),
    (
        "indexing",
        indexing,
        lambda: (_normal(20, 5), np.array([3, 7, 3, 0, 19], dtype=np.int32), _normal(5, 5, seed=1)),
        4e-6,
    ),
    ("element types", element_types, lambda: (_normal(65), np.arange(65, dtype=np.int32)), 1e-3),
]
QUICK = ("matmul and gradient", "while loop", "random bits")


def compare(found: Any, expected: Any, tolerance: float) -> None:
    """Raises AssertionError when two results are not the same within `tolerance`."""
    left, right = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(left) == len(right), f"{len(left)} results instead of {len(right)}"
    for one, two in zip(left, right, strict=True):
        a, b = np.asarray(one), np.asarray(two)
        assert a.dtype == b.dtype, f"{a.dtype} instead of {b.dtype}"
        if tolerance == 0 or a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            largest = float(np.abs(b).max()) if b.size else 0.0
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * largest)


def _run(program: Program, inputs: Inputs, device: Any) -> Any:
    return jax.jit(program)(*(jax.device_put(value, device) for value in inputs))


def donation(device: Any) -> None:
    """A donated argument is gone, and the result is right."""
    argument = jax.device_put(np.arange(1000, dtype=np.float32), device)
    result = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)(argument)
    np.testing.assert_array_equal(np.asarray(result), np.arange(1000, dtype=np.float32) * 2 + 1)
    assert argument.is_deleted(), "the donated argument is still there"


def ahead_of_time(device: Any) -> None:
    """Lowering, compiling, the analyses and the call, one by one."""
    argument = jax.device_put(_normal(16, 16), device)
    compiled = jax.jit(lambda x: jnp.sin(x) @ x).lower(argument).compile()
    value = np.asarray(argument, dtype=np.float64)
    np.testing.assert_allclose(np.asarray(compiled(argument)), np.sin(value) @ value, rtol=1e-4, atol=1e-4)
    assert compiled.memory_analysis() is not None, "no memory analysis"
    assert compiled.cost_analysis(), "no cost analysis"


def refusal(device: Any) -> None:
    """What Treadle cannot compile is an error that can be caught, not a crash."""
    argument = jax.device_put(_normal(8), device)
    try:
        jax.jit(jnp.fft.fft)(argument).block_until_ready()
    except Exception as error:  # whatever class this jaxlib gives it
        assert "UNIMPLEMENTED" in str(error), f"another error than UNIMPLEMENTED: {error}"


CHECKS: list[tuple[str, Callable[[Any], None]]] = [
    ("donation", donation),
    ("ahead of time", ahead_of_time),
    ("refusal", refusal),
]


def check(name: str, action: Callable[[], None]) -> dict[str, Any]:
    """Runs one thing; gives its name, whether it went well, the seconds, and what went wrong."""
    start = time.monotonic()
    problem = ""
    try:
        action()
    except Exception as error:  # everything that can go wrong is the answer
        problem = f"{type(error).__name__}: {error}".strip()
        traceback.print_exc()
    return {"name": name, "ok": not problem, "seconds": round(time.monotonic() - start, 2), "problem": problem[:2000]}


def main(arguments: Sequence[str]) -> int:
    """Runs everything and prints the answer; 1 if something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--cache", default="", metavar="FOLDER", help="go through JAX's compilation cache")
    options = parser.parse_args(arguments)
    events: dict[str, int] = {"hits": 0, "misses": 0}
    if options.cache:
        jax.config.update("jax_compilation_cache_dir", options.cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

        def count(name: str, **_: Any) -> None:
            for event in events:
                events[event] += name.endswith(f"cache_{event}")

        jax.monitoring.register_event_listener(count)

    def on_both(program: Program, inputs: Inputs, tolerance: float) -> None:
        compare(_run(program, inputs, device), _run(program, inputs, reference), tolerance)

    device, reference = jax.local_devices(backend="treadle")[0], jax.local_devices(backend="cpu")[0]
    kinds = (device.device_kind, reference.device_kind)
    assert kinds[0].startswith("Treadle") and not kinds[1].startswith("Treadle"), kinds
    found = []
    for name, program, inputs, tolerance in PROGRAMS:
        if not options.quick or name in QUICK:
            found.append(check(name, lambda p=program, i=inputs, t=tolerance: on_both(p, i(), t)))  # type: ignore[misc]
    if not options.quick and not options.cache:
        found += [check(name, lambda a=action: a(device)) for name, action in CHECKS]  # type: ignore[misc]
    print(json.dumps({"devices": kinds, "programs": found, "cache": events}))
    return 0 if all(entry["ok"] for entry in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
