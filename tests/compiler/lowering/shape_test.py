"""Ops that only move elements, under every kind of dimension numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.lowering.running import check_element, check_fused
from treadle.compiler.ir.types import F32, S32, TensorType

EXAMPLES = settings(max_examples=40, deadline=None)
EXTENTS = st.integers(0, 4)
SHAPES = st.lists(EXTENTS, min_size=0, max_size=3).map(tuple)


def t(*shape):
    return TensorType(F32, tuple(shape))


def check(types, build):
    """By itself and in whatever kernel fusion gives it."""
    check_element(types, build)
    check_fused(types, build)


@EXAMPLES
@given(st.data(), st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_broadcast_in_dim(data, target):
    dims = data.draw(st.permutations(range(len(target))))[: data.draw(st.integers(0, len(target)))]
    shape = [data.draw(st.sampled_from([1, target[d]])) for d in dims]
    result = t(*target)
    check([t(*shape)], lambda b, x: b.op("broadcast_in_dim", x, types=[result], broadcast_dimensions=tuple(dims)))


FACTORS = st.lists(st.sampled_from([1, 2, 3]), min_size=0, max_size=4)


@EXAMPLES
@given(st.data(), FACTORS)
def test_reshape(data, factors):
    def shape():
        parts = list(data.draw(st.permutations(factors)))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(parts)), max_size=3)))
        bounds = zip([0, *cuts], [*cuts, len(parts)], strict=True)
        return tuple(int(np.prod(parts[a:b])) for a, b in bounds)

    source, target = t(*shape()), t(*shape())
    check([source], lambda b, x: b.op("reshape", x, types=[target]))


def test_a_reshape_between_shapes_without_common_factors():
    check([t(6, 35)], lambda b, x: b.op("reshape", x, types=[t(10, 21)]))
    check([t(4, 9, 5)], lambda b, x: b.op("negate", b.op("reshape", x, types=[t(6, 30)])))


@EXAMPLES
@given(st.data(), SHAPES)
def test_transpose(data, shape):
    permutation = tuple(data.draw(st.permutations(range(len(shape)))))
    check([t(*shape)], lambda b, x: b.op("transpose", x, permutation=permutation))


@EXAMPLES
@given(st.data(), SHAPES)
def test_slice(data, shape):
    start = tuple(data.draw(st.integers(0, n)) for n in shape)
    limit = tuple(data.draw(st.integers(s, n)) for s, n in zip(start, shape, strict=True))
    strides = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    check([t(*shape)], lambda b, x: b.op("slice", x, start_indices=start, limit_indices=limit, strides=strides))


@EXAMPLES
@given(st.data(), SHAPES)
def test_reverse(data, shape):
    dims = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))
    check([t(*shape)], lambda b, x: b.op("reverse", x, dimensions=dims))


@EXAMPLES
@given(st.data(), st.lists(EXTENTS, min_size=1, max_size=3))
def test_iota(data, shape):
    dim = data.draw(st.integers(0, len(shape) - 1))
    for dtype in (F32, S32):
        result = TensorType(dtype, tuple(shape))
        check([], lambda b, to=result: b.op("iota", types=[to], iota_dimension=dim))


@settings(max_examples=120, deadline=None)
@given(st.data(), SHAPES)
def test_pad(data, shape):
    interior = tuple(data.draw(st.integers(0, 2)) for _ in shape)
    low, high = [], []
    for n, gap in zip(shape, interior, strict=True):
        inner = n + max(n - 1, 0) * gap
        low.append(data.draw(st.integers(-inner, 3)))
        high.append(data.draw(st.integers(-inner - low[-1], 3)))
    edges = {"edge_padding_low": tuple(low), "edge_padding_high": tuple(high), "interior_padding": interior}
    check([t(*shape), t()], lambda b, x, fill: b.op("pad", x, fill, **edges))


@EXAMPLES
@given(st.data(), st.lists(EXTENTS, min_size=1, max_size=3))
def test_concatenate(data, shape):
    dim = data.draw(st.integers(0, len(shape) - 1))
    parts = data.draw(st.lists(EXTENTS, min_size=1, max_size=4))
    types = [t(*shape[:dim], n, *shape[dim + 1 :]) for n in parts]
    check(types, lambda b, *xs: b.op("concatenate", *xs, dimension=dim))


def test_chains_of_moves_read_one_element():
    def build(b, x, y):
        a = b.op("transpose", b.op("reverse", x, dimensions=(1,)), permutation=(1, 0))
        both = b.op("concatenate", a, y, dimension=0)
        part = b.op("slice", both, start_indices=(1, 0), limit_indices=(6, 3), strides=(2, 2))
        return b.op("reshape", part, types=[t(6)])

    check([t(3, 4), t(2, 3)], build)


def test_a_pad_of_a_pad_divides_no_negative_number():
    def build(b, x, fill):
        dilated = b.op("pad", x, fill, edge_padding_low=(-1,), edge_padding_high=(2,), interior_padding=(2,))
        return b.op("pad", dilated, fill, edge_padding_low=(3,), edge_padding_high=(1,), interior_padding=(1,))

    check([t(4), t()], build)
