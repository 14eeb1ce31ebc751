"""Walks over the expressions of nests: which nodes, buffers and variables they use, and substitution."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from treadle.compiler.loops.ir import Apply, Expr, Index, IndexValue, InRange, Load, Nest, Reduction, Store


def roots(nest: Nest) -> Iterator[Expr]:
    """Every expression that a nest holds directly, those inside its stores' indices included."""
    for store in nest.stores:
        yield store.value
        if store.mask is not None:
            yield store.mask
        if store.combine is not None:
            yield store.combine
        for expr, _ in store.index.dynamic:
            yield expr
    if nest.reduction is not None:
        yield from nest.reduction.inits
        yield from nest.reduction.inputs
        yield from nest.reduction.combiner


def children(node: Expr) -> list[Expr]:
    """The expressions that `node` is made of."""
    if isinstance(node, Apply):
        return list(node.operands)
    if isinstance(node, Load):
        inner = [expr for expr, _ in node.index.dynamic]
        return inner if node.mask is None else [*inner, node.mask]
    if isinstance(node, IndexValue | InRange):
        return [expr for expr, _ in node.index.dynamic]
    return []


def nodes(start: Iterable[Expr]) -> list[Expr]:
    """Every node reachable from `start` once, operands before users."""
    order: dict[Expr, None] = {}
    stack: list[tuple[Expr, bool]] = [(e, False) for e in reversed(list(start))]
    while stack:
        node, ready = stack.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
        else:
            stack.append((node, True))
            stack.extend((c, False) for c in children(node) if c not in order)
    return list(order)


def used_buffers(nests: Sequence[Nest]) -> set[int]:
    """Numbers of all parameters (>= 0) and local arrays (< 0) that nests read or write."""
    used = {store.buffer for nest in nests for store in nest.stores}
    for nest in nests:
        used.update(n.buffer for n in nodes(roots(nest)) if isinstance(n, Load))
    return used


class Rewriter:
    """Rebuilds expressions bottom-up with some nodes and indices changed; nodes that do not change are kept.

    Args:
      leaf: gives the replacement of a node whose parts are already rewritten, or None to keep it.
      index: rewrites the affine part of an index.
    """

    def __init__(self, leaf: Callable[[Expr], Expr | None], index: Callable[[Index], Index] = lambda i: i):
        self._leaf = leaf
        self._index = index
        self._memo: dict[Expr, Expr] = {}

    def index(self, index: Index) -> Index:
        if index.dynamic:
            index = Index(index.const, index.terms, tuple((self.expr(e), c) for e, c in index.dynamic))
        return self._index(index)

    def expr(self, root: Expr) -> Expr:
        if root not in self._memo:
            for node in nodes([root]):
                if node not in self._memo:
                    rebuilt = self._rebuild(node)
                    self._memo[node] = self._leaf(rebuilt) or rebuilt
        return self._memo[root]

    def _rebuild(self, node: Expr) -> Expr:
        if isinstance(node, Apply):
            operands = tuple(self._memo[o] for o in node.operands)
            return node if operands == node.operands else dataclasses.replace(node, operands=operands)
        if isinstance(node, Load):
            index = self.index(node.index)
            mask = None if node.mask is None else self._memo[node.mask]
            return node if index == node.index and mask is node.mask else dataclasses.replace(node, index=index, mask=mask)
        if isinstance(node, IndexValue | InRange):
            index = self.index(node.index)
            return node if index == node.index else dataclasses.replace(node, index=index)
        return node

    def store(self, store: Store) -> Store:
        return Store(
            store.buffer,
            self.index(store.index),
            self.expr(store.value),
            None if store.mask is None else self.expr(store.mask),
            None if store.combine is None else self.expr(store.combine),
        )

    def reduction(self, r: Reduction) -> Reduction:
        return dataclasses.replace(
            r,
            inits=tuple(map(self.expr, r.inits)),
            inputs=tuple(map(self.expr, r.inputs)),
            combiner=tuple(map(self.expr, r.combiner)),
        )

    def nest(self, nest: Nest) -> Nest:
        """The nest with every expression rewritten; its loops are the caller's business."""
        reduction = None if nest.reduction is None else self.reduction(nest.reduction)
        return dataclasses.replace(nest, stores=tuple(map(self.store, nest.stores)), reduction=reduction)


def renumber_buffers(nests: Sequence[Nest], numbers: Mapping[int, int]) -> tuple[Nest, ...]:
    """The nests with parameter b replaced by numbers[b]; local arrays keep theirs."""
    if all(old == new for old, new in numbers.items()):
        return tuple(nests)

    def leaf(node: Expr) -> Expr | None:
        if isinstance(node, Load) and node.buffer >= 0 and numbers[node.buffer] != node.buffer:
            return dataclasses.replace(node, buffer=numbers[node.buffer])
        return None

    rewriter = Rewriter(leaf)
    result = []
    for nest in nests:
        new = rewriter.nest(nest)
        stores = tuple(dataclasses.replace(s, buffer=numbers.get(s.buffer, s.buffer)) for s in new.stores)
        result.append(dataclasses.replace(new, stores=stores))
    return tuple(result)
