"""LLVM IR text to object code: the only file that imports llvmlite."""

from __future__ import annotations

import functools
import os
import threading

import llvmlite
import llvmlite.binding as llvm

from treadle.compiler.artifact import abi
from treadle.compiler.codegen.target import Target
from treadle.compiler.errors import CompileError, StatusCode

LLVMLITE_VERSION: str = llvmlite.__version__
_lock = threading.Lock()


@functools.cache
def _initialize() -> None:
    # llvmlite from 0.45 on does the first step itself and refuses the call.
    if llvm.llvm_version_info[0] < 20:
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _machine(target: Target, speed: int) -> llvm.TargetMachine:
    return llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(
        cpu=target.cpu, features=target.features, opt=speed, reloc="pic", codemodel="small"
    )


def compile_module(text: str, target: Target, speed: int = 2) -> bytes:
    """Compiles a module to a relocatable ELF object.

    Args:
      text: LLVM IR.
      target: the CPU.
      speed: effort of LLVM's code generator, 0 to 3.

    Raises:
      CompileError: INTERNAL, with LLVM's own diagnostic; what is wrong is then Treadle's code generator.
    """
    _initialize()
    try:
        module = llvm.parse_assembly(text, context=llvm.create_context())
    except RuntimeError as error:
        raise _error(text, str(error)) from None
    with _lock:
        machine = _machine(target, speed)
        if os.environ.get("TREADLE_CHECK") == "1":
            try:
                module.verify()
            except RuntimeError as error:
                raise _error(text, str(error)) from None
        _optimise(module, machine)
        code: bytes = machine.emit_object(module)
    return code


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    pass


def _error(text: str, diagnostic: str) -> CompileError:
    return CompileError(StatusCode.INTERNAL, f"object code: LLVM refuses the generated module: {diagnostic}")


__all__ = ["LLVMLITE_VERSION", "abi", "compile_module"]
