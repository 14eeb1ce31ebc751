"""From one dtype to another, and from two values to a truth: convert, bitcast, reduce_precision, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import (
    BF16,
    DTYPES,
    F16,
    F32,
    F64,
    FLOATS,
    PRED,
    Case,
    fixed,
    special_pairs,
    specials,
    values,
)

Function = Callable[..., Any]

SHAPE = (3, 43)

COMPARISONS: list[tuple[str, Function]] = [
    ("eq", lax.eq),
    ("ne", lax.ne),
    ("lt", lax.lt),
    ("le", lax.le),
    ("gt", lax.gt),
    ("ge", lax.ge),
]


def comparisons() -> Iterator[Case]:
    """All six directions at every pair of special values of every dtype; total order too."""

    def six(x: Any, y: Any) -> tuple[Any, ...]:
        return tuple(function(x, y) for _, function in COMPARISONS)

    def six_numpy(x: Any, y: Any) -> tuple[Any, ...]:
        with np.errstate(invalid="ignore"):
            return x == y, x != y, x < y, x <= y, x > y, x >= y

    for dtype in DTYPES:
        yield Case(f"compare-{dtype}", six, fixed(*special_pairs(dtype)), expected=six_numpy, eager=False, quick=True)
    for dtype in FLOATS:
        order = lambda x, y: (lax.lt_to_p.bind(x, y), lax.le_to_p.bind(x, y), lax.eq_to_p.bind(x, y))  # noqa: E731
        yield Case(f"compare-total-order-{dtype}", order, fixed(*special_pairs(dtype)), eager=False)


def conversions() -> Iterator[Case]:
    """Every dtype to every other. Floats out of an integer's range saturate, and NaN becomes zero."""
    for source in DTYPES:

        def convert(x: Any) -> tuple[Any, ...]:
            return tuple(lax.convert_element_type(x, target) for target in DTYPES)

        yield Case(
            f"convert-{source}", convert, fixed(specials(source)), expected=convert_numpy, eager=False, quick=True
        )
        yield Case(f"convert-{source}-random", convert, values((source, SHAPE)), eager=False)
    yield Case(
        "bitcast",
        lambda x, y, z: (
            lax.bitcast_convert_type(x, np.int32),
            lax.bitcast_convert_type(y, np.float32),
            lax.bitcast_convert_type(z, np.int16),
            lax.bitcast_convert_type(x, np.uint8),
            lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.uint16), np.float32),
        ),
        fixed(specials(F32), np.arange(0x7F7FFFF0, 0x7F800001, dtype=np.uint32), specials(F16)),
        quick=True,
    )
    for exponent, mantissa in ((5, 10), (8, 7), (8, 23), (4, 3), (2, 1)):
        yield Case(
            f"reduce-precision-{exponent}-{mantissa}",
            lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m),
            fixed(
                np.concatenate(
                    [specials(F32)[np.abs(specials(F32)) != np.float32(1e-45)], np.linspace(-9, 9, 99, dtype=F32)]
                )
            ),
            quick=True,
        )
    yield Case("reduce-precision-gradient", lambda x: lax.reduce_precision(x, 5, 10), values((F32, SHAPE)), grad=(0,))


def convert_numpy(x: Any) -> tuple[Any, ...]:
    """What a conversion gives by StableHLO as XLA's CPU implements it: truncation, saturation, NaN to zero."""
    results = []
    for target in DTYPES:
        if jnp.issubdtype(x.dtype, np.floating) and jnp.issubdtype(target, np.integer):
            info = jnp.iinfo(target)
            wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
            exact = [min(max(int(value), int(info.min)), int(info.max)) for value in wide]
            results.append(np.array(exact, dtype=target))
        elif target == PRED:
            results.append(np.asarray(x != 0))
        else:
            with np.errstate(over="ignore"):
                # Through f32: ml_dtypes has no conversion between bf16 and every integer type.
                narrow = target in (BF16, F16) and x.dtype != F64
                results.append((x.astype(np.float32).astype(target)) if narrow else x.astype(target))
    return tuple(results)


CASES = [*comparisons(), *conversions()]
