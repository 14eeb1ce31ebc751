"""The frontend's two stages."""

from __future__ import annotations

from treadle.compiler.context import CompileContext
from treadle.compiler.frontend import mlir
from treadle.compiler.frontend.checks import check_program
from treadle.compiler.frontend.convert import convert
from treadle.compiler.ir.core import Program


def import_module(program: bytes, context: CompileContext) -> mlir.Module:
    """The StableHLO module; it stays valid until the compile ends."""
    check_program(program)
    return context.resources.enter_context(mlir.parse(program))


def convert_module(module: mlir.Module, context: CompileContext) -> Program:
    """The module as a program of the tensor IR."""
    return convert(module, context.options)


def dump_module(module: mlir.Module) -> str:
    """The module as MLIR text; long constants are shortened."""
    return module.text()
