"""Runs compiled kernels in the test's process: links the object with gcc and calls it through ctypes."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from treadle.compiler.artifact import abi
from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.codegen.module import module_text
from treadle.compiler.codegen.target import Target, target_for
from treadle.compiler.object.llvm import compile_module


def host_features() -> int:
    """Feature bits of this machine."""
    flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split())
    names = {
        "sse4.2": "sse4_2",
        "lzcnt": "abm",
        "bmi": "bmi1",
        "avx512vnni": "avx512_vnni",
        "avx512bf16": "avx512_bf16",
    }
    names["avx512fp16"] = "avx512_fp16"
    return sum(1 << bit for name, bit in abi.CPU_FEATURES.items() if names.get(name, name) in flags)


HOST: Target = target_for(host_features())


def narrowed(*names: str) -> Target:
    """The host without the named features."""
    return target_for(HOST.cpu_features & ~sum(1 << abi.CPU_FEATURES[name] for name in names))


AVX2 = narrowed(*(name for name in abi.CPU_FEATURES if name.startswith("avx512")))
SSE = narrowed(*(name for name in abi.CPU_FEATURES if name not in {"sse4.2", "popcnt"}))


def link(code: bytes) -> ctypes.CDLL:
    """Loads an object."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        source.write_bytes(code)
        subprocess.run(["gcc", "-shared", "-o", str(result), str(source), "-lm"], check=True)
        return ctypes.CDLL(str(result))


class Library:
    """Several kernels, compiled as one module and loaded."""

    def __init__(self, kernels, target: Target = HOST):
        self.kernels = list(kernels)
        self.text = module_text(emit_kernel(kernel, f"k{i}", target) for i, kernel in enumerate(self.kernels))
        self.library = link(compile_module(self.text, target))

    def run(self, number: int, buffers, pieces=None):
        """Runs a kernel over its whole range, or over the given pieces of it; `buffers` are changed in place."""
        kernel = self.kernels[number]
        function = self.library[f"k{number}"]
        function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        function.restype = None
        for buffer, param in zip(buffers, kernel.params, strict=True):
            assert buffer.size == param.size
            assert buffer.dtype == param.dtype.numpy
            assert buffer.flags.c_contiguous
        pointers = (ctypes.c_void_p * max(len(buffers), 1))(*[buffer.ctypes.data for buffer in buffers])
        for begin, end in pieces or [(0, kernel.range_extent())]:
            function(ctypes.addressof(pointers), begin, end)

    def results(self, number: int, buffers, pieces=None):
        """Runs on copies; returns the written buffers. Nothing around and nothing but those may change."""
        guard = 256
        blocks = [np.full(buffer.nbytes + 2 * guard, 0xA5, np.uint8) for buffer in buffers]
        work = []
        for block, buffer in zip(blocks, buffers, strict=True):
            inside = block[guard : guard + buffer.nbytes].view(buffer.dtype)
            inside[:] = buffer
            work.append(inside)
        self.run(number, work, pieces)
        for block, buffer, param in zip(blocks, buffers, self.kernels[number].params, strict=True):
            assert (block[:guard] == 0xA5).all(), "wrote before a buffer"
            assert (block[guard + buffer.nbytes :] == 0xA5).all(), "wrote behind a buffer"
            if not param.written:
                assert bytes(block[guard : guard + buffer.nbytes]) == buffer.tobytes(), "wrote to an operand"
        return [work[i].copy() for i, param in enumerate(self.kernels[number].params) if param.written]
