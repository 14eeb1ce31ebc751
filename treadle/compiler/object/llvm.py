"""LLVM IR text to object code: the only file that imports llvmlite.

No IR pass runs by default: kernels arrive vectorised, hoisted and unrolled, and straight-line code has nothing for a
pass to find, so all the time goes into instruction selection. Every compile has an LLVM context of its own; llvmlite
lets one thread at a time into LLVM, and the target machines, which are shared, are used under a lock.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Collection

import llvmlite
import llvmlite.binding as llvm

from treadle.compiler.artifact import abi
from treadle.compiler.codegen.module import TRIPLE
from treadle.compiler.codegen.target import Target
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.object import elf

LLVMLITE_VERSION: str = llvmlite.__version__
DEFAULT_SPEED = 1

_lock = threading.Lock()
_LINE = re.compile(r"<string>:(\d+):")
_SHOWN = 200


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def _machine(target: Target, speed: int) -> llvm.TargetMachine:
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=target.cpu, features=target.features, opt=speed, reloc="pic", codemodel="small"
    )


def compile_module(
    text: str, target: Target, externals: Collection[str] = (), speed: int = DEFAULT_SPEED, clean_up: bool = False
) -> bytes:
    """Compiles a module to a relocatable ELF object.

    Args:
      text: LLVM IR.
      target: the CPU.
      externals: symbols, besides the runtime's, that other objects of the program define.
      speed: effort of LLVM's code generator, 0 to 3.
      clean_up: run the few passes that turn stack slots into registers and drop what is computed twice.

    Raises:
      CompileError: INTERNAL, with LLVM's own diagnostic, or with the symbols that nothing will define. What is wrong is
        then Treadle's code generator, not the user's program.
    """
    _initialize()
    with _lock:
        # Closed by hand and in this order: a module that outlives its context crashes when it is collected.
        context = llvm.create_context()
        module = None
        try:
            module = llvm.parse_assembly(text, context=context)
            # Costs next to nothing; LLVM's answer to an invalid module it was not asked about would be to end the
            # process.
            module.verify()
            machine = _machine(target, speed)
            if clean_up:
                _clean_up(module, machine)
            code: bytes = machine.emit_object(module)
        except RuntimeError as error:
            raise CompileError(StatusCode.INTERNAL, _diagnostic(text, str(error))) from None
        finally:
            if module is not None:
                module.close()
            context.close()
    unknown = elf.symbols(code)[1] - abi.RUNTIME_SYMBOLS - frozenset(externals)
    if unknown:
        raise CompileError(
            StatusCode.INTERNAL,
            f"object code: LLVM calls {', '.join(sorted(unknown))}, which the runtime does not supply;"
            " add them to TREADLE_RUNTIME_SYMBOLS or do not generate what needs them",
        )
    return code


def _clean_up(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def _diagnostic(text: str, message: str) -> str:
    """LLVM's message, with the line of the module that it names."""
    found = _LINE.search(message)
    lines = text.splitlines()
    line = lines[int(found[1]) - 1].strip() if found and int(found[1]) <= len(lines) else ""
    if len(line) > _SHOWN:
        line = line[:_SHOWN] + "..."
    where = f"; the line is: {line}" if line else ""
    return f"object code: LLVM refuses the generated module: {message.strip()}{where}"
