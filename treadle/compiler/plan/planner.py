"""From a fused program to its plan."""

from __future__ import annotations

from treadle.compiler.ir.core import Program, Value
from treadle.compiler.plan.memory import Memory, base_of
from treadle.compiler.plan.region import RegionPlanner
from treadle.compiler.plan.steps import CopyStep, Plan, Storage


def plan(program: Program) -> Plan:
    """Plans a fused program."""
    memory = Memory(program)
    results = program.entry.results
    wants: dict[Value, Storage] = {}
    for value, output in zip(results, memory.outputs, strict=True):
        base = base_of(value)
        if base.op is not None and base.op.name != "constant":
            wants.setdefault(base, output)
    steps = RegionPlanner(memory, program.entry, wants).run()
    for o, (value, output) in enumerate(zip(results, memory.outputs, strict=True)):
        held = memory.storage_of(value)
        if held is not output and not memory.pass_through(o, value, held):
            steps.append(CopyStep(held, output, value.type.byte_size))
    return Plan(
        steps,
        memory.storage,
        memory.constants,
        memory.constants_size,
        memory.arena.peak,
        memory.aliases,
        memory.num_slots,
    )
