"""The rows, a file per family."""

from tests.ops.cases import (
    calls,
    control,
    conversions,
    elementwise,
    indexing,
    integers,
    linear,
    random,
    reductions,
    shapes,
    stablehlo,
)
from tests.ops.harness import Case

FAMILIES = (elementwise, integers, conversions, shapes, indexing, reductions, linear, control, calls, random, stablehlo)
ALL: list[Case] = [case for family in FAMILIES for case in family.CASES]
