"""Rows of the differential table, how one is run, and what counts as equal.

A row (`Case`) is a JAX function with inputs. It is run on the platform under test, as one jitted program and eagerly
(one program per primitive), forward and, where it says so, backward. The expected values come from jaxlib's CPU
backend in the same process, or from the row's own NumPy oracle where jaxlib's CPU departs from IEEE 754
(it flushes subnormals) or where the value is known independently.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Inputs = Callable[[np.random.Generator], Sequence[Any]]

PLATFORM = os.environ.get("TREADLE_TEST_PLATFORM", "treadle")
X64: bool = jax.config.jax_enable_x64
BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
S8, S16, S32, S64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
PRED = np.dtype(np.bool_)

FLOATS = (F32, BF16, F16, *((F64,) if X64 else ()))
SIGNED = (S32, S8, S16, *((S64,) if X64 else ()))
UNSIGNED = (U32, U8, U16, *((U64,) if X64 else ()))
INTEGERS = (*SIGNED, *UNSIGNED)
DTYPES = (*FLOATS, *INTEGERS, PRED)

# Relative error that two correct implementations of one operation may differ by. f32: jaxlib's own functions are within
# some 30 units in the last place (of 6e-8) in their worst corners. bf16 and f16: two to four units, since one
# implementation may round between operations where another does not.
ELEMENTWISE = {F64: 1e-13, F32: 4e-6, BF16: 1.6e-2, F16: 2e-3}
# The same for sums of many products, relative to the largest element of the result, because cancellation
# leaves small elements with the absolute error of large terms.
ACCUMULATED = {F64: 1e-12, F32: 2e-5, BF16: 3e-2, F16: 6e-3}


@dataclasses.dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
      name: unique within the table; what pytest shows.
      function: the JAX function.
      inputs: makes the arguments from a generator seeded by the name.
      grad: which arguments to differentiate with respect to; empty for none.
      expected: a NumPy function that takes the arguments and gives the result, instead of jaxlib's CPU.
      accumulated: whether results are sums, compared relative to the largest element of the result.
      tolerance: the relative error allowed, instead of the table's for the result's dtype.
      zero_signs: whether +0 and -0 differ.
      eager: whether to run it eagerly too; a single primitive is the same program either way.
      quick: whether it is in the quick subset.
    """

    name: str
    function: Callable[..., Any]
    inputs: Inputs = lambda generator: ()
    grad: tuple[int, ...] = ()
    expected: Callable[..., Any] | None = None
    accumulated: bool = False
    tolerance: float | None = None
    zero_signs: bool = False
    eager: bool = True
    quick: bool = False

    def arguments(self) -> tuple[Any, ...]:
        """The same arguments on every call, in every process."""
        return tuple(self.inputs(np.random.default_rng(zlib.crc32(self.name.encode()))))


@functools.cache
def device_under_test() -> jax.Device:
    """The first device of the platform under test."""
    return jax.local_devices(backend=PLATFORM)[0]


@functools.cache
def reference_device() -> jax.Device:
    """jaxlib's own CPU device."""
    return jax.local_devices(backend="cpu")[0]


def to_numpy(tree: Any) -> Any:
    """Results as NumPy arrays on the host."""
    return jax.tree.map(np.asarray, tree)


def run(function: Callable[..., Any], arguments: Sequence[Any], device: jax.Device, jit: bool) -> Any:
    """The function's result as NumPy arrays, computed on `device`, and there only."""
    with jax.default_device(device):
        placed = jax.device_put(tuple(arguments), device)
        result = (jax.jit(function) if jit else function)(*placed)
        for leaf in jax.tree.leaves(result):
            if isinstance(leaf, jax.Array):
                assert leaf.devices() == {device}, f"the result is on {leaf.devices()}, not on {device}"
        return to_numpy(result)


def gradient_of(case: Case) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The row's vector-Jacobian product as a function, and its arguments: cotangents first, then the row's."""
    arguments = case.arguments()
    result = jax.eval_shape(case.function, *arguments)
    generator = np.random.default_rng(zlib.crc32(case.name.encode()) + 1)
    leaves = jax.tree.leaves(result)
    differentiable = [jnp.issubdtype(leaf.dtype, np.floating) for leaf in leaves]
    cotangents = [
        generator.uniform(-1, 1, leaf.shape).astype(leaf.dtype)
        for leaf, take in zip(leaves, differentiable, strict=True)
        if take
    ]
    if not cotangents:
        raise ValueError(f"{case.name}: no result is a float, so there is no gradient")

    def gradient(cotangents: Any, *arguments: Any) -> Any:
        def restricted(*chosen: Any) -> Any:
            replaced = list(arguments)
            for position, value in zip(case.grad, chosen, strict=True):
                replaced[position] = value
            outputs = jax.tree.leaves(case.function(*replaced))
            return [output for output, take in zip(outputs, differentiable, strict=True) if take]

        _, pull_back = jax.vjp(restricted, *(arguments[position] for position in case.grad))
        return pull_back(cotangents)

    return gradient, (cotangents, *arguments)


def assert_equal(actual: Any, expected: Any, case: Case, what: str, *, gradient: bool = False) -> None:
    """Compares two trees of arrays by the rules at the top of this file.

    Gradients are sums of terms that may cancel (1 - tanh(x)**2), so they are always compared relative to their largest
    element.
    """
    actual_leaves, actual_tree = jax.tree.flatten(actual)
    expected_leaves, expected_tree = jax.tree.flatten(expected)
    assert actual_tree == expected_tree, f"{case.name} {what}: {actual_tree} instead of {expected_tree}"
    for number, (a, e) in enumerate(zip(actual_leaves, expected_leaves, strict=True)):
        where = f"{case.name} {what}, result {number}"
        compare(
            np.asarray(a),
            np.asarray(e),
            where,
            accumulated=case.accumulated or gradient,
            tolerance=case.tolerance,
            zero_signs=case.zero_signs and not gradient,
        )


def compare(
    actual: Array,
    expected: Array,
    where: str,
    *,
    accumulated: bool = False,
    tolerance: float | None = None,
    zero_signs: bool = False,
) -> None:
    """Asserts that two arrays agree: shape, dtype, NaN and infinities in their places, values as the dtype allows."""
    assert actual.dtype == expected.dtype, f"{where}: {actual.dtype} instead of {expected.dtype}"
    assert actual.shape == expected.shape, f"{where}: {actual.shape} instead of {expected.shape}"
    if not jnp.issubdtype(expected.dtype, np.floating):
        wrong = actual != expected
    else:
        a, e = actual.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(e)
        relative = (ACCUMULATED if accumulated else ELEMENTWISE)[expected.dtype] if tolerance is None else tolerance
        largest = np.max(np.abs(e), where=finite, initial=0.0)
        # Elementwise: half a unit of the smallest normal number also counts as equal, near zero it decides nothing.
        tiny = float(jnp.finfo(expected.dtype).tiny)
        slack = relative * largest if accumulated else (tiny / 2 if PLATFORM != "cpu" else 2 * tiny)
        with np.errstate(invalid="ignore", over="ignore"):
            wrong = np.where(
                finite, ~(np.abs(a - e) <= relative * np.abs(e) + slack), ~((a == e) | (np.isnan(a) & np.isnan(e)))
            )
        if zero_signs:
            wrong = wrong | ((e == 0) & (np.signbit(a) != np.signbit(e)))
    if np.any(wrong):
        places = np.argwhere(wrong)
        shown = ", ".join(
            f"{tuple(map(int, place))}: {actual[tuple(place)]!r} instead of {expected[tuple(place)]!r}"
            for place in places[:5]
        )
        raise AssertionError(
            f"{where}: {len(places)} of {actual.size} elements of {actual.dtype}{list(actual.shape)} differ; {shown}"
        )


# Makers of inputs ---------------------------------------------------------------------------------


def values(*specs: tuple[Any, ...]) -> Inputs:
    """Random arrays, one for each (dtype, shape[, low, high]); see `draw`."""
    return lambda generator: [draw(generator, *spec) for spec in specs]


def draw(
    generator: np.random.Generator,
    dtype: Any,
    shape: Sequence[int],
    low: float | None = None,
    high: float | None = None,
) -> Any:
    """A random array: floats uniform in [-2, 2), integers over their whole range, or within the bounds; bools."""
    dtype = np.dtype(dtype)
    if dtype == PRED:
        return generator.random(shape) < 0.5
    if jnp.issubdtype(dtype, np.integer):
        info = jnp.iinfo(dtype)
        lower = int(info.min) if low is None else max(int(low), int(info.min))
        upper = int(info.max) if high is None else min(int(high), int(info.max))
        return generator.integers(lower, upper, shape, dtype=dtype, endpoint=True)
    return np.asarray(generator.uniform(-2.0 if low is None else low, 2.0 if high is None else high, shape)).astype(
        dtype
    )


def fixed(*arrays: Any) -> Inputs:
    """The very arrays given."""
    return lambda generator: arrays


def specials(dtype: Any) -> Array:
    """The values at which implementations go wrong: NaN, infinities, zeros, ones, subnormals, extremes."""
    dtype = np.dtype(dtype)
    if dtype == PRED:
        return np.array([False, True])
    if jnp.issubdtype(dtype, np.integer):
        info = jnp.iinfo(dtype)
        near = [
            0,
            1,
            2,
            3,
            7,
            100,
            int(info.max),
            int(info.max) - 1,
            int(info.min),
            int(info.min) + 1,
            int(info.max) // 2,
        ]
        if info.min < 0:
            near += [-1, -2, -3, -7, -100]
        return np.array(near, dtype)
    info = jnp.finfo(dtype)
    tiny, small, huge = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    # jaxlib's CPU backend flushes subnormals, so they are left out when it stands in for the platform under test.
    subnormals = [small, tiny / 2] if PLATFORM != "cpu" else []
    positive = [
        0.0,
        *subnormals,
        tiny,
        1e-3,
        0.5,
        float(1 - info.epsneg),
        1.0,
        float(1 + info.eps),
        1.5,
        2.0,
        2.5,
        np.pi,
        10.0,
        80.0,
        100.0,
    ]
    positive += [huge / 2, huge, np.inf]
    with np.errstate(over="ignore"):
        return np.array([*positive, *(-value for value in positive), np.nan]).astype(dtype)


def special_pairs(dtype: Any) -> tuple[Array, Array]:
    """Every special value with every other."""
    one = specials(dtype)
    first, second = np.meshgrid(one, one, indexing="ij")
    return first.ravel(), second.ravel()
