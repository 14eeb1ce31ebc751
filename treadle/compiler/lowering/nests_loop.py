"""Pointwise fusions, one nest with a store per result; and concatenation, a kernel per part."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

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
    """The root is a concatenate: each part is written to its own place by a kernel of its own."""
    ((inside, outside),) = body.results
    root = inside.op
    assert root is not None
    dim = integer(root, "dimension")
    calls = []
    start = 0
    for part in root.operands:
        if part.type.size:
            calls.append(_copy_part(body, part, inside, outside, dim, start))
        start += part.type.shape[dim]
    return calls


def _copy_part(body: FusionBody, part: Value, inside: Value, outside: Value, dim: int, start: int) -> KernelCall:
    maker = body.maker()
    loops, at = loop_vars(part.type.shape)
    target = (*at[:dim], add_index(at[dim], Index(start)), *at[dim + 1 :])
    value = maker.context.element(part, at)
    store = Store(maker.output(outside), linear_index(target, inside.type.strides()), value)
    return maker.finish([Nest(loops, (store,))])
