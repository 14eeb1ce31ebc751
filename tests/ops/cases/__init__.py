"""The rows, a file per family."""

from tests.ops.cases import control, elementwise, indexing, linear, random, reductions, shapes
from tests.ops.harness import Case

ALL: list[Case] = [
    *elementwise.CASES,
    *shapes.CASES,
    *indexing.CASES,
    *reductions.CASES,
    *linear.CASES,
    *control.CASES,
    *random.CASES,
]
