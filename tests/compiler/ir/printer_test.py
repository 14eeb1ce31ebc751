"""The text of a program: complete, readable, and the same for the same program."""

from __future__ import annotations

import numpy as np

from treadle.compiler.ir.core import Input, Location, Output, Program, Region
from treadle.compiler.ir.printer import print_op, print_program, print_region
from treadle.compiler.ir.types import F32, S32, TensorType
from treadle.compiler.ops.build import Builder


def example() -> Program:
    t, scalar = TensorType(F32, (2, 3)), TensorType(F32, ())
    region = Region([t, t])
    b = Builder(region, Location("jit(f)/add", "f.py", 7))
    total = b.op("add", *region.args)
    add = Region([scalar, scalar])
    add.results = [Builder(add).op("add", *add.args)]
    zero = b.constant(np.float32(-0.0))
    reduced = b.op("reduce", total, zero, dimensions=(1,), regions=[add])
    table = b.constant(np.arange(20, dtype=np.int32))
    few = b.constant(np.array([1.5, np.inf], np.float32))
    true = b.constant(np.bool_(True), (2,))
    on, off = Region(), Region()
    on.results, off.results = [reduced, few], [few, few]
    flag = b.constant(np.bool_(False))
    chosen = b.ops("if", flag, regions=[on, off])
    region.results = [*chosen, table, true]
    inputs = [Input(donated=True, alias=0), Input(memory_kind="pinned_host")]
    return Program("f", region, inputs, [Output()] * 4)


EXPECTED = """\
program @f(%arg0: f32[2,3] {donated, alias = 0}, %arg1: f32[2,3] {memory_kind = 'pinned_host'}) -> (f32[2], f32[2], s32[20], pred[2]) {
  %0 = add %arg0, %arg1 : f32[2,3]  // jit(f)/add at f.py:7
  %1 = constant dense<-0.0> : f32[]  // jit(f)/add at f.py:7
  %2 = reduce %0, %1 {dimensions = [1]} (%arg2: f32[], %arg3: f32[]) {
    %3 = add %arg2, %arg3 : f32[]
    yield %3
  } : f32[2]  // jit(f)/add at f.py:7
  %4 = constant dense<[0, 1, 2, 3, ...] DIGEST> : s32[20]  // jit(f)/add at f.py:7
  %5 = constant dense<[1.5, inf]> : f32[2]  // jit(f)/add at f.py:7
  %6 = constant dense<true> : pred[2]  // jit(f)/add at f.py:7
  %7 = constant dense<false> : pred[]  // jit(f)/add at f.py:7
  %8:2 = if %7 {
    yield %2, %5
  } {
    yield %5, %5
  } : (f32[2], f32[2])  // jit(f)/add at f.py:7
  return %8#0, %8#1, %4, %6
}
"""  # fmt: skip  # noqa: E501


def test_program() -> None:
    text = print_program(example())
    digest = text.split("...] ")[1].split(">")[0]
    assert len(digest) == 16
    assert text.replace(digest, "DIGEST") == EXPECTED
    assert print_program(example()) == text


def test_without_locations() -> None:
    assert "//" not in print_program(example(), locations=False)


def test_big_constants_differ_by_digest() -> None:
    texts = set()
    for last in (1, 2):
        region = Region()
        b = Builder(region)
        region.results = [b.constant(np.array([0] * 99 + [last], np.int32))]
        texts.add(print_program(Program("f", region, [], [Output()])))
    assert len(texts) == 2


def test_partitions_are_shown() -> None:
    program = example()
    program.num_partitions = 4
    assert "replicas = 1 partitions = 4 {" in print_program(program)


def test_region_and_op() -> None:
    t = TensorType(S32, (2,))
    outer = Region([t])
    region = Region([t])
    b = Builder(region)
    region.results = [b.op("add", region.args[0], outer.args[0])]
    assert print_region(region) == "(%arg0: s32[2]) {\n  %0 = add %arg0, %outer0 : s32[2]\n  yield %0\n}\n"
    assert print_op(region.ops[0]) == "add(s32[2], s32[2]) : s32[2]"
