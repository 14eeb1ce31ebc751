"""Random programs for property tests: random ops, loops and branches."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from tests.compiler.passes.random_ops import DTYPES, SHAPES, OpMaker, combiner, numbers
from treadle.compiler.ir.core import Input, Location, Output, Program, Region, Value
from treadle.compiler.ir.types import PRED, S32, TensorType
from treadle.compiler.ops.build import Builder

__all__ = ["combiner", "numbers", "random_program"]


class Generator(OpMaker):
    """Grows one region op by op."""

    def grow(self, count: int) -> None:
        """Adds the values of `count` random choices to the pool."""
        makers = [
            self.arithmetic, self.arithmetic, self.unary, self.convert, self.compare, self.select, self.movement,
            self.movement, self.movement, self.slicing, self.reduce, self.dot, self.dynamic, self.gather, self.scatter,
            self.power,
        ]  # fmt: skip
        if self.depth < 2:
            makers += [self.loop, self.branch, self.case]
        for _ in range(count):
            self.line += 1
            self.builder.loc = Location("jit(test)", "test.py", self.line)
            made = self.rng.choice(makers)()
            self.pool.extend(made)

    def inner(self, region: Region, args: Sequence[Value], count: int) -> Generator:
        child = Generator(
            self.rng, Builder(region), [*self.pool[-6:], *args], self.depth + 1, 1000 * (self.line + 1), self.neutral
        )
        child.grow(count)
        return child

    def loop(self) -> list[Value]:
        rng = self.rng
        carried = [v for v in (self.pick() for _ in range(rng.randint(1, 3))) if v is not None]
        counter = TensorType(S32, ())
        types = [counter, *(v.type for v in carried)]
        cond, body = Region(types), Region(types)
        c = Builder(cond)
        direction, start, bound, step = rng.choice(
            [("LT", 0, 3, 1), ("LE", 1, 2, 1), ("GT", 5, 0, -2), ("NE", 0, 4, 2), ("LT", 0, 1, 1), ("LT", 0, 0, 1)]
        )
        limit = c.constant(np.int32(bound))
        cond.results = [c.op("compare", cond.args[0], limit, comparison_direction=direction, compare_type="SIGNED")]
        child = self.inner(body, body.args[1:], rng.randint(1, 5))
        b = child.builder
        results = []
        for arg in body.args[1:]:
            kind = rng.random()
            found = [v for v in child.pool if v.type == arg.type]
            results.append(arg if kind < 0.3 or not found else found[-1])
        body.results = [b.op("add", body.args[0], b.constant(np.int32(step))), *results]
        operands = [self.builder.constant(np.int32(start)), *carried]
        return self.builder.ops("while", *operands, regions=[cond, body])[1:]

    def branches(self, count: int) -> list[Region]:
        t = self.pick()
        assert t is not None
        regions = []
        for _ in range(count):
            region = Region()
            child = self.inner(region, [], self.rng.randint(0, 3))
            found = [v for v in child.pool if v.type == t.type]
            region.results = [found[-1] if found else t, t]
            regions.append(region)
        return regions

    def branch(self) -> list[Value]:
        pred = self.pick(lambda v: v.type == TensorType(PRED, ()))
        if pred is None or self.rng.random() < 0.3:
            pred = self.builder.constant(np.bool_(self.rng.random() < 0.5))
        return self.builder.ops("if", pred, regions=self.branches(2))

    def case(self) -> list[Value]:
        return self.builder.ops("case", self.index(), regions=self.branches(self.rng.randint(1, 3)))


def random_program(seed: int, count: int = 14, neutral: bool = False) -> tuple[Program, list[np.ndarray]]:
    """A program and inputs for it.

    With `neutral`, reductions begin with what changes nothing: XLA may combine the initial value several times.
    """
    rng = random.Random(seed)
    types = [TensorType(rng.choice(DTYPES), rng.choice(SHAPES)) for _ in range(rng.randint(1, 4))]
    region = Region([*types, TensorType(S32, ()), TensorType(PRED, ())])
    generator = Generator(rng, Builder(region), list(region.args), neutral=neutral)
    generator.grow(count)
    region.results = rng.sample(generator.pool, min(len(generator.pool), 12))
    inputs = [numbers(rng, v.type) for v in region.args]
    program = Program("random", region, [Input() for _ in region.args], [Output() for _ in region.results])
    return program, inputs
