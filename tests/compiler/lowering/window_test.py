"""Positions: of elements with gaps between them, and in windows."""

from __future__ import annotations

import numpy as np
import pytest

from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import Builder, add_index, index_of
from treadle.compiler.loops.interp import run_kernel
from treadle.compiler.loops.ir import Buffer, Index, Kernel, Nest, Store, Var
from treadle.compiler.lowering.window import undilated, window_position


def evaluate(index, inside, variables):
    """Values of an index and of its condition for all iterations, row-major."""
    builder = Builder()
    size = int(np.prod([v.extent for v in variables]))
    strides = [int(np.prod([v.extent for v in variables[i + 1 :]])) for i in range(len(variables))]
    at = Index()
    for variable, stride in zip(variables, strides, strict=True):
        at = add_index(at, index_of(variable, stride))
    values = [builder.index_value(index, t.S64), builder.const(t.PRED, True) if inside is None else inside]
    stores = tuple(Store(i, at, value) for i, value in enumerate(values))
    kernel = Kernel((Buffer(t.S64, size, True), Buffer(t.PRED, size, True)), (Nest(tuple(variables), stores),))
    memory = [np.zeros(size, np.int64), np.zeros(size, bool)]
    run_kernel(kernel, memory)
    return memory


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("low", [-4, 0, 5])
@pytest.mark.parametrize("data", [False, True])
def test_undilated(step, low, data):
    """Elements 0..3 are at 0, step, 2 * step, 3 * step; `data` makes the position one that is not affine."""
    builder, variable = Builder(), Var(20)
    position = index_of(variable, 1, -low)
    if data:
        position = builder.dynamic_index(
            builder.apply(t.S64, "add", [builder.index_value(position, t.S64), builder.const(t.S64, 0)])
        )
        assert position.dynamic
    index, inside = undilated(builder, position, 4, step)
    at, there = evaluate(index, inside, [variable])
    for i in range(20):
        p = i - low
        assert there[i] == (p % step == 0 and 0 <= p // step < 4)
        if there[i]:
            assert at[i] == p // step


def test_what_always_holds_is_no_condition():
    builder = Builder()
    assert undilated(builder, index_of(Var(4)), 4, 1)[1] is None
    assert window_position(builder, index_of(Var(3)), index_of(Var(2)), extent=6, stride=2, low=0)[1] is None


@pytest.mark.parametrize("low", [-2, 0, 3])
@pytest.mark.parametrize(("stride", "window_dilation", "base_dilation"), [(1, 1, 1), (2, 3, 1), (3, 2, 2), (1, 2, 3)])
def test_window_position(low, stride, window_dilation, base_dilation):
    builder, window, place = Builder(), Var(5), Var(3)
    index, inside = window_position(
        builder,
        index_of(window),
        index_of(place),
        extent=4,
        stride=stride,
        low=low,
        window_dilation=window_dilation,
        base_dilation=base_dilation,
    )
    at, there = evaluate(index, inside, [window, place])
    # The array written out: None where padding or a gap is.
    laid_out: dict[int, int] = {low + i * base_dilation: i for i in range(4)}
    for w in range(5):
        for p in range(3):
            element = laid_out.get(w * stride + p * window_dilation)
            assert there[w * 3 + p] == (element is not None)
            if element is not None:
                assert at[w * 3 + p] == element
