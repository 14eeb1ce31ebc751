"""Row fusions: softmax, layer normalisation and their like as one kernel that keeps a row in cache.

All full-size values of the fusion have the shape `outer + row`; reductions go over the row. The kernel loops over
`outer` and runs one nest after the other on the row at hand. A value that several nests need is stored once (in its
result buffer, or in a local array when it is costly) and loaded by the later ones; cheap values are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.build import linear_index
from treadle.compiler.loops.ir import Index, Nest, Store, Var
from treadle.compiler.lowering.attributes import integer, ints
from treadle.compiler.lowering.context import loop_vars
from treadle.compiler.lowering.kernels import FusionBody, KernelCall
from treadle.compiler.lowering.nests_reduce import accumulated, make_reduction
from treadle.compiler.lowering.reduction import split_operands
from treadle.compiler.lowering.registry import Coordinates
from treadle.compiler.ops.cost import COSTLY

# Bytes of local arrays that one kernel may have (they live on the stack and should stay in the first-level cache).
LOCAL_BYTES = 32 * 1024


def lower_row(body: FusionBody) -> list[KernelCall]:
    """One kernel for the whole fusion."""
    if all(outside.type.size == 0 for _, outside in body.results):
        return []
    return [_RowKernel(body).build()]


class _RowKernel:
    """Builds the nests of one row fusion in the order of its ops."""

    def __init__(self, body: FusionBody):
        self.body = body
        self.shape = ints(body.op, "shape")
        self.outer_rank = integer(body.op, "outer_rank")
        self.maker = body.maker()
        self.context = self.maker.context
        self.outer, self.outer_at = loop_vars(self.shape[: self.outer_rank])
        self.row_size = math.prod(self.shape[self.outer_rank :])
        aligned = ints(body.op, "aligned")
        self.aligned = {body.region.ops[i] for i in aligned}
        self.nests: list[Nest] = []
        self.locals: list[tuple[DType, int]] = []
        self.local_bytes = 0
        self.outside: dict[Value, list[Value]] = {}
        for inside, outside in body.results:
            self.outside.setdefault(inside, []).append(outside)
        self.users = self._users()
        self.done: set[Value] = set()

    def _is_full(self, value: Value) -> bool:
        """Whether `value` is a full-size value of the rows at hand, and not, say, a transposed one read elsewhere."""
        return value.type.shape == self.shape and value.op in self.aligned

    def _is_row_reduce(self, op: Op | None) -> bool:
        """Whether `op` reduces the rows at hand (and is not a small reduction written out inside an element)."""
        if op is None or op.name != "reduce" or op not in self.aligned:
            return False
        return op.operands[0].type.shape == self.shape and op.results[0].type.shape == self.shape[: self.outer_rank]

    def build(self) -> KernelCall:
        for op in self.body.region.ops:
            if self._is_row_reduce(op):
                self._materialise_for(op)
                self._reduce(op)
        self._store_rest()
        return self.maker.finish(self.nests, self.outer, self.locals)

    def _full_at(self) -> tuple[tuple[Var, ...], Coordinates]:
        loops, at = loop_vars(self.shape[self.outer_rank :])
        return loops, (*self.outer_at, *at)

    def _materialise_for(self, reduce: Op) -> None:
        """Stores the full values below `reduce` that later code needs too, each by a nest of its own."""
        order = {op: i for i, op in enumerate(self.body.region.ops)}
        for value in sorted(self._below(reduce), key=lambda v: order[cast(Op, v.op)]):
            is_result = value in self.outside
            shared = len(self.users.get(value, ())) > 1 and self._cost(value) > 0
            if value in self.context.bound or not (is_result or shared):
                continue
            if is_result:
                self._store([value])
            elif self.local_bytes + self.row_size * value.type.dtype.bytes <= LOCAL_BYTES:
                self._store_local(value)

    def _below(self, op: Op) -> set[Value]:
        """Full values that `op` needs, through ops of the fusion, not looking past what is already stored."""
        found: set[Value] = set()
        stack = list(op.operands)
        while stack:
            value = stack.pop()
            if value.op is None or value in found or value in self.context.bound or self._is_row_reduce(value.op):
                continue
            if self._is_full(value):
                found.add(value)
            stack.extend(value.op.operands)
        return found

    def _cost(self, value: Value) -> int:
        """How many costly ops computing `value` takes, down to what is stored."""
        seen: set[Value] = set()
        stack, cost = [value], 0
        while stack:
            v = stack.pop()
            if v in seen or v.op is None or v in self.context.bound or not self._is_full(v):
                continue
            seen.add(v)
            cost += v.op.name in COSTLY
            stack.extend(v.op.operands)
        return cost

    def _store(self, values: Iterable[Value]) -> None:
        """One nest that stores full values to the results they stand for."""
        loops, at = self._full_at()
        stores = []
        for value in values:
            element = self.context.element(value, at)
            index = linear_index(at, value.type.strides())
            stores += [Store(self.maker.output(outside), index, element) for outside in self.outside[value]]
        self.nests.append(Nest(loops, tuple(stores)))
        for value in values:
            self._bind(value, self.maker.output(self.outside[value][0]), 0)

    def _store_local(self, value: Value) -> None:
        loops, at = self._full_at()
        element = self.context.element(value, at)
        number = self._new_local(value.type.dtype, self.row_size)
        strides = value.type.strides()[self.outer_rank :]
        self.nests.append(Nest(loops, (Store(number, linear_index(at[self.outer_rank :], strides), element),)))
        self._bind(value, number, self.outer_rank)

    def _new_local(self, dtype: DType, size: int) -> int:
        self.locals.append((dtype, size))
        self.local_bytes += size * dtype.bytes
        return -len(self.locals)

    def _bind(self, value: Value, buffer: int, drop: int) -> None:
        self.context.bound[value] = buffer
        self.context.local_drop[value] = drop
        self.context.forget()
        self.done.add(value)

    def _reduce(self, op: Op) -> None:
        inputs, init_values = split_operands(op)
        inits = [self.context.element(v, ()) for v in init_values]
        variables, at = self._full_at()
        elements = [self.context.element(v, at) for v in inputs]
        combiner = self.context.combiner(op.regions[0])
        first = op.results[0]
        reads_first = first in self.users or first in self.outside
        reduction = make_reduction(self.context, variables, inits, elements, combiner, reads_first)
        stores = []
        bindings: list[tuple[Value, int, int]] = []
        for value, result in zip(op.results, accumulated(self.context, op, reduction), strict=True):
            if value not in self.users and value not in self.outside:
                continue
            index = linear_index(self.outer_at, value.type.strides())
            outsides = self.outside.get(value, [])
            stores += [Store(self.maker.output(o), index, result) for o in outsides]
            number = self._new_local(value.type.dtype, 1)
            stores.append(Store(number, Index(), result))
            bindings.append((value, number, value.type.rank))
        self.nests.append(Nest((), tuple(stores), reduction))
        for binding in bindings:
            self._bind(*binding)

    def _store_rest(self) -> None:
        """What no reduction needed: full-size results in one nest, per-row results in another."""
        rest = [v for v in self.outside if v not in self.done]
        full = [v for v in rest if self._is_full(v)]
        if full:
            self._store(full)
        stores = []
        for value in rest:
            if value not in full:
                at = self.context.reshaped(self.outer_at, self.shape[: self.outer_rank], value.type.shape)
                element = self.context.element(value, at)
                index = linear_index(at, value.type.strides())
                stores += [Store(self.maker.output(outside), index, element) for outside in self.outside[value]]
        if stores:
            self.nests.append(Nest((), tuple(stores)))

    def _users(self) -> dict[Value, set[object]]:
        """The nests that need each value: those of reductions, and "the end" for what reaches a result."""
        users: dict[Value, set[object]] = {}
        for result in self.body.region.results:
            if not self._is_row_reduce(result.op):
                users.setdefault(result, set()).add("end")
        for op in reversed(self.body.region.ops):
            if self._is_row_reduce(op):
                reached: set[object] = {op}
            else:
                reached = set().union(*(users.get(r, set()) for r in op.results))
            for operand in op.operands:
                users.setdefault(operand, set()).update(reached)
        return users
