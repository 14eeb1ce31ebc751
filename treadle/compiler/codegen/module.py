"""Putting kernels together into one LLVM module."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.compiler.codegen.kernel import KernelText

TRIPLE = "x86_64-unknown-linux-gnu"


def module_text(parts: Iterable[KernelText], name: str = "kernels") -> str:
    """A module with all of `parts`; declarations, constants and helper functions they share stand in it once."""
    declares: dict[str, str] = {}
    functions: dict[str, str] = {}
    texts = []
    for part in parts:
        declares.update(part.declares)
        functions.update(part.functions)
        texts.append(part.text)
    lines = [
        f'source_filename = "{name}"',
        f'target triple = "{TRIPLE}"',
        *declares.values(),
        *functions.values(),
        *texts,
    ]
    return "\n".join(lines) + "\n"
