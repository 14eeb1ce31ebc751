"""Which buffers nests use, and giving parameters other numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from treadle.compiler.loops.ir import Expr, Load, Nest
from treadle.compiler.loops.walk import Renaming, nest_roots, postorder


def used_buffers(nests: Sequence[Nest]) -> set[int]:
    """Numbers of all parameters (>= 0) and local arrays (< 0) that nests read or write."""
    used = {store.buffer for nest in nests for store in nest.stores}
    for nest in nests:
        used.update(node.buffer for node in postorder(nest_roots(nest)) if isinstance(node, Load))
    return used


class _Renumbering(Renaming):
    """Replaces parameter numbers in loads."""

    def __init__(self, numbers: Mapping[int, int]):
        super().__init__({})
        self._numbers = numbers

    def _rebuild(self, node: Expr) -> Expr:
        node = super()._rebuild(node)
        if isinstance(node, Load) and self._numbers.get(node.buffer, node.buffer) != node.buffer:
            return dataclasses.replace(node, buffer=self._numbers[node.buffer])
        return node


def renumber_buffers(nests: Sequence[Nest], numbers: Mapping[int, int]) -> tuple[Nest, ...]:
    """The nests with parameter b replaced by numbers[b]; local arrays keep theirs."""
    if all(old == new for old, new in numbers.items()):
        return tuple(nests)
    renumbering = _Renumbering(numbers)
    result = []
    for nest in nests:
        stores = tuple(
            dataclasses.replace(renumbering.store(s), buffer=numbers.get(s.buffer, s.buffer)) for s in nest.stores
        )
        reduction = nest.reduction
        if reduction is not None:
            reduction = renumbering.reduction(reduction, reduction.vars)
        result.append(dataclasses.replace(nest, stores=stores, reduction=reduction))
    return tuple(result)
