"""What generated code looks like where that decides how fast it runs or compiles; other tests show that it is right."""

import numpy as np

from tests.compiler.codegen.cases import elementwise_kernel, reduce_kernel
from treadle.compiler.artifact import abi
from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.codegen.target import target_for
from treadle.compiler.ir import types as t
from treadle.compiler.loops.schedule import schedule

WIDE = target_for((1 << len(abi.CPU_FEATURES)) - 1)


def emitted(kernel):
    return emit_kernel(schedule(kernel, WIDE), "k", WIDE)


def test_short_maths_stands_where_it_is_used_and_long_maths_is_called():
    exponential = emitted(elementwise_kernel("exponential", t.F32, (t.F32,), 1000))
    assert "@treadle." not in exponential.text
    assert not exponential.functions
    sine = emitted(elementwise_kernel("sine", t.F32, (t.F32,), 1000))
    assert "@treadle.sine.f32x16(" in sine.text
    assert sine.functions


def test_two_uses_of_a_function_have_registers_of_their_own():
    twice = emitted(elementwise_kernel("exponential", t.F32, (t.F32,), 40))
    names = [line.split("=")[0].strip() for line in twice.text.splitlines() if " = " in line]
    assert len(names) == len(set(names))


def test_a_rest_that_fills_its_vector_is_not_masked():
    assert "masked" not in emitted(reduce_kernel("add", t.F32, (4, 80), (1,))).text
    assert "masked" in emitted(reduce_kernel("add", t.F32, (4, 81), (1,))).text


def test_the_worst_initial_value_takes_no_part():
    scalar = "@llvm.smax.i32(i32"
    plain = emitted(reduce_kernel("maximum", t.F32, (4, 64), (1,), -np.inf)).text
    bounded = emitted(reduce_kernel("maximum", t.F32, (4, 64), (1,), 0.0)).text
    assert plain.count(scalar) + 1 == bounded.count(scalar)


def test_counters_are_opaque_to_strength_reduction():
    text = emitted(reduce_kernel("add", t.F32, (100, 1000), (1,))).text
    assert text.count("phi i64") == text.count("@llvm.expect.i64(")
