"""Values of a kernel: expressions and loads as instructions, scalar or in the lanes of a vector."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.codegen import memory
from treadle.compiler.codegen.convert import emit_convert
from treadle.compiler.codegen.elementwise import emit_apply
from treadle.compiler.codegen.indices import IndexEmitter, signed_literal
from treadle.compiler.codegen.narrow import is_narrow, note_wide
from treadle.compiler.codegen.text import register_type, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.build import index_bounds
from treadle.compiler.loops.ir import Acc, Apply, Const, Expr, Index, IndexValue, InRange, Load, Param, Var
from treadle.compiler.loops.walk import postorder

_INT32 = 1 << 31


class ValueEmitter(IndexEmitter):
    """Emits expressions."""

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

    def _index_value(self, node: IndexValue, lanes: int) -> str:
        dtype = node.dtype
        if dtype.is_integer:
            width = register_type(dtype)
            if lanes > 1:
                return self.vector_index(node.index, width)
            value = self.scalar_index(node.index)
            if value[0] != "%":
                return signed_literal(int(value), dtype.bits)
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

    def tail_mask(self, var: Var, stop: str | int) -> str | None:
        """The lanes of the current vector that are below `stop`; None where all are known to be."""
        fb, lanes = self.fb, self.lanes
        start = self.binding[var]
        ty = vector("i32", lanes)
        steps = "<" + ", ".join([f"i32 {lane}" for lane in range(lanes)]) + ">"
        if isinstance(start, int) and isinstance(stop, int):
            if start + lanes <= stop:
                return None
            flags = ["true" if start + lane < stop else "false" for lane in range(lanes)]
            return "<" + ", ".join([f"i1 {flag}" for flag in flags]) + ">"
        left = fb.op(f"sub i64 {stop}, {start}")
        capped = fb.intrinsic("smin", "i64", 1, [left, str(lanes)])
        limit = fb.splat("i32", fb.op(f"trunc i64 {capped} to i32"), lanes)
        return fb.op(f"icmp ult {ty} {steps}, {limit}")

    def any_lane(self, mask: str) -> str:
        """Whether any lane of a vector mask is set."""
        symbol = f"llvm.vector.reduce.or.v{self.lanes}i1"
        return self.fb.call("i1", symbol, [(vector("i1", self.lanes), mask)])

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
            square = bit & self._deps[node] and var is not self.vector and self.flight.get(var) == self.lanes
            if square and node.index.coeff(var) == 1 and not any(self._deps[e] & bit for e, _ in node.index.dynamic):
                return var
        return None

    def _load_transposed(self, node: Load, across: Var, stride: int) -> str:
        """Loads a square along `across`, exchanges rows and lanes, remembers all columns; returns the one asked for."""
        fb, dtype, lanes = self.fb, node.dtype, self.lanes
        wanted = self.offset[across]
        self.offset[across] = 0
        first = self.address(node.buffer, dtype, node.index)
        rows = [memory.load(fb, dtype, memory.offset(fb, dtype, first, lane * stride), lanes) for lane in range(lanes)]
        columns = memory.transpose(fb, register_type(dtype), _register_bits(dtype), rows, lanes)
        scope = self.scope_of(self._deps[node])
        for i, column in enumerate(columns):
            self.offset[across] = i
            if i != wanted:
                if is_narrow(dtype):
                    note_wide(fb, dtype, column, lanes)
                self.remember(scope, self.key(node), column)
        self.offset[across] = wanted
        return columns[wanted]


def _register_bits(dtype: DType) -> int:
    """The width of one lane; a pred in a register is a bit, which shuffles best as a byte."""
    return max(dtype.bits, 8)


def _fits_32(bounds: tuple[int, int] | None) -> bool:
    return bounds is not None and bounds[0] >= -_INT32 and bounds[1] < _INT32
