"""The rows, a file per family."""

from tests.ops.cases import elementwise
from tests.ops.harness import Case

ALL: list[Case] = [*elementwise.CASES]
