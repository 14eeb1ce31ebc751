"""Pointwise fusions, one nest with a store per result; and concatenation, a kernel per part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from treadle.compiler.codegen.target import MAX_INTERLEAVED
from treadle.compiler.ir.core import Value
from treadle.compiler.loops.build import add_index, linear_index
from treadle.compiler.loops.ir import Index, Nest, Store
from treadle.compiler.lowering.attributes import integer
from treadle.compiler.lowering.context import loop_vars
from treadle.compiler.lowering.kernels import FusionBody, KernelCall


def common_refinement(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The coarsest shape of which every given shape (all of one size) merges neighbouring dimensions.

    With loops over it, a reshape inside the fusion is affine in the loop variables. Shapes that do not fit the earlier
    ones are skipped.
    """
    cuts: list[int] = []
    for shape in shapes:
        steps = [1]
        for extent in reversed(shape):
            steps.append(steps[-1] * extent)
        merged = sorted({*cuts, *steps})
        if not cuts or all(b % a == 0 for a, b in itertools.pairwise(merged)):
            cuts = merged
    return tuple(b // a for a, b in reversed(list(itertools.pairwise(cuts))))


def lower_loop(body: FusionBody) -> list[KernelCall]:
    """One kernel that stores every result."""
    results = [(inside, outside) for inside, outside in body.results if inside.type.size]
    if not results:
        return []
    size = results[0][0].type.size
    shapes = [inside.type.shape for inside, _ in results]
    shapes += [op.result.type.shape for op in body.region.ops if len(op.results) == 1 and op.result.type.size == size]
    maker = body.maker()
    shape = common_refinement(shapes)
    loops, at = loop_vars(shape)
    stores = []
    for inside, outside in results:
        own = maker.context.reshaped(at, shape, inside.type.shape)
        value = maker.context.element(inside, own)
        stores.append(Store(maker.output(outside), linear_index(own, inside.type.strides()), value))
    return [maker.finish([Nest(loops, tuple(stores))])]


def lower_concatenate(body: FusionBody) -> list[KernelCall]:
    """The root is a concatenate: each part is written to its own place.

    By a kernel of its own, or, where neighbouring elements come from different parts, by one kernel for all.
    """
    ((inside, outside),) = body.results
    root = inside.op
    assert root is not None
    dim = integer(root, "dimension")
    parts, start = [], 0
    for part in root.operands:
        if part.type.size:
            parts.append((part, start))
        start += part.type.shape[dim]
    single = all(math.prod(part.type.shape[dim:]) == 1 for part in root.operands)
    if single and 1 < len(parts) <= MAX_INTERLEAVED:
        return [_copy_parts(body, parts, inside, outside, dim)]
    return [_copy_parts(body, [part], inside, outside, dim) for part in parts]


def _copy_parts(
    body: FusionBody, parts: Sequence[tuple[Value, int]], inside: Value, outside: Value, dim: int
) -> KernelCall:
    """One nest over parts of one shape, given with where they begin."""
    maker = body.maker()
    loops, at = loop_vars(parts[0][0].type.shape)
    stores = []
    for part, start in parts:
        target = (*at[:dim], add_index(at[dim], Index(start)), *at[dim + 1 :])
        value = maker.context.element(part, at)
        stores.append(Store(maker.output(outside), linear_index(target, inside.type.strides()), value))
    return maker.finish([Nest(loops, tuple(stores))])
