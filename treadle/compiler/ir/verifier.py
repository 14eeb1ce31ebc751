"""Checks a program: SSA form, types by each op's rule, closed combiner regions."""

from __future__ import annotations

import treadle.compiler.ops  # noqa: F401  # registers the ops
from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import UNKNOWN_LOCATION, Op, Program, Region, Value
from treadle.compiler.ops import registry


def verify(program: Program) -> None:
    """Raises IrError for the first broken rule, naming the op and its source location."""
    entry = program.entry
    if len(program.inputs) != len(entry.args):
        raise IrError(f"program {program.name} has {len(entry.args)} arguments but {len(program.inputs)} input records")
    if len(program.outputs) != len(entry.results):
        raise IrError(
            f"program {program.name} has {len(entry.results)} results but {len(program.outputs)} output records"
        )
    for i, info in enumerate(program.inputs):
        if info.alias >= len(entry.results):
            raise IrError(f"argument {i} of program {program.name} aliases output {info.alias}, which does not exist")
    _verify_region(entry, None, set(), set())


def _verify_region(region: Region, parent: Op | None, visible: set[Value], defined: set[Value]) -> None:
    """`visible` holds what ops of `region` may use from around it; `defined` everything defined so far, anywhere."""
    where = f"a region of {parent.name}" if parent else "the program"
    loc = parent.loc if parent else UNKNOWN_LOCATION
    own: list[Value] = []

    def define(value: Value, op: Op | None, index: int) -> None:
        if value in defined:
            raise IrError(f"{where}: {value!r} is defined twice", op.loc if op else loc)
        if value.op is not op or value.index != index:
            raise IrError(f"{where}: {value!r} does not know what defines it", op.loc if op else loc)
        defined.add(value)
        visible.add(value)
        own.append(value)

    for i, arg in enumerate(region.args):
        define(arg, None, i)
    for op in region.ops:
        for i, value in enumerate(op.operands):
            if value not in visible:
                raise IrError(f"{op.name}: operand {i} ({value.type}) is not defined before it in {where}", op.loc)
        registry.verify(op)
        captures = registry.get(op).control_flow
        for inner in op.regions:
            _verify_region(inner, op, visible if captures else set(), defined)
        for i, value in enumerate(op.results):
            define(value, op, i)
    for i, value in enumerate(region.results):
        if value not in visible:
            raise IrError(f"result {i} ({value.type}) of {where} is not defined in it", loc)
    # Nothing after the region may use what is in it.
    visible.difference_update(own)
