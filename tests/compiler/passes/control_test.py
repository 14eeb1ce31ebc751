"""Loops, branches and dead code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.ops.oracle import program
from tests.compiler.passes.checking import names, optimised, tensor
from treadle.compiler.ir.core import Region, Value
from treadle.compiler.ir.types import F32, PRED, S32
from treadle.compiler.ir.verifier import verify
from treadle.compiler.ops.build import Builder
from treadle.compiler.passes import dce


def loop(b: Builder, x: Value, bound: int, extra: Callable[[Builder, Value, Value], Value]) -> list[Value]:
    """while i < bound: carries i, x (changed by `extra`), y (unchanged), z (changed but unused)."""
    types = [tensor(S32), x.type, x.type, x.type]
    cond, body = Region(types), Region(types)
    c = Builder(cond)
    limit = c.constant(np.int32(bound))
    cond.results = [c.op("compare", cond.args[0], limit, comparison_direction="LT", compare_type="SIGNED")]
    d = Builder(body)
    i, carry, same, unused = body.args
    body.results = [d.op("add", i, d.constant(np.int32(1))), extra(d, carry, same), same, d.op("sine", unused)]
    return b.ops("while", b.constant(np.int32(0)), x, x, x, regions=[cond, body])


def test_loops() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        return loop(b, x, 7, lambda d, carry, same: d.op("add", carry, same))[1:3]

    after = optimised([tensor(F32, 3)], build)
    (op,) = [op for op in after.entry.ops if op.name == "while"]
    assert len(op.operands) == 2
    assert op.attrs == {"trip_count": 7, "induction": 0}
    assert [o.name for o in op.regions[1].ops if o.name != "constant"] == ["add", "add"]
    assert after.entry.results[1] is after.entry.args[0]


@pytest.mark.parametrize(("bound", "left"), [(0, []), (1, ["add"])])
def test_loops_that_are_none(bound: int, left: list[str]) -> None:
    def build(b: Builder, x: Value) -> Value:
        return loop(b, x, bound, lambda d, carry, same: d.op("add", carry, same))[1]

    assert names(optimised([tensor(F32, 3)], build)) == left


def test_known_branches() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        def branch(name: str) -> Region:
            region = Region()
            region.results = [Builder(region).op(name, x)]
            return region

        return [
            b.op("case", b.constant(np.int32(7)), regions=[branch(n) for n in ("sine", "cosine", "tanh")]),
            b.op("if", b.constant(np.bool_(False)), regions=[branch(n) for n in ("floor", "ceil")]),
        ]

    assert names(optimised([tensor(F32, 3)], build)) == ["tanh", "ceil"]


def test_short_scalar_branches_become_select() -> None:
    def build(b: Builder, pred: Value, x: Value) -> Value:
        def branch(name: str) -> Region:
            region = Region()
            region.results = [Builder(region).op(name, x)]
            return region

        return b.op("if", pred, regions=[branch("negate"), branch("floor")])

    assert names(optimised([tensor(PRED), tensor(F32)], build)) == ["negate", "floor", "select"]


def test_unused_results_of_branches_go() -> None:
    t = tensor(F32, 3)

    def build(b: Builder, pred: Value, x: Value) -> Value:
        def branch(name: str) -> Region:
            region = Region()
            inner = Builder(region)
            region.results = [inner.op(name, x), inner.op("sine", x)]
            return region

        return b.ops("if", pred, regions=[branch("negate"), branch("floor")])[0]

    after = optimised([tensor(PRED), t], build)
    (op,) = after.entry.ops
    assert len(op.results) == 1
    assert [[o.name for o in r.ops] for r in op.regions] == [["negate"], ["floor"]]


def test_side_effects_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op with a side effect keeps the loop around it alive, though nothing uses a result."""
    import dataclasses

    from treadle.compiler.ops import registry

    effect = dataclasses.replace(registry._REGISTRY["floor"], name="effect", side_effect=True)
    monkeypatch.setitem(registry._REGISTRY, "effect", effect)

    def build(b: Builder, x: Value) -> Value:
        loop(b, x, 7, lambda d, carry, same: (d.op("effect", same), carry)[1])
        b.op("effect", x)
        return x

    p = dce.eliminate_dead_code(program([tensor(F32, 3)], build))
    verify(p)
    assert names(p) == ["while", "effect"]
    assert "effect" in [op.name for op in p.entry.ops[1].regions[1].ops]
