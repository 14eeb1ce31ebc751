"""A scheduled kernel as one LLVM function."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from treadle.compiler.codegen import memory
from treadle.compiler.codegen.reduce import ReductionEmitter
from treadle.compiler.codegen.target import Target
from treadle.compiler.codegen.text import memory_type, register_type
from treadle.compiler.codegen.values import ValueEmitter
from treadle.compiler.loops.ir import Expr, Kernel, Nest, Store, Var
from treadle.compiler.loops.walk import store_roots


@dataclasses.dataclass(frozen=True, slots=True)
class KernelText:
    """LLVM IR of one kernel, to be put into a module with others.

    Attributes:
      symbol: the function's name.
      text: its definition.
      declares: declarations and constants it needs, by symbol.
      functions: definitions of internal helper functions it needs, by symbol.
    """

    symbol: str
    text: str
    declares: dict[str, str]
    functions: dict[str, str]


def emit_kernel(kernel: Kernel, symbol: str, target: Target) -> KernelText:
    """Writes `void symbol(void* const* params, int64_t begin, int64_t end)` for a scheduled kernel."""
    return _KernelEmitter(kernel, target).emit(symbol)


class _KernelEmitter(ValueEmitter):
    def __init__(self, kernel: Kernel, target: Target):
        super().__init__(target)
        self.kernel = kernel
        self.nest_pin = self.new_bit()
        self.acc_pin = self.new_bit()
        self.factors: dict[Var, int] = {}

    def emit(self, symbol: str) -> KernelText:
        """The whole function."""
        kernel, fb = self.kernel, self.fb
        for i, buffer in enumerate(kernel.params):
            place = f"%params.{i}"
            fb.do(f"{place} = getelementptr ptr, ptr %params, i64 {i}")
            self.buffers[i] = f"%p{i}"
            fb.do(f"%p{i} = load ptr, ptr {place}, align 8")
            if buffer.written:
                self.pins[i] = self.nest_pin
        for i, (dtype, size) in enumerate(kernel.locals):
            self.buffers[-1 - i] = f"%local{i}"
            self.pins[-1 - i] = self.nest_pin
            fb.do(f"%local{i} = alloca [{max(size, 1)} x {memory_type(dtype)}], align 64")
        self._outer(0)
        lines = self.scopes[0].code
        head = [f"define void @{symbol}(ptr %params, i64 %begin, i64 %end) nounwind {{", "entry:"]
        if any(memory.DUMP in line for line in lines):
            head.append(f"  {memory.DUMP} = alloca [64 x i8], align 64")
        text = "\n".join([*head, *lines, "  ret void", "}"])
        return KernelText(symbol, text, fb.declares, fb.functions)

    def _outer(self, depth: int) -> None:
        """The loops that all nests share; the outermost runs over the caller's range."""
        outer = self.kernel.outer
        if depth == len(outer):
            ranged = not outer and len(self.kernel.nests) == 1 and self.kernel.parallel
            for nest in self.kernel.nests:
                self._nest(nest, ranged)
            return
        var = outer[depth]
        if var.extent == 0:
            return
        bounds = ("%begin", "%end") if depth == 0 and self.kernel.parallel else (0, var.extent)

        def body(_: list[str]) -> list[str]:
            self._outer(depth + 1)
            return []

        self.loop(var, bounds[0], bounds[1], 1, [], body)

    def _nest(self, nest: Nest, ranged: bool) -> None:
        if any(var.extent == 0 for var in nest.loops):
            return
        self.push(self.nest_pin)
        saved_pins = dict(self.pins)
        if nest.sequential:
            for store in nest.stores:
                self.pins[store.buffer] = self.nest_pin | self.inner_pin
        self.lanes, self.vector = (nest.lanes, nest.vector) if nest.vector is not None else (1, None)
        self.vector_bit = self.bit(nest.vector) if nest.vector is not None else 0
        self.factors = dict(nest.tile)
        if nest.vector is not None:
            self.factors[nest.vector] = nest.unroll
        self.tiled = [(var, self.bit(var)) for var, factor in self.factors.items() if factor > 1]
        self.tiled_bits = sum(bit for _, bit in self.tiled)
        self.offset = {var: 0 for var, _ in self.tiled}
        self.flight = {}
        self.acc_bits = self.acc_pin
        for var in nest.loops:
            self.acc_bits |= self.bit(var)
        analysed: list[Expr] = []
        self._parallel(nest, 0, ranged, analysed)
        self.forget(analysed)
        self.pins = saved_pins
        self.pop_straight()
        self.lanes, self.vector, self.vector_bit, self.tiled, self.tiled_bits = 1, None, 0, [], 0
        self.offset = {}

    def _parallel(self, nest: Nest, depth: int, ranged: bool, analysed: list[Expr]) -> None:
        """The loops of a nest, each cut into whole steps and a rest."""
        if depth == len(nest.loops):
            self._body(nest, analysed)
            return
        var = nest.loops[depth]
        factor = self.factors.get(var, 1)
        vectorised = var is self.vector
        full = self.lanes
        step = factor * (full if vectorised else 1)

        def write(start: str | int, stop: str | int, width: int, parts: int, masked: bool = False) -> None:
            def body(_: list[str]) -> list[str]:
                previous, self.flight[var] = self.flight.get(var, 1), parts
                saved = self.tail
                if masked:
                    self.tail = self.tail_mask(var, stop)
                self._parallel(nest, depth + 1, ranged, analysed)
                self.tail = saved
                self.flight[var] = previous
                return []

            if masked and isinstance(start, str) and once:
                self.once(var, start, str(stop), lambda: body([]))
                return
            self.loop(var, start, stop, width, [], body)

        # What whole steps of one vector leave over is less than a vector.
        once = factor == 1 and var.extent >= step

        def rest(start: str | int, stop: str | int) -> None:
            if not vectorised:
                write(start, stop, 1, 1)
            elif self.target.masked_memory:
                write(start, stop, full, 1, masked=True)
            else:
                self.lanes = 1
                write(start, stop, 1, 1)
                self.lanes = full

        if ranged and depth == 0:
            self._ranged(var, step, write, rest)
            return
        whole = var.extent // step * step
        if whole:
            write(0, whole, step, factor)
        if whole < var.extent:
            rest(whole, var.extent)

    def _ranged(
        self,
        var: Var,
        step: int,
        write: Callable[[str | int, str | int, int, int], None],
        rest: Callable[[str | int, str | int], None],
    ) -> None:
        """The loop over the caller's [begin, end)."""
        fb = self.fb
        if step == 1:
            write("%begin", "%end", 1, 1)
            return
        middle: str | int = "%begin"
        if var.extent >= step:
            length = fb.op("sub i64 %end, %begin")
            odd = fb.op(f"urem i64 {length}, {step}")
            middle = fb.op(f"sub i64 %end, {odd}")
            write("%begin", middle, step, self.factors.get(var, 1))
        rest(middle, "%end")

    def _body(self, nest: Nest, analysed: list[Expr]) -> None:
        """One iteration of all loops, times what is in flight: the reduction, then the stores."""
        scope = self.scopes[-1]
        scope.bits |= self.acc_pin
        moving = [var for var in nest.loops if self.flight.get(var, 1) > 1]
        places = list(itertools.product(*[range(self.flight[var]) for var in moving]))

        def set_place(place: tuple[int, ...]) -> None:
            for var, i in zip(moving, place, strict=True):
                self.offset[var] = i * (self.lanes if var is self.vector else 1)

        results: dict[tuple[int, ...], list[str]] = {}
        scalars_after = False
        if nest.reduction is not None:
            reducer = ReductionEmitter(self, nest.reduction, places, set_place, self.factors)
            analysed += reducer.inits
            analysed += reducer.inputs
            results = reducer.emit()
            scalars_after = reducer.across
        lanes = self.lanes
        if scalars_after:
            self.lanes = 1
        scope.bits |= self.inner_pin
        order = self.analyse(store_roots(nest.stores))
        analysed += order
        for place in places:
            set_place(place)
            if place in results:
                self.accumulators[tuple(self.offset[var] for var, bit in self.tiled if bit & self.acc_bits)] = results[
                    place
                ]
            self.ensure(order)
            self._stores(nest.stores)
        set_place((0,) * len(moving))
        self.lanes = lanes

    def _stores(self, stores: Sequence[Store]) -> None:
        combining = [store for store in stores if store.combine is not None]
        values: dict[int, str] = {}
        if combining:
            old = [self._old_content(store) for store in combining]
            wide = self._store_lanes(combining[0]) > 1
            new = [self.lanes_of(store.value) if wide else self.value(store.value) for store in combining]
            exprs = [store.combine for store in combining if store.combine is not None]
            combined = self.combine(exprs, [*old, *new], self.lanes if wide else 1)
            values = {id(store): value for store, value in zip(combining, combined, strict=True)}
        for store in stores:
            self._store(store, values.get(id(store)))

    def _store_lanes(self, store: Store) -> int:
        """Whether a store writes a vector: its index moves with the lanes."""
        if self.lanes == 1 or self.vector is None:
            return 1
        moves = bool(store.index.coeff(self.vector)) or self.has_vector_parts(store.index)
        assert moves, "the scheduler vectorised over a loop that a store does not move with"
        return self.lanes

    def _old_content(self, store: Store) -> str:
        dtype = store.value.dtype
        lanes = self._store_lanes(store)
        place = self.address(store.buffer, dtype, store.index)
        if lanes == 1:
            if store.mask is not None:
                place = memory.readable(self.fb, place, self.value(store.mask))
            return memory.load(self.fb, dtype, place, 1)
        mask = self.lanes_mask(store.mask)
        if not self.has_vector_parts(store.index) and store.index.coeff(self.vector_var) == 1:
            return memory.load(self.fb, dtype, place, lanes, mask)
        return memory.load_lanes(self.fb, dtype, self._pointers(store), mask)

    @property
    def vector_var(self) -> Var:
        """The vector variable of a vectorised nest."""
        assert self.vector is not None
        return self.vector

    def _pointers(self, store: Store) -> list[str]:
        """The address of each lane's element."""
        fb, dtype, lanes = self.fb, store.value.dtype, self.lanes
        if self.has_vector_parts(store.index):
            index = self.vector_index(store.index, "i64")
            return memory.indexed_pointers(fb, dtype, self.buffers[store.buffer], index, lanes)
        place = self.address(store.buffer, dtype, store.index)
        return memory.lane_pointers(fb, dtype, place, lanes, store.index.coeff(self.vector_var))

    def _store(self, store: Store, combined: str | None) -> None:
        fb, dtype = self.fb, store.value.dtype
        lanes = self._store_lanes(store)
        if lanes == 1:
            place = self.address(store.buffer, dtype, store.index)
            if store.mask is not None:
                place = memory.writable(fb, place, self.value(store.mask))
            memory.store(fb, dtype, combined or self.value(store.value), place, 1)
            return
        value = combined or self.lanes_of(store.value)
        stride = store.index.coeff(self.vector_var)
        if self.has_vector_parts(store.index) or stride not in (1, -1):
            memory.store_lanes(fb, dtype, value, self._pointers(store), self.lanes_mask(store.mask))
            return
        uniform = None if store.mask is None or self.is_vector(store.mask) else self.value(store.mask)
        place = self.address(store.buffer, dtype, store.index, extra=0 if stride == 1 else 1 - lanes)
        mask = self.tail if uniform is not None else self.lanes_mask(store.mask)
        if uniform is not None:
            place = memory.writable(fb, place, uniform)
        if stride == -1:
            value = memory.reverse(fb, register_type(dtype), value, lanes)
            mask = mask and memory.reverse(fb, "i1", mask, lanes)
        memory.store(fb, dtype, value, place, lanes, mask)
