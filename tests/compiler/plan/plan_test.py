"""The plan stage: nothing is overwritten before its last use, and memory is shared where it can be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.frontend.programs import artifact, context
from tests.compiler.fused_programs import EXAMPLES
from treadle.compiler.driver import run
from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import Program
from treadle.compiler.plan.arena import Arena
from treadle.compiler.plan.check import check_plan
from treadle.compiler.plan.steps import Base, CopyStep, KernelStep, LibraryStep, Location, LoopStep, Plan, Step


def planned(function, *arguments, **options) -> tuple[Program, Plan]:
    made = context(artifact(function, *arguments, **options))
    plan, program = run(made, "plan"), made.products["fuse"]
    assert isinstance(plan, Plan)
    assert isinstance(program, Program)
    return program, plan


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("donated", [(), 0], ids=["kept", "donated"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_read_finds_its_value(name, donated):
    function, arguments = EXAMPLES[name]
    program, plan = planned(function, *arguments, donate_argnums=donated)
    for iterations in range(4):
        check_plan(program, plan, iterations)


def test_the_checker_notices_a_value_that_is_overwritten():
    program, plan = planned(lambda x: jnp.sin(x @ x) @ (x @ x), np.ones((64, 64), np.float32))
    product = next(s for s in plan.steps if isinstance(s, LibraryStep))
    kernel = next(s for s in plan.steps if isinstance(s, KernelStep))
    check_plan(program, plan, 1)
    written = next(i for i, p in enumerate(kernel.call.kernel.params) if p.written)
    kernel.arguments[written].location = product.result.location
    with pytest.raises(IrError, match="is not at"):
        check_plan(program, plan, 1)


X = np.ones((64, 64), np.float32)


def test_a_chain_needs_no_memory_of_its_own():
    _, plan = planned(lambda x: jnp.exp(jnp.sin(x)) + 1, X)
    assert plan.scratch_size == 0


def test_temporaries_that_do_not_live_together_share_memory():
    def chain(x):
        for _ in range(10):
            x = jnp.sin(x @ x)
        return x

    _, plan = planned(chain, X)
    assert plan.scratch_size <= 2 * X.nbytes


def test_a_donated_argument_is_updated_in_place():
    _, plan = planned(lambda x: x.at[3].set(1.0), X, donate_argnums=0)
    assert plan.aliases == [0]
    assert not any(isinstance(s, CopyStep) for s in plan.steps)


def test_an_argument_that_is_not_donated_is_copied():
    _, plan = planned(lambda x: x.at[3].set(1.0), X)
    assert plan.aliases == [-1]
    assert any(isinstance(s, CopyStep) for s in plan.steps)


def test_a_donated_argument_that_is_still_needed_keeps_its_memory():
    """The product reads x after the first result is written: that result may not take x's memory."""
    _, plan = planned(lambda x: (jnp.flip(x, 0) @ x, x @ x), X, donate_argnums=0)
    assert plan.aliases.count(0) <= 1
    check_plan(*planned(lambda x: (jnp.flip(x, 0) @ x, x @ x), X, donate_argnums=0), 1)


def loops_in(steps: list[Step]) -> list[LoopStep]:
    return [s for s in steps if isinstance(s, LoopStep)]


def test_a_stacked_scan_writes_into_its_result_and_copies_nothing_per_step():
    _, plan = planned(lambda x: jax.lax.scan(lambda c, a: (c + 1, a * c), 0.0, x)[1], X)
    (loop,) = loops_in(plan.steps)
    assert not any(isinstance(s, CopyStep) for s in loop.body)
    assert not any(c.swap for c in loop.carries)


def test_an_elementwise_carry_is_updated_in_place():
    _, plan = planned(lambda x: jax.lax.fori_loop(0, 9, lambda i, c: jnp.sin(c) + i, x), X)
    (loop,) = loops_in(plan.steps)
    assert [c.swap for c in loop.carries if c.storage is not None] == [None]


def test_a_carry_that_reads_itself_elsewhere_alternates_between_two_buffers():
    _, plan = planned(lambda x: jax.lax.fori_loop(0, 9, lambda i, c: c @ c, x), X)
    (loop,) = loops_in(plan.steps)
    assert [c.swap is not None for c in loop.carries if c.storage is not None] == [True]
    assert not any(isinstance(s, CopyStep) for s in loop.body)


def test_an_argument_is_never_written_unless_donated():
    for function, arguments in EXAMPLES.values():
        _, plan = planned(function, *arguments)
        for step in plan.steps:
            if isinstance(step, KernelStep):
                for param, storage in zip(step.call.kernel.params, step.arguments, strict=True):
                    assert not (param.written and storage.location.base in (Base.INPUT, Base.CONSTANT))


def test_the_arena_reuses_what_is_free_and_nothing_else():
    arena = Arena()
    a, b = arena.allocate(100), arena.allocate(64)
    assert (a, b) == (0, 128)
    arena.free(a, 100)
    assert arena.allocate(64) == 0
    assert arena.allocate(64) == 64
    assert arena.allocate_apart(1) == arena.peak - 64 == 192
    arena.free(b, 64)
    assert arena.allocate(65) == 256
    assert Location(Base.SCRATCH) == Location(Base.SCRATCH, 0, 0)
