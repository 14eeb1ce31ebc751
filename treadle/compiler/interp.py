"""The NumPy interpreter: what a program means, op by op. The oracle of every later stage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import treadle.compiler.ops  # noqa: F401  # registers the ops
from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import Op, Program, Region, Value
from treadle.compiler.ops import registry
from treadle.compiler.ops.registry import Array


class _Interpreter:
    """Runs regions. `env` holds the value of everything computed so far, in all regions being run."""

    def __init__(self) -> None:
        self.env: dict[Value, Array] = {}

    def run(self, region: Region, args: Sequence[Array]) -> list[Array]:
        env = self.env
        env.update(zip(region.args, args, strict=True))
        for op in region.ops:
            results = run_op(op, [env[v] for v in op.operands], self)
            env.update(zip(op.results, results, strict=True))
        return [env[v] for v in region.results]

    def combine(self, region: Region, args: Sequence[Array]) -> list[Array]:
        shape = args[0].shape
        if all(_is_scalar_code(op) for op in region.ops):
            return self._combine_arrays(region, args, shape)
        results = [np.empty(shape, v.type.dtype.numpy) for v in region.results]
        for place in np.ndindex(shape):
            for result, element in zip(results, self.run(region, [a[place] for a in args]), strict=True):
                result[place] = element
        return results

    def _combine_arrays(self, region: Region, args: Sequence[Array], shape: tuple[int, ...]) -> list[Array]:
        env: dict[Value, Array] = dict(zip(region.args, args, strict=True))
        for op in region.ops:
            if op.name == "constant":
                env[op.result] = np.asarray(op.attrs["value"])
                continue
            apply = registry.get(op).apply
            if apply is not None:
                env[op.result] = np.asarray(apply(op, *(env[v] for v in op.operands)))
            else:  # a reshape or broadcast of a scalar to a scalar
                env[op.result] = env[op.operands[0]]
        return [np.broadcast_to(env[v], shape) for v in region.results]


def _is_scalar_code(op: Op) -> bool:
    """Elementwise, or a constant, or a change of shape between scalars."""
    if any(v.type.shape for v in op.results):
        return False
    if op.name in ("reshape", "broadcast_in_dim"):
        return not op.operands[0].type.shape
    definition = registry.get(op)
    return op.name == "constant" or definition.apply is not None


def run_op(op: Op, inputs: Sequence[Array], context: registry.Context | None = None) -> list[Array]:
    """The results of one op; without `context`, of an op whose regions use nothing from around it."""
    with np.errstate(all="ignore"):
        arrays = [np.asarray(x) for x in inputs]
        results = registry.get(op).interpret(op, arrays, context if context is not None else _Interpreter())
    return [np.asarray(r) for r in results]


def run(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of `program` for `inputs`, whose shapes and dtypes must be those of its arguments."""
    args = program.entry.args
    if len(inputs) != len(args):
        raise IrError(f"program {program.name} takes {len(args)} arguments, got {len(inputs)}")
    for i, (array, arg) in enumerate(zip(inputs, args, strict=True)):
        if array.shape != arg.type.shape or array.dtype != arg.type.dtype.numpy:
            raise IrError(f"argument {i} of program {program.name} must be {arg.type}, got {array.dtype}{array.shape}")
    return [np.ascontiguousarray(r).reshape(r.shape) for r in _Interpreter().run(program.entry, inputs)]
