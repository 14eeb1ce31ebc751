"""Walking and rewriting the expressions of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from treadle.compiler.loops.ir import Apply, Expr, Index, IndexValue, InRange, Load, Nest, Reduction, Store, Var


def children(node: Expr) -> list[Expr]:
    """The expressions that `node` needs, those of its index included."""
    if isinstance(node, Apply):
        return list(node.operands)
    if isinstance(node, Load):
        found = [expr for expr, _ in node.index.dynamic]
        if node.mask is not None:
            found.append(node.mask)
        return found
    if isinstance(node, IndexValue | InRange):
        return [expr for expr, _ in node.index.dynamic]
    return []


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """All nodes under `roots`, each once, operands first."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in roots]
    stack.reverse()
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if node in seen:
            continue
        seen.add(node)
        below = children(node)
        if not below:
            order.append(node)
            continue
        stack.append((node, True))
        stack += [(child, False) for child in reversed(below) if child not in seen]
    return order


def store_roots(stores: Iterable[Store]) -> list[Expr]:
    """Every expression that the stores need, but for their combiners."""
    roots: list[Expr] = []
    for store in stores:
        roots.append(store.value)
        if store.mask is not None:
            roots.append(store.mask)
        roots += [expr for expr, _ in store.index.dynamic]
    return roots


def nest_roots(nest: Nest) -> list[Expr]:
    """Every expression of a nest that is evaluated per iteration, but for the combiners."""
    r = nest.reduction
    before = [] if r is None else [*r.inits, *r.inputs]
    return [*before, *store_roots(nest.stores)]


def nest_indices(nest: Nest, nodes: Sequence[Expr]) -> list[Index]:
    """Every affine index in a nest, given its nodes."""
    found = [node.index for node in nodes if isinstance(node, Load | IndexValue | InRange)]
    return found + [store.index for store in nest.stores]


class Renaming:
    """Replaces loop variables.

    Each by another, by nothing (a variable that is 0 or has become part of another), or by a sum of (variable, factor).
    """

    def __init__(self, variables: Mapping[Var, Var | tuple[tuple[Var, int], ...] | None]):
        self.variables = variables
        self._memo: dict[Expr, Expr] = {}

    def index(self, index: Index) -> Index:
        """The index in the new variables."""
        terms = []
        for var, coeff in index.terms:
            new = self.variables.get(var, var)
            if isinstance(new, tuple):
                terms += [(part, coeff * factor) for part, factor in new]
            elif new is not None:
                terms.append((new, coeff))
        dynamic = tuple((self.expr(expr), coeff) for expr, coeff in index.dynamic)
        return Index(index.const, tuple(terms), dynamic)

    def expr(self, root: Expr) -> Expr:
        """The expression in the new variables; what does not change stays the same object."""
        memo = self._memo
        if root not in memo:
            for node in postorder([root]):
                if node not in memo:
                    memo[node] = self._rebuild(node)
        return memo[root]

    def _rebuild(self, node: Expr) -> Expr:
        memo = self._memo
        if isinstance(node, Apply):
            operands = tuple([memo[x] for x in node.operands])
            same = all(new is old for new, old in zip(operands, node.operands, strict=True))
            return node if same else Apply(node.dtype, node.name, operands, node.attr)
        if isinstance(node, Load):
            mask = None if node.mask is None else memo[node.mask]
            index = self.index(node.index)
            same = index == node.index and mask is node.mask
            return node if same else Load(node.dtype, node.buffer, index, mask)
        if isinstance(node, IndexValue):
            return IndexValue(node.dtype, self.index(node.index))
        if isinstance(node, InRange):
            return InRange(node.dtype, self.index(node.index), node.low, node.high)
        return node

    def reduction(self, r: Reduction, variables: tuple[Var, ...]) -> Reduction:
        """The reduction in the new variables, over `variables`."""
        inits, inputs = tuple(map(self.expr, r.inits)), tuple(map(self.expr, r.inputs))
        return Reduction(variables, inits, inputs, r.combiner, r.kind, r.acc_dtypes)

    def store(self, store: Store) -> Store:
        """The store in the new variables."""
        mask = None if store.mask is None else self.expr(store.mask)
        return Store(store.buffer, self.index(store.index), self.expr(store.value), mask, store.combine)
