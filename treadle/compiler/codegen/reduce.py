"""Reductions: accumulators in registers, over the lanes of a vector and over several vectors in flight."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from treadle.compiler.codegen import arg_reduce, order
from treadle.compiler.codegen.elementwise import emit_apply
from treadle.compiler.codegen.text import register_type, vector
from treadle.compiler.codegen.values import ValueEmitter
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.build import const_bits
from treadle.compiler.loops.ir import POSITIONED, Apply, Const, Expr, Reduction, Var

# (offsets of the parallel iterations in flight, which of the accumulators that one sum is spread over)
AccKey = tuple[tuple[int, ...], int]
Accumulators = dict[AccKey, list[str]]


def identity_bits(kind: str, dtype: DType) -> int:
    """The value that a reduction of this kind leaves every other value as it is with (-0.0 for sums of floats)."""
    if kind in ("and", "or", "xor") or dtype is t.PRED:
        neutral = kind in ("and", "multiply", "minimum")
        return (1 << dtype.bits) - 1 if neutral else 0
    if kind == "add":
        return const_bits(dtype, -0.0 if dtype.is_float else 0)
    if kind == "multiply":
        return const_bits(dtype, 1)
    if dtype.is_float:
        return const_bits(dtype, float("-inf") if kind == "maximum" else float("inf"))
    info = np.iinfo(dtype.numpy)
    return const_bits(dtype, info.min if kind == "maximum" else info.max)


class ReductionEmitter:
    """Writes the loops of one reduction, for all the parallel iterations in flight.

    Where the vector variable is one of the reduction's, every sum is spread over `unroll` vectors of partial sums,
    which start at what changes nothing and are joined at the end; otherwise every lane (or scalar) is one sum that
    starts at its `inits`.
    """

    def __init__(
        self,
        out: ValueEmitter,
        reduction: Reduction,
        outer: Sequence[tuple[int, ...]],
        set_outer: Callable[[tuple[int, ...]], None],
        factors: dict[Var, int],
    ):
        self.out = out
        self.reduction = reduction
        self.outer = outer
        self.set_outer = set_outer
        self.factors = factors
        self.across = out.vector is not None and out.vector in reduction.vars
        self.wide = out.lanes if self.across or out.vector is not None else 1
        fused = self._fused_product()
        self.fused = fused
        inputs = list(reduction.inputs) if fused is None else list(fused.operands)
        self.inits = out.analyse(reduction.inits)
        self.inputs = out.analyse(inputs)
        self.operands = inputs
        # The type that is accumulated: maxima and minima of floats are taken of integers that order like them.
        first = reduction.acc_dtypes[0]
        self.keyed = reduction.kind in ("maximum", "minimum") and first.is_float
        self.positioned = reduction.kind in POSITIONED
        self.types = (order.SIGNED_OF_WIDTH[first.bits],) if self.keyed else reduction.acc_dtypes

    def _fused_product(self) -> Apply | None:
        """The product whose sum this is, if a fused multiply-add can take both; that rounds less, never more."""
        r = self.reduction
        source = r.inputs[0]
        if not (r.kind == "add" and isinstance(source, Apply) and source.name == "multiply"):
            return None
        fits = r.acc_dtypes[0] in (t.F32, t.F64) and source.dtype is r.acc_dtypes[0] and self.out.target.has("fma")
        return source if fits else None

    def _spread(self) -> int:
        assert self.out.vector is not None
        return self.factors.get(self.out.vector, 1) if self.across else 1

    def emit(self) -> dict[tuple[int, ...], list[str]]:
        """Writes the reduction here; returns the accumulators' final values for each parallel iteration in flight."""
        out, r = self.out, self.reduction
        start: Accumulators = {}
        firsts: dict[tuple[int, ...], list[str]] = {}
        for place in self.outer:
            self.set_outer(place)
            lanes, out.lanes = out.lanes, 1 if self.across else out.lanes
            out.ensure(self.inits)
            firsts[place] = [out.lanes_of(x) if self.wide > 1 else out.value(x) for x in r.inits]
            out.lanes = lanes
            if self.across:
                neutral = self._neutral(firsts[place])
                for i in range(self._spread()):
                    start[place, i] = neutral
            else:
                start[place, 0] = [self._encoded(firsts[place][0], self.wide)] if self.keyed else firsts[place]
        if any(var.extent == 0 for var in r.vars):
            return firsts
        final = self._loops(0, start)
        if not self.across:
            return {place: self._decoded(values, self.wide) for (place, _), values in final.items()}
        results = {}
        for place in self.outer:
            total = self._join([final[place, i] for i in range(self._spread())], self.wide)
            for_all = self._lane_tree(total)
            if self.positioned:
                results[place] = for_all
                continue
            if not self._starts_at_worst():
                first = [self._encoded(firsts[place][0], 1)] if self.keyed else firsts[place]
                for_all = self._both(first, for_all, 1)
            results[place] = self._decoded(for_all, 1)
        return results

    def _starts_at_worst(self) -> bool:
        """Whether the initial value is one that no element changes anything for."""
        init = self.reduction.inits[0]
        return (
            self.keyed and isinstance(init, Const) and init.bits == identity_bits(str(self.reduction.kind), init.dtype)
        )

    def _neutral(self, firsts: list[str]) -> list[str]:
        """What every partial result starts with: the identity, or what may be met any number of times."""
        r = self.reduction
        assert r.kind is not None
        if not self.positioned:
            return [self.out.fb.const(self.types[0], identity_bits(r.kind, self.types[0]), self.wide)]
        pairs = zip(self.types, firsts, strict=True)
        return [self.out.fb.splat(register_type(dtype), first, self.wide) for dtype, first in pairs]

    def _encoded(self, value: str, lanes: int) -> str:
        assert self.reduction.kind is not None
        return order.encode(self.out.fb, self.reduction.kind, self.reduction.acc_dtypes[0], value, lanes)

    def _decoded(self, values: list[str], lanes: int) -> list[str]:
        if not self.keyed:
            return values
        return [order.decode(self.out.fb, self.reduction.acc_dtypes[0], values[0], lanes)]

    def _both(self, a: list[str], b: list[str], lanes: int) -> list[str]:
        """Two partial results of a reassociable reduction as one."""
        kind = self.reduction.kind
        assert kind is not None
        if self.positioned:
            return arg_reduce.merge(self.out.fb, kind, self.types, a, b, lanes)
        if self.keyed:
            operands = [(a[0], self.types[0]), (b[0], self.types[0])]
            return [emit_apply(self.out.fb, kind, "", self.types[0], operands, lanes)]
        return self.out.combine(self.reduction.combiner, [*a, *b], lanes)

    def _loops(self, depth: int, accumulators: Accumulators) -> Accumulators:
        out, r = self.out, self.reduction
        if depth == len(r.vars):
            return self._step(accumulators)
        var = r.vars[depth]
        factor = self.factors.get(var, 1)
        lanes = out.lanes if var is out.vector else 1
        step = factor * lanes
        whole = var.extent // step * step
        keys = list(accumulators)
        types = [vector(register_type(d), self.wide) for d in self.types]

        def write(start: int, stop: int, width: int, parts: int, masked: bool, acc: Accumulators) -> Accumulators:
            carried = [(ty, value) for key in keys for ty, value in zip(types, acc[key], strict=True)]

            def body(values: list[str]) -> list[str]:
                inside = {key: values[i * len(types) : (i + 1) * len(types)] for i, key in enumerate(keys)}
                previous, out.flight[var] = out.flight.get(var, 1), parts
                saved_tail = out.tail
                if masked:
                    out.tail = out.tail_mask(var, stop)
                after = self._loops(depth + 1, inside)
                out.tail = saved_tail
                out.flight[var] = previous
                return [value for key in keys for value in after[key]]

            results = out.loop(var, start, stop, width, carried, body)
            return {key: results[i * len(types) : (i + 1) * len(types)] for i, key in enumerate(keys)}

        if whole:
            accumulators = write(0, whole, step, factor, False, accumulators)
        if whole < var.extent:
            if var is not out.vector:
                return write(whole, var.extent, 1, 1, False, accumulators)
            if out.target.masked_memory:
                return write(whole, var.extent, lanes, 1, True, accumulators)
            even = whole + (var.extent - whole) // lanes * lanes
            if even > whole:
                accumulators = write(whole, even, lanes, 1, False, accumulators)
            if even < var.extent:
                accumulators = write(even, var.extent, lanes, 1, True, accumulators)
        return accumulators

    def _step(self, accumulators: Accumulators) -> Accumulators:
        """One iteration of all loops, times what is in flight."""
        out, r = self.out, self.reduction
        out.scopes[-1].bits |= out.inner_pin
        current = dict(accumulators)
        moving = [var for var in r.vars if out.flight.get(var, 1) > 1]
        for choice in itertools.product(*[range(out.flight[var]) for var in moving]):
            spread = 0
            for var, i in zip(moving, choice, strict=True):
                out.offset[var] = i * (out.lanes if var is out.vector else 1)
                if var is out.vector and self.across:
                    spread = i
            for place in self.outer:
                self.set_outer(place)
                out.ensure(self.inputs)
                current[place, spread] = self._accumulate(current[place, spread])
        for var in moving:
            out.offset[var] = 0
        return current

    def _accumulate(self, accumulators: list[str]) -> list[str]:
        out, r = self.out, self.reduction
        take: Callable[[Expr], str] = out.lanes_of if self.wide > 1 else out.value
        values = [take(x) for x in self.operands]
        if self.fused is not None:
            element = register_type(r.acc_dtypes[0])
            after = [out.fb.intrinsic("fma", element, self.wide, [*values, accumulators[0]])]
        elif self.keyed:
            after = self._both(accumulators, [self._encoded(values[0], self.wide)], self.wide)
        elif self.positioned and self.across:
            assert r.kind is not None
            after = arg_reduce.move_on(out.fb, r.kind, self.types, accumulators, values, self.wide)
        else:
            after = out.combine(r.combiner, [*accumulators, *values], self.wide)
        if out.tail is None or not self.across:
            return after
        flags = vector("i1", self.wide)
        types = [vector(register_type(d), self.wide) for d in self.types]
        return [
            out.fb.op(f"select {flags} {out.tail}, {ty} {new}, {ty} {old}")
            for ty, new, old in zip(types, after, accumulators, strict=True)
        ]

    def _join(self, values: list[list[str]], lanes: int) -> list[str]:
        """All partial results by the combiner, as a balanced tree."""
        while len(values) > 1:
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            values = [self._both(pair[0], pair[1], lanes) if len(pair) == 2 else pair[0] for pair in pairs]
        return values[0]

    def _lane_tree(self, values: list[str]) -> list[str]:
        """All lanes of the accumulators' vectors by the combiner: halves onto each other."""
        lanes = self.wide
        while lanes > 1:
            half = lanes // 2
            halves = [self._halves(register_type(d), value, lanes) for d, value in zip(self.types, values, strict=True)]
            values = self._both([a for a, _ in halves], [b for _, b in halves], half)
            lanes = half
        return values

    def _halves(self, element: str, value: str, lanes: int) -> tuple[str, str]:
        fb, half = self.out.fb, lanes // 2
        if half == 1:
            ty = vector(element, 2)
            first, second = (fb.op(f"extractelement {ty} {value}, i64 {i}") for i in range(2))
        else:
            orders = (tuple(range(half)), tuple(range(half, lanes)))
            first, second = (fb.shuffle(element, lanes, value, "poison", order) for order in orders)
        return first, second
