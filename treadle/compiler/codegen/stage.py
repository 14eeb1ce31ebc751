"""The `codegen` stage."""

from __future__ import annotations

from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.codegen.main import emit_program
from treadle.compiler.codegen.module import module_text
from treadle.compiler.codegen.program import ProgramCode
from treadle.compiler.codegen.target import target_for
from treadle.compiler.context import CompileContext
from treadle.compiler.plan.steps import Plan


def generate(plan: Plan, context: CompileContext) -> ProgramCode:
    """Kernels are only scheduled and named here: those that the cache has are never written as LLVM IR."""
    return emit_program(context.products["fuse"], plan, target_for(context.cpu_features))


def dump(code: ProgramCode) -> str:
    """The main module, and the text of every kernel."""
    kernels = (emit_kernel(kernel, symbol, code.target) for symbol, kernel in code.kernels.items())
    return code.main + "\n; ---- kernels\n" + module_text(kernels)
