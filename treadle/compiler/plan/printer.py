"""A plan as text, for dumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treadle.compiler.loops.text import kernel_text
from treadle.compiler.plan.steps import (
    Base,
    BranchStep,
    CopyStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    Plan,
    ScalarStep,
    Step,
    Storage,
)


def print_plan(plan: Plan) -> str:
    """Every step with the memory it touches."""
    head = [
        f"scratch: {plan.scratch_size} bytes, constants: {plan.constants_size} bytes",
        f"aliases (output -> input): {plan.aliases}",
    ]
    return "\n".join([*head, *_steps(plan.steps, "")]) + "\n"


def _steps(steps: Sequence[Step], indent: str) -> Iterator[str]:
    for step in steps:
        if isinstance(step, KernelStep):
            places = ", ".join(map(_place, step.arguments))
            yield f"{indent}kernel {step.op.attrs['kind']} ({places})  # {step.op.loc}"
            for line in kernel_text(step.call.kernel).splitlines():
                yield f"{indent}    {line}"
        elif isinstance(step, CopyStep):
            yield f"{indent}copy {_place(step.source)} -> {_place(step.target)}, {step.size} bytes"
        elif isinstance(step, ScalarStep):
            name = step.value.op.name if step.value.op is not None else "argument"
            stored = f" -> {_place(step.store)}" if step.store is not None else ""
            yield f"{indent}scalar {name}: {step.value.type}{stored}"
        elif isinstance(step, LibraryStep):
            yield f"{indent}{step.op.name} ({', '.join(map(_place, step.operands))}) -> {_place(step.result)}"
        elif isinstance(step, LoopStep):
            yield f"{indent}while"
            for carry in step.carries:
                how = "register" if carry.scalar else "invariant" if carry.storage is None else _place(carry.storage)
                yield f"{indent}  carry {carry.initial.type}: {how}{', swapped' if carry.swap else ''}"
            yield f"{indent}  condition:"
            yield from _steps(step.condition, indent + "    ")
            yield f"{indent}  body:"
            yield from _steps(step.body, indent + "    ")
        elif isinstance(step, BranchStep):
            for i, branch in enumerate(step.branches):
                yield f"{indent}{step.op.name} branch {i}:"
                yield from _steps(branch, indent + "    ")


def _place(storage: Storage) -> str:
    place = storage.location
    if place.base is Base.SCRATCH:
        return f"scratch+{place.offset}"
    if place.base is Base.CONSTANT:
        return f"constant+{place.offset}"
    return f"{place.base.name.lower()}{place.number}"
