"""The text of the functions: what it depends on, what it needs, and where its numbers come from."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

from tests.compiler.math import inputs, machine
from treadle.compiler.codegen.math import NAMES, generate, math_function
from treadle.compiler.ir import types as t

LIBM = {"sin", "cos", "tan", "fmod"}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_lane_counts_agree_bit_for_bit(name: str):
    for dtype in (t.F32, t.F64):
        operands = inputs.operands(name, machine.ARITY.get(name, 1), np.dtype(dtype.numpy), 2000)
        operands = [x[:8192] for x in operands]
        results = [machine.compiled(name, dtype, lanes)(*operands) for lanes in (1, 4, 8, 16)]
        nan = np.isnan(results[0])
        for other in results[1:]:
            np.testing.assert_array_equal(np.isnan(other), nan)
            bits = [r[~nan].view(np.uint32 if dtype is t.F32 else np.uint64) for r in (results[0], other)]
            np.testing.assert_array_equal(*bits)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_needs_are_declarations_of_known_functions(name: str):
    for dtype in (t.F32, t.F64):
        for lanes in (1, 3, 8):
            function = math_function(name, dtype, lanes, machine.HOST)
            assert f"@{function.symbol}(" in function.text
            declared = set(re.findall(r"^declare .* @([\w.]+)\(", "\n".join(function.needs), re.MULTILINE))
            assert len(declared) == len(function.needs)
            called = set(re.findall(r"call [^@]*@([\w.]+)\(", function.text)) - {function.symbol + ".cold"}
            assert called == declared
            assert {name for name in declared if not name.startswith("llvm.")} <= LIBM


def test_symbols_are_unique():
    functions = [
        math_function(name, dtype, lanes, cpu)
        for name in NAMES
        for dtype in (t.F32, t.F64)
        for lanes in (1, 8)
        for cpu in (machine.HOST, machine.NO_FMA)
    ]
    assert len({f.symbol for f in functions}) == len(functions)


def test_without_fma_none_is_called():
    for name in NAMES:
        assert "llvm.fma" not in math_function(name, t.F64, 4, machine.NO_FMA).text


def test_other_types_are_refused():
    with pytest.raises(KeyError):
        math_function("log", t.BF16, 8, machine.HOST)


def test_coefficients_are_what_the_generator_makes():
    here = pathlib.Path(generate.__file__).with_name("coefficients.py")
    assert here.read_text() == generate.render()
