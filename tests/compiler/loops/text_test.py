"""Canonical texts: equal for equal kernels, different for everything that changes the code."""

import dataclasses

from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import Builder, index_of, linear_index
from treadle.compiler.loops.ir import Acc, Buffer, Index, Kernel, Nest, Reduction, Store, Var
from treadle.compiler.loops.text import kernel_text


def kernel(extent=8, constant=1.0, operation="add", unrelated_first=False):
    b, i, r = Builder(), Var(extent), Var(3)
    if unrelated_first:
        b.const(t.F32, 77.0)
        b.load(t.F32, 0, index_of(i, 5))
    place = linear_index([index_of(i), index_of(r)], [3, 1])
    value = b.apply(t.F32, operation, [b.load(t.F32, 0, place), b.const(t.F32, constant)])
    combiner = b.apply(t.F32, "add", [b.param(t.F32, 0), b.param(t.F32, 1)])
    reduction = Reduction((r,), (b.const(t.F32, 0.0),), (value,), (combiner,), "add", (t.F32,))
    nest = Nest((i,), (Store(1, index_of(i), Acc(t.F32, 0)),), reduction)
    return Kernel((Buffer(t.F32, 3 * extent), Buffer(t.F32, extent, True)), (nest,))


def test_identity_and_history_do_not_show():
    assert kernel_text(kernel()) == kernel_text(kernel())
    assert kernel_text(kernel()) == kernel_text(kernel(unrelated_first=True))


def test_what_changes_the_code_changes_the_text():
    k = kernel()
    nest = k.nests[0]
    store, reduction = nest.stores[0], nest.reduction
    assert reduction is not None
    b = Builder()
    other_nests = [
        dataclasses.replace(nest, vector=nest.loops[0], lanes=4),
        dataclasses.replace(nest, vector=nest.loops[0], lanes=8),
        dataclasses.replace(nest, vector=nest.loops[0], lanes=8, unroll=2),
        dataclasses.replace(nest, tile=((nest.loops[0], 2),)),
        dataclasses.replace(nest, sequential=True),
        dataclasses.replace(nest, sequential=True, independent=nest.loops),
        dataclasses.replace(nest, reduction=dataclasses.replace(reduction, kind=None)),
        dataclasses.replace(nest, stores=(dataclasses.replace(store, mask=b.in_range(index_of(nest.loops[0]), 1, 2)),)),
        dataclasses.replace(nest, stores=(dataclasses.replace(store, index=index_of(nest.loops[0], -1, 7)),)),
        dataclasses.replace(nest, stores=(dataclasses.replace(store, combine=b.param(t.F32, 1)),)),
    ]
    others = [dataclasses.replace(k, nests=(n,)) for n in other_nests]
    others += [
        kernel(extent=9),
        kernel(constant=2.0),
        kernel(constant=-1.0),
        kernel(operation="multiply"),
        dataclasses.replace(k, parallel=False),
        dataclasses.replace(k, locals=((t.F32, 4),)),
        dataclasses.replace(k, outer=(Var(4),)),
        dataclasses.replace(k, params=(k.params[0], Buffer(t.F32, 9, True))),
    ]
    texts = {kernel_text(other) for other in [k, *others]}
    assert len(texts) == 1 + len(others)


def test_signed_zeros_and_nans_are_told_apart():
    assert kernel_text(kernel(constant=0.0)) != kernel_text(kernel(constant=-0.0))
    b, i = Builder(), Var(4)

    def of_bits(bits):
        nest = Nest((i,), (Store(0, index_of(i), b.const_bits(t.F32, bits)),))
        return kernel_text(Kernel((Buffer(t.F32, 4, True),), (nest,)))

    assert of_bits(0x7FC00000) != of_bits(0x7FC00001)


def test_reads_well():
    b, i = Builder(), Var(4)
    value = b.apply(t.S32, "add", [b.load(t.S32, 0, index_of(i)), b.const(t.S32, 5)])
    nest = Nest((i,), (Store(1, Index(3, ((i, -1),)), value),))
    assert kernel_text(Kernel((Buffer(t.S32, 4), Buffer(t.S32, 4, True)), (nest,))) == (
        "kernel(s32[4], s32[4]w)\nnest i0<4\n"
        "  x0 = s32 b0[0 + 1*i0]\n  x1 = s32 0x5\n  x2 = s32 add x0 x1\n  b1[3 + -1*i0] = x2\n"
    )
