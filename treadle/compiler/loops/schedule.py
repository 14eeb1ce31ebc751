"""The scheduler: which loop runs in SIMD lanes, what is in flight at once, and the order of the loops.

It changes how a kernel computes, never what: parallel loops may be merged and reordered, a reduction of a known kind
may be reassociated, and everything else stays in the order that the kernel says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from treadle.compiler.codegen.target import Target
from treadle.compiler.loops import cost
from treadle.compiler.loops.ir import Index, Kernel, Nest, Reduction, Var
from treadle.compiler.loops.walk import Renaming, nest_indices, nest_roots, postorder


def schedule(kernel: Kernel, target: Target) -> Kernel:
    """The same kernel, ready for code generation. The loop that [begin, end) cuts may be another one afterwards."""
    simpler = _simplify(kernel)
    nests = tuple(_schedule_nest(nest, target, ranged=not simpler.outer) for nest in simpler.nests)
    return dataclasses.replace(simpler, nests=nests)


# Merging loops.


def _merged(
    group: Sequence[Var], indices: Sequence[Index], apart: Sequence[Var] = ()
) -> tuple[tuple[Var, ...], dict[Var, Var | None]]:
    """Merges neighbours of `group` that every index walks through as one, and drops loops of one iteration.

    A loop `a` around a loop `b` is the same as one loop of their product's extent where each index moves by `extent(b)`
    times as much with `a` as with `b`. Loops of `apart` do not merge with others.

    Returns the new loops and what becomes of each old variable.
    """
    renamed: dict[Var, Var | None] = {}
    kept: list[tuple[list[Var], int]] = []
    coefficients = [dict(index.terms) for index in indices]
    for var in reversed(group):
        if var.extent == 1:
            renamed[var] = None
            continue
        if kept:
            members, extent = kept[-1]
            inner = members[0]
            fits = (var in apart) == (inner in apart) and extent > 0 and var.extent > 0
            if fits and all(terms.get(var, 0) == extent * terms.get(inner, 0) for terms in coefficients):
                members.append(var)
                kept[-1] = (members, extent * var.extent)
                continue
        kept.append(([var], var.extent))
    loops: list[Var] = []
    for members, extent in reversed(kept):
        if len(members) == 1:
            loops.append(members[0])
            continue
        merged = Var(extent)
        loops.append(merged)
        renamed[members[0]] = merged
        for var in members[1:]:
            renamed[var] = None
    return tuple(loops), renamed


def _simplify(kernel: Kernel) -> Kernel:
    """Merges loops, in the outer loops, in each nest, and in each reduction."""
    all_indices = [nest_indices(nest, postorder(nest_roots(nest))) for nest in kernel.nests]
    everything = [index for indices in all_indices for index in indices]
    # The outermost loop stays even if it has one iteration: it is what [begin, end) means.
    outer, renamed = _merged(kernel.outer, everything) if len(kernel.outer) > 1 else (kernel.outer, {})
    if kernel.outer and not outer:
        outer, renamed = kernel.outer[:1], dict.fromkeys(kernel.outer[1:])
    nests = [_simplify_nest(nest, indices, renamed) for nest, indices in zip(kernel.nests, all_indices, strict=True)]
    return dataclasses.replace(kernel, outer=outer, nests=tuple(nests))


def _simplify_nest(nest: Nest, indices: Sequence[Index], outer: dict[Var, Var | None]) -> Nest:
    loops, renamed = _merged(nest.loops, indices, nest.independent if nest.sequential else ())
    variables: tuple[Var, ...] = ()
    inner: dict[Var, Var | None] = {}
    if nest.reduction is not None:
        variables, inner = _merged(nest.reduction.vars, indices)
    changes = {**outer, **renamed, **inner}
    if not changes:
        return nest
    rename = Renaming(changes)
    independent = dict.fromkeys(changes.get(var, var) for var in nest.independent)
    return dataclasses.replace(
        nest,
        loops=loops,
        stores=tuple(map(rename.store, nest.stores)),
        reduction=None if nest.reduction is None else rename.reduction(nest.reduction, variables),
        independent=tuple(var for var in independent if var is not None),
    )


# Choosing.


def _schedule_nest(nest: Nest, target: Target, ranged: bool) -> Nest:
    plan = cost.best_plan(nest, target)
    if plan is None:
        return _order(nest, None, ranged)
    nest = dataclasses.replace(nest, vector=plan.vector, lanes=plan.lanes, unroll=plan.unroll, tile=plan.tile)
    return _order(nest, plan.vector, ranged)


def _order(nest: Nest, vector: Var | None, ranged: bool) -> Nest:
    """Puts the vector loop innermost in its group, and a long loop outermost where threads will cut it."""
    if nest.reduction is not None and vector is not None and vector in nest.reduction.vars:
        variables = (*[var for var in nest.reduction.vars if var is not vector], vector)
        nest = dataclasses.replace(nest, reduction=_with_vars(nest.reduction, variables))
    loops = list(nest.loops)
    if vector is not None and vector in loops:
        loops.remove(vector)
        loops.append(vector)
    tiled = {var for var, _ in nest.tile}
    if not nest.sequential and ranged and len(loops) > 1 and loops[0].extent < _FEW:
        longest = max(loops, key=lambda var: var.extent)
        if longest.extent >= _MANY * loops[0].extent and not tiled:
            loops.remove(longest)
            loops.insert(0, longest)
    return dataclasses.replace(nest, loops=tuple(loops))


# A loop with fewer iterations than this is not worth cutting for threads if there is one of more than _MANY times as
# many.
_FEW = 4
_MANY = 16


def _with_vars(reduction: Reduction, variables: tuple[Var, ...]) -> Reduction:
    return dataclasses.replace(reduction, vars=variables)
