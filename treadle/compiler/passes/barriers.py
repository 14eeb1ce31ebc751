"""Removes optimization barriers: they have kept apart what simplification would merge, and nothing after needs them."""

from __future__ import annotations

from treadle.compiler.ir.core import Program, Region, Value, replace_uses


def remove_barriers(program: Program) -> Program:
    """Takes the barriers out, in place."""
    replaced: dict[Value, Value] = {}
    _collect(program.entry, replaced)
    if replaced:
        replace_uses(program.entry, replaced)
    return program


def _collect(region: Region, replaced: dict[Value, Value]) -> None:
    if any(op.name == "optimization_barrier" for op in region.ops):
        for op in region.ops:
            if op.name == "optimization_barrier":
                replaced.update(zip(op.results, op.operands, strict=True))
        region.ops = [op for op in region.ops if op.name != "optimization_barrier"]
    for op in region.ops:
        for inner in op.regions:
            _collect(inner, replaced)
