"""The optimise stage, and what TREADLE_CHECK=1 adds to it.

Checked, every pass is followed by the verifier and by a run of the NumPy interpreter, whose outputs
must be those of the program as it was imported. A pass that breaks either is named in the error.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.compiler import knobs
from treadle.compiler.context import CompileContext
from treadle.compiler.errors import CompileError, IrError, StatusCode
from treadle.compiler.ir.core import Program
from treadle.compiler.ir.types import Kind, TensorType
from treadle.compiler.passes import optimise

# Passes may feed a matrix product in another layout, which NumPy's BLAS adds up in another order.
_RELATIVE_TOLERANCE = {2: 2e-2, 4: 1e-4, 8: 1e-9}


def optimise_program(program: Program, _: CompileContext) -> Program:
    """Runs the passes over the tensor IR; with TREADLE_CHECK=1, distrusts each of them."""
    if not knobs.CHECK.get():
        return optimise(program)
    checker = Checker(program)
    return optimise(program, checker.after)


class Checker:
    """Knows what a program computes, and compares."""

    def __init__(self, program: Program, seed: int = 0):
        """Runs `program` once on random inputs; passes may change it in place afterwards."""
        from treadle.compiler.ir.verifier import verify

        verify(program)
        rng = np.random.default_rng(seed)
        self._inputs = [random_array(arg.type, rng) for arg in program.entry.args]
        self._expected = self._run(program)

    def _run(self, program: Program) -> list[np.ndarray]:
        from treadle.compiler import interp  # not needed unless something is checked

        # Copies: an interpreter that updated an input in place would falsify the next run.
        return interp.run(program, [a.copy() for a in self._inputs])

    def after(self, name: str, program: Program) -> None:
        """Checks what the pass `name` made.

        Raises:
          CompileError: INTERNAL, naming the pass.
        """
        from treadle.compiler.ir.verifier import verify

        try:
            verify(program)
            outputs = self._run(program)
        except IrError as e:
            raise _broken(name, f"made a program that breaks the IR's rules: {e}") from e
        difference = compare(self._expected, outputs)
        if difference:
            raise _broken(name, f"changed what the program computes: {difference}")


def _broken(name: str, what: str) -> CompileError:
    return CompileError(
        StatusCode.INTERNAL,
        f"The pass {name!r} {what}. This is a bug of Treadle; the program is in the folder of {knobs.DUMP.name}, if "
        "that is set.",
    )


def random_array(tensor: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Values that make wrong arithmetic visible and stay exact in sums: quarters, and small integers."""
    dtype, shape = tensor.dtype, tensor.shape
    if dtype.kind is Kind.PRED:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind is Kind.FLOAT:
        return (rng.integers(-8, 9, shape) / 4).astype(dtype.numpy)
    if dtype.kind is Kind.COMPLEX:
        return ((rng.integers(-8, 9, shape) + 1j * rng.integers(-8, 9, shape)) / 4).astype(dtype.numpy)
    low = -4 if dtype.is_signed else 0
    return rng.integers(low, 8, shape).astype(dtype.numpy)


def compare(expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]) -> str:
    """What is different, or ""; numbers that are not integers may differ in their last digits."""
    if len(expected) != len(actual):
        return f"{len(actual)} outputs instead of {len(expected)}"
    for i, (want, got) in enumerate(zip(expected, actual, strict=True)):
        if want.shape != got.shape or want.dtype != got.dtype:
            return f"output {i} is {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
        wrong = _different(want, got)
        if wrong.any():
            place = tuple(int(k) for k in np.argwhere(wrong)[0])
            return (
                f"output {i} differs in {int(wrong.sum())} of {want.size} elements, first at {list(place)}: "
                f"{got[place]} instead of {want[place]}"
            )
    return ""


def _different(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    if want.dtype.kind in "biu":
        return np.asarray(want != got)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = want.astype(wide), got.astype(wide)
    with np.errstate(all="ignore"):
        tolerance = _RELATIVE_TOLERANCE.get(want.dtype.itemsize, 2e-2)
        scale = np.abs(a[np.isfinite(a)]).max(initial=0.0) if a.size else 0.0
        finite = np.isfinite(a) & np.isfinite(b)
        near = finite & (np.abs(a - b) <= tolerance * np.maximum(np.abs(a), 1e-3 * scale))
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    return np.asarray(~same)
