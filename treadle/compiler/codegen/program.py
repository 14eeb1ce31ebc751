"""The `codegen` stage's product: the text of the main function and the kernels it calls."""

from __future__ import annotations

import dataclasses
import hashlib

from treadle.build_id import build_id
from treadle.compiler.codegen.target import Target
from treadle.compiler.loops.ir import Kernel
from treadle.compiler.loops.text import kernel_text


@dataclasses.dataclass(slots=True)
class ProgramCode:
    """What the object stage compiles.

    Attributes:
      target: the CPU it is for.
      main: LLVM IR of the module with the entry function.
      has_loops: whether the entry function itself loops, so that optimising it pays.
      kernels: scheduled kernels by symbol; a symbol is derived from the kernel's canonical text.
      flops: estimated floating-point operations of one run of straight-line code.
    """

    target: Target
    main: str
    has_loops: bool
    kernels: dict[str, Kernel]
    flops: int


ENTRY_SYMBOL = "treadle_main"


def kernel_symbol(kernel: Kernel, target: Target) -> str:
    """The symbol of a scheduled kernel: the same for the same kernel, CPU and compiler, so that it serves as cache key too."""
    digest = hashlib.sha256(f"{build_id()}\n{target.key}\n{kernel_text(kernel)}".encode())
    return f"k_{digest.hexdigest()[:32]}"
