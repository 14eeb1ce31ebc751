"""Text to object code: what comes out, and what is refused."""

import threading

import pytest

from tests.compiler.codegen.cases import elementwise_kernel
from tests.compiler.codegen.harness import HOST, SSE, link
from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.codegen.module import module_text
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.ir import types as t
from treadle.compiler.loops.schedule import schedule
from treadle.compiler.object import elf
from treadle.compiler.object.llvm import compile_module

SQUARE = "define i32 @square(i32 %x) { %y = mul i32 %x, %x ret i32 %y }"
CALLS = "declare i32 @helper(i32) define i32 @outer(i32 %x) { %y = call i32 @helper(i32 %x) ret i32 %y }"


def test_compiles():
    code = compile_module(SQUARE, HOST)
    assert elf.symbols(code) == (frozenset({"square"}), frozenset())
    assert link(code).square(7) == 49


def test_unknown_symbols_are_refused_unless_the_program_defines_them():
    with pytest.raises(CompileError, match="calls helper, which the runtime does not supply") as error:
        compile_module(CALLS, HOST)
    assert error.value.code is StatusCode.INTERNAL
    assert elf.symbols(compile_module(CALLS, HOST, externals=["helper"]))[1] == {"helper"}


def test_runtime_symbols_are_allowed():
    text = "declare float @expf(float) define float @f(float %x) { %y = call float @expf(float %x) ret float %y }"
    assert elf.symbols(compile_module(text, HOST))[1] == {"expf"}


def test_a_syntax_error_carries_the_diagnostic_and_the_line():
    with pytest.raises(CompileError, match="object code: LLVM refuses") as error:
        compile_module("define i32 @f() {\n  ret i32 nonsense\n}", HOST)
    assert "ret i32 nonsense" in error.value.message


def test_clean_up_makes_registers_of_stack_slots():
    text = """
    define i32 @f(i32 %x) {
      %slot = alloca i32
      store i32 %x, ptr %slot
      %y = load i32, ptr %slot
      ret i32 %y
    }"""
    assert link(compile_module(text, HOST, clean_up=True)).f(5) == 5
    assert len(compile_module(text, HOST, clean_up=True)) <= len(compile_module(text, HOST))


def test_threads():
    kernel = schedule(elementwise_kernel("add", t.F32, (t.F32, t.F32), 100), HOST)
    text = module_text([emit_kernel(kernel, "k", HOST)])
    alone = compile_module(text, HOST)
    results = []
    threads = [threading.Thread(target=lambda: results.append(compile_module(text, HOST))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [alone] * 4


def test_objects_are_reproducible():
    kernel = schedule(elementwise_kernel("exponential", t.BF16, (t.BF16,), 1000), SSE)
    texts = {module_text([emit_kernel(kernel, "k", SSE)]) for _ in range(3)}
    assert len(texts) == 1
    assert len({compile_module(text, SSE) for text in texts for _ in range(2)}) == 1
