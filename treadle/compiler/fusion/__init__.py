"""Which ops share a kernel: the `fuse` stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.compiler import knobs
from treadle.compiler.check import Checker
from treadle.compiler.fusion.fuse import fuse

if TYPE_CHECKING:
    from treadle.compiler.context import CompileContext
    from treadle.compiler.ir.core import Program

__all__ = ["fuse", "fuse_program"]


def fuse_program(program: Program, _context: CompileContext) -> Program:
    """The stage. TREADLE_CHECK=1 also runs the program before and after."""
    if not knobs.CHECK.get():
        return fuse(program)
    checker = Checker(program)
    fused = fuse(program)
    checker.after("fuse", fused)
    return fused
