"""From a plan and the loop IR to LLVM IR text: the `codegen` stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.compiler.codegen.program import ProgramCode
    from treadle.compiler.context import CompileContext
    from treadle.compiler.plan.steps import Plan


def generate(plan: Plan, context: CompileContext) -> ProgramCode:
    """The stage. Kernels are only scheduled and named here: those that the cache has are never written as LLVM IR."""
    from treadle.compiler.codegen.main import emit_program
    from treadle.compiler.codegen.target import target_for

    return emit_program(context.products["fuse"], plan, target_for(context.cpu_features))


def dump(code: ProgramCode) -> str:
    """The main module, and the text of every kernel."""
    from treadle.compiler.codegen.kernel import emit_kernel
    from treadle.compiler.codegen.module import module_text

    kernels = (emit_kernel(kernel, symbol, code.target) for symbol, kernel in code.kernels.items())
    return code.main + "\n; ---- kernels\n" + module_text(kernels)
