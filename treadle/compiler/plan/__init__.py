"""Where every value lives and in which order the code runs: the `plan` stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.compiler import knobs
from treadle.compiler.plan.check import check_plan
from treadle.compiler.plan.planner import plan
from treadle.compiler.plan.printer import print_plan as dump

if TYPE_CHECKING:
    from treadle.compiler.context import CompileContext
    from treadle.compiler.ir.core import Program
    from treadle.compiler.plan.steps import Plan

__all__ = ["dump", "plan", "plan_program"]


def plan_program(program: Program, _context: CompileContext) -> Plan:
    """The stage. TREADLE_CHECK=1 also checks that no value is overwritten before its last use."""
    made = plan(program)
    if knobs.CHECK.get():
        for iterations in (0, 1, 2):
            check_plan(program, made, iterations)
    return made
