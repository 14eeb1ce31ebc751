"""Pointwise fusions: one nest over the common iteration space, a store per result; and concatenation, a nest per part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from treadle.compiler.ir.core import Value
from treadle.compiler.lowering.context import loop_vars
from treadle.compiler.lowering.fusions import FusionBody, KernelCall
from treadle.compiler.loops.build import add_index, linear_index
from treadle.compiler.loops.ir import Index, Nest, Store


def common_refinement(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The coarsest shape into whose dimensions every given shape (all of one size) splits; shapes that do not fit the first are skipped.

    With loops over it, a reshape inside the fusion is affine in the loop variables.
    """
    cuts: list[int] = []
    for shape in shapes:
        steps = [1]
        for extent in reversed(shape):
            steps.append(steps[-1] * extent)
        merged = sorted({*cuts, *steps})
        if not cuts or all(b % a == 0 for a, b in zip(merged, merged[1:], strict=False)):
            cuts = merged
    return tuple(b // a for a, b in reversed(list(zip(cuts, cuts[1:], strict=False))))


def lower_loop(body: FusionBody) -> list[KernelCall]:
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
    dim = cast(int, root.attrs["dimension"])
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
