"""Elementwise ops, and those that look into the bits of an element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import as_fusion, check_element, check_fused, run_fusion
from tests.compiler.ops.checking import values
from tests.compiler.ops.oracle import program
from treadle.compiler import interp
from treadle.compiler.ir.types import BF16, F16, F32, F64, PRED, S8, S16, S32, S64, U8, U16, U32, U64, TensorType
from treadle.compiler.lowering import registry
from treadle.compiler.lowering.elementwise import BINARY, UNARY
from treadle.compiler.ops import registry as definitions

# What does not take floats; all else does.
ON_INTEGERS = {"count_leading_zeros", "not", "popcnt", "and", "or", "xor"}


def t(*shape, dtype=F32):
    return TensorType(dtype, tuple(shape))


def dtype_of(name):
    return S32 if name in ON_INTEGERS or name.startswith("shift") else F32


@pytest.mark.parametrize("name", [name for name in UNARY if "convert" not in name])
def test_unary(name):
    check_element([t(3, 5, dtype=dtype_of(name))], lambda b, x: b.op(name, x))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    check_element([t(4, 3, dtype=dtype_of(name))] * 2, lambda b, x, y: b.op(name, x, y))


def test_every_elementwise_op_has_a_rule():
    elementwise = {name for name in definitions.all_ops() if definitions._REGISTRY[name].apply is not None}
    assert elementwise <= registry.all_ops()
    assert {*UNARY, *BINARY} - {"bitcast_convert"} <= elementwise


@pytest.mark.parametrize("shape", [(), (3, 4)])
def test_select_and_clamp_take_scalars(shape):
    pred = t(*shape, dtype=PRED)
    check_element([pred, t(3, 4), t(3, 4)], lambda b, p, x, y: b.op("select", p, x, y))
    limits = t(*shape)
    check_element([limits, t(3, 4), limits], lambda b, low, x, high: b.op("clamp", low, x, high))


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "LE", "GT", "GE"])
@pytest.mark.parametrize("kind", ["FLOAT", "TOTALORDER"])
def test_compare(direction, kind):
    numbers = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    x, y = (np.ascontiguousarray(a).reshape(-1) for a in np.meshgrid(numbers, numbers))

    def build(b, x, y):
        return b.op("compare", x, y, comparison_direction=direction, compare_type=kind)

    check_element([t(64), t(64)], build, [x, y])


@pytest.mark.parametrize("source", [F32, BF16, S8, U32, PRED], ids=str)
@pytest.mark.parametrize("target", [F64, F16, S64, U8, PRED], ids=str)
def test_convert(source, target):
    x = np.abs(values(t(3, 4, dtype=source))) if source is not PRED else values(t(3, 4, dtype=source))
    result = t(3, 4, dtype=target)
    check_element([t(3, 4, dtype=source)], lambda b, x: b.op("convert", x, types=[result]), [x])


BITCASTS = [
    (F32, (2, 3), S32, (2, 3)),
    (U16, (2, 3), BF16, (2, 3)),
    (S64, (2, 3), F32, (2, 3, 2)),
    (F64, (3,), S16, (3, 4)),
    (U32, (), S8, (4,)),
    (F32, (2, 3, 2), U64, (2, 3)),
    (S8, (3, 4), F32, (3,)),
    (BF16, (4,), F64, ()),
    (S16, (0, 2), U32, (0,)),
]


@pytest.mark.parametrize(("source", "shape", "target", "result"), BITCASTS)
def test_bitcast_convert(source, shape, target, result):
    size = int(np.prod(shape)) * source.bytes
    x = np.random.default_rng(1).integers(0, 256, size, np.uint8).view(source.numpy).reshape(shape)
    p = program([t(*shape, dtype=source)], lambda b, x: b.op("bitcast_convert", x, types=[t(*result, dtype=target)]))
    (actual,) = run_fusion(as_fusion(p, "loop"), [x])
    (expected,) = interp.run(p, [x])
    assert actual.tobytes() == expected.tobytes() == x.tobytes()


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (4, 3), (2, 0), (8, 23), (11, 52), (5, 23)])
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_reduce_precision(dtype, bits):
    exponents = np.arange(-160, 160)
    with np.errstate(over="ignore"):
        numbers = np.concatenate([np.ldexp(s * m, exponents) for s in (1, -1) for m in (1, 1.25, 1.5, 1.99951171875)])
        x = np.concatenate([numbers, [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(dtype.numpy)

    def build(b, x):
        return b.op("reduce_precision", x, exponent_bits=bits[0], mantissa_bits=bits[1])

    check_element([t(x.size, dtype=dtype)], build, [x])


def test_constants():
    def build(b, x):
        splat = b.constant(np.float32(2.5), (3, 4))
        one = b.constant(np.array([[7.0]], np.float32))
        grown = b.op("broadcast_in_dim", one, types=[t(3, 4)], broadcast_dimensions=(0, 1))
        return b.op("add", b.op("multiply", x, splat), grown)

    check_element([t(3, 4)], build)
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    check_fused([t(3, 4)], lambda b, x: b.op("add", x, b.constant(table)))


def test_a_barrier_gives_its_operands():
    def build(b, x, y):
        x, y = b.ops("optimization_barrier", x, y)
        return b.op("subtract", y, x)

    check_element([t(5)] * 2, build)
    check_fused([t(5)] * 2, build)
