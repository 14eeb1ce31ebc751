"""Compiles a maths function with llvmlite's MCJIT and applies it to NumPy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import functools

import llvmlite.binding as llvm
import numpy as np

from treadle.compiler.codegen.math import math_function
from treadle.compiler.ir import types as t

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


@dataclasses.dataclass(frozen=True)
class Cpu:
    """A stand-in for the code generator's target."""

    features: frozenset[str]

    def has(self, feature: str) -> bool:
        return feature in self.features


HOST = Cpu(frozenset(name for name, on in llvm.get_host_cpu_features().items() if on))
NO_FMA = Cpu(frozenset(name for name in HOST.features if not name.startswith("avx512") and name not in {"fma", "fma4"}))
ARITY = {"power": 2, "atan2": 2, "remainder": 2}
LLVM_NAME = {t.F32: "float", t.F64: "double"}


def module_text(name: str, dtype: t.DType, lanes: int, cpu: Cpu) -> str:
    """A module whose function `run(out, a, b, n)` loops over arrays, n a multiple of `lanes`."""
    function = math_function(name, dtype, lanes, cpu)
    element = LLVM_NAME[dtype]
    kind = element if lanes == 1 else f"<{lanes} x {element}>"
    operands = ["a", "b"][: ARITY.get(name, 1)]
    loads = "".join(
        f"  %p{o} = getelementptr {element}, ptr %{o}, i64 %i\n  %v{o} = load {kind}, ptr %p{o}, align {dtype.bytes}\n"
        for o in operands
    )
    arguments = ", ".join(f"{kind} %v{o}" for o in operands)
    return (
        "\n".join(function.needs)
        + f"""
{function.text}
define void @run(ptr %out, ptr %a, ptr %b, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{loads}  %r = call {kind} @{function.symbol}({arguments})
  %q = getelementptr {element}, ptr %out, i64 %i
  store {kind} %r, ptr %q, align {dtype.bytes}
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
    )


class Compiled:
    """One maths function in machine code."""

    def __init__(self, name: str, dtype: t.DType, lanes: int, cpu: Cpu) -> None:
        self.dtype, self.lanes = dtype, lanes
        module = llvm.parse_assembly(module_text(name, dtype, lanes, cpu))
        module.verify()
        features = ",".join(f"{'+' if cpu.has(name) else '-'}{name}" for name in sorted(HOST.features | {"avx512f"}))
        machine = llvm.Target.from_default_triple().create_target_machine(cpu="x86-64", features=features, opt=2)
        self.machine = machine
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        address = self.engine.get_function_address("run")
        pointer = ctypes.c_void_p
        self.run = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int64)(address)

    def __call__(self, *operands: np.ndarray) -> np.ndarray:
        size = operands[0].size
        padding = -size % self.lanes
        padded = [np.concatenate([np.ravel(x), np.ones(padding, x.dtype)]).astype(self.dtype.numpy) for x in operands]
        out = np.empty_like(padded[0])
        second = padded[-1]
        self.run(out.ctypes.data, padded[0].ctypes.data, second.ctypes.data, out.size)
        return out[:size]


@functools.lru_cache(maxsize=64)
def compiled(name: str, dtype: t.DType, lanes: int, cpu: Cpu = HOST) -> Compiled:
    return Compiled(name, dtype, lanes, cpu)
