"""select_and_scatter by both of its lowerings, and concatenation into one buffer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.lowering.running import check_fused
from tests.compiler.ops.checking import compare_region, region
from treadle.compiler.ir.types import F32, S32, TensorType


def t(*shape, dtype=F32):
    return TensorType(dtype, tuple(shape))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(st.integers(0, 6), min_size=1, max_size=2), st.sampled_from(["GE", "GT", "LE"]))
def test_select_and_scatter(data, shape, direction):
    draw = data.draw
    dtype = draw(st.sampled_from([F32, S32]))
    window = tuple(draw(st.integers(1, 3)) for _ in shape)
    strides = tuple(draw(st.integers(1, 4)) for _ in shape)
    padding = tuple((draw(st.integers(0, w - 1)), draw(st.integers(0, w - 1))) for w in window)
    total = [n + low + high for n, (low, high) in zip(shape, padding, strict=True)]
    source = [0 if n < w else (n - w) // s + 1 for n, w, s in zip(total, window, strides, strict=True)]
    attrs = {"window_dimensions": window, "window_strides": strides, "padding": padding}
    regions = [compare_region(dtype, direction), region(dtype, "add")]

    def build(b, x, grad, init):
        return b.op("select_and_scatter", x, grad, init, regions=regions, **attrs)

    types = [t(*shape, dtype=dtype), t(*source, dtype=dtype), t(dtype=dtype)]
    check_fused(types, build, kinds=["select_and_scatter"])


def test_select_and_scatter_computes_its_operands():
    attrs = {"window_dimensions": (2, 3), "window_strides": (2, 2), "padding": ((0, 0), (1, 1))}

    def build(b, x, grad, init):
        regions = [compare_region(F32, "GE"), region(F32, "add")]
        return b.op("select_and_scatter", b.op("sine", x), b.op("negate", grad), init, regions=regions, **attrs)

    check_fused([t(4, 6), t(2, 3), t()], build)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_concatenate_computes_its_parts(data, shape):
    dim = data.draw(st.integers(0, len(shape) - 1))
    parts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    types = [t(*shape[:dim], n, *shape[dim + 1 :]) for n in parts]

    def build(b, *xs):
        joined = b.op("concatenate", *(b.op("negate", x) for x in xs), dimension=dim)
        return [joined, b.op("sine", joined)]

    check_fused(types, build)
