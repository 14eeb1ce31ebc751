"""Artifacts without the compiler: C source, compiled by the C compiler and packed as program_abi.h says."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from treadle.compiler.artifact import abi

PRED, S8, S32, U8, F32, F64, S4 = 1, 2, 4, 6, 11, 12, 21
BYTES = {PRED: 1, S8: 1, S32: 4, U8: 1, F32: 4, F64: 8, S4: 1}


@dataclasses.dataclass(frozen=True)
class Buffer:
    """An argument or a result."""

    dims: tuple[int, ...]
    element_type: int = F32
    alias: int = -1
    donated: bool = False
    sharding: bytes = b""

    @property
    def byte_size(self) -> int:
        size = BYTES[self.element_type]
        for dim in self.dims:
            size *= dim
        return size


@functools.cache
def compile_c(source: str) -> bytes:
    """A relocatable object that exports what `source` defines."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    assert compiler is not None, "the tests of the C API need a C compiler"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.c")
        path.write_text("#include <stdint.h>\n#include <string.h>\ntypedef struct TreadleRun TreadleRun;\n" + source)
        command = [compiler, "-c", "-O2", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-stack-protector"]
        # A sanitizer's library that is loaded into this process is none of the C compiler's business.
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        subprocess.run([*command, str(path), "-o", str(path.with_suffix(".o"))], check=True, env=environment)
        return path.with_suffix(".o").read_bytes()


@dataclasses.dataclass(frozen=True)
class Program:
    """What goes into an artifact; `body` is the entry's C code, with `b` as the buffer table."""

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: str
    prelude: str = ""
    num_replicas: int = 1
    num_partitions: int = 1
    devices: tuple[int, ...] = ()
    flops: int = 0
    cpu_features: int = 0
    scratch_bytes: int = 0

    def pack(self) -> bytes:
        source = (
            f"{self.prelude}\nint32_t entry(TreadleRun* run, void* const* b) {{ (void)run; {self.body}; return 0; }}"
        )
        strings = bytearray()

        def string(text: bytes) -> abi.String:
            strings.extend(text)
            return abi.String(len(strings) - len(text), len(text))

        dims: list[int] = []
        descs = []
        for buffer in (*self.inputs, *self.outputs):
            flags = abi.BufferFlags.DONATED if buffer.donated else 0
            descs.append(
                abi.BufferDesc(
                    buffer.element_type,
                    len(buffer.dims),
                    len(dims),
                    buffer.byte_size,
                    buffer.alias,
                    flags,
                    string(buffer.sharding),
                )
            )
            dims.extend(buffer.dims)
        manifest = abi.Manifest(
            len(self.inputs),
            len(self.outputs),
            self.num_replicas,
            self.num_partitions,
            self.scratch_bytes,
            self.flops,
            0,
            string(b"test_program"),
            string(b"entry"),
            string(b"test"),
            string(f"{zlib.crc32(source.encode()):08x}".encode()),
        )
        kinds = abi.SectionKind
        sections = [
            (kinds.MANIFEST, bytes(manifest)),
            (kinds.BUFFERS, b"".join(bytes(desc) for desc in descs)),
            (kinds.DIMS, b"".join(dim.to_bytes(8, "little") for dim in dims)),
            (kinds.OBJECT, compile_c(source)),
            (kinds.STRINGS, bytes(strings)),
        ]
        if self.devices:
            sections.append((kinds.DEVICES, b"".join(i.to_bytes(4, "little") for i in self.devices)))
        return pack_sections(sections, self.cpu_features)


def pack_sections(sections: Sequence[tuple[int, bytes]], cpu_features: int = 0) -> bytes:
    table, body = b"", b""
    start = ctypes.sizeof(abi.ArtifactHeader) + len(sections) * ctypes.sizeof(abi.Section)
    for kind, data in sections:
        body += bytes(-(start + len(body)) % abi.SECTION_ALIGNMENT)
        table += bytes(abi.Section(int(kind), 0, start + len(body), len(data)))
        body += data
    checked = table + body
    header = abi.ArtifactHeader(
        abi.ARTIFACT_MAGIC,
        abi.ABI_VERSION,
        len(sections),
        ctypes.sizeof(abi.ArtifactHeader) + len(checked),
        cpu_features,
        zlib.crc32(checked),
    )
    return bytes(header) + checked


def elementwise(expression: str, count: int, num_inputs: int = 1) -> str:
    """The body of a float program: output[i] = expression of x[i] (and y[i], ...)."""
    names = "xyzw"[:num_inputs]
    loads = "".join(f"const float* {name} = (const float*)b[{i}];" for i, name in enumerate(names))
    return f"{loads} float* out = (float*)b[{num_inputs}]; for (int i = 0; i < {count}; ++i) out[i] = {expression}"
