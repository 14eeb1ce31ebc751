"""Arithmetic, bits and shifts of every integer dtype, division by zero and overflow included; logic of booleans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import (
    INTEGERS,
    PRED,
    S32,
    SIGNED,
    U32,
    Case,
    fixed,
    special_pairs,
    specials,
)

Function = Callable[..., Any]

BINARY_INTEGER: list[tuple[str, Function]] = [
    ("add", lax.add),
    ("subtract", lax.sub),
    ("multiply", lax.mul),
    ("maximum", lax.max),
    ("minimum", lax.min),
    ("and", lax.bitwise_and),
    ("or", lax.bitwise_or),
    ("xor", lax.bitwise_xor),
    ("divide", lax.div),
    ("remainder", lax.rem),
    ("floor-divide", jnp.floor_divide),
    ("mod", jnp.mod),
]

SHIFTS: list[tuple[str, Function]] = [
    ("shift-left", lax.shift_left),
    ("shift-right-logical", lax.shift_right_logical),
    ("shift-right-arithmetic", lax.shift_right_arithmetic),
]

UNARY_INTEGER: list[tuple[str, Function]] = [
    ("abs", jnp.abs),
    ("negate", lax.neg),
    ("sign", lax.sign),
    ("not", lax.bitwise_not),
    ("popcount", lax.population_count),
    ("count-leading-zeros", lax.clz),
    ("square", lax.square),
]


def integers() -> Iterator[Case]:
    """Every integer dtype at every special value, and at every pair of them."""
    for dtype in INTEGERS:
        first = dtype in (S32, U32)
        for name, function in UNARY_INTEGER:
            inputs = fixed(np.concatenate([specials(dtype), np.arange(100).astype(dtype)]))
            yield Case(f"{name}-{dtype}", function, inputs, eager=first, quick=first)
        for name, function in BINARY_INTEGER:
            yield Case(f"{name}-{dtype}", function, fixed(*special_pairs(dtype)), eager=first, quick=first)
        for name, function in SHIFTS:
            bits = 8 * dtype.itemsize
            counts = np.array([0, 1, 3, bits - 1, bits, bits + 1, 100], dtype)
            x, count = np.meshgrid(specials(dtype), counts, indexing="ij")
            yield Case(f"{name}-{dtype}", function, fixed(x.ravel(), count.ravel()), eager=False, quick=first)
    for dtype in SIGNED:
        yield Case(f"integer-pow-{dtype}", lambda x: (x**2, x**3, x**5), fixed(specials(dtype)), eager=False)
    for name, function in (
        ("and", lax.bitwise_and),
        ("or", lax.bitwise_or),
        ("xor", lax.bitwise_xor),
        ("maximum", lax.max),
        ("minimum", lax.min),
        ("add", jnp.add),
        ("multiply", jnp.multiply),
    ):
        yield Case(f"{name}-pred", function, fixed(*special_pairs(PRED)), quick=True)
    yield Case("not-pred", lax.bitwise_not, fixed(specials(PRED)), quick=True)


CASES = [*integers()]
