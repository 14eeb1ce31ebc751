"""The compiler as an ordered list of named stages.

A stage's name is what it is dumped, timed, stopped at and blamed by. This table is the only place
that knows the order. Functions are given by dotted name and imported by the first compile, so that
`import treadle.compiler` loads neither MLIR nor LLVM.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any

from treadle.compiler.context import CompileContext


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One step of a compile.

    Attributes:
      name: its name.
      sentence: what it does.
      function: "module:function" of `(product of the stage before, CompileContext) -> product`.
      dump: "module:function" of `(product) -> str | bytes`, for people.
      suffix: of a file that holds the dump.
    """

    name: str
    sentence: str
    function: str
    dump: str
    suffix: str

    def run(self, product: Any, context: CompileContext) -> Any:
        """The stage's product, which is also kept in the context."""
        result = _load(self.function)(product, context)
        context.products[self.name] = result
        return result

    def render(self, product: Any) -> bytes:
        """What a dump of `product` holds."""
        text = _load(self.dump)(product)
        return text.encode("utf-8", "backslashreplace") if isinstance(text, str) else bytes(text)


STAGES: tuple[Stage, ...] = (
    Stage(
        "import",
        "checks the program's bytes and reads them as a StableHLO module",
        "treadle.compiler.frontend.entry:import_module",
        "treadle.compiler.frontend.entry:dump_module",
        "mlir",
    ),
    Stage(
        "partition",
        "turns a program for many devices into the program of one",
        "treadle.compiler.partition:partition",
        "treadle.compiler.frontend.entry:dump_module",
        "mlir",
    ),
    Stage(
        "convert",
        "makes it a program of the tensor IR, with every call inlined",
        "treadle.compiler.frontend.entry:convert_module",
        "treadle.compiler.ir.printer:print_program",
        "txt",
    ),
    Stage(
        "optimise",
        "simplifies the program without changing a bit of what it computes",
        "treadle.compiler.check:optimise_program",
        "treadle.compiler.ir.printer:print_program",
        "txt",
    ),
    Stage(
        "fuse",
        "groups ops into kernels and library calls",
        "treadle.compiler.fusion:fuse_program",
        "treadle.compiler.ir.printer:print_program",
        "txt",
    ),
    Stage(
        "plan",
        "gives every value its memory, and decides what runs in parallel",
        "treadle.compiler.plan:plan_program",
        "treadle.compiler.plan:dump",
        "txt",
    ),
    Stage(
        "codegen",
        "writes LLVM IR",
        "treadle.compiler.codegen.stage:generate",
        "treadle.compiler.codegen.stage:dump",
        "ll",
    ),
    Stage(
        "object",
        "compiles it to relocatable machine code",
        "treadle.compiler.object.stage:compile_objects",
        "treadle.compiler.object.stage:dump",
        "o",
    ),
    Stage(
        "pack",
        "packs code, constants and manifest into one artifact",
        "treadle.compiler.artifact.pack:pack_artifact",
        "treadle.compiler.artifact.pack:dump",
        "bin",
    ),
)

BY_NAME: dict[str, Stage] = {stage.name: stage for stage in STAGES}


@functools.cache
def _load(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return loaded
