"""The scheduler: which loop runs in SIMD lanes, what is in flight at once, and the order of the loops.

It changes how a kernel computes, never what: parallel loops may be merged and reordered, a reduction of a known kind
may be reassociated, and everything else stays in the order that the kernel says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from treadle.compiler.codegen.target import Target
from treadle.compiler.codegen.work import SPLIT_WORK, kernel_work
from treadle.compiler.loops import cost
from treadle.compiler.loops.ir import Index, Kernel, Nest, Reduction, Var
from treadle.compiler.loops.recombine import recombined
from treadle.compiler.loops.walk import Renaming, nest_indices, nest_roots, postorder


def schedule(kernel: Kernel, target: Target, split_work: int = SPLIT_WORK) -> Kernel:
    """The same kernel, ready for code generation. The loop that [begin, end) cuts may be another one afterwards.

    Args:
      kernel: as lowering built it.
      target: the CPU.
      split_work: kernels with less work than this (picoseconds) are made whole: no thread will ever share them.
    """
    simpler = _simplify(recombined(kernel))
    ranged = not simpler.outer and len(simpler.nests) == 1
    nests = tuple(_schedule_nest(nest, target, ranged) for nest in simpler.nests)
    planned = dataclasses.replace(simpler, nests=nests)
    if not planned.parallel or kernel_work(planned) < split_work:
        # Nobody will cut it: with a known range there are fewer loops to compile.
        return dataclasses.replace(planned, parallel=False)
    return dataclasses.replace(planned, nests=(_in_steps(nests[0]),)) if ranged else planned


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


def _in_steps(nest: Nest) -> Nest:
    """Cuts the outermost loop into whole steps of the code, where they divide it: then no code is needed for a rest."""
    if not nest.loops or nest.sequential:
        return nest
    var = nest.loops[0]
    step = nest.unroll * nest.lanes if var is nest.vector else dict(nest.tile).get(var, 1)
    if step == 1 or var.extent % step:
        return nest
    steps, inside = Var(var.extent // step), Var(step)
    rename = Renaming({var: ((steps, step), (inside, 1))})
    reduction = nest.reduction
    return dataclasses.replace(
        nest,
        loops=(steps, inside, *nest.loops[1:]),
        stores=tuple(map(rename.store, nest.stores)),
        reduction=None if reduction is None else rename.reduction(reduction, reduction.vars),
        vector=inside if var is nest.vector else nest.vector,
        tile=tuple((inside if v is var else v, n) for v, n in nest.tile),
    )


# A loop with fewer iterations than this is not worth cutting for threads if there is one of more than _MANY times as
# many.
_FEW = 4
_MANY = 16


def _with_vars(reduction: Reduction, variables: tuple[Var, ...]) -> Reduction:
    return dataclasses.replace(reduction, vars=variables)
