"""Loops, branches and dead code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.ops.oracle import program, program_of
from tests.compiler.passes.checking import names, optimised, tensor
from treadle.compiler import passes
from treadle.compiler.ir.core import Op, Program, Region, Value
from treadle.compiler.ir.types import F32, PRED, S32, U32
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
        return loop(b, x, 70, lambda d, carry, same: d.op("add", carry, same))[1:3]

    after = optimised([tensor(F32, 3)], build)
    (op,) = [op for op in after.entry.ops if op.name == "while"]
    assert len(op.operands) == 2
    assert op.attrs == {"trip_count": 70, "induction": 0}
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


def only(p: Program, name: str) -> Op:
    """The one op of this name at the top."""
    (op,) = [op for op in p.entry.ops if op.name == name]
    return op


def test_short_loops_of_cheap_ops_are_unrolled() -> None:
    """Carries that change places, as the rotations of Threefry do, become constants."""
    scalar, t = tensor(S32), tensor(U32, 50)

    def build(b: Builder, x: Value) -> Value:
        types = [scalar, t, tensor(U32), tensor(U32)]
        cond, body = Region(types), Region(types)
        c, d = Builder(cond), Builder(body)
        limit = c.constant(np.int32(4))
        cond.results = [c.op("compare", cond.args[0], limit, comparison_direction="LT", compare_type="SIGNED")]
        i, carry, first, second = body.args
        by = d.op("broadcast_in_dim", first, types=[t], broadcast_dimensions=())
        moved = d.op("xor", d.op("shift_left", carry, by), carry)
        body.results = [d.op("add", i, d.constant(np.int32(1))), moved, second, first]
        start = [b.constant(np.int32(0)), x, b.constant(np.uint32(3)), b.constant(np.uint32(0))]
        return b.ops("while", *start, regions=[cond, body])[1]

    after = optimised([t], build)
    # A shift by 0 is nothing, and x ^ x is 0: of four rounds, the first two leave zeros.
    assert "while" not in names(after)


def test_what_the_counter_decides() -> None:
    """x[i] in a loop: JAX asks whether i is negative before it slices; a counter never is."""
    t = tensor(F32, 9)

    def build(b: Builder, x: Value) -> Value:
        def extra(d: Builder, carry: Value, same: Value) -> Value:
            i = d.region.args[0]
            negative = d.op("compare", i, d.constant(np.int32(0)), comparison_direction="LT", compare_type="SIGNED")
            wrapped = d.op("select", negative, d.op("add", i, d.constant(np.int32(9))), i)
            one = d.op("dynamic_slice", same, wrapped, slice_sizes=(1,))
            wide = d.op("broadcast_in_dim", one, types=[t], broadcast_dimensions=(0,))
            return d.op("add", carry, wide)

        return loop(b, x, 9, extra)[1]

    body = only(optimised([t], build), "while").regions[1]
    assert sorted(op.name for op in body.ops if op.name != "constant") == [
        "add", "add", "broadcast_in_dim", "dynamic_slice",
    ]  # fmt: skip


def test_invariant_work_leaves_the_loop() -> None:
    """A product of outside values moves out with its transpose; a broadcast alone would only take memory."""
    t = tensor(F32, 4, 4)

    def build(b: Builder, x: Value) -> Value:
        def extra(d: Builder, carry: Value, same: Value) -> Value:
            product = d.op("exponential", d.op("transpose", same, permutation=(1, 0)))
            row = d.op("slice", same, start_indices=(0, 0), limit_indices=(1, 4), strides=(1, 1))
            wide = d.op("broadcast_in_dim", row, types=[t], broadcast_dimensions=(0, 1))
            return d.op("tanh", d.op("add", d.op("add", carry, wide), product))

        return loop(b, x, 20, extra)[1]

    after = optimised([t], build)
    assert names(after) == ["transpose", "exponential", "while"]
    body = only(after, "while").regions[1]
    left = sorted(op.name for op in body.ops if op.name != "constant")
    assert left == ["add", "add", "add", "broadcast_in_dim", "slice", "tanh"]


def test_equal_work_leaves_two_loops_once() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        def extra(d: Builder, carry: Value, same: Value) -> Value:
            return d.op("tanh", d.op("add", carry, d.op("exponential", same)))

        return [loop(b, x, bound, extra)[1] for bound in (20, 30)]

    assert names(optimised([tensor(F32, 4)], build)) == ["exponential", "while", "while"]


def test_carries_found_invariant_late() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        def extra(d: Builder, carry: Value, same: Value) -> Value:
            return d.op("negate", d.op("negate", carry))

        return loop(b, x, 20, extra)

    after = optimised([tensor(F32, 4)], build)
    assert after.entry.results[1] is after.entry.args[0]
    assert len(only(after, "while").operands) == 2  # the counter, and the sine that is a result


@pytest.mark.parametrize(
    ("direction", "start", "bound", "step", "trips"),
    [
        ("LT", 0, 10, 1, 10),
        ("LT", 0, 10, 3, 4),
        ("LE", 1, 10, 1, 10),
        ("GT", 10, 0, -1, 10),
        ("GE", 10, 0, -2, 6),
        ("NE", 0, 10, 2, 5),
        ("NE", 0, 10, 3, None),
        ("LT", 0, 10, -1, None),
        ("LT", 2**31 - 20, 2**31 - 1, 7, None),
    ],
)
def test_trip_counts(direction: str, start: int, bound: int, step: int, trips: int | None) -> None:
    """Known from start, bound and step, unless the counter wraps or misses the bound."""
    types = [tensor(S32), tensor(F32, 4)]
    region = Region([types[1]])
    b = Builder(region)
    cond, body = Region(types), Region(types)
    c, d = Builder(cond), Builder(body)
    limit = c.constant(np.int32(bound))
    cond.results = [c.op("compare", cond.args[0], limit, comparison_direction=direction, compare_type="SIGNED")]
    body.results = [
        d.op("add", body.args[0], d.constant(np.int32(step))),
        d.op("reverse", body.args[1], dimensions=(0,)),
    ]
    region.results = b.ops("while", b.constant(np.int32(start)), region.args[0], regions=[cond, body])
    after = passes.optimise(program_of(region))
    assert only(after, "while").attrs.get("trip_count") == trips
