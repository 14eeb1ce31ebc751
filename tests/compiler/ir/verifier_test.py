"""Programs that break a rule of the IR are refused, with the op and where it came from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import Input, Location, Op, Output, Program, Region, Value
from treadle.compiler.ir.types import F32, PRED, S32, TensorType
from treadle.compiler.ir.verifier import verify
from treadle.compiler.ops.build import Builder

T = TensorType(F32, (2, 3))
WHERE = Location("jit(f)/op", "f.py", 7)


def program(build: Callable[[Region], list[Value]]) -> Program:
    region = Region([T, T])
    region.results = build(region)
    return Program("f", region, [Input(), Input()], [Output() for _ in region.results])


def refused(build: Callable[[Region], list[Value]], match: str) -> None:
    with pytest.raises(IrError, match=match):
        verify(program(build))


def test_a_good_program() -> None:
    verify(program(lambda r: [Builder(r).op("add", *r.args)]))


def test_use_before_definition() -> None:
    def build(r: Region) -> list[Value]:
        later = Op("negate", [r.args[0]], [T], loc=WHERE)
        r.append(Op("abs", [later.result], [T], loc=WHERE))
        r.append(later)
        return [later.result]

    refused(build, r"abs: operand 0 \(f32\[2,3\]\) is not defined before it .*jit\(f\)/op at f.py:7")


def test_use_of_a_value_of_an_inner_region() -> None:
    def build(r: Region) -> list[Value]:
        inner = [Region(), Region()]
        for region in inner:
            region.results = [Builder(region).op("negate", r.args[0])]
        Builder(r).op("if", Builder(r).constant(np.bool_(True)), regions=inner)
        return [inner[0].results[0]]

    refused(build, r"result 0 .* of the program is not defined in it")


def test_combiners_are_closed() -> None:
    def build(r: Region) -> list[Value]:
        b = Builder(r)
        scalar = b.constant(np.float32(0))
        region = Region([scalar.type] * 2)
        region.results = [Builder(region).op("add", region.args[0], scalar)]
        return [b.op("reduce", r.args[0], scalar, dimensions=(0,), regions=[region])]

    refused(build, r"add: operand 1 \(f32\[\]\) is not defined before it in a region of reduce")


def test_control_flow_may_capture() -> None:
    def build(r: Region) -> list[Value]:
        regions = [Region(), Region()]
        for region, value in zip(regions, r.args, strict=True):
            region.results = [value]
        b = Builder(r)
        return b.ops("if", b.constant(np.bool_(True)), regions=regions)

    verify(program(build))


def test_wrong_result_type() -> None:
    def build(r: Region) -> list[Value]:
        return r.append(Op("add", r.args, [TensorType(F32, (3, 2))], loc=WHERE)).results

    refused(build, r"add\(f32\[2,3\], f32\[2,3\]\): expected result of type f32\[2,3\], got f32\[3,2\] \(jit")


def test_unknown_op() -> None:
    refused(lambda r: r.append(Op("frobnicate", r.args, [T])).results, "frobnicate: no such op")


def test_defined_twice() -> None:
    def build(r: Region) -> list[Value]:
        op = r.append(Op("add", r.args, [T]))
        r.append(op)
        return op.results

    refused(build, "is defined twice")


def test_result_that_does_not_know_its_op() -> None:
    def build(r: Region) -> list[Value]:
        op = r.append(Op("add", r.args, [T]))
        op.results = [Value(T)]
        return op.results

    refused(build, "does not know what defines it")


def test_records_of_inputs_and_outputs() -> None:
    p = program(lambda r: [r.args[0]])
    p.inputs.pop()
    with pytest.raises(IrError, match="2 arguments but 1 input records"):
        verify(p)
    p = program(lambda r: [r.args[0]])
    p.outputs.clear()
    with pytest.raises(IrError, match="1 results but 0 output records"):
        verify(p)
    p = program(lambda r: [r.args[0]])
    p.inputs[1].alias = 1
    with pytest.raises(IrError, match="argument 1 of program f aliases output 1"):
        verify(p)


def test_region_arity() -> None:
    def build(r: Region) -> list[Value]:
        cond, body = Region([T]), Region([T])
        cond.results = [Builder(cond).constant(np.bool_(True))]
        op = Op("while", r.args, [T, T], regions=[cond, body])
        return r.append(op).results

    refused(build, r"the cond region must take \(f32\[2,3\], f32\[2,3\]\), it takes \(f32\[2,3\]\)")


def test_scalars_only_where_scalars_belong() -> None:
    def build(r: Region) -> list[Value]:
        pred = Builder(r).constant(np.array([True, False]))
        return r.append(Op("if", [pred], [T], regions=[Region(), Region()])).results

    refused(build, rf"expected a predicate {TensorType(PRED, ())!s}".replace("[", r"\[").replace("]", r"\]"))
    assert str(TensorType(S32, (1,))) == "s32[1]"
