"""Rank-0 values as straight-line code in the main function."""

from __future__ import annotations

from collections.abc import Callable

from treadle.compiler.codegen.elementwise import emit_apply, load_scalar
from treadle.compiler.codegen.text import FunctionBuilder, memory_type
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Op, Value
from treadle.compiler.loops.build import Builder
from treadle.compiler.loops.ir import Apply, Const, Expr, Index, IndexValue, InRange, Load, Param
from treadle.compiler.loops.walk import postorder
from treadle.compiler.lowering import registry
from treadle.compiler.lowering.context import Context
from treadle.compiler.lowering.registry import Coordinates


class ScalarContext(Context):
    """Element rules for rank-0 ops.

    Known registers become Params, values in memory are loaded; everything else is computed.

    Args:
      register: the register that holds a rank-0 value, or None.
      pointer: the pointer to a value's memory, or None when it is not in memory.
    """

    def __init__(self, register: Callable[[Value], str | None], pointer: Callable[[Value], str | None]):
        super().__init__(Builder())
        self._register = register
        self._pointer = pointer
        self.registers: list[str] = []
        self.pointers: list[str] = []

    def _element(self, value: Value, at: Coordinates, mask: Expr | None) -> Expr:
        if value.type.rank == 0:
            register = self._register(value)
            if register is not None:
                self.registers.append(register)
                return Param(value.type.dtype, len(self.registers) - 1)
        if value not in self.bound:
            pointer = self._pointer(value)
            if pointer is not None:
                self.bound[value] = len(self.pointers)
                self.pointers.append(pointer)
        return super()._element(value, at, mask)

    def compute(self, op: Op) -> Expr:
        """The expression of a rank-0 op's result."""
        rule = registry.find(op.name)
        if rule is None:
            raise CompileError(StatusCode.INTERNAL, f"code generation: {op.name} has no element rule ({op.loc})")
        return rule(self, op, 0, (), None)


class ScalarEmitter:
    """Emits expressions with one lane and no loop variables."""

    def __init__(self, fb: FunctionBuilder, context: ScalarContext):
        self.fb = fb
        self.context = context
        self.done: dict[Expr, str] = {}

    def emit(self, root: Expr) -> str:
        """The register (or literal) with the value of `root`."""
        for node in postorder([root]):
            if node not in self.done:
                self.done[node] = self._node(node)
        return self.done[root]

    def _node(self, node: Expr) -> str:
        fb = self.fb
        if isinstance(node, Const):
            return fb.const(node.dtype, node.bits)
        if isinstance(node, Param):
            return self.context.registers[node.number]
        if isinstance(node, Apply):
            operands = [(self.done[o], o.dtype) for o in node.operands]
            return emit_apply(fb, node.name, node.attr, node.dtype, operands)
        if isinstance(node, IndexValue):
            index = self._index(node.index)
            return index if node.dtype is t.S64 else emit_apply(fb, "convert", "", node.dtype, [(index, t.S64)])
        if isinstance(node, InRange):
            offset = fb.op(f"sub i64 {self._index(node.index)}, {node.low}")
            return fb.op(f"icmp ult i64 {offset}, {max(node.high - node.low, 0)}")
        assert isinstance(node, Load), node
        return self._load(node)

    def _load(self, node: Load) -> str:
        fb = self.fb
        index = self._index(node.index)
        if node.mask is not None:
            # Element 0 stands in where the mask is false; buffers are never without memory.
            index = fb.op(f"select i1 {self.done[node.mask]}, i64 {index}, i64 0")
        base = self.context.pointers[node.buffer]
        place = fb.op(f"getelementptr {memory_type(node.dtype)}, ptr {base}, i64 {index}") if index != "0" else base
        value = load_scalar(fb, node.dtype, place)
        if node.mask is None:
            return value
        zero = fb.const(node.dtype, 0)
        return emit_apply(
            fb, "select", "", node.dtype, [(self.done[node.mask], t.PRED), (value, node.dtype), (zero, node.dtype)]
        )

    def _index(self, index: Index) -> str:
        assert not index.terms, "scalar code has no loop variables"
        total: str | None = None
        for expr, coeff in index.dynamic:
            part = self.done[expr]
            if coeff != 1:
                part = self.fb.op(f"mul i64 {part}, {coeff}")
            total = part if total is None else self.fb.op(f"add i64 {total}, {part}")
        if total is None:
            return str(index.const)
        return self.fb.op(f"add i64 {total}, {index.const}") if index.const else total
