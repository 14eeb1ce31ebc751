"""Values of a kernel: expressions and affine indices as instructions, each in the outermost loop that can hold it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from treadle.compiler.codegen import memory
from treadle.compiler.codegen.convert import emit_convert
from treadle.compiler.codegen.elementwise import emit_apply
from treadle.compiler.codegen.narrow import is_narrow, note_wide
from treadle.compiler.codegen.scopes import Scope, ScopedBuilder
from treadle.compiler.codegen.target import Target
from treadle.compiler.codegen.text import memory_type, register_type, vector, vector_literal
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.build import index_bounds
from treadle.compiler.loops.ir import Acc, Apply, Const, Expr, Index, IndexValue, InRange, Load, Param, Var
from treadle.compiler.loops.walk import children, postorder

_INT32 = 1 << 31


class ValueEmitter(ScopedBuilder):
    """Emits expressions.

    Attributes:
      lanes: elements per vector register in the code being written; 1 in scalar code.
      vector: the variable that runs in lanes, or None.
      offset: for each variable with several iterations in flight, which one (in elements of the variable) is being emitted.
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
        """What `node` is remembered by: which of the iterations in flight matters only if it depends on the variable."""
        deps = self._deps[node] & self.tiled_bits
        if not deps:
            return node
        return (node, *[self.offset[var] for var, bit in self.tiled if bit & deps])

    def is_vector(self, node: Expr) -> bool:
        return self.lanes > 1 and bool(self._deps[node] & self.vector_bit)

    # Operands.

    def value(self, node: Expr) -> str:
        """The register or literal of an emitted node: a vector if it depends on the vector variable, otherwise a scalar."""
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

    # Emission.

    def ensure(self, order: Sequence[Expr]) -> None:
        """Emits the nodes that are not there yet; `order` has operands first."""
        memo = self.memo
        for node in order:
            if self.key(node) not in memo:
                self._emit(node)

    def _emit(self, node: Expr) -> None:
        scope = self.scope_of(self._deps[node])
        saved, self.fb.code = self.fb.code, scope.code
        lanes = self.lanes if self.is_vector(node) else 1
        if isinstance(node, Apply):
            take = self.lanes_of if lanes > 1 else self.value
            operands = [(take(x), x.dtype) for x in node.operands]
            result = emit_apply(self.fb, node.name, node.attr, node.dtype, operands, lanes)
        elif isinstance(node, Load):
            result = self._load(node, lanes)
        elif isinstance(node, IndexValue):
            result = self._index_value(node, lanes)
        elif isinstance(node, InRange):
            result = self._in_range(node, lanes)
        elif isinstance(node, Acc):
            key = tuple(self.offset[var] for var, bit in self.tiled if bit & self.acc_bits)
            result = self.accumulators[key][node.number]
        else:
            raise AssertionError(f"{type(node).__name__} outside a combiner")
        if is_narrow(node.dtype):
            note_wide(self.fb, node.dtype, result, lanes)
        self.fb.code = saved
        self.remember(scope, self.key(node), result)

    def combine(self, exprs: Sequence[Expr], params: Sequence[str], lanes: int) -> list[str]:
        """Emits a combiner here, with `params` for its Param nodes."""
        known: dict[Expr, str] = {}

        def value(x: Expr) -> str:
            return self.fb.const(x.dtype, x.bits, lanes) if isinstance(x, Const) else known[x]

        for node in postorder(exprs):
            if isinstance(node, Const):
                continue
            if isinstance(node, Param):
                known[node] = params[node.number]
            elif isinstance(node, Apply):
                operands = [(value(x), x.dtype) for x in node.operands]
                known[node] = emit_apply(self.fb, node.name, node.attr, node.dtype, operands, lanes)
            else:
                raise AssertionError(f"{type(node).__name__} inside a combiner")
        return [value(x) for x in exprs]

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
        """The registers an index adds up, by the scope that knows them, outermost first: (key, register, coefficient)."""
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
            result = vector_literal(width, tuple(_signed(first + coeff * lane, bits) for lane in range(lanes)))
        else:
            if width != "i64":
                base = fb.op(f"trunc i64 {base} to {width}")
            result = fb.splat(width, base, lanes)
            if coeff:
                bits = int(width[1:])
                steps = vector_literal(width, tuple(_signed(coeff * lane, bits) for lane in range(lanes)))
                result = fb.op(f"add {ty} {result}, {steps}")
        for expr, factor in index.dynamic:
            if self.is_vector(expr):
                part = self.value(expr)
                if width != "i64":
                    part = fb.op(f"trunc {vector('i64', lanes)} {part} to {ty}")
                if factor != 1:
                    many = vector_literal(width, (_signed(factor, int(width[1:])),) * lanes)
                    part = fb.op(f"mul {ty} {part}, {many}")
                result = fb.op(f"add {ty} {result}, {part}")
        return result

    def _index_value(self, node: IndexValue, lanes: int) -> str:
        dtype = node.dtype
        if dtype.is_integer:
            width = register_type(dtype)
            if lanes > 1:
                return self.vector_index(node.index, width)
            value = self.scalar_index(node.index)
            if value[0] != "%":
                return _signed(int(value), dtype.bits)
            return value if width == "i64" else self.fb.op(f"trunc i64 {value} to {width}")
        if lanes == 1:
            return emit_convert(self.fb, dtype, self.scalar_index(node.index), t.S64, 1)
        source = t.S32 if _fits_32(index_bounds(node.index)) else t.S64
        return emit_convert(self.fb, dtype, self.vector_index(node.index, register_type(source)), source, lanes)

    def _in_range(self, node: InRange, lanes: int) -> str:
        """One unsigned comparison: `index - low < high - low`."""
        if node.high <= node.low:
            return self.fb.const(t.PRED, 0, lanes)
        index = Index(node.index.const - node.low, node.index.terms, node.index.dynamic)
        if lanes == 1:
            return self.fb.op(f"icmp ult i64 {self.scalar_index(index)}, {node.high - node.low}")
        span = node.high - node.low
        source = t.S32 if span < _INT32 and _fits_32(index_bounds(index)) else t.S64
        width = register_type(source)
        bound = self.fb.const(source, span, lanes)
        return self.fb.op(f"icmp ult {vector(width, lanes)} {self.vector_index(index, width)}, {bound}")

    # Memory.

    def both(self, mask: str | None, other: str | None) -> str | None:
        """The conjunction of two vector masks."""
        if mask is None or other is None or mask == other:
            return other if mask is None else mask
        return self.fb.op(f"and {vector('i1', self.lanes)} {mask}, {other}")

    def lanes_mask(self, mask: Expr | None) -> str | None:
        """A mask expression in all lanes, with the tail."""
        return self.both(None if mask is None else self.lanes_of(mask), self.tail)

    def any_lane(self, mask: str) -> str:
        """Whether any lane of a vector mask is set."""
        symbol = f"llvm.vector.reduce.or.v{self.lanes}i1"
        return self.fb.call("i1", symbol, [(vector("i1", self.lanes), mask)])

    def has_vector_parts(self, index: Index) -> bool:
        """Whether lanes differ in a dynamic part of an index."""
        return any(self.is_vector(expr) for expr, _ in index.dynamic)

    def _load(self, node: Load, lanes: int) -> str:
        fb, dtype = self.fb, node.dtype
        if lanes == 1:
            place = self.address(node.buffer, dtype, node.index)
            if node.mask is not None:
                place = memory.readable(fb, place, self.value(node.mask))
            return memory.load(fb, dtype, place, 1)
        assert self.vector is not None
        dynamic = self.has_vector_parts(node.index)
        stride = node.index.coeff(self.vector)
        if dynamic:
            return self._gather(node)
        uniform = None if node.mask is None or self.is_vector(node.mask) else self.value(node.mask)
        if stride in (1, -1):
            place = self.address(node.buffer, dtype, node.index, extra=0 if stride == 1 else 1 - lanes)
            mask = self.tail if uniform is not None else self.lanes_mask(node.mask)
            if uniform is not None:
                place = memory.readable(fb, place, uniform)
            if stride == 1:
                return memory.load(fb, dtype, place, lanes, mask)
            if mask is not None:
                mask = memory.reverse(fb, "i1", mask, lanes)
            value = memory.load(fb, dtype, place, lanes, mask)
            return memory.reverse(fb, register_type(dtype), value, lanes)
        if stride == 0:
            # Only the mask differs between lanes: one element, read if any lane wants it.
            mask = self.lanes_mask(node.mask)
            assert mask is not None
            place = memory.readable(fb, self.address(node.buffer, dtype, node.index), self.any_lane(mask))
            ty = vector(register_type(dtype), lanes)
            everywhere = fb.splat(register_type(dtype), memory.load(fb, dtype, place, 1), lanes)
            return fb.op(f"select {vector('i1', lanes)} {mask}, {ty} {everywhere}, {ty} zeroinitializer")
        if node.mask is None and self.tail is None:
            across = self._transposing(node)
            if across is not None:
                return self._load_transposed(node, across, stride)
            place = self.address(node.buffer, dtype, node.index)
            return memory.load_lanes(fb, dtype, memory.lane_pointers(fb, dtype, place, lanes, stride))
        return self._gather(node)

    def _gather(self, node: Load) -> str:
        fb, dtype, lanes = self.fb, node.dtype, self.lanes
        mask = self.lanes_mask(node.mask)
        here = Index(0, tuple((v, c) for v, c in node.index.terms if v is self.vector), node.index.dynamic)
        if mask is not None and dtype.bytes >= 4 and self.target.masked_memory:
            index = self.vector_index(node.index, "i64")
            return memory.gather(fb, dtype, self.buffers[node.buffer], index, "i64", lanes, mask)
        if not self.has_vector_parts(here):
            stride = here.coeff(self.vector) if self.vector is not None else 0
            place = self.address(node.buffer, dtype, node.index)
            return memory.load_lanes(fb, dtype, memory.lane_pointers(fb, dtype, place, lanes, stride), mask)
        index = self.vector_index(node.index, "i64")
        pointers = memory.indexed_pointers(fb, dtype, self.buffers[node.buffer], index, lanes)
        return memory.load_lanes(fb, dtype, pointers, mask)

    def _transposing(self, node: Load) -> Var | None:
        """The tiled variable along which `node` is contiguous, when a whole square of it is in flight."""
        for var, bit in self.tiled:
            if bit & self._deps[node] and var is not self.vector and self.flight.get(var) == self.lanes:
                if node.index.coeff(var) == 1 and not any(self._deps[e] & bit for e, _ in node.index.dynamic):
                    return var
        return None

    def _load_transposed(self, node: Load, across: Var, stride: int) -> str:
        """Loads a square along `across`, exchanges rows and lanes, and remembers all columns; returns the one asked for."""
        fb, dtype, lanes = self.fb, node.dtype, self.lanes
        wanted = self.offset[across]
        self.offset[across] = 0
        first = self.address(node.buffer, dtype, node.index)
        rows = [memory.load(fb, dtype, memory.offset(fb, dtype, first, lane * stride), lanes) for lane in range(lanes)]
        columns = memory.transpose(fb, register_type(dtype), rows, lanes)
        scope = self.scope_of(self._deps[node])
        for i, column in enumerate(columns):
            self.offset[across] = i
            if i != wanted:
                if is_narrow(dtype):
                    note_wide(fb, dtype, column, lanes)
                self.remember(scope, self.key(node), column)
        self.offset[across] = wanted
        return columns[wanted]


def _signed(value: int, bits: int) -> str:
    """A literal of the value modulo 2 ** bits."""
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)


def _fits_32(bounds: tuple[int, int] | None) -> bool:
    return bounds is not None and -_INT32 <= bounds[0] and bounds[1] < _INT32
