"""What moves elements and computes nothing: broadcast, reshape, transpose, slice, pad, concatenate, iota, reverse."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import BF16, DTYPES, F32, FLOATS, PRED, S32, U8, Case, fixed, values

X = ((F32, (3, 5, 17)),)


def structure() -> Iterator[Case]:
    """One row per operation, differentiated."""
    rows: list[tuple[str, Callable[..., Any], tuple[tuple[Any, ...], ...]]] = [
        ("broadcast-scalar", lambda x: lax.broadcast(x, (4, 5)), ((F32, ()),)),
        ("broadcast-leading", lambda x: lax.broadcast(x, (2, 3)), ((F32, (7,)),)),
        ("broadcast-in-dim", lambda x: lax.broadcast_in_dim(x, (3, 4, 5), (0, 2)), ((F32, (3, 5)),)),
        ("broadcast-in-dim-extent-1", lambda x: lax.broadcast_in_dim(x, (3, 4, 5), (0, 1, 2)), ((F32, (3, 1, 5)),)),
        ("broadcast-add-outer", lambda x, y: x[:, None] + y[None, :], ((F32, (17,)), (F32, (33,)))),
        ("broadcast-add-column", lambda x, y: x + y[:, None], ((F32, (17, 40)), (F32, (17,)))),
        ("reshape-flatten", lambda x: x.reshape(-1), X),
        ("reshape-split", lambda x: x.reshape(15, 17, 1), X),
        ("reshape-regroup", lambda x: x.reshape(5, 51), X),
        ("reshape-of-transpose", lambda x: x.transpose(2, 0, 1).reshape(17, 15), X),
        ("ravel-then-add", lambda x: x.T.ravel() + 1, ((F32, (5, 9)),)),
        ("expand-dims", lambda x: jnp.expand_dims(x, (0, 2)), X),
        ("squeeze", lambda x: jnp.squeeze(x, 1), ((F32, (3, 1, 5)),)),
        ("reverse", lambda x: lax.rev(x, (0, 2)), X),
        ("flip-vector", jnp.flip, ((F32, (1025,)),)),
        ("concatenate-0", lambda x, y: lax.concatenate([x, y, x], 0), ((F32, (3, 7)), (F32, (2, 7)))),
        ("concatenate-1", lambda x, y: lax.concatenate([x, y], 1), ((F32, (3, 7)), (F32, (3, 18)))),
        (
            "concatenate-of-computed",
            lambda x, y: jnp.concatenate([jnp.sin(x), x * y, -y]),
            ((F32, (1000,)), (F32, (1000,))),
        ),
        ("concatenate-empty", lambda x, y: lax.concatenate([x, y], 0), ((F32, (0, 7)), (F32, (2, 7)))),
        ("stack", lambda x, y: jnp.stack([x, y], -1), ((F32, (3, 7)), (F32, (3, 7)))),
        ("slice", lambda x: lax.slice(x, (1, 0, 3), (3, 4, 16)), X),
        ("slice-strided", lambda x: lax.slice(x, (0, 1, 2), (3, 5, 17), (2, 3, 4)), X),
        ("slice-negative-step", lambda x: x[::-1, ::-2, 15:2:-3], X),
        ("slice-even-odd", lambda x: (x[::2], x[1::2]), ((F32, (1001,)),)),
        ("slice-empty", lambda x: x[2:2], X),
        ("split", lambda x: tuple(jnp.split(x, [4, 9], axis=2)), X),
        ("pad", lambda x: jnp.pad(x, ((1, 2), (0, 0), (3, 1))), X),
        ("pad-negative", lambda x: lax.pad(x, np.float32(1.5), ((-1, 2, 0), (0, -2, 0), (-3, -4, 0))), X),
        ("pad-interior", lambda x: lax.pad(x, np.float32(0), ((0, 0, 1), (2, 1, 2), (-1, 3, 3))), X),
        ("pad-value", lax_pad_value, ((F32, (5, 9)), (F32, ()))),
        ("pad-empty", lambda x: lax.pad(x, np.float32(2), ((2, 1, 0), (0, 0, 0))), ((F32, (0, 3)),)),
        ("pad-wrap", lambda x: jnp.pad(x, 2, mode="wrap"), ((F32, (5, 9)),)),
        ("pad-reflect", lambda x: jnp.pad(x, 2, mode="reflect"), ((F32, (5, 9)),)),
        ("roll", lambda x: jnp.roll(x, 5, axis=2), X),
        ("roll-flat", lambda x: jnp.roll(x, -3), X),
        ("tile", lambda x: jnp.tile(x, (2, 1, 3)), X),
        ("repeat", lambda x: jnp.repeat(x, 3, axis=1), X),
        ("tril", jnp.tril, ((F32, (9, 13)),)),
        ("triu", lambda x: jnp.triu(x, 2), ((F32, (9, 13)),)),
        ("diag", jnp.diag, ((F32, (7, 7)),)),
        ("diag-embed", jnp.diag, ((F32, (7,)),)),
        ("trace", jnp.trace, ((F32, (7, 9)),)),
        ("kron", jnp.kron, ((F32, (3, 4)), (F32, (5, 2)))),
        ("outer", jnp.outer, ((F32, (13,)), (F32, (21,)))),
        ("cross", jnp.cross, ((F32, (9, 3)), (F32, (9, 3)))),
        ("diff", jnp.diff, ((F32, (5, 40)),)),
        ("gradient-numeric", jnp.gradient, ((F32, (40,)),)),
        ("meshgrid", lambda x, y: tuple(jnp.meshgrid(x, y)), ((F32, (5,)), (F32, (8,)))),
        ("atleast-3d", jnp.atleast_3d, ((F32, (5,)),)),
        (
            "space-to-depth",
            lambda x: x.reshape(2, 4, 2, 4, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 4, 4, 12),
            ((F32, (2, 8, 8, 3)),),
        ),
        ("unstack", lambda x: tuple(jnp.unstack(x, axis=1)), ((F32, (5, 3, 2)),)),
        ("rot90", jnp.rot90, ((F32, (5, 9)),)),
    ]
    for name, function, specs in rows:
        differentiable = tuple(range(len(specs)))
        yield Case(name, function, values(*specs), grad=differentiable, quick=True)


def lax_pad_value(x: Any, value: Any) -> Any:
    """Padding with a value that is an argument."""
    return lax.pad(x, value, ((1, 1, 0), (2, 0, 1)))


def transposes() -> Iterator[Case]:
    """Every permutation of three dimensions, some of four, and large ones."""
    for permutation in itertools.permutations(range(3)):
        name = "".join(map(str, permutation))
        yield Case(f"transpose-{name}", lambda x, p=permutation: lax.transpose(x, p), values(*X), grad=(0,), quick=True)
    for permutation in ((0, 2, 1, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 3, 0, 1)):
        name = "".join(map(str, permutation))
        yield Case(
            f"transpose-{name}", lambda x, p=permutation: lax.transpose(x, p), values((F32, (2, 3, 18, 7))), eager=False
        )
    for dtype in DTYPES:
        yield Case(f"transpose-{dtype}", lambda x: x.T, values((dtype, (33, 70))), eager=False)
    yield Case("transpose-large", lambda x: x.T, values((F32, (700, 513))), eager=False)
    yield Case(
        "transpose-then-compute", lambda x, y: jnp.exp(x.T) + y, values((F32, (70, 33)), (F32, (33, 70))), grad=(0, 1)
    )
    yield Case("transpose-both-ways", lambda x: x.T + x, values((F32, (65, 65))), grad=(0,))


def sources() -> Iterator[Case]:
    """Arrays that come from nothing: iota, constants, ranges."""
    for dtype in DTYPES:
        if dtype == PRED:
            continue
        yield Case(
            f"iota-{dtype}",
            lambda d=dtype: tuple(lax.broadcasted_iota(d, (4, 5, 6), axis) for axis in range(3)),
            eager=False,
        )
        yield Case(
            f"constants-{dtype}",
            lambda d=dtype: (jnp.zeros((3, 5), d), jnp.ones((), d), jnp.full((2, 0, 3), 7, d), jnp.arange(17, dtype=d)),
        )
    yield Case("iota-large", lambda: lax.iota(np.int32, 100_000), eager=False)
    yield Case("eye", lambda: (jnp.eye(5), jnp.eye(4, 7, k=1), jnp.tri(4)), quick=True)
    yield Case("linspace", lambda x: jnp.linspace(x, 3, 11), values((F32, ())), grad=(0,))
    yield Case("logspace", lambda: jnp.logspace(0, 2, 7))
    table = np.random.default_rng(5).normal(size=(300, 50)).astype(np.float32)
    yield Case(
        "large-constant",
        lambda x: x @ table + table[0, 1],
        values((F32, (4, 300))),
        accumulated=True,
        grad=(0,),
        quick=True,
    )
    small = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    yield Case(
        "small-constants",
        lambda x: (x + small, x * small[0], small, np.float32(2.5)),
        values((S32, (2, 3))),
        quick=True,
    )
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3.4e38], np.float32)
    yield Case("constant-special-values", lambda x: (odd, x * 0 + 1), fixed(np.float32(1)), zero_signs=True)
    for dtype in (BF16, PRED, U8):
        constant = np.arange(6).reshape(2, 3).astype(dtype)
        yield Case(f"constant-{dtype}", lambda x, c=constant: (c, jnp.where(x, c, c[:1])), values((PRED, (2, 3))))


def dtypes() -> Iterator[Case]:
    """The moving operations on every dtype, together in one program."""

    def move(x: Any, y: Any) -> tuple[Any, ...]:
        return (
            jnp.concatenate([x, y], 1),
            lax.slice(x, (0, 3), (4, 31), (1, 5)),
            lax.rev(y, (1,)),
            lax.pad(x, lax.convert_element_type(1, x.dtype), ((1, 0, 0), (-2, 3, 1))),
            x[:, :1] == y,
            jnp.tile(x, (1, 2)),
        )

    for dtype in DTYPES:
        yield Case(
            f"move-{dtype}",
            move,
            values((dtype, (4, 33)), (dtype, (4, 33))),
            grad=(0, 1) if dtype in FLOATS and dtype != F32 else (),
            eager=False,
            quick=True,
        )
    for extent in (1, 2, 8, 17, 64, 1000):
        yield Case(
            f"move-extent-{extent}",
            lambda x: (x[::-1] + jnp.roll(x, 1), jnp.pad(x, 1), x[-1:]),
            values((F32, (extent,))),
            grad=(0,),
        )


CASES = [*structure(), *transposes(), *sources(), *dtypes()]
