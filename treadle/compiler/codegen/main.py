"""The entry function of a compiled program: kernel calls, library calls and control flow, in the plan's order."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence

from treadle.compiler.codegen import work
from treadle.compiler.codegen.elementwise import emit_apply, load_scalar, store_scalar
from treadle.compiler.codegen.library import convolution_descriptor, convolution_flops, dot_descriptor, dot_flops
from treadle.compiler.codegen.module import TRIPLE
from treadle.compiler.codegen.program import ENTRY_SYMBOL, ProgramCode
from treadle.compiler.codegen.scalars import ScalarContext, ScalarEmitter
from treadle.compiler.codegen.target import Target
from treadle.compiler.codegen.text import FunctionBuilder, register_type
from treadle.compiler.ir import types as t
from treadle.compiler.ir.core import Program, Value
from treadle.compiler.loops.ir import Kernel
from treadle.compiler.loops.schedule import schedule
from treadle.compiler.object.cache import kernel_symbol
from treadle.compiler.plan.steps import (
    Base,
    BranchStep,
    CopyStep,
    KernelStep,
    LibraryStep,
    LoopStep,
    Plan,
    ScalarStep,
    Step,
    Storage,
)


def emit_program(program: Program, plan: Plan, target: Target) -> ProgramCode:
    """Generates the entry function and schedules the kernels that it calls."""
    return _MainEmitter(program, plan, target).run()


@dataclasses.dataclass(frozen=True, slots=True)
class _KnownKernel:
    """What calling a kernel takes: symbol, whole range, the piece that is worth a thread, and operations."""

    symbol: str
    extent: int
    piece: int | None
    flops: int


class _MainEmitter:
    def __init__(self, program: Program, plan: Plan, target: Target):
        self.plan = plan
        self.target = target
        self.num_inputs = len(program.entry.args)
        self.num_outputs = len(program.entry.results)
        self.fb = FunctionBuilder(target)
        self.entry: list[str] = []  # instructions of the entry block: base pointers
        self.bases: dict[tuple[Base, int], str] = {}
        self.slots: dict[int, str] = {}
        self.scalars: dict[Value, str] = {}
        self.globals: list[str] = []
        self.descriptors: dict[bytes, str] = {}
        self.kernels: dict[str, Kernel] = {}
        self.known: dict[Kernel, _KnownKernel] = {}
        self.most_params = 0
        self.block = "%body"
        self.has_loops = False
        self.flops = 0

    def run(self) -> ProgramCode:
        self.steps(self.plan.steps)
        self.fb.do("ret i32 0")
        fb = self.fb
        lines = [f'source_filename = "main"\ntarget triple = "{TRIPLE}"']
        lines += self.globals
        lines += fb.declares.values()
        lines += fb.functions.values()
        lines += [f"declare void @{symbol}(ptr, i64, i64)" for symbol in self.kernels]
        lines.append(f"define i32 @{ENTRY_SYMBOL}(ptr %run, ptr %buffers) {{\nentry:")
        if self.most_params:
            lines.append(f"  %params = alloca [{self.most_params} x ptr], align 8")
        lines += self.entry
        lines.append("  br label %body\nbody:")
        lines += fb.code
        lines.append("}\n")
        return ProgramCode(self.target, "\n".join(lines), self.has_loops, self.kernels, self.flops)

    # ---- memory and registers ----------------------------------------------------------------------------------------

    def pointer(self, storage: Storage) -> str:
        """The address of a storage, computed where it is used."""
        place = storage.location
        base = self.slots[place.number] if place.base is Base.SLOT else self._base(place.base, place.number)
        return self.fb.op(f"getelementptr i8, ptr {base}, i64 {place.offset}") if place.offset else base

    def _base(self, base: Base, number: int) -> str:
        found = self.bases.get((base, number))
        if found is None:
            index = {
                Base.INPUT: number,
                Base.OUTPUT: self.num_inputs + number,
                Base.CONSTANT: self.num_inputs + self.num_outputs,
                Base.SCRATCH: self.num_inputs + self.num_outputs + 1,
            }[base]
            name = f"%base.{base.name.lower()}{number}"
            self.entry.append(f"  {name}.at = getelementptr ptr, ptr %buffers, i64 {index}")
            self.entry.append(f"  {name} = load ptr, ptr {name}.at, align 8")
            found = self.bases[(base, number)] = name
        return found

    def scalar(self, value: Value) -> str:
        """The register (or literal) that holds a rank-0 value."""
        found = self.scalars.get(value)
        if found is not None:
            return found
        storage = self.plan.storage.get(value)
        if storage is not None:
            return load_scalar(self.fb, value.type.dtype, self.pointer(storage))
        return self._compute(value)

    def _compute(self, value: Value) -> str:
        assert value.op is not None, f"{value} is in no register"
        context = ScalarContext(self._register, self._memory)
        register = ScalarEmitter(self.fb, context).emit(context.compute(value.op))
        self.scalars[value] = register
        return register

    def _register(self, value: Value) -> str | None:
        """For scalar code: the register of a value that has one; None lets its op be computed on the spot."""
        if value in self.scalars or value in self.plan.storage:
            return self.scalar(value)
        return None

    def _memory(self, value: Value) -> str | None:
        storage = self.plan.storage.get(value)
        return None if storage is None else self.pointer(storage)

    def _keep(self, value: Value, register: str, store: Storage | None) -> None:
        self.scalars[value] = register
        if store is not None:
            store_scalar(self.fb, value.type.dtype, register, self.pointer(store))

    def _label(self, hint: str) -> str:
        return self.fb.fresh(hint)

    def _start_block(self, name: str) -> None:
        self.fb.label(name)
        self.block = name

    # ---- steps -------------------------------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, KernelStep):
                self._kernel(step)
            elif isinstance(step, ScalarStep):
                value = step.value
                self._keep(value, self.scalars.get(value) or self._compute(value), step.store)
            elif isinstance(step, CopyStep):
                self._copy(step)
            elif isinstance(step, LibraryStep):
                self._library(step)
            elif isinstance(step, LoopStep):
                self._loop(step)
            else:
                assert isinstance(step, BranchStep)
                self._branch(step)

    def _kernel(self, step: KernelStep) -> None:
        fb = self.fb
        kernel = self._known_kernel(step.call.kernel)
        self.flops += kernel.flops
        self.most_params = max(self.most_params, len(step.arguments))
        for i, storage in enumerate(step.arguments):
            place = fb.op(f"getelementptr ptr, ptr %params, i64 {i}") if i else "%params"
            fb.do(f"store ptr {self.pointer(storage)}, ptr {place}, align 8")
        symbol, extent, piece = kernel.symbol, kernel.extent, kernel.piece
        if piece is None:
            fb.do(f"call void @{symbol}(ptr %params, i64 0, i64 {extent})")
        else:
            fb.declare("void", "treadle_parallel_for", ("ptr", "ptr", "ptr", "i64", "i64"))
            fb.do(f"call void @treadle_parallel_for(ptr %run, ptr @{symbol}, ptr %params, i64 {extent}, i64 {piece})")

    def _known_kernel(self, kernel: Kernel) -> _KnownKernel:
        found = self.known.get(kernel)
        if found is None:
            scheduled = schedule(kernel, self.target)
            symbol = kernel_symbol(scheduled, self.target)
            self.kernels.setdefault(symbol, scheduled)
            flops, piece = work.kernel_flops(kernel), work.grain(scheduled)
            found = self.known[kernel] = _KnownKernel(symbol, scheduled.range_extent(), piece, flops)
        return found

    def _copy(self, step: CopyStep) -> None:
        if step.size == 0 or step.source.location == step.target.location:
            return
        fb = self.fb
        source, target, size = self.pointer(step.source), self.pointer(step.target), str(step.size)
        if Base.SLOT in (step.source.location.base, step.target.location.base):
            same = fb.op(f"icmp eq ptr {source}, {target}")
            size = fb.op(f"select i1 {same}, i64 0, i64 {size}")
        fb.declare("ptr", "memcpy", ("ptr", "ptr", "i64"))
        fb.op(f"call ptr @memcpy(ptr {target}, ptr {source}, i64 {size})")

    def _library(self, step: LibraryStep) -> None:
        fb = self.fb
        if step.op.name == "dot_general":
            symbol, descriptor = "treadle_dot", self._descriptor(dot_descriptor(step.op))
            self.flops += dot_flops(step.op)
        else:
            symbol, descriptor = "treadle_convolution", self._descriptor(convolution_descriptor(step.op))
            self.flops += convolution_flops(step.op)
        fb.declare("i32", symbol, ("ptr", "ptr", "ptr", "ptr", "ptr"))
        lhs, rhs = (self.pointer(s) for s in step.operands)
        status = fb.op(
            f"call i32 @{symbol}(ptr %run, ptr {descriptor}, ptr {lhs}, ptr {rhs}, ptr {self.pointer(step.result)})"
        )
        failed = fb.op(f"icmp ne i32 {status}, 0")
        fail, go_on = self._label("fail"), self._label("ok")
        fb.do(f"br i1 {failed}, label {fail}, label {go_on}")
        self._start_block(fail)
        fb.do(f"ret i32 {status}")
        self._start_block(go_on)

    def _descriptor(self, struct: ctypes.Structure) -> str:
        data = bytes(struct)
        name = self.descriptors.get(data)
        if name is None:
            name = self.descriptors[data] = f"@descriptor{len(self.descriptors)}"
            text = "".join(f"\\{byte:02X}" for byte in data)
            self.globals.append(f'{name} = private constant [{len(data)} x i8] c"{text}", align 8')
        return name

    def _loop(self, step: LoopStep) -> None:
        fb = self.fb
        self.has_loops = True
        scalars = [c for c in step.carries if c.scalar]
        swaps = [(c, c.swap) for c in step.carries if c.swap is not None]
        initial = [self.scalar(c.initial) for c in scalars]
        starts: list[tuple[str, str]] = []
        for carry, swap in swaps:
            assert carry.first is not None
            starts.append((self.pointer(carry.first), self.pointer(Storage(0, swap[2]))))
        header, body, done = self._label("loop"), self._label("loop.body"), self._label("loop.done")
        before = self.block
        known = dict(self.scalars)
        fb.do(f"br label {header}")
        self._start_block(header)
        at = len(fb.code)
        registers = [fb.fresh("carry") for _ in scalars]
        slot_names = [(fb.fresh("slot"), fb.fresh("slot")) for _ in swaps]
        for carry, register in zip(scalars, registers, strict=True):
            self.scalars[carry.argument] = register
            self._keep(carry.condition_argument, register, carry.condition_store)
        for (_, swap), (current, other) in zip(swaps, slot_names, strict=True):
            self.slots[swap[0]], self.slots[swap[1]] = current, other
        self.steps(step.condition)
        go_on = self.scalar(step.op.regions[0].results[0])
        fb.do(f"br i1 {go_on}, label {body}, label {done}")
        self._start_block(body)
        for carry, register in zip(scalars, registers, strict=True):
            self._keep(carry.argument, register, carry.argument_store)
        self.steps(step.body)
        following = [self.scalar(c.next) for c in scalars]
        latch = self.block
        fb.do(f"br label {header}")
        phis = []
        for carry, register, first, then in zip(scalars, registers, initial, following, strict=True):
            ty = register_type(carry.initial.type.dtype)
            phis.append(f"  {register} = phi {ty} [ {first}, {before} ], [ {then}, {latch} ]")
        for (current, other), (first, second) in zip(slot_names, starts, strict=True):
            phis.append(f"  {current} = phi ptr [ {first}, {before} ], [ {other}, {latch} ]")
            phis.append(f"  {other} = phi ptr [ {second}, {before} ], [ {current}, {latch} ]")
        fb.code[at:at] = phis
        self._start_block(done)
        self.scalars = known  # registers of the loop are not to be used after it
        for carry, register in zip(scalars, registers, strict=True):
            self._keep(carry.result, register, carry.result_store)

    def _branch(self, step: BranchStep) -> None:
        fb = self.fb
        selector = self.scalar(step.op.operands[0])
        labels = [self._label("branch") for _ in step.branches]
        merge = self._label("merge")
        if step.op.name == "if":
            fb.do(f"br i1 {selector}, label {labels[0]}, label {labels[1]}")
        else:
            index = emit_apply(fb, "convert", "", t.S32, [(selector, step.op.operands[0].type.dtype)])
            cases = " ".join(f"i32 {i}, label {name}" for i, name in enumerate(labels[:-1]))
            fb.do(f"switch i32 {index}, label {labels[-1]} [ {cases} ]")
        incoming: list[list[tuple[str, str]]] = [[] for _ in step.scalar_results]
        known = dict(self.scalars)
        for label, steps, region in zip(labels, step.branches, step.op.regions, strict=True):
            self._start_block(label)
            self.steps(steps)
            registers = [self.scalar(v) for v in region.results if v.type.rank == 0]
            for row, register in zip(incoming, registers, strict=True):
                row.append((register, self.block))
            fb.do(f"br label {merge}")
            # Registers of a branch are not to be used after it.
            self.scalars = dict(known)
        self._start_block(merge)
        merged = []
        for (value, _), row in zip(step.scalar_results, incoming, strict=True):
            ways = ", ".join(f"[ {register}, {block} ]" for register, block in row)
            merged.append(fb.op(f"phi {register_type(value.type.dtype)} {ways}"))
        for (value, store), register in zip(step.scalar_results, merged, strict=True):
            self._keep(value, register, store)
