"""Matrix products and convolutions in all their geometries, with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.ops.harness import BF16, F16, F32, FLOATS, INTEGERS, S8, S32, Case, values


def products() -> Iterator[Case]:
    """dot_general: sizes, layouts, batches, several contracted dimensions, none."""
    sizes = [
        (1, 1, 1),
        (1, 7, 1),
        (3, 17, 5),
        (4, 4, 4),
        (16, 16, 16),
        (1, 300, 257),
        (257, 300, 1),
        (64, 64, 64),
        (65, 33, 129),
        (128, 1000, 30),
        (300, 3, 400),
    ]
    for m, k, n in sizes:
        yield Case(
            f"matmul-{m}x{k}x{n}",
            lambda x, y: x @ y,
            values((F32, (m, k)), (F32, (k, n))),
            grad=(0, 1),
            accumulated=True,
            quick=m * n < 5000,
        )
    for name, m, k, n in (("no-rows", 0, 3, 4), ("no-depth", 3, 0, 4), ("no-columns", 3, 4, 0)):
        yield Case(f"matmul-{name}", lambda x, y: x @ y, values((F32, (m, k)), (F32, (k, n))), quick=True)
    einsums = [
        ("ij,jk->ik", (5, 17), (17, 9)),
        ("ij,kj->ik", (5, 17), (9, 17)),
        ("ji,jk->ik", (17, 5), (17, 9)),
        ("ij,jk->ki", (5, 17), (17, 9)),
        ("bij,bjk->bik", (3, 5, 17), (3, 17, 9)),
        ("bij,bkj->bki", (3, 5, 17), (3, 9, 17)),
        ("bqhd,bkhd->bhqk", (2, 9, 4, 8), (2, 11, 4, 8)),
        ("bhqk,bkhd->bqhd", (2, 4, 9, 11), (2, 11, 4, 8)),
        ("abc,cbd->ad", (3, 4, 5), (5, 4, 6)),
        ("ab,ab->", (7, 9), (7, 9)),
        ("i,i->", (1025,), (1025,)),
        ("i,j->ij", (17,), (23,)),
        ("ij,j->i", (33, 65), (65,)),
        ("i,ij->j", (65,), (65, 33)),
        ("abi,abi->ab", (3, 4, 9), (3, 4, 9)),
        ("ijk,lk->ijl", (3, 5, 9), (11, 9)),
        ("ijk,jl->ikl", (3, 5, 9), (5, 11)),
        ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 3, 2)),
        ("bi,bj->bij", (3, 5), (3, 7)),
    ]
    for formula, first, second in einsums:
        yield Case(
            f"einsum-{formula.replace(',', '_').replace('->', '_to_')}",
            lambda x, y, f=formula: jnp.einsum(f, x, y),
            values((F32, first), (F32, second)),
            grad=(0, 1),
            accumulated=True,
            quick=True,
        )
    yield Case(
        "einsum-three",
        lambda x, y, z: jnp.einsum("ij,jk,kl->il", x, y, z),
        values((F32, (3, 5)), (F32, (5, 7)), (F32, (7, 2))),
        grad=(0, 1, 2),
        accumulated=True,
    )
    for dtype in FLOATS:
        yield Case(
            f"matmul-{dtype}",
            lambda x, y: x @ y,
            values((dtype, (33, 65)), (dtype, (65, 17))),
            grad=(0, 1),
            accumulated=True,
            eager=False,
            quick=True,
        )
        yield Case(
            f"matmul-batched-{dtype}",
            lambda x, y: x @ y,
            values((dtype, (3, 9, 20)), (dtype, (3, 20, 7))),
            grad=(0, 1),
            accumulated=True,
            eager=False,
        )
    for dtype in INTEGERS:
        yield Case(f"matmul-{dtype}", lambda x, y: x @ y, values((dtype, (9, 20)), (dtype, (20, 7))), eager=False)
    for dtype in (BF16, F16, S8):
        wide = S32 if dtype == S8 else F32
        yield Case(
            f"matmul-{dtype}-to-{wide}",
            lambda x, y, w=wide: jnp.matmul(x, y, preferred_element_type=w),
            values((dtype, (17, 40)), (dtype, (40, 9))),
            accumulated=True,
            quick=True,
        )
    for precision in (lax.Precision.HIGH, lax.Precision.HIGHEST):
        yield Case(
            f"matmul-precision-{precision}",
            lambda x, y, p=precision: jnp.matmul(x, y, precision=p),
            values((F32, (9, 20)), (F32, (20, 7))),
            accumulated=True,
        )
    yield Case(
        "matmul-of-transposed",
        lambda x, y: x.T @ y.T,
        values((F32, (20, 9)), (F32, (7, 20))),
        grad=(0, 1),
        accumulated=True,
        quick=True,
    )
    yield Case(
        "matmul-of-computed",
        lambda x, y: jnp.tanh(jnp.sin(x) @ (y * 2) + 1),
        values((F32, (9, 20)), (F32, (20, 7))),
        grad=(0, 1),
        accumulated=True,
        quick=True,
    )
    yield Case(
        "matmul-of-slices",
        lambda x: x[:7, 1::2] @ x[3:13, :7].T @ x[:10],
        values((F32, (13, 15))),
        grad=(0,),
        accumulated=True,
    )
    yield Case(
        "matmul-of-broadcast",
        lambda x, y: jnp.broadcast_to(x, (3, 4, 5)) @ y,
        values((F32, (4, 5)), (F32, (3, 5, 6))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case("matmul-of-itself", lambda x: x @ x.T, values((F32, (17, 17))), grad=(0,), accumulated=True)
    yield Case(
        "matmul-chain-4x4", lambda x: x @ x @ x @ x, values((F32, (4, 4))), grad=(0,), accumulated=True, quick=True
    )
    yield Case(
        "tensordot",
        lambda x, y: jnp.tensordot(x, y, axes=2),
        values((F32, (3, 4, 5)), (F32, (4, 5, 6))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case("vdot", jnp.vdot, values((F32, (9, 5)), (F32, (9, 5))), grad=(0, 1), accumulated=True)
    yield Case(
        "matrix-power", lambda x: jnp.linalg.matrix_power(x, 5), values((F32, (6, 6), -0.5, 0.5)), accumulated=True
    )
    yield Case(
        "attention", attention, values(*[(F32, (2, 33, 4, 16))] * 3), grad=(0, 1, 2), accumulated=True, quick=True
    )
    yield Case("attention-bfloat16", attention, values(*[(BF16, (2, 9, 2, 16))] * 3), accumulated=True, tolerance=6e-2)
    yield Case(
        "dense-layers",
        dense_layers,
        values((F32, (8, 20)), (F32, (20, 30)), (F32, (30,)), (F32, (30, 5))),
        grad=(1, 2, 3),
        accumulated=True,
        quick=True,
    )
    yield Case(
        "vmapped-matvec",
        jax.vmap(lambda a, b: a @ b),
        values((F32, (5, 9, 7)), (F32, (5, 7))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case(
        "vmap-of-vmap-product",
        jax.vmap(jax.vmap(jnp.dot, (None, 0)), (0, None)),
        values((F32, (5, 9)), (F32, (7, 9))),
        grad=(0, 1),
        accumulated=True,
    )


def attention(q: Any, k: Any, v: Any) -> Any:
    """Causal attention of (batch, position, head, feature) arrays."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(q.dtype)
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)), v)


def dense_layers(x: Any, w: Any, b: Any, v: Any) -> Any:
    """Two layers and a softmax."""
    return jax.nn.log_softmax(jax.nn.relu(x @ w + b) @ v)


def convolution(**options: Any) -> Callable[[Any, Any], Any]:
    """A convolution with the options of `lax.conv_general_dilated`."""
    options.setdefault("window_strides", (1, 1))
    options.setdefault("padding", "SAME")
    options.setdefault("dimension_numbers", ("NHWC", "HWIO", "NHWC"))
    return lambda x, k: lax.conv_general_dilated(x, k, **options)


def convolutions() -> Iterator[Case]:
    """Every field of the operation's geometry, alone and with others."""
    picture, kernel = (2, 9, 11, 4), (3, 3, 4, 6)
    rows: list[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = [
        ("same", {}, picture, kernel),
        ("valid", {"padding": "VALID"}, picture, kernel),
        ("strided", {"window_strides": (2, 3)}, picture, kernel),
        ("padded", {"padding": ((2, 0), (1, 3))}, picture, kernel),
        ("negative-padding", {"padding": ((-1, 0), (1, -2))}, picture, kernel),
        ("kernel-dilation", {"rhs_dilation": (2, 3)}, picture, kernel),
        ("input-dilation", {"lhs_dilation": (2, 3), "padding": ((1, 2), (2, 1))}, picture, kernel),
        (
            "both-dilations",
            {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2), "padding": ((2, 2), (2, 2))},
            picture,
            kernel,
        ),
        ("groups", {"feature_group_count": 2}, picture, (3, 3, 2, 6)),
        ("depthwise", {"feature_group_count": 4}, picture, (3, 3, 1, 4)),
        ("depthwise-multiplier", {"feature_group_count": 4, "window_strides": (2, 2)}, picture, (3, 3, 1, 8)),
        ("batch-groups", {"batch_group_count": 2}, picture, kernel),
        ("1x1", {}, picture, (1, 1, 4, 7)),
        ("5x1", {}, picture, (5, 1, 4, 3)),
        ("even-kernel", {}, picture, (2, 4, 4, 3)),
        ("full-size", {"padding": "VALID"}, picture, (9, 11, 4, 3)),
        ("one-channel", {}, (2, 9, 11, 1), (3, 3, 1, 16)),
        ("nchw", {"dimension_numbers": ("NCHW", "OIHW", "NCHW")}, (2, 4, 9, 11), (6, 4, 3, 3)),
        (
            "nchw-strided",
            {"dimension_numbers": ("NCHW", "OIHW", "NCHW"), "window_strides": (2, 2)},
            (2, 4, 9, 11),
            (6, 4, 3, 3),
        ),
        ("mixed-layout", {"dimension_numbers": ("NCHW", "HWIO", "NHWC")}, (2, 4, 9, 11), kernel),
        ("hwnc-layout", {"dimension_numbers": ("HWNC", "HWOI", "HWNC")}, (9, 11, 2, 4), (3, 3, 6, 4)),
        ("wide", {}, (1, 16, 16, 32), (3, 3, 32, 64)),
    ]
    for name, options, x, k in rows:
        yield Case(
            f"conv-{name}",
            convolution(**options),
            values((F32, x), (F32, k)),
            grad=(0, 1),
            accumulated=True,
            quick=True,
        )
    one = {"window_strides": (1,), "dimension_numbers": ("NWC", "WIO", "NWC")}
    three = {"window_strides": (1, 2, 1), "dimension_numbers": ("NDHWC", "DHWIO", "NDHWC")}
    yield Case(
        "conv-1d", convolution(**one), values((F32, (3, 40, 5)), (F32, (7, 5, 8))), grad=(0, 1), accumulated=True
    )
    yield Case(
        "conv-1d-causal",
        convolution(**one, rhs_dilation=(2,), padding=((4, 0),)),
        values((F32, (3, 40, 5)), (F32, (3, 5, 8))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case(
        "conv-3d",
        convolution(**three),
        values((F32, (2, 5, 6, 7, 3)), (F32, (2, 3, 3, 3, 4))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case(
        "conv-0d",
        convolution(window_strides=(), padding=(), dimension_numbers=("NC", "IO", "NC")),
        values((F32, (5, 4)), (F32, (4, 3))),
        accumulated=True,
    )
    yield Case(
        "conv-transpose",
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
        values((F32, (2, 5, 6, 4)), (F32, (3, 3, 4, 3))),
        grad=(0, 1),
        accumulated=True,
        quick=True,
    )
    # Padding is zero, not what the fused producer of the input would make of zero.
    yield Case(
        "conv-padded-of-computed",
        lambda x, k: lax.conv_general_dilated(x + 1, k, (1,), ((2, 3),), lhs_dilation=(2,)),
        values((S32, (2, 3, 5)), (S32, (4, 3, 2))),
        eager=False,
        quick=True,
    )
    yield Case(
        "conv-padded-of-constant",
        lambda k: lax.conv_general_dilated(jnp.ones((2, 3, 5), k.dtype), k, (1,), ((2, 3),)),
        values((S32, (4, 3, 2))),
        eager=False,
    )
    yield Case(
        "conv-padded-of-computed-4d",
        lambda x, k: lax.conv_general_dilated(x + 1, k, (1,) * 4, ((1, 2),) * 4),
        values((F32, (2, 3, 2, 3, 2, 1)), (F32, (4, 3, 2, 1, 2, 1))),
        accumulated=True,
        eager=False,
    )
    yield Case(
        "conv-of-empty-picture",
        lambda k: lax.conv_general_dilated(jnp.ones((2, 3, 0), k.dtype), k, (1,), ((2, 3),), lhs_dilation=(2,)),
        values((F32, (4, 3, 2))),
        eager=False,
    )
    yield Case("conv-empty-batch", convolution(), values((F32, (0, 9, 11, 4)), (F32, kernel)))
    yield Case("conv-no-input-features", convolution(), values((F32, (2, 9, 11, 0)), (F32, (3, 3, 0, 6))))
    for dtype in (*FLOATS, S32, S8):
        yield Case(
            f"conv-{dtype}",
            convolution(window_strides=(2, 1)),
            values((dtype, (2, 7, 8, 3)), (dtype, (3, 3, 3, 4))),
            grad=(0, 1) if dtype in FLOATS else (),
            accumulated=True,
            eager=False,
        )
    yield Case(
        "conv-bfloat16-to-float32",
        convolution(preferred_element_type=F32),
        values((BF16, (2, 7, 8, 3)), (BF16, (3, 3, 3, 4))),
        accumulated=True,
    )
    yield Case(
        "convolve-signal",
        lambda x, y: jnp.convolve(x, y, mode="full"),
        values((F32, (100,)), (F32, (9,))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case(
        "correlate-signal",
        lambda x, y: jnp.correlate(x, y, mode="same"),
        values((F32, (100,)), (F32, (9,))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case(
        "conv-bias-relu-pool",
        network,
        values((F32, (2, 8, 8, 3)), (F32, (3, 3, 3, 5)), (F32, (5,))),
        grad=(0, 1, 2),
        accumulated=True,
        quick=True,
    )
    yield Case(
        "vmapped-conv",
        jax.vmap(convolution()),
        values((F32, (3, 2, 7, 7, 2)), (F32, (3, 3, 3, 2, 4))),
        grad=(0, 1),
        accumulated=True,
    )
    yield Case(
        "conv-patches",
        lambda x: lax.conv_general_dilated_patches(x, (3, 3), (2, 2), "VALID"),
        values((F32, (2, 3, 9, 9))),
        grad=(0,),
        accumulated=True,
    )


def network(x: Any, kernel: Any, bias: Any) -> Any:
    """The first layers of an image classifier."""
    y = jax.nn.relu(convolution()(x, kernel) + bias)
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


CASES = [*products(), *convolutions()]
