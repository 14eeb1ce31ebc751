"""Optimisation of the tensor IR: an ordered list of named passes.

A pass takes a program and gives it back, changed in place; it may not change what the program computes, NaN, infinities
and signs of zero included, and keeps the source location of what it rewrites. `optimise` runs the whole list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import treadle.compiler.ops  # noqa: F401  # registers the ops
from treadle.compiler.ir.core import Program
from treadle.compiler.passes import (
    algebra,
    control,
    conversions,
    folding,
    hoisting,
    indexing,
    linear,
    ranges,
    reductions,
    shapes,
)
from treadle.compiler.passes.barriers import remove_barriers
from treadle.compiler.passes.dce import eliminate_dead_code
from treadle.compiler.passes.rewriter import Rewriter, Rules, RuleSet, merged

__all__ = [
    "PIPELINE",
    "RULE_SETS",
    "Observer",
    "Pass",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "optimise",
    "remove_barriers",
    "rewrite",
    "simplify",
]

Pass = Callable[[Program], Program]
Observer = Callable[[str, Program], None]

# The rules of `simplify`, by subject; each can be run on its own, to find the one to blame.
RULE_SETS: Mapping[str, RuleSet] = {
    "folding": folding.rules,
    "algebra": algebra.rules,
    "conversions": conversions.rules,
    "ranges": ranges.rules,
    "shapes": shapes.rules,
    "indexing": indexing.rules,
    "linear": linear.rules,
    "reductions": reductions.rules,
    "control": control.rules,
    "hoisting": hoisting.rules,
}
_ALL_RULES = merged(*RULE_SETS.values())


def rewrite(program: Program, rules: Rules) -> Program:
    """One walk with `rules`; equal ops are always merged."""
    return Rewriter(rules).run(program)


def eliminate_common_subexpressions(program: Program) -> Program:
    """Merges equal ops and does nothing else."""
    return rewrite(program, {})


def simplify(program: Program) -> Program:
    """All rules and common subexpressions, in one walk."""
    return rewrite(program, _ALL_RULES)


PIPELINE: Mapping[str, Pass] = {
    "simplify": simplify,
    "dead-code": eliminate_dead_code,
    "barriers": remove_barriers,
}


def optimise(program: Program, observe: Observer | None = None) -> Program:
    """Runs all passes in order; `observe(name, program)` is called after each, for dumps and checks."""
    for name, run in PIPELINE.items():
        program = run(program)
        if observe is not None:
            observe(name, program)
    return program
