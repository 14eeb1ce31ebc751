"""Reductions, windows and select_and_scatter against jaxlib's CPU backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.ops.checking import check, compare_region, region, values
from tests.compiler.ops.oracle import program
from treadle.compiler import interp
from treadle.compiler.ir.core import Region, Value
from treadle.compiler.ir.types import BF16, F16, F32, F64, PRED, S32, U8, DType, TensorType
from treadle.compiler.ops.build import Builder


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
