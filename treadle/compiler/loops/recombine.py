"""Indices that take a number apart and put it together again: `c * (n / c) + n % c` is n.

That is what a reshape leaves behind where its dimensions do not line up with the loops, and the buffer it is read from
does not care about either shape.
"""

from __future__ import annotations

import dataclasses

from treadle.compiler.loops.build import add_index, const_value, scale_index
from treadle.compiler.loops.ir import Apply, Const, Expr, Index, IndexValue, Kernel
from treadle.compiler.loops.walk import Renaming, nest_indices, nest_roots, postorder


def recombined(kernel: Kernel) -> Kernel:
    """The same kernel with simpler indices where there are such."""
    indices = [index for nest in kernel.nests for index in nest_indices(nest, postorder(nest_roots(nest)))]
    if not any(len(index.dynamic) > 1 and _join(index) is not index for index in indices):
        return kernel
    rewrite = _Recombining({})
    nests = [
        dataclasses.replace(
            nest,
            stores=tuple(map(rewrite.store, nest.stores)),
            reduction=None if nest.reduction is None else rewrite.reduction(nest.reduction, nest.reduction.vars),
        )
        for nest in kernel.nests
    ]
    return dataclasses.replace(kernel, nests=tuple(nests))


class _Recombining(Renaming):
    def index(self, index: Index) -> Index:
        return _join(super().index(index))


def _join(index: Index) -> Index:
    """The index with each quotient that finds its remainder replaced by what both are of."""
    for quotient, factor in index.dynamic:
        parts = _division(quotient, "divide")
        if parts is None:
            continue
        number, divisor = parts
        for rest, unit in index.dynamic:
            if factor == unit * divisor and _division(rest, "remainder") == parts:
                others = tuple((e, c) for e, c in index.dynamic if e is not quotient and e is not rest)
                whole = number.index if isinstance(number, IndexValue) else Index(0, (), ((number, 1),))
                return _join(add_index(Index(index.const, index.terms, others), scale_index(whole, unit)))
    return index


def _division(node: Expr, name: str) -> tuple[Expr, int] | None:
    """(dividend, divisor) of a division by a constant."""
    if not (isinstance(node, Apply) and node.name == name and isinstance(node.operands[1], Const)):
        return None
    divisor = int(const_value(node.operands[1]))  # type: ignore[call-overload]
    return (node.operands[0], divisor) if divisor else None
