"""What a kernel means, in NumPy: the definition that generated code is tested against. Slow and plain.

Parallel loops run as whole arrays, one dimension per loop; reduction loops, outer loops and sequential nests run one
iteration after the other in Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import DType, TensorType
from treadle.compiler.loops.build import const_value
from treadle.compiler.loops.ir import (
    Acc,
    Apply,
    Const,
    Expr,
    Index,
    IndexValue,
    InRange,
    Kernel,
    Load,
    Nest,
    Param,
    Reduction,
    Store,
    Var,
)
from treadle.compiler.ops import numerics, registry
from treadle.compiler.ops.registry import Array

Values = dict[Var, Array]


def run_kernel(kernel: Kernel, params: Sequence[Array], begin: int = 0, end: int | None = None) -> None:
    """Runs iterations [begin, end) of the kernel's outermost loop; `params` are flat arrays, changed in place."""
    stop = kernel.range_extent() if end is None else end
    if not kernel.outer:
        ranged = len(kernel.nests) == 1 and bool(kernel.nests[0].loops)
        if not ranged and begin >= stop:
            return
        machine = _Machine(kernel, params, {})
        for nest in kernel.nests:
            machine.nest(nest, (begin, stop) if ranged else None)
        return
    ranges = [range(begin, stop), *[range(var.extent) for var in kernel.outer[1:]]]
    for point in itertools.product(*ranges):
        outer = {var: np.asarray(i) for var, i in zip(kernel.outer, point, strict=True)}
        machine = _Machine(kernel, params, outer)
        for nest in kernel.nests:
            machine.nest(nest, None)


def apply(name: str, attr: str, dtype: DType, operands: Sequence[Array]) -> Array:
    """One elementwise op on arrays of one shape, by its definition in treadle.compiler.ops."""
    if name == "convert":
        return numerics.convert(operands[0], dtype)
    if name == "bitcast_convert":
        return np.ascontiguousarray(operands[0]).view(dtype.numpy).reshape(operands[0].shape)
    definition = registry.find(name)
    if definition is None or definition.apply is None:
        raise CompileError(StatusCode.UNIMPLEMENTED, f"loop IR: no elementwise op '{name}'")
    attrs: dict[str, object] = {}
    if name == "compare":
        attrs["comparison_direction"] = attr.removesuffix("_TOTAL")
        attrs["compare_type"] = "TOTALORDER" if attr.endswith("_TOTAL") else "NOTYPE"
    op = Op(name, (), [TensorType(dtype, ())], attrs)
    with np.errstate(all="ignore"):
        return np.asarray(definition.apply(op, *operands)).astype(dtype.numpy, copy=False)


class _Machine:
    """The memory of one iteration of the outer loops."""

    def __init__(self, kernel: Kernel, params: Sequence[Array], outer: Values):
        self.buffers = dict(enumerate(params))
        for i, (dtype, size) in enumerate(kernel.locals):
            self.buffers[-1 - i] = np.zeros(size, dtype.numpy)
        self.outer = outer

    def nest(self, nest: Nest, ranged: tuple[int, int] | None) -> None:
        ranges = [range(var.extent) for var in nest.loops]
        if ranged is not None:
            ranges[0] = range(*ranged)
        if nest.sequential:
            for point in itertools.product(*ranges):
                self._iterations(nest, {var: np.asarray(i) for var, i in zip(nest.loops, point, strict=True)})
            return
        values: Values = {}
        for axis, (var, extent) in enumerate(zip(nest.loops, ranges, strict=True)):
            shape = [1] * len(ranges)
            shape[axis] = len(extent)
            values[var] = np.asarray(extent, np.int64).reshape(shape)
        self._iterations(nest, values)

    def _iterations(self, nest: Nest, values: Values) -> None:
        shape = np.broadcast_shapes(*[value.shape for value in values.values()])
        if 0 in shape:
            return
        evaluator = _Evaluator(self, {**self.outer, **values}, shape)
        if nest.reduction is not None:
            evaluator.accumulators = self._reduce(nest.reduction, values, shape)
        combining = [store for store in nest.stores if store.combine is not None]
        written: list[tuple[Store, Array, Array, Array]] = []
        old, new = [], []
        for store in nest.stores:
            index = evaluator.index(store.index)
            mask = np.ones(shape, bool) if store.mask is None else evaluator.value(store.mask)
            value = evaluator.value(store.value)
            written.append((store, index, mask, value))
            if store.combine is not None:
                old.append(evaluator.load(store.buffer, index, mask))
                new.append(value)
        combiner = _Evaluator(self, {}, shape, [*old, *new])
        combined = {id(store): combiner.value(store.combine) for store in combining if store.combine is not None}
        for store, index, mask, value in written:
            self.buffers[store.buffer][index[mask]] = combined.get(id(store), value)[mask]

    def _reduce(self, reduction: Reduction, values: Values, shape: tuple[int, ...]) -> list[Array]:
        first = _Evaluator(self, {**self.outer, **values}, shape)
        accumulators = [first.value(init) for init in reduction.inits]
        for point in itertools.product(*[range(var.extent) for var in reduction.vars]):
            here = {var: np.asarray(i) for var, i in zip(reduction.vars, point, strict=True)}
            element = _Evaluator(self, {**self.outer, **values, **here}, shape)
            inputs = [element.value(x) for x in reduction.inputs]
            combiner = _Evaluator(self, {}, shape, [*accumulators, *inputs])
            accumulators = [combiner.value(x) for x in reduction.combiner]
        return accumulators


class _Evaluator:
    """Expressions at given values of the loop variables (arrays that broadcast to `shape`)."""

    def __init__(self, machine: _Machine, values: Values, shape: tuple[int, ...], params: Sequence[Array] = ()):
        self.machine = machine
        self.values = values
        self.shape = shape
        self.params = params
        self.accumulators: list[Array] = []
        self._memo: dict[Expr, Array] = {}

    def index(self, index: Index) -> Array:
        total = np.full(self.shape, index.const, np.int64)
        for var, coeff in index.terms:
            total = total + coeff * self.values[var]
        for expr, coeff in index.dynamic:
            total = total + coeff * self.value(expr)
        return total

    def load(self, buffer: int, index: Array, mask: Array) -> Array:
        content = self.machine.buffers[buffer]
        result = np.zeros(self.shape, content.dtype)
        result[mask] = content[index[mask]]
        return result

    def value(self, node: Expr) -> Array:
        found = self._memo.get(node)
        if found is None:
            found = self._memo[node] = self._compute(node)
        return found

    def _compute(self, node: Expr) -> Array:
        if isinstance(node, Const):
            return np.full(self.shape, const_value(node), node.dtype.numpy)
        if isinstance(node, Param):
            return self.params[node.number]
        if isinstance(node, Acc):
            return self.accumulators[node.number]
        if isinstance(node, Load):
            mask = np.ones(self.shape, bool) if node.mask is None else self.value(node.mask)
            return self.load(node.buffer, self.index(node.index), mask)
        if isinstance(node, InRange):
            at = self.index(node.index)
            return np.asarray((at >= node.low) & (at < node.high))
        if isinstance(node, IndexValue):
            at = self.index(node.index)
            return at.astype(node.dtype.numpy) if node.dtype.is_integer else apply("convert", "", node.dtype, [at])
        assert isinstance(node, Apply)
        return apply(node.name, node.attr, node.dtype, [self.value(x) for x in node.operands])
