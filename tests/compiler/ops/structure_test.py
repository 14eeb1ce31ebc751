"""Ops that move elements, and control flow, against jaxlib's CPU backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.compiler.ops.checking import check, region, values
from tests.compiler.ops.oracle import program
from treadle.compiler import interp
from treadle.compiler.ir.core import Program, Region, Value
from treadle.compiler.ir.types import BF16, F16, F32, F64, PRED, S8, S32, S64, U8, U32, DType, TensorType
from treadle.compiler.ops.build import Builder


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
