"""The `object` stage: machine code of the main function and of every kernel that the cache does not have."""

from __future__ import annotations

from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.codegen.module import module_text
from treadle.compiler.codegen.program import ProgramCode
from treadle.compiler.object.llvm import compile_module


def compile_code(code: ProgramCode) -> list[bytes]:
    """Relocatable objects that together define the entry symbol and every kernel."""
    objects = [compile_module(code.main, code.target, 1)]
    if code.kernels:
        texts = [emit_kernel(kernel, symbol, code.target) for symbol, kernel in code.kernels.items()]
        objects.append(compile_module(module_text(texts), code.target))
    return objects
