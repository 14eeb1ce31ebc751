"""Reductions, windows, products and convolutions: written out, as nests, split in two, and with work around them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.compiler.lowering.running import as_fusion, assert_same, check_element, check_fused, run_fusion
from tests.compiler.ops.attributes import convolution_attributes
from tests.compiler.ops.checking import region, values
from tests.compiler.ops.oracle import program
from treadle.compiler import interp
from treadle.compiler.ir.core import Region
from treadle.compiler.ir.types import BF16, F16, F32, PRED, S8, S32, U8, TensorType
from treadle.compiler.lowering.fusions import lower_fusion
from treadle.compiler.ops.build import Builder

EXAMPLES = settings(max_examples=60, deadline=None)
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=3)
KINDS = st.sampled_from(
    [(F32, "add"), (F32, "maximum"), (S32, "minimum"), (S32, "multiply"), (U8, "xor"), (PRED, "or"), (BF16, "add")]
)


def t(*shape, dtype=F32):
    return TensorType(dtype, tuple(shape))


def check_reduce(types, build, inputs=None):
    """The op that `build` ends with: as an expression, as a nest, and in what fusion makes of it."""
    arrays = [values(x) for x in types] if inputs is None else inputs
    check_element(types, build, arrays)
    p = program(types, build)
    fusion = as_fusion(p, "reduce", root=len(p.entry.ops) - 1)
    assert_same(interp.run(p, arrays), run_fusion(fusion, arrays))
    check_fused(types, build, arrays)


@EXAMPLES
@given(st.data(), SHAPES, KINDS)
def test_reduce(data, shape, kind):
    dtype, name = kind
    dims = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))

    def build(b, x, init):
        return b.op("reduce", x, init, dimensions=dims, regions=[region(dtype, name)])

    check_reduce([t(*shape, dtype=dtype), t(dtype=dtype)], build)


def first_largest():
    """(value, position) of the larger value, NaN being the largest; of equal ones, of the smaller position."""
    r = Region([t(), t(dtype=S32), t(), t(dtype=S32)])
    b = Builder(r)
    old, old_at, new, new_at = r.args
    larger = b.op("compare", old, new, comparison_direction="GT", compare_type="FLOAT")
    better = b.op("or", larger, b.op("compare", old, old, comparison_direction="NE", compare_type="FLOAT"))
    same = b.op("compare", old, new, comparison_direction="EQ", compare_type="FLOAT")
    earlier = b.op("compare", old_at, new_at, comparison_direction="LT", compare_type="SIGNED")
    keep_at = b.op("or", better, b.op("and", same, earlier))
    r.results = [b.op("select", better, old, new), b.op("select", keep_at, old_at, new_at)]
    return r


@EXAMPLES
@given(st.data(), st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(1, 3))
def test_reduce_of_several_arrays(data, shape, scale):
    dims = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))

    def build(b, x, init):
        positions = b.op("iota", types=[t(*shape, dtype=S32)], iota_dimension=len(shape) - 1)
        none = b.constant(np.int32(0))
        scaled = b.op("multiply", x, b.constant(np.float32(scale), shape))
        pair = b.ops("reduce", scaled, positions, init, none, dimensions=dims, regions=[first_largest()])
        return [pair[0], b.op("negate", pair[1])]

    check_fused([t(*shape), t()], build)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("size", [3, 40])
def test_arguments_of_the_largest(dims, size):
    """Long rows, so that no reduction is written out; only the position is asked for."""

    def build(b, x):
        positions = b.op("iota", types=[t(3, size, dtype=S32)], iota_dimension=1)
        inits = b.constant(np.float32(-np.inf)), b.constant(np.int32(0))
        return b.ops("reduce", x, positions, *inits, dimensions=dims, regions=[first_largest()])[1]

    x = values(t(3, size))
    x[1, size // 2] = np.nan
    check_fused([t(3, size)], build, [x])


@pytest.mark.parametrize("extra", [0, 1])
def test_a_long_reduction_is_split(extra):
    """An extent that no number of parts divides stays whole; both give the same."""
    n = (1 << 16) + extra

    def build(b, x, init):
        total = b.op("reduce", b.op("multiply", x, x), init, dimensions=(0,), regions=[region(S32, "add")])
        return b.op("add", total, total)

    p = program([t(n, 2, dtype=S32), t(dtype=S32)], build)
    calls = lower_fusion(as_fusion(p, "reduce", root=1))
    assert len(calls) == (1 if extra else 2)
    # The interpreter of kernels would take minutes for a sum of so many: extents are what there is to see here.
    elements = 1
    for call in calls:
        reduction = call.kernel.nests[0].reduction
        assert reduction is not None
        elements *= math.prod(v.extent for v in reduction.vars)
    assert elements == n


ARITHMETIC, LOGIC = ("add", "multiply", "maximum", "minimum"), ("and", "or", "xor")
SPLIT = [(d, n) for d in (F32, S8, U8, PRED, BF16) for n in ARITHMETIC + (() if d.is_float else LOGIC)]


@pytest.mark.parametrize(("dtype", "name"), SPLIT, ids=[f"{d}-{n}" for d, n in SPLIT])
def test_a_split_reduction_is_the_same(monkeypatch, dtype, name):
    monkeypatch.setattr("treadle.compiler.lowering.nests_reduce.SPLIT_ELEMENTS", 16)

    def build(b, x, init):
        total = b.op("reduce", x, init, dimensions=(0, 2), regions=[region(dtype, name)])
        return b.op("maximum", total, total)

    types = [t(8, 3, 2, dtype=dtype), t(dtype=dtype)]
    p = program(types, build)
    fusion = as_fusion(p, "reduce", root=0)
    assert len(lower_fusion(fusion)) == 2
    arrays = [values(x) for x in types]
    assert_same(interp.run(p, arrays), run_fusion(fusion, arrays))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(st.integers(0, 5), min_size=1, max_size=2), KINDS)
def test_reduce_window(data, shape, kind):
    dtype, name = kind
    draw = data.draw
    attrs = {
        "window_dimensions": tuple(draw(st.integers(1, 3)) for _ in shape),
        "window_strides": tuple(draw(st.integers(1, 3)) for _ in shape),
        "base_dilations": tuple(draw(st.integers(1, 3)) for _ in shape),
        "window_dilations": tuple(draw(st.integers(1, 3)) for _ in shape),
        "padding": tuple((draw(st.integers(-2, 3)), draw(st.integers(-2, 3))) for _ in shape),
    }
    for n, base, (low, high) in zip(shape, attrs["base_dilations"], attrs["padding"], strict=True):
        assume(max(n - 1, 0) * base + (n > 0) + low + high >= 0)

    def build(b, x, init):
        return b.op("reduce_window", x, init, regions=[region(dtype, name)], **attrs)

    check_reduce([t(*shape, dtype=dtype), t(dtype=dtype)], build)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([F32, F16, S8, S32, PRED]))
def test_dot_general(data, dtype):
    draw = data.draw
    batch = draw(st.lists(st.integers(0, 3), max_size=2))
    inner = draw(st.lists(st.integers(0, 3), max_size=2))
    sides, numbers = [], {}
    for side in ("lhs", "rhs"):
        free = draw(st.lists(st.integers(0, 3), max_size=2))
        roles = [("b", i) for i in range(len(batch))] + [("c", i) for i in range(len(inner))]
        roles += [("f", i) for i in range(len(free))]
        order = list(draw(st.permutations(roles)))
        extents = {"b": batch, "c": inner, "f": free}
        sides.append(t(*(extents[role][i] for role, i in order), dtype=dtype))
        numbers[f"{side}_batching_dimensions"] = tuple(order.index(("b", i)) for i in range(len(batch)))
        numbers[f"{side}_contracting_dimensions"] = tuple(order.index(("c", i)) for i in range(len(inner)))
    check_reduce(sides, lambda b, x, y: b.op("dot_general", x, y, **numbers))


def test_a_product_takes_in_what_is_around_it():
    def build(b, x, y, z):
        product = b.op(
            "dot_general",
            b.op("sine", x),
            b.op("transpose", y, permutation=(1, 0)),
            lhs_batching_dimensions=(),
            rhs_batching_dimensions=(),
            lhs_contracting_dimensions=(1,),
            rhs_contracting_dimensions=(0,),
        )
        return b.op("add", product, z)

    check_fused([t(3, 20), t(2, 20), t(3, 2)], build)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_convolution(data):
    draw = data.draw
    rank = draw(st.integers(0, 2))
    groups, batch_groups = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))
    features, out_features = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    batch = draw(st.integers(1, 2)) * batch_groups
    image = [draw(st.integers(1, 4)) for _ in range(rank)]
    window = [draw(st.integers(1, 3)) for _ in range(rank)]

    def places():
        """Where batch (or output feature), feature and spatial dimensions are."""
        return list(draw(st.permutations(range(rank + 2))))

    lhs, rhs, out = places(), places(), places()
    lhs_shape, rhs_shape = [0] * (rank + 2), [0] * (rank + 2)
    for d, n in zip(lhs, [batch, features * groups, *image], strict=True):
        lhs_shape[d] = n
    for d, n in zip(rhs, [features, out_features * groups * batch_groups, *window], strict=True):
        rhs_shape[d] = n
    attrs = convolution_attributes(
        input_batch_dimension=lhs[0],
        input_feature_dimension=lhs[1],
        input_spatial_dimensions=tuple(lhs[2:]),
        kernel_input_feature_dimension=rhs[0],
        kernel_output_feature_dimension=rhs[1],
        kernel_spatial_dimensions=tuple(rhs[2:]),
        output_batch_dimension=out[0],
        output_feature_dimension=out[1],
        output_spatial_dimensions=tuple(out[2:]),
        window_strides=tuple(draw(st.integers(1, 3)) for _ in image),
        padding=tuple((draw(st.integers(-1, 3)), draw(st.integers(-1, 3))) for _ in image),
        lhs_dilation=tuple(draw(st.integers(1, 3)) for _ in image),
        rhs_dilation=tuple(draw(st.integers(1, 2)) for _ in image),
        window_reversal=tuple(draw(st.booleans()) for _ in image),
        feature_group_count=groups,
        batch_group_count=batch_groups,
    )
    for n, base, (low, high) in zip(image, attrs["lhs_dilation"], attrs["padding"], strict=True):
        assume((n - 1) * base + 1 + low + high >= 0)
    # No library call takes integers: a nest is what they become. 16-bit floats are summed in 32 bits.
    for dtype in (S32, F16):
        types = [t(*lhs_shape, dtype=dtype), t(*rhs_shape, dtype=dtype)]
        p = program(types, lambda b, x, y: b.op("convolution", x, y, types=(), **attrs))
        arrays = [values(x) for x in types]
        assert_same(interp.run(p, arrays), run_fusion(as_fusion(p, "reduce", root=0), arrays))
