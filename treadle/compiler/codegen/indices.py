"""Affine indices as instructions, and what every node of a kernel depends on.

A node is emitted in the outermost loop that can hold it and remembered there; each loop's part of an index is added in
that loop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from treadle.compiler.codegen import memory
from treadle.compiler.codegen.narrow import is_narrow
from treadle.compiler.codegen.scopes import Scope, ScopedBuilder
from treadle.compiler.codegen.target import Target
from treadle.compiler.codegen.text import memory_type, register_type, vector, vector_literal
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.ir import Acc, Const, Expr, Index, IndexValue, InRange, Load, Var
from treadle.compiler.loops.walk import children, postorder


class IndexEmitter(ScopedBuilder):
    """What a kernel's nodes depend on, how they are remembered, and the indices of its memory accesses.

    Attributes:
      lanes: elements per vector register in the code being written; 1 in scalar code.
      vector: the variable that runs in lanes, or None.
      offset: for each variable with several iterations in flight, which one (in elements of the variable) is being
        emitted.
      tail: the vector mask of the lanes that are inside the loop's range; None when all are.
      pins: buffers whose loads may not leave the nest (an earlier nest writes them) or the innermost loop.
    """

    def __init__(self, target: Target):
        super().__init__(target)
        self.lanes = 1
        self.vector: Var | None = None
        self.vector_bit = 0
        self.offset: dict[Var, int] = {}
        self.tiled: list[tuple[Var, int]] = []
        self.tiled_bits = 0
        self.flight: dict[Var, int] = {}
        self.tail: str | None = None
        self.buffers: dict[int, str] = {}
        self.pins: dict[int, int] = {}
        self.accumulators: dict[Hashable, list[str]] = {}
        self.acc_bits = 0
        self.inner_pin = self.new_bit()
        self._deps: dict[Expr, int] = {}

    # What depends on what.

    def index_deps(self, index: Index) -> int:
        """The dependence bits of an index (its dynamic parts must have been analysed)."""
        deps = 0
        for var, _ in index.terms:
            deps |= self.bit(var)
        for expr, _ in index.dynamic:
            deps |= self._deps[expr]
        return deps

    def deps(self, node: Expr) -> int:
        """The dependence bits of an analysed node."""
        return self._deps[node]

    def analyse(self, roots: Iterable[Expr]) -> list[Expr]:
        """All nodes under `roots` but constants, operands first; notes what each depends on."""
        order = []
        for node in postorder(roots):
            if isinstance(node, Const):
                self._deps[node] = 0
                continue
            order.append(node)
            if node not in self._deps:
                self._deps[node] = self._compute_deps(node)
        return order

    def _compute_deps(self, node: Expr) -> int:
        deps = self.acc_bits if isinstance(node, Acc) else 0
        for child in children(node):
            deps |= self._deps[child]
        if isinstance(node, Load):
            deps |= self.pins.get(node.buffer, 0)
        if isinstance(node, Load | IndexValue | InRange):
            deps |= self.index_deps(node.index)
        return deps

    def forget(self, nodes: Iterable[Expr]) -> None:
        """Drops what `analyse` noted: pins and accumulators differ from nest to nest."""
        for node in nodes:
            self._deps.pop(node, None)

    def key(self, node: Expr) -> Hashable:
        """What `node` is remembered by: which iteration in flight it is of, where it depends on that."""
        deps = self._deps[node] & self.tiled_bits
        if not deps:
            return node
        return (node, *[self.offset[var] for var, bit in self.tiled if bit & deps])

    def is_vector(self, node: Expr) -> bool:
        return self.lanes > 1 and bool(self._deps[node] & self.vector_bit)

    # Operands.

    def value(self, node: Expr) -> str:
        """The register or literal of an emitted node: a vector if it depends on the vector variable."""
        if isinstance(node, Const):
            return self.fb.const(node.dtype, node.bits)
        return self.memo[self.key(node)]

    def lanes_of(self, node: Expr) -> str:
        """The node as a vector of `lanes`; what is the same in all lanes is splatted where it is computed."""
        if isinstance(node, Const):
            return self.fb.const(node.dtype, node.bits, self.lanes)
        value = self.memo[self.key(node)]
        if self.lanes == 1 or self._deps[node] & self.vector_bit:
            return value
        return self.splat(node.dtype, value, self.scope_of(self._deps[node]))

    def splat(self, dtype: DType, value: str, scope: Scope) -> str:
        """A scalar in all lanes, computed in `scope`."""
        key = ("splat", value, dtype, self.lanes)
        known = self.memo.get(key)
        if known is not None:
            return known
        saved, self.fb.code = self.fb.code, scope.code
        element = register_type(dtype)
        result = self.fb.splat(element, value, self.lanes)
        if is_narrow(dtype) and value in self.fb.wide:
            self.fb.wide[result] = self.fb.splat("float", self.fb.wide[value], self.lanes)
        self.fb.code = saved
        return self.remember(scope, key, result)

    # Indices.

    def _constant_part(self, index: Index) -> int:
        total = index.const
        for var, coeff in index.terms:
            total += coeff * self.offset.get(var, 0)
            bound = self.binding[var]
            if isinstance(bound, int):
                total += coeff * bound
        return total

    def _moving_parts(self, index: Index) -> list[tuple[Scope, list[tuple[Hashable, str, int]]]]:
        """What an index adds up: by scope, outermost first, (key, register, coefficient) each."""
        found: dict[Scope, list[tuple[Hashable, str, int]]] = {}
        for var, coeff in index.terms:
            bound = self.binding[var]
            if isinstance(bound, str):
                found.setdefault(self.scope_of(self.bit(var)), []).append(((var, coeff), bound, coeff))
        for expr, coeff in index.dynamic:
            if not self.is_vector(expr):
                scope = self.scope_of(self._deps[expr])
                found.setdefault(scope, []).append(((self.key(expr), coeff), self.value(expr), coeff))
        return [(scope, found[scope]) for scope in self.scopes if scope in found]

    def _sum(self, scope: Scope, parts: list[tuple[Hashable, str, int]]) -> str:
        """sum(coefficient * register), in `scope`."""
        total = ""
        for key, register, coeff in parts:
            product = register
            if coeff != 1:
                known = self.memo.get(("times", key))
                product = known or self.remember(scope, ("times", key), self.fb.op(f"mul i64 {register}, {coeff}"))
            total = self.fb.op(f"add i64 {total}, {product}") if total else product
        return total

    def address(self, buffer: int, dtype: DType, index: Index, extra: int = 0) -> str:
        """A pointer to `buffer[index + extra]`, at lane 0; each loop's part of the sum is added in that loop."""
        fb = self.fb
        cursor = self.buffers[buffer]
        saved = fb.code
        path: tuple[Hashable, ...] = ("at", buffer)
        for scope, parts in self._moving_parts(index):
            path = (*path, *[key for key, _, _ in parts])
            known = self.memo.get(path)
            if known is None:
                fb.code = scope.code
                step = self._sum(scope, parts)
                known = fb.op(f"getelementptr {memory_type(dtype)}, ptr {cursor}, i64 {step}")
                self.remember(scope, path, known)
            cursor = known
        fb.code = saved
        return memory.offset(fb, dtype, cursor, self._constant_part(index) + extra)

    def scalar_index(self, index: Index) -> str:
        """The value of an index at lane 0, as i64; constants as literals."""
        fb = self.fb
        saved, total = fb.code, ""
        path: tuple[Hashable, ...] = ("sum",)
        for scope, parts in self._moving_parts(index):
            path = (*path, *[key for key, _, _ in parts])
            known = self.memo.get(path)
            if known is None:
                fb.code = scope.code
                step = self._sum(scope, parts)
                known = self.remember(scope, path, fb.op(f"add i64 {total}, {step}") if total else step)
            total = known
        fb.code = saved
        const = self._constant_part(index)
        if not total:
            return str(const)
        return fb.op(f"add i64 {total}, {const}") if const else total

    def vector_index(self, index: Index, width: str) -> str:
        """The value of an index in each lane, in integers of LLVM type `width` (wrapping)."""
        fb, lanes = self.fb, self.lanes
        ty = vector(width, lanes)
        coeff = index.coeff(self.vector) if self.vector is not None else 0
        base = self.scalar_index(index)
        result = ""
        if base[0] != "%":
            first = int(base)
            bits = int(width[1:])
            result = vector_literal(width, tuple(signed_literal(first + coeff * lane, bits) for lane in range(lanes)))
        else:
            if width != "i64":
                base = fb.op(f"trunc i64 {base} to {width}")
            result = fb.splat(width, base, lanes)
            if coeff:
                bits = int(width[1:])
                steps = vector_literal(width, tuple(signed_literal(coeff * lane, bits) for lane in range(lanes)))
                result = fb.op(f"add {ty} {result}, {steps}")
        for expr, factor in index.dynamic:
            if self.is_vector(expr):
                part = self.value(expr)
                if width != "i64":
                    part = fb.op(f"trunc {vector('i64', lanes)} {part} to {ty}")
                if factor != 1:
                    many = vector_literal(width, (signed_literal(factor, int(width[1:])),) * lanes)
                    part = fb.op(f"mul {ty} {part}, {many}")
                result = fb.op(f"add {ty} {result}, {part}")
        return result

    def has_vector_parts(self, index: Index) -> bool:
        """Whether lanes differ in a dynamic part of an index."""
        return any(self.is_vector(expr) for expr, _ in index.dynamic)


def signed_literal(value: int, bits: int) -> str:
    """A literal of the value modulo 2 ** bits."""
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)
