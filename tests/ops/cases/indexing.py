"""Reading and writing at computed places: gather, scatter, dynamic slices, and NumPy's indexing on top of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import BF16, DTYPES, F32, FLOATS, INTEGERS, PRED, S8, S32, U32, Case, draw, fixed, values

TABLE = (F32, (13, 9))
INDICES = (S32, (7,), 0, 12)
# Beyond both ends: JAX wraps negative indices, clamps or drops what is outside.
WILD = (S32, (9,), -30, 30)


def reads() -> Iterator[Case]:
    """Gathers in the forms that jnp makes of indexing."""
    rows: list[tuple[str, Callable[..., Any], tuple[tuple[Any, ...], ...]]] = [
        ("index-row", lambda x, i: x[i], (TABLE, (S32, (), 0, 12))),
        ("index-element", lambda x, i, j: x[i, j], (TABLE, (S32, (), 0, 12), (S32, (), 0, 8))),
        ("index-rows", lambda x, i: x[i], (TABLE, INDICES)),
        ("index-columns", lambda x, i: x[:, i], (TABLE, (S32, (5,), 0, 8))),
        ("index-pairs", lambda x, i, j: x[i, j], (TABLE, (S32, (6,), 0, 12), (S32, (6,), 0, 8))),
        ("index-outer", lambda x, i, j: x[i[:, None], j], (TABLE, (S32, (6,), 0, 12), (S32, (4,), 0, 8))),
        ("index-two-dimensional", lambda x, i: x[i], (TABLE, (S32, (3, 5), 0, 12))),
        ("index-middle", lambda x, i: x[:, i, :, 1], ((F32, (3, 8, 4, 2)), (S32, (2, 3), 0, 7))),
        ("index-negative", lambda x, i: x[i], (TABLE, (S32, (7,), -13, -1))),
        ("index-out-of-bounds", lambda x, i: x[i], (TABLE, WILD)),
        ("take-clip", lambda x, i: jnp.take(x, i, axis=0, mode="clip"), (TABLE, WILD)),
        ("take-fill", lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=-1.0), (TABLE, WILD)),
        ("take-wrap", lambda x, i: jnp.take(x, i, axis=1, mode="wrap"), (TABLE, WILD)),
        ("take-flat", jnp.take, (TABLE, (S32, (7,), 0, 116))),
        ("take-along-axis", lambda x, i: jnp.take_along_axis(x, i, axis=1), (TABLE, (S32, (13, 4), 0, 8))),
        ("take-along-axis-0", lambda x, i: jnp.take_along_axis(x, i, axis=0), (TABLE, (S32, (4, 9), 0, 12))),
        ("embedding", lambda x, i: x[i] * 2 + 1, ((F32, (50, 32)), (S32, (4, 16), 0, 49))),
        ("dynamic-slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (4, 3)), (TABLE, (S32, ()), (S32, ()))),
        ("dynamic-slice-clamped", lambda x, i: lax.dynamic_slice(x, (i, i * 0), (4, 9)), (TABLE, (S32, (), 11, 20))),
        ("dynamic-slice-negative", lambda x, i: lax.dynamic_slice(x, (i, i), (4, 3)), (TABLE, (S32, (), -5, -2))),
        ("dynamic-index", lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), (TABLE, (S32, (), 0, 8))),
        (
            "vmapped-dynamic-slice",
            lambda x, i: jax.vmap(lambda k: lax.dynamic_slice(x, (k, k * 0 + 1), (3, 4)))(i),
            (TABLE, WILD),
        ),
        (
            "vmapped-row-slice",
            jax.vmap(lambda r, k: lax.dynamic_slice(r, (k,), (4,))),
            (TABLE, (S32, (13,), -3, 12)),
        ),
        ("gather-of-computed", lambda x, i: jnp.sin(x)[i] + jnp.cos(x)[i], (TABLE, INDICES)),
        ("gather-large", lambda x, i: x[i], ((F32, (5000,)), (S32, (20000,), 0, 4999))),
        (
            "interp",
            lambda x, xs, ys: jnp.interp(x, jnp.cumsum(jnp.abs(xs)), ys),
            ((F32, (20,), 0, 5), (F32, (9,)), (F32, (9,))),
        ),
        ("choose", lambda i, x, y: jnp.choose(i, [x, y], mode="clip"), ((S32, (9,), 0, 1), (F32, (9,)), (F32, (9,)))),
    ]
    for name, function, specs in rows:
        grad = tuple(k for k, spec in enumerate(specs) if spec[0] == F32)
        # A read of NaN (out of bounds, mode "fill") has no useful gradient to compare, but zeros are compared.
        yield Case(name, function, values(*specs), grad=grad, accumulated=name == "interp", quick=True)
    for dtype in DTYPES:
        yield Case(
            f"gather-{dtype}",
            lambda x, i: (x[i], x[:, i[:3] % 9]),
            values((dtype, (13, 9)), INDICES),
            eager=False,
            quick=True,
        )
    for index_dtype in (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16), U32):
        yield Case(
            f"gather-index-{index_dtype}", lambda x, i: x[i], values(TABLE, (index_dtype, (7,), 0, 12)), eager=False
        )
        yield Case(
            f"dynamic-slice-index-{index_dtype}",
            lambda x, i: lax.dynamic_slice(x, (i, i), (4, 3)),
            values(TABLE, (index_dtype, (), 0, 12)),
            eager=False,
        )
    yield Case("gather-empty-indices", lambda x, i: x[i], values(TABLE, (S32, (0,), 0, 12)), grad=(0,))
    yield Case("gather-empty-slices", lambda x, i: x[i], values((F32, (13, 0)), INDICES))
    yield Case(
        "searchsorted",
        jnp.searchsorted,
        fixed(np.arange(0, 50, 3).astype(np.int32), np.arange(-2, 55, 4).astype(np.int32)),
    )
    yield Case("one-hot", lambda i: jax.nn.one_hot(i, 10), values((S32, (17,), -1, 10)), quick=True)
    numbers = lax.GatherDimensionNumbers(offset_dims=(0, 2), collapsed_slice_dims=(1,), start_index_map=(2, 0))
    yield Case(
        "gather-general",
        lambda x, i: lax.gather(x, i, numbers, slice_sizes=(3, 1, 2), mode="clip"),
        values((F32, (6, 5, 7)), (S32, (4, 2), -2, 8)),
        grad=(0,),
    )


def writes() -> Iterator[Case]:
    """Scatters in the forms that jnp makes of `.at[]`, duplicates and out-of-bounds included."""
    unique = np.random.default_rng(3).permutation(13)[:7].astype(np.int32)

    def unique_rows(generator: np.random.Generator) -> list[Any]:
        return [draw(generator, *TABLE), unique, draw(generator, F32, (7, 9))]

    yield Case("scatter-set", lambda x, i, u: x.at[i].set(u), unique_rows, grad=(0, 2), quick=True)
    yield Case("scatter-set-hints", lambda x, i, u: x.at[i].set(u, unique_indices=True), unique_rows, grad=(0, 2))
    rows: list[tuple[str, Callable[..., Any], tuple[tuple[Any, ...], ...]]] = [
        ("scatter-add", lambda x, i, u: x.at[i].add(u), (TABLE, INDICES, (F32, (7, 9)))),
        ("scatter-subtract", lambda x, i, u: x.at[i].subtract(u), (TABLE, INDICES, (F32, (7, 9)))),
        ("scatter-add-columns", lambda x, i, u: x.at[:, i].add(u), (TABLE, (S32, (5,), 0, 8), (F32, (13, 5)))),
        (
            "scatter-add-pairs",
            lambda x, i, j, u: x.at[i, j].add(u),
            (TABLE, (S32, (40,), 0, 12), (S32, (40,), 0, 8), (F32, (40,))),
        ),
        ("scatter-add-scalar", lambda x, i: x.at[i].add(1.5), (TABLE, INDICES)),
        ("scatter-add-wild", lambda x, i, u: x.at[i].add(u), (TABLE, WILD, (F32, (9, 9)))),
        ("scatter-add-clip", lambda x, i, u: x.at[i].add(u, mode="clip"), (TABLE, WILD, (F32, (9, 9)))),
        (
            "scatter-element",
            lambda x, i, j, u: x.at[i, j].set(u),
            (TABLE, (S32, (), 0, 12), (S32, (), 0, 8), (F32, ())),
        ),
        ("scatter-row", lambda x, i, u: x.at[i].set(u), (TABLE, (S32, (), 0, 12), (F32, (9,)))),
        ("scatter-slice", lambda x, u: x.at[2:7, ::2].set(u), (TABLE, (F32, (5, 5)))),
        ("scatter-slice-add", lambda x, u: x.at[2:7].add(u), (TABLE, (F32, (5, 9)))),
        ("segment-sum", lambda u, i: jax.ops.segment_sum(u, i, num_segments=8), ((F32, (50, 3)), (S32, (50,), 0, 7))),
        (
            "dynamic-update-slice",
            lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
            (TABLE, (F32, (4, 3)), (S32, (), 0, 12), (S32, (), 0, 8)),
        ),
        (
            "dynamic-update-slice-negative",
            lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)),
            (TABLE, (F32, (4, 3)), (S32, (), -5, -2)),
        ),
        (
            "dynamic-update-slice-of-computed",
            lambda x, u, i: lax.dynamic_update_slice(x * 2, u + 1, (i, i * 0)) - 1,
            (TABLE, (F32, (4, 9)), (S32, (), 0, 12)),
        ),
        (
            "dynamic-update-index",
            lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 0),
            (TABLE, (F32, (9,)), (S32, (), 0, 12)),
        ),
        (
            "scatter-large-add",
            lambda x, i, u: x.at[i].add(u),
            ((F32, (500,)), (S32, (20000,), 0, 499), (F32, (20000,))),
        ),
        ("vmapped-scatter", jax.vmap(lambda r, k, v: r.at[k].add(v)), (TABLE, (S32, (13, 4), 0, 8), (F32, (13, 4)))),
        (
            "vmapped-update-slice",
            jax.vmap(lambda r, k, v: lax.dynamic_update_slice(r, v, (k,))),
            (TABLE, (S32, (13,), -2, 9), (F32, (13, 3))),
        ),
    ]
    for name, function, specs in rows:
        grad = tuple(k for k, spec in enumerate(specs) if spec[0] == F32)
        yield Case(name, function, values(*specs), grad=grad, accumulated=True, quick=True)
    for name, method in (("multiply", "multiply"), ("min", "min"), ("max", "max"), ("add", "add")):
        for dtype in (*FLOATS, *INTEGERS):
            yield Case(
                f"scatter-{name}-{dtype}",
                lambda x, i, u, m=method: getattr(x.at[i], m)(u),
                values((dtype, (13, 9)), INDICES, (dtype, (7, 9))),
                accumulated=True,
                eager=False,
                quick=dtype in (F32, S32),
            )
    yield Case(
        "scatter-apply", lambda x, i: x.at[i].apply(jnp.sin), fixed(np.linspace(0, 3, 13, dtype=np.float32), unique)
    )
    yield Case("scatter-divide", lambda x, i, u: x.at[i].divide(u), values(TABLE, INDICES, (F32, (7, 9), 1, 2)))
    yield Case("scatter-pred", lambda x, i: x.at[i].set(True), values((PRED, (13,)), INDICES))
    yield Case(
        "scatter-last-write-of-equal-values", lambda x, i: x.at[i].set(3), values((S8, (13,)), INDICES), quick=True
    )
    yield Case("scatter-empty", lambda x, i, u: x.at[i].add(u), values(TABLE, (S32, (0,), 0, 1), (F32, (0, 9))))
    yield Case(
        "scatter-bfloat16-gradient",
        lambda x, i, u: x.at[i].add(u),
        values((BF16, (13, 9)), INDICES, (BF16, (7, 9))),
        grad=(0, 2),
        accumulated=True,
    )
    yield Case(
        "segment-max", lambda u, i: jax.ops.segment_max(u, i, num_segments=8), values((F32, (50,)), (S32, (50,), 0, 7))
    )
    yield Case("bincount", lambda i: jnp.bincount(i, length=12), values((S32, (99,), 0, 11)), quick=True)
    yield Case(
        "put-along-axis",
        lambda x, i, u: jnp.put_along_axis(x, i, u, axis=1, inplace=False),
        values(TABLE, (S32, (13, 1), 0, 8), (F32, (13, 1))),
    )
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(0, 2), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(2, 0)
    )
    yield Case(
        "scatter-general",
        lambda x, i, u: lax.scatter_add(x, i, u, numbers, mode="drop"),
        values((F32, (6, 5, 7)), (S32, (4, 2), -2, 8), (F32, (3, 4, 2))),
        grad=(0, 2),
        accumulated=True,
    )


CASES = [*reads(), *writes()]
