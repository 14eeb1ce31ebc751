"""Interleaved memory: pixels of three colours, pairs, and whatever else keeps a few short things side by side.

Stores interleave when each writes every n-th element and together they write all of them; a short innermost loop,
written out, becomes such stores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from treadle.compiler.codegen.target import MAX_INTERLEAVED
from treadle.compiler.loops.ir import Nest, Store, Var
from treadle.compiler.loops.walk import Renaming, nest_roots, postorder

_MAX_NODES = 100
_FEW = 16


def interleaved(stores: Sequence[Store], var: Var) -> list[tuple[Store, ...]]:
    """Groups of stores that fill runs of memory as `var` moves, each group in the order of its elements."""
    families: dict[object, list[Store]] = {}
    for store in stores:
        stride = store.index.coeff(var)
        if store.mask is None and store.combine is None and 2 <= stride <= MAX_INTERLEAVED:
            key = (store.buffer, frozenset(store.index.terms), frozenset(store.index.dynamic))
            families.setdefault(key, []).append(store)
    groups = []
    for family in families.values():
        family.sort(key=lambda store: store.index.const)
        stride, first = family[0].index.coeff(var), family[0].index.const
        if [store.index.const - first for store in family] == list(range(stride)):
            groups.append(tuple(family))
    return groups


def written_out(nest: Nest) -> Nest | None:
    """The nest without its innermost loop, which becomes stores that interleave; None when it is no such loop."""
    if nest.reduction is not None or nest.sequential or len(nest.loops) < 2:
        return None
    minor = nest.loops[-1]
    if not 2 <= minor.extent <= MAX_INTERLEAVED or any(
        s.mask is not None or s.combine is not None for s in nest.stores
    ):
        return None
    around = [v for v in nest.loops[:-1] if v.extent >= _FEW]
    for store in nest.stores:
        if store.index.coeff(minor) != 1 or not any(store.index.coeff(v) == minor.extent for v in around):
            return None
    if len(postorder(nest_roots(nest))) * minor.extent > _MAX_NODES:
        return None
    stores = []
    for i in range(minor.extent):
        rename = Renaming({minor: i})
        stores += [rename.store(store) for store in nest.stores]
    return dataclasses.replace(nest, loops=nest.loops[:-1], stores=tuple(stores))
