"""Runs fusions as kernels, kernels by their definition, and compares with the tensor IR's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compiler.ops.checking import values
from tests.compiler.ops.oracle import program
from treadle.compiler import interp
from treadle.compiler.check import compare
from treadle.compiler.fusion.fuse import fuse
from treadle.compiler.ir.core import Op, Program, Region, Value
from treadle.compiler.ir.types import TensorType
from treadle.compiler.loops.interp import run_kernel
from treadle.compiler.loops.ir import Kernel
from treadle.compiler.lowering.fusions import lower_fusion
from treadle.compiler.lowering.kernels import KernelCall
from treadle.compiler.ops.build import Builder

Array = np.ndarray[Any, Any]
Build = Callable[..., Any]


class Memory(np.ndarray[Any, Any]):
    """A buffer that NumPy must not index from its end."""

    def _check(self, index: Any) -> None:
        assert np.all(np.asarray(index) >= 0), f"index {np.min(index)} of a buffer"

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return np.asarray(self)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        np.asarray(self)[index] = value


def garbage(type_: TensorType) -> Memory:
    """Memory that nobody has written yet: no number that a test computes."""
    raw = np.full(max(type_.byte_size, 1), 0x5B, np.uint8)[: type_.byte_size]
    data = np.arange(type_.size) % 2 == 0 if type_.dtype.numpy.kind == "b" else raw.view(type_.dtype.numpy)
    return data.copy().view(Memory)


def run_fusion(op: Op, inputs: Sequence[Array], lower: Callable[[Op], list[KernelCall]] = lower_fusion) -> list[Array]:
    """The results of a fusion op, computed by its kernels as the planner calls them."""
    memory: dict[Value, Memory] = {}
    for value, array in zip(op.operands, inputs, strict=True):
        memory[value] = np.array(array).reshape(-1).view(Memory)
    in_place = op.attrs.get("in_place", 0)
    assert isinstance(in_place, int)
    for i, result in enumerate(op.results):
        memory[result] = memory[op.operands[i]].copy() if i < in_place else garbage(result.type)
    before = {value: memory[value].copy() for value in op.operands}
    for call in lower(op):
        for value in call.arguments:
            memory.setdefault(value, garbage(value.type))
        run_call(call, memory)
    for value, old in before.items():
        assert np.asarray(memory[value]).tobytes() == np.asarray(old).tobytes(), "a kernel has changed an operand"
    return [np.asarray(memory[r]).reshape(r.type.shape) for r in op.results]


def run_call(call: KernelCall, memory: dict[Value, Memory]) -> None:
    kernel = call.kernel
    for param, value in zip(kernel.params, call.arguments, strict=True):
        assert (param.dtype, param.size) == (value.type.dtype, value.type.size)
    params = [memory[value] for value in call.arguments]
    with np.errstate(all="ignore"):
        for begin, end in ranges(kernel):
            run_kernel(kernel, params, begin, end)


def ranges(kernel: Kernel) -> list[tuple[int, int]]:
    """The pieces in which a kernel is run: as threads would, in no order, where that is allowed."""
    extent = kernel.range_extent()
    if not kernel.parallel or extent < 2:
        return [(0, extent)]
    middle = (extent + 1) // 2
    return [(middle, extent), (0, middle)]


class Kernels(interp._Interpreter):
    """The interpreter, with kernels for fusions."""

    def run(self, region: Region, args: Sequence[Array]) -> list[Array]:
        self.env.update(zip(region.args, args, strict=True))
        for op in region.ops:
            inputs = [np.asarray(self.env[v]) for v in op.operands]
            results = run_fusion(op, inputs) if op.name == "fusion" else interp.run_op(op, inputs, self)
            self.env.update(zip(op.results, results, strict=True))
        return [self.env[v] for v in region.results]


def as_fusion(p: Program, kind: str, **attrs: Any) -> Op:
    """The whole program as one fusion."""
    region = p.entry
    operands = [Value(arg.type) for arg in region.args]
    return Op("fusion", operands, [v.type for v in region.results], {"kind": kind, **attrs}, [region])


def padded(b: Builder, value: Value) -> Value:
    """`value` read through a pad: a mask, and coordinates that may lie outside."""
    rank, dtype = value.type.rank, value.type.dtype
    low = tuple((2, -1, 0)[d % 3] if value.type.shape[d] else 1 for d in range(rank))
    interior = tuple((1, 0, 2)[d % 3] for d in range(rank))
    fill = b.constant(np.asarray(1, dtype.numpy))
    return b.op("pad", value, fill, edge_padding_low=low, edge_padding_high=(1,) * rank, interior_padding=interior)


def check_element(types: Sequence[TensorType], build: Build, inputs: Sequence[Array] | None = None) -> None:
    """The element rules of what `build` makes of one value per type: alone, and under a mask."""
    arrays = [values(t) for t in types] if inputs is None else list(inputs)

    def masked(b: Builder, *args: Value) -> Value:
        return padded(b, build(b, *args))

    for make in (build, masked):
        p = program(types, make)
        assert_same(interp.run(p, arrays), run_fusion(as_fusion(p, "loop"), arrays))


def check_fused(
    types: Sequence[TensorType], build: Build, inputs: Sequence[Array] | None = None, kinds: Sequence[str] | None = None
) -> None:
    """The program that `build` makes, fused; `kinds` are those of its fusions, in order."""
    arrays = [values(t) for t in types] if inputs is None else list(inputs)
    p = program(types, build)
    check_program(p, arrays, kinds)


def check_program(p: Program, inputs: Sequence[Array], kinds: Sequence[str] | None = None) -> None:
    expected = interp.run(p, [x.copy() for x in inputs])
    fused = fuse(p)
    if kinds is not None:
        assert [op.attrs["kind"] for op in fused.entry.ops if op.name == "fusion"] == list(kinds)
    assert_same(expected, Kernels().run(fused.entry, [x.copy() for x in inputs]))


def assert_same(expected: Sequence[Array], actual: Sequence[Array]) -> None:
    difference = compare(expected, [np.asarray(a) for a in actual])
    assert not difference, difference
