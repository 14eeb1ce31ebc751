"""The `codegen` stage's product: the text of the main function and the kernels it calls."""

from __future__ import annotations

import dataclasses

from treadle.compiler.codegen.target import Target
from treadle.compiler.loops.ir import Kernel


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
