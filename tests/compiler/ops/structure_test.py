"""Shape, indexing, reduction, linear and control ops against jaxlib's CPU backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.compiler.ops.oracle import assert_same, program, run_on_jaxlib
from treadle.compiler import interp
from treadle.compiler.ir.core import Program, Region, Value
from treadle.compiler.ir.types import BF16, BY_NAME, F16, F32, F64, PRED, S8, S32, S64, U8, U32, DType, TensorType
from treadle.compiler.ir.verifier import verify
from treadle.compiler.ops.build import Builder

RNG = np.random.default_rng(3)


def values(t: TensorType) -> np.ndarray:
    """Small whole numbers: sums and products of them are exact in every type and order."""
    if t.dtype is PRED:
        return RNG.integers(0, 2, t.shape).astype(bool)
    low = 0 if t.dtype.numpy.kind == "u" else -4
    return RNG.integers(low, 5, t.shape).astype(t.dtype.numpy)


def check(
    types: Sequence[TensorType],
    build: Callable[..., Any],
    inputs: Sequence[np.ndarray] | None = None,
    **tolerance: float,
) -> None:
    p = program(types, build)
    verify(p)
    arrays = [values(t) for t in types] if inputs is None else list(inputs)
    for i, (a, b) in enumerate(zip(interp.run(p, arrays), run_on_jaxlib(p, arrays), strict=True)):
        assert_same(a, b, what=f"result {i}", **tolerance)


def region(dtype: DType, name: str, count: int = 2) -> Region:
    """(a, b) -> name(a, b) on scalars."""
    r = Region([TensorType(dtype, ())] * count)
    r.results = [Builder(r).op(name, *r.args)]
    return r


def compare_region(dtype: DType, direction: str) -> Region:
    r = Region([TensorType(dtype, ())] * 2)
    kind = "FLOAT" if dtype.is_float else "SIGNED"
    r.results = [Builder(r).op("compare", *r.args, comparison_direction=direction, compare_type=kind)]
    return r


def second(dtype: DType) -> Region:
    """(a, b) -> b: what `x.at[i].set(v)` makes."""
    r = Region([TensorType(dtype, ())] * 2)
    r.results = [r.args[1]]
    return r


@pytest.mark.parametrize("dtype", [F32, BF16, S8, U32, PRED, S64], ids=repr)
def test_shapes(dtype: DType) -> None:
    t = TensorType(dtype, (3, 4, 5))

    def build(b: Builder, x: Value, pad_value: Value) -> list[Value]:
        return [
            b.op("broadcast_in_dim", x, types=[TensorType(dtype, (3, 2, 4, 5))], broadcast_dimensions=(0, 2, 3)),
            b.op("broadcast_in_dim", pad_value, types=[TensorType(dtype, (2, 3))], broadcast_dimensions=()),
            b.op("reshape", x, types=[TensorType(dtype, (5, 12))]),
            b.op("transpose", x, permutation=(2, 0, 1)),
            b.op("reverse", x, dimensions=(0, 2)),
            b.op("concatenate", x, x, dimension=1),
            b.op("slice", x, start_indices=(1, 0, 1), limit_indices=(3, 4, 5), strides=(1, 3, 2)),
            b.op(
                "pad",
                x,
                pad_value,
                edge_padding_low=(1, -2, 0),
                edge_padding_high=(0, 3, -1),
                interior_padding=(2, 1, 0),
            ),
            b.op(
                "pad", x, pad_value, edge_padding_low=(-1,) * 3, edge_padding_high=(-1,) * 3, interior_padding=(1,) * 3
            ),
        ]

    check([t, TensorType(dtype, ())], build)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, S8, U8, S32, S64], ids=repr)
def test_iota(dtype: DType) -> None:
    check([], lambda b: [b.op("iota", types=[TensorType(dtype, (300, 2))], iota_dimension=d) for d in (0, 1)])


@pytest.mark.parametrize("index", [S32, U8, S64, U32], ids=repr)
def test_dynamic_slices(index: DType) -> None:
    t, u, scalar = TensorType(F32, (4, 6)), TensorType(F32, (2, 3)), TensorType(index, ())
    starts = [0, 1, 3, 5, 100] + ([-1, -100] if index.is_signed else [])

    def build(b: Builder, x: Value, y: Value, i: Value, j: Value) -> list[Value]:
        return [
            b.op("dynamic_slice", x, i, j, slice_sizes=(2, 3)),
            b.op("dynamic_slice", x, j, i, slice_sizes=(4, 1)),
            b.op("dynamic_update_slice", x, y, i, j),
        ]

    for i in starts:
        inputs = [values(t), values(u), np.asarray(i, index.numpy), np.asarray(starts[-1], index.numpy)]
        check([t, u, scalar, scalar], build, inputs)


GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (8, 3),
        (5, 1),
        {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "slice_sizes": (1, 3)},
    ),
    ((8, 3), (5,), {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "slice_sizes": (1, 3)}),
    ((8, 3), (5, 1), {"offset_dims": (0, 1), "start_index_map": (0,), "slice_sizes": (2, 3)}),
    ((8, 3), (2, 4, 2), {"collapsed_slice_dims": (0, 1), "start_index_map": (1, 0), "slice_sizes": (1, 1)}),
    (
        (4, 8, 3),
        (4, 5, 1),
        {
            "offset_dims": (2,),
            "collapsed_slice_dims": (1,),
            "start_index_map": (1,),
            "slice_sizes": (1, 1, 3),
            "operand_batching_dims": (0,),
            "start_indices_batching_dims": (0,),
        },
    ),
    (
        (8, 3),
        (2, 4),
        {
            "offset_dims": (0,),
            "collapsed_slice_dims": (1,),
            "start_index_map": (0, 1),
            "slice_sizes": (2, 1),
            "index_vector_dim": 0,
        },
    ),
]


def gather_attributes(indices: Sequence[int], given: dict[str, Any]) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "offset_dims": (),
        "collapsed_slice_dims": (),
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "index_vector_dim": 1 if len(indices) == 1 else len(indices) - 1,
        "indices_are_sorted": False,
    }
    return attrs | given


@pytest.mark.parametrize("index", [S32, U32, S8], ids=repr)
@pytest.mark.parametrize("case", range(len(GATHERS)))
def test_gather(case: int, index: DType) -> None:
    operand, indices, given = GATHERS[case]
    attrs = gather_attributes(indices, given)
    low = 0 if index is U32 else -3
    places = RNG.integers(low, 11, indices).astype(index.numpy)
    x, i = TensorType(F32, operand), TensorType(index, indices)
    check([x, i], lambda b, v, w: b.op("gather", v, w, **attrs), [values(x), places])


# operand, indices, updates, attributes
SCATTERS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (
        (8, 3),
        (6, 1),
        (6, 3),
        {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)},
    ),
    ((8, 3), (6, 1), (2, 3, 6), {"update_window_dims": (0, 1), "scatter_dims_to_operand_dims": (0,)}),
    ((8, 3), (6, 1), (2, 6, 3), {"update_window_dims": (0, 2), "scatter_dims_to_operand_dims": (0,)}),
    ((8, 3), (2, 6, 2), (2, 6), {"inserted_window_dims": (0, 1), "scatter_dims_to_operand_dims": (1, 0)}),
    ((8,), (1,), (1,), {"update_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}),
    (
        (4, 8, 3),
        (4, 5, 1),
        (4, 5, 3),
        {
            "update_window_dims": (2,),
            "inserted_window_dims": (1,),
            "scatter_dims_to_operand_dims": (1,),
            "input_batching_dims": (0,),
            "scatter_indices_batching_dims": (0,),
        },
    ),
]


def scatter_attributes(indices: Sequence[int], given: dict[str, Any]) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "update_window_dims": (),
        "inserted_window_dims": (),
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "index_vector_dim": max(len(indices) - 1, 0),
        "indices_are_sorted": False,
        "unique_indices": False,
    }
    return attrs | given


@pytest.mark.parametrize("dtype", [F32, BF16, S32], ids=repr)
@pytest.mark.parametrize("case", range(len(SCATTERS)))
def test_scatter(case: int, dtype: DType) -> None:
    operand, indices, updates, given = SCATTERS[case]
    attrs = scatter_attributes(indices, given)
    places = RNG.integers(-2, 10, indices).astype(np.int32)
    x, i, u = TensorType(dtype, operand), TensorType(S32, indices), TensorType(dtype, updates)
    combiners = [region(dtype, n) for n in ("add", "maximum", "multiply", "subtract")]

    def build(b: Builder, v: Value, w: Value, y: Value) -> list[Value]:
        return [b.op("scatter", v, w, y, regions=[r], **attrs) for r in combiners]

    check([x, i, u], build, [values(x), places, values(u)])
    if case == 0:  # without two updates to one place, whose order is nobody's business
        unique = RNG.permutation(np.arange(-2, 10))[:6].reshape(indices)

        def assign(b: Builder, v: Value, w: Value, y: Value) -> Value:
            return b.op("scatter", v, w, y, regions=[second(dtype)], **attrs)

        check([x, i, u], assign, [values(x), unique.astype(np.int32), values(u)])


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16, S32, U8], ids=repr)
@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "multiply"])
def test_reduce(dtype: DType, name: str) -> None:
    t, scalar = TensorType(dtype, (3, 4, 5)), TensorType(dtype, ())

    def build(b: Builder, x: Value, init: Value) -> list[Value]:
        some = [(0,), (1,), (2,), (0, 2)] + ([] if name == "multiply" else [(2, 1), (0, 1, 2)])
        return [b.op("reduce", x, init, dimensions=dims, regions=[region(dtype, name)]) for dims in some]

    inputs = [values(t), values(scalar)]
    if name == "multiply":  # powers of two, so that no order overflows
        inputs = [np.asarray(abs(x.astype(np.float64)) % 2 + 1).astype(x.dtype) for x in inputs]
    check([t, scalar], build, inputs)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_reduce_predicates(name: str) -> None:
    t, scalar = TensorType(PRED, (3, 4)), TensorType(PRED, ())

    def build(b: Builder, x: Value, init: Value) -> list[Value]:
        return [b.op("reduce", x, init, dimensions=d, regions=[region(PRED, name)]) for d in [(0,), (1,), (0, 1)]]

    check([t, scalar], build)


def test_empty_reductions() -> None:
    t, scalar = TensorType(F32, (0, 4)), TensorType(F32, ())
    check(
        [t, scalar],
        lambda b, x, i: [b.op("reduce", x, i, dimensions=(d,), regions=[region(F32, "add")]) for d in (0, 1)],
    )


def argmax_region() -> Region:
    """(value, index, value, index): the larger value, the smaller index among equals, as JAX writes argmax."""
    f, i = TensorType(F32, ()), TensorType(S32, ())
    r = Region([f, i, f, i])
    b = Builder(r)
    x, xi, y, yi = r.args
    greater = b.op("compare", x, y, comparison_direction="GT", compare_type="FLOAT")
    not_a_number = b.op("compare", x, x, comparison_direction="NE", compare_type="FLOAT")
    first = b.op("or", greater, not_a_number)
    equal = b.op("compare", x, y, comparison_direction="EQ", compare_type="FLOAT")
    earlier = b.op("compare", xi, yi, comparison_direction="LT", compare_type="SIGNED")
    choose = b.op("or", first, b.op("and", equal, earlier))
    r.results = [b.op("select", first, x, y), b.op("select", choose, xi, yi)]
    return r


def test_argmax() -> None:
    f, i = TensorType(F32, (5, 40)), TensorType(S32, (5, 40))

    def build(b: Builder, x: Value) -> list[Value]:
        index = b.op("iota", types=[i], iota_dimension=1)
        inits = [b.constant(np.float32(-np.inf)), b.constant(np.int32(0))]
        return b.ops("reduce", x, index, *inits, dimensions=(1,), regions=[argmax_region()])

    x = values(f)
    x[2, 17] = np.nan
    check([f], build, [x])
    p = program([f], build)
    np.testing.assert_array_equal(interp.run(p, [x])[1], np.argmax(x, axis=1))


@pytest.mark.parametrize("dtype", [F32, BF16, S32], ids=repr)
@pytest.mark.parametrize("name", ["add", "maximum"])
def test_reduce_window(dtype: DType, name: str) -> None:
    t = TensorType(dtype, (2, 6, 7))
    low = np.asarray(-1000 if name == "maximum" else 0, dtype.numpy)
    cases = [
        ((1, 2, 2), (1, 2, 2), (1, 1, 1), (1, 1, 1), ((0, 0), (0, 0), (0, 0))),
        ((1, 3, 2), (1, 1, 2), (1, 1, 1), (1, 1, 1), ((0, 0), (1, 1), (0, 1))),
        ((2, 2, 3), (1, 1, 1), (1, 2, 1), (1, 1, 2), ((1, 0), (0, 2), (-1, 0))),
        ((1, 6, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), ((0, 0), (5, 0), (0, 0))),
    ]

    def build(b: Builder, x: Value) -> list[Value]:
        init = b.constant(low)
        return [
            b.op(
                "reduce_window",
                x,
                init,
                window_dimensions=size,
                window_strides=stride,
                base_dilations=base,
                window_dilations=window,
                padding=padding,
                regions=[region(dtype, name)],
            )
            for size, stride, base, window, padding in cases
        ]

    check([t], build)


@pytest.mark.parametrize("dtype", [F32, S32], ids=repr)
@pytest.mark.parametrize(
    ("size", "stride", "padding", "source"),
    [
        ((1, 2, 2), (1, 2, 2), ((0, 0), (0, 0), (0, 0)), (2, 3, 3)),
        ((1, 3, 3), (1, 1, 2), ((0, 0), (1, 1), (0, 1)), (2, 6, 3)),
    ],
)
def test_select_and_scatter(dtype: DType, size: Any, stride: Any, padding: Any, source: Any) -> None:
    t, s = TensorType(dtype, (2, 6, 7)), TensorType(dtype, source)

    def build(b: Builder, x: Value, y: Value) -> Value:
        return b.op(
            "select_and_scatter",
            x,
            y,
            b.constant(np.asarray(0, dtype.numpy)),
            window_dimensions=size,
            window_strides=stride,
            padding=padding,
            regions=[compare_region(dtype, "GE"), region(dtype, "add")],
        )

    check([t, s], build)


DOTS = [
    ((3, 4), (4, 5), (), (), (1,), (0,)),
    ((2, 3, 4), (2, 5, 4), (0,), (0,), (2,), (2,)),
    ((3, 2, 4), (4, 2, 3), (1,), (1,), (0, 2), (2, 0)),
    ((2, 6, 3, 4), (4, 2, 5), (0,), (1,), (3,), (0,)),
    ((4,), (4,), (), (), (0,), (0,)),
    ((3,), (4,), (), (), (), ()),
]


@pytest.mark.parametrize(
    ("operand", "result"),
    [("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("s8", "s32"), ("s64", "s64")],
)
def test_dot_general(operand: str, result: str) -> None:
    for lhs, rhs, lhs_batch, rhs_batch, lhs_sum, rhs_sum in DOTS:
        x, y = TensorType(BY_NAME[operand], lhs), TensorType(BY_NAME[operand], rhs)
        lhs_free = [n for d, n in enumerate(lhs) if d not in (*lhs_batch, *lhs_sum)]
        rhs_free = [n for d, n in enumerate(rhs) if d not in (*rhs_batch, *rhs_sum)]
        shape = (*(lhs[d] for d in lhs_batch), *lhs_free, *rhs_free)
        attrs = {
            "lhs_batching_dimensions": lhs_batch,
            "rhs_batching_dimensions": rhs_batch,
            "lhs_contracting_dimensions": lhs_sum,
            "rhs_contracting_dimensions": rhs_sum,
        }
        types = [TensorType(BY_NAME[result], shape)]
        check([x, y], lambda b, v, w, t=types, a=attrs: b.op("dot_general", v, w, types=t, **a), atol=1e-300)


def convolution_attributes(**changes: Any) -> dict[str, Any]:
    """NHWC with HWIO, no padding."""
    attrs: dict[str, Any] = {
        "input_batch_dimension": 0,
        "input_feature_dimension": 3,
        "input_spatial_dimensions": (1, 2),
        "kernel_input_feature_dimension": 2,
        "kernel_output_feature_dimension": 3,
        "kernel_spatial_dimensions": (0, 1),
        "output_batch_dimension": 0,
        "output_feature_dimension": 3,
        "output_spatial_dimensions": (1, 2),
        "window_strides": (1, 1),
        "padding": ((0, 0), (0, 0)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "window_reversal": (False, False),
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    return attrs | changes


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 6, 7, 3), (3, 2, 3, 4), {}),
    ((2, 6, 7, 3), (3, 3, 3, 4), {"padding": ((1, 1), (0, 2)), "window_strides": (2, 1)}),
    ((2, 6, 7, 3), (2, 2, 3, 4), {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2), "padding": ((1, 0), (-1, 1))}),
    ((2, 6, 7, 4), (3, 3, 2, 6), {"feature_group_count": 2}),
    ((4, 6, 7, 3), (3, 3, 3, 6), {"batch_group_count": 2}),
    ((2, 6, 7, 3), (3, 2, 3, 4), {"window_reversal": (True, False)}),
    (
        (3, 6, 7, 2),
        (4, 3, 2, 3),
        {
            "input_batch_dimension": 3,
            "input_feature_dimension": 0,
            "kernel_input_feature_dimension": 3,
            "kernel_output_feature_dimension": 0,
            "kernel_spatial_dimensions": (1, 2),
            "output_batch_dimension": 2,
            "output_feature_dimension": 0,
            "output_spatial_dimensions": (3, 1),
        },
    ),
]


@pytest.mark.parametrize("dtype", [F32, F64, BF16, S32], ids=repr)
def test_convolution(dtype: DType) -> None:
    for lhs, rhs, changes in CONVOLUTIONS:
        attrs = convolution_attributes(**changes)
        check(
            [TensorType(dtype, lhs), TensorType(dtype, rhs)],
            lambda b, x, y, a=attrs: b.op("convolution", x, y, **a),
            atol=0.01 if dtype is F32 else 0.0,
        )


def counting_loop(types: Sequence[TensorType], n: int) -> Callable[..., list[Value]]:
    """while i < n: i += 1, x = x + x * i."""

    def build(b: Builder, x: Value) -> list[Value]:
        scalar = TensorType(S32, ())
        cond, body = Region([scalar, x.type]), Region([scalar, x.type])
        c = Builder(cond)
        cond.results = [
            c.op("compare", cond.args[0], c.constant(np.int32(n)), comparison_direction="LT", compare_type="SIGNED")
        ]
        d = Builder(body)
        i, carry = body.args
        wide = d.op("broadcast_in_dim", i, types=[TensorType(S32, x.type.shape)], broadcast_dimensions=())
        body.results = [d.op("add", i, d.constant(np.int32(1))), d.op("add", carry, d.op("multiply", x, wide))]
        return b.ops("while", b.constant(np.int32(0)), x, regions=[cond, body])

    return build


@pytest.mark.parametrize("n", [0, 1, 5])
def test_while(n: int) -> None:
    """The body uses a value of the program around it."""
    types = [TensorType(S32, (3,))]
    check(types, counting_loop(types, n))


@pytest.mark.parametrize("index", [-7, -1, 0, 1, 2, 3, 100])
def test_branches(index: int) -> None:
    t = TensorType(F32, (3,))

    def branch(name: str, x: Value) -> Region:
        r = Region()
        r.results = [Builder(r).op(name, x)]
        return r

    def build(b: Builder, i: Value, p: Value, x: Value) -> list[Value]:
        case = b.op("case", i, regions=[branch(n, x) for n in ("negate", "sine", "abs")])
        return [case, b.op("if", p, regions=[branch(n, x) for n in ("negate", "abs")])]

    inputs = [np.asarray(index, np.int32), np.asarray(index > 0), np.array([1.0, -2.0, 3.0], np.float32)]
    check([TensorType(S32, ()), TensorType(PRED, ()), t], build, inputs, ulps=2)


def test_map_and_barrier() -> None:
    t = TensorType(F32, (3, 4))

    def build(b: Builder, x: Value, y: Value) -> list[Value]:
        return [
            *b.ops("optimization_barrier", x, y),
            b.op("map", x, y, dimensions=(0, 1), regions=[region(F32, "subtract")]),
        ]

    check([t, t], build)


def test_combiners_that_are_no_scalar_code() -> None:
    """A combiner with a region of its own runs element by element."""
    scalar = TensorType(S32, ())
    r = Region([scalar, scalar])
    b = Builder(r)
    larger = b.op("compare", *r.args, comparison_direction="GT", compare_type="SIGNED")
    regions = []
    for value in r.args:
        branch = Region()
        branch.results = [value]
        regions.append(branch)
    r.results = [b.op("if", larger, regions=regions)]
    t = TensorType(S32, (4, 5))
    p = program([t, scalar], lambda b, x, i: b.op("reduce", x, i, dimensions=(1,), regions=[r]))
    x = values(t)
    np.testing.assert_array_equal(interp.run(p, [x, np.asarray(-100, np.int32)])[0], x.max(axis=1))


def test_arguments_are_checked() -> None:
    p: Program = program([TensorType(F32, (3,))], lambda b, x: b.op("negate", x))
    with pytest.raises(Exception, match="takes 1 arguments, got 0"):
        interp.run(p, [])
    with pytest.raises(Exception, match=r"must be f32\[3\], got float64"):
        interp.run(p, [np.zeros(3)])
