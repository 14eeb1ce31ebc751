"""From LLVM IR text to object code, and the cache of compiled kernels: the `object` stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from treadle.compiler.codegen.program import ProgramCode
    from treadle.compiler.context import CompileContext


def compile_objects(code: ProgramCode, _context: CompileContext) -> list[bytes]:
    """The stage."""
    from treadle.compiler.object.stage import compile_code

    return compile_code(code)


def dump(objects: Sequence[bytes]) -> bytes:
    """The main function's object."""
    return objects[0]
