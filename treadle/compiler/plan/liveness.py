"""When values of a region are used for the last time."""

from __future__ import annotations

from collections.abc import Callable

from treadle.compiler.ir.core import Op, Region, Value, captured_values

# The position after the last op: region results are used there.
AT_END = 1 << 60


def last_uses(region: Region, is_virtual: Callable[[Op], bool]) -> dict[Value, int]:
    """The position of the last op that reads each value.

    A virtual op is read through: its operands are used where it is used.
    """
    last: dict[Value, int] = {}

    def use(value: Value, position: int) -> None:
        while True:
            last[value] = max(last.get(value, -1), position)
            op = value.op
            if op is None or not is_virtual(op) or not op.operands:
                return
            for extra in op.operands[1:]:
                use(extra, position)
            value = op.operands[0]

    for value in region.results:
        use(value, AT_END)
    for position, op in enumerate(region.ops):
        if is_virtual(op):
            continue
        for value in op.operands:
            use(value, position)
        if op.regions and op.name != "fusion":
            for value in captured_values(op):
                use(value, position)
    return last
