"""What all kinds of fusion are lowered with: a fusion seen from outside, and the kernel being made of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from treadle.compiler.ir.core import Op, Region, Value
from treadle.compiler.ir.types import DType
from treadle.compiler.loops.buffers import renumber_buffers, used_buffers
from treadle.compiler.loops.build import Builder
from treadle.compiler.loops.ir import Buffer, Kernel, Nest, Var
from treadle.compiler.lowering.context import Context


@dataclasses.dataclass(slots=True)
class KernelCall:
    """A kernel and the tensor values bound to its parameters, in order.

    Values that are neither operands nor results of the fusion are temporaries that live from the first call that names
    them to the last.
    """

    kernel: Kernel
    arguments: list[Value]


class KernelMaker:
    """Collects the parameters of one kernel while its expressions are built.

    Args:
      reads: values (of the fusion's region) that elements may be loaded from, with the outside value each stands for.
    """

    def __init__(self, reads: dict[Value, Value]):
        self.builder = Builder()
        self.context = Context(self.builder)
        self._arguments: list[Value] = []
        self._written: list[bool] = []
        self._numbers: dict[Value, int] = {}
        for inside, outside in reads.items():
            self.context.bound[inside] = self._parameter(outside, False)

    def _parameter(self, outside: Value, written: bool) -> int:
        number = self._numbers.get(outside)
        if number is None:
            number = self._numbers[outside] = len(self._arguments)
            self._arguments.append(outside)
            self._written.append(False)
        self._written[number] |= written
        return number

    def output(self, outside: Value) -> int:
        """The parameter that results are stored to."""
        return self._parameter(outside, True)

    def finish(
        self,
        nests: Sequence[Nest],
        outer: Sequence[Var] = (),
        locals: Sequence[tuple[DType, int]] = (),
        parallel: bool = True,
    ) -> KernelCall:
        """The kernel over the parameters that its nests really use."""
        used = sorted(b for b in used_buffers(nests) if b >= 0)
        numbers = {old: new for new, old in enumerate(used)}
        params = tuple(
            Buffer(self._arguments[i].type.dtype, self._arguments[i].type.size, self._written[i]) for i in used
        )
        kernel = Kernel(params, renumber_buffers(nests, numbers), tuple(outer), tuple(locals), parallel)
        return KernelCall(kernel, [self._arguments[i] for i in used])


class FusionBody:
    """A fusion's region seen from outside: which outside value each argument and result stands for."""

    def __init__(self, op: Op):
        self.op = op
        self.region: Region = op.regions[0]
        self.reads: dict[Value, Value] = dict(zip(self.region.args, op.operands, strict=True))
        self.results: list[tuple[Value, Value]] = list(zip(self.region.results, op.results, strict=True))

    def maker(self) -> KernelMaker:
        """A kernel that may read every operand of the fusion."""
        return KernelMaker(self.reads)
