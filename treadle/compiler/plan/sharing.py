"""When a kernel may write its result over one of its operands."""

from __future__ import annotations

from treadle.compiler.loops.ir import Index, Kernel, Load, Nest, Var
from treadle.compiler.loops.walk import nest_roots, postorder


def may_share(kernel: Kernel, read: int, written: int) -> bool:
    """Whether parameters `read` and `written` may be the same memory.

    Every load of `read` must be of the element that the same iteration later stores to `written`, and nothing stored
    may be read again.
    """
    stores = [(i, nest, s) for i, nest in enumerate(kernel.nests) for s in nest.stores if s.buffer == written]
    if len({i for i, _, _ in stores}) != 1 or any(nest.sequential for _, nest, _ in stores):
        return False
    position, target, first = stores[0]
    if len(stores) != 1 or first.combine is not None:
        return False
    for i, nest in enumerate(kernel.nests):
        for node in postorder(nest_roots(nest)):
            if not isinstance(node, Load):
                continue
            if node.buffer == written:
                return False
            if node.buffer == read and (i > position or not _same_index(node.index, nest, first.index, target)):
                return False
    return True


def _same_index(a: Index, nest_a: Nest, b: Index, nest_b: Nest) -> bool:
    """Equality of two indices of the same outer iteration, the nests' own loops matched by position."""
    if nest_a is nest_b:
        return _key(a, {}) == _key(b, {})
    loops_a = nest_a.loops + (nest_a.reduction.vars if nest_a.reduction else ())
    loops_b = nest_b.loops
    if [v.extent for v in loops_a] != [v.extent for v in loops_b]:
        return False
    return _key(a, dict(zip(loops_a, loops_b, strict=True))) == _key(b, {})


def _key(index: Index, renamed: dict[Var, Var]) -> tuple[object, ...]:
    terms = frozenset((renamed.get(v, v), c) for v, c in index.terms)
    return index.const, terms, frozenset(index.dynamic)
