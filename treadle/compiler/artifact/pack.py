"""Writes the artifact: header, section table and sections, as program_abi.h lays them out."""

from __future__ import annotations

import ctypes
import hashlib
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from treadle.build_id import build_id
from treadle.compiler.artifact import abi
from treadle.compiler.codegen.program import ENTRY_SYMBOL

if TYPE_CHECKING:
    from treadle.compiler.codegen.program import ProgramCode
    from treadle.compiler.context import CompileContext
    from treadle.compiler.ir.core import Input, Output, Program, Value
    from treadle.compiler.plan.steps import Plan


class _Strings:
    """The string pool."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, text: str | bytes) -> abi.String:
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
        place = abi.String(len(self.data), len(raw))
        self.data += raw
        return place


def pack_artifact(objects: Sequence[bytes], context: CompileContext) -> bytes:
    """The `pack` stage: the artifact of a compile whose other products are in `context`."""
    program = cast("Program", context.products["fuse"])
    plan = cast("Plan", context.products["plan"])
    code = cast("ProgramCode", context.products["codegen"])
    strings = _Strings()
    dims: list[int] = []
    buffers = [
        _input(value, info, strings, dims) for value, info in zip(program.entry.args, program.inputs, strict=True)
    ]
    buffers += [
        _output(value, info, alias, strings, dims)
        for value, info, alias in zip(program.entry.results, program.outputs, plan.aliases, strict=True)
    ]
    manifest = abi.Manifest()
    manifest.num_inputs, manifest.num_outputs = len(program.entry.args), len(program.entry.results)
    manifest.num_replicas, manifest.num_partitions = program.num_replicas, program.num_partitions
    manifest.scratch_bytes = plan.scratch_size
    manifest.flops = code.flops
    manifest.bytes_accessed = sum(b.byte_size for b in buffers)
    manifest.name = strings.add(program.name)
    manifest.entry = strings.add(ENTRY_SYMBOL)
    manifest.build_id = strings.add(build_id())
    manifest.fingerprint = strings.add(_fingerprint(context))
    sections: list[tuple[int, bytes | bytearray]] = [
        (abi.SectionKind.MANIFEST, bytes(manifest)),
        (abi.SectionKind.BUFFERS, b"".join(map(bytes, buffers))),
        (abi.SectionKind.DIMS, np.asarray(dims, "<i8").tobytes()),
        (abi.SectionKind.STRINGS, bytes(strings.data)),
    ]
    if plan.constants_size:
        sections.append((abi.SectionKind.CONSTANTS, _constants(plan)))
    sections += [(abi.SectionKind.OBJECT, obj) for obj in objects]
    sections.append((abi.SectionKind.PROGRAM, context.program))
    sections.append((abi.SectionKind.DEVICES, np.asarray(program.device_assignment, "<i4").tobytes()))
    return _assemble(sections, code.target.cpu_features)


def dump(artifact: bytes) -> bytes:
    """The artifact itself."""
    return artifact


def _input(value: Value, info: Input, strings: _Strings, dims: list[int]) -> abi.BufferDesc:
    flags = abi.BufferFlags.DONATED if info.donated else abi.BufferFlags(0)
    return _describe(value, flags, -1, info.sharding, info.memory_kind, strings, dims)


def _output(value: Value, info: Output, alias: int, strings: _Strings, dims: list[int]) -> abi.BufferDesc:
    return _describe(value, abi.BufferFlags(0), alias, info.sharding, info.memory_kind, strings, dims)


def _describe(
    value: Value, flags: abi.BufferFlags, alias: int, sharding: bytes, kind: str, strings: _Strings, dims: list[int]
) -> abi.BufferDesc:
    desc = abi.BufferDesc()
    desc.element_type, desc.rank, desc.byte_size = value.type.dtype.pjrt, value.type.rank, value.type.byte_size
    desc.dims = len(dims)
    dims.extend(value.type.shape)
    desc.alias = alias
    desc.flags = int(flags | (abi.BufferFlags.HOST if kind == "pinned_host" else abi.BufferFlags(0)))
    desc.sharding = strings.add(sharding)
    return desc


def _fingerprint(context: CompileContext) -> str:
    digest = hashlib.sha256()
    for part in (
        build_id().encode(),
        str(context.cpu_features).encode(),
        repr(context.options).encode(),
        context.program,
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _constants(plan: Plan) -> bytearray:
    data = bytearray(plan.constants_size)
    for offset, op in plan.constants:
        raw = np.ascontiguousarray(cast(np.ndarray, op.attrs["value"])).reshape(-1).view(np.uint8)
        data[offset : offset + raw.size] = raw.data
    return data


def _assemble(sections: Sequence[tuple[int, bytes | bytearray]], cpu_features: int) -> bytes:
    # Constants may be large: their bytes are copied once, by the join.
    end = ctypes.sizeof(abi.ArtifactHeader) + len(sections) * ctypes.sizeof(abi.Section)
    table = bytearray()
    body: list[bytes | bytearray] = []
    for kind, data in sections:
        padding = -end % abi.SECTION_ALIGNMENT
        table += bytes(abi.Section(kind, 0, end + padding, len(data)))
        body += [bytes(padding), data]
        end += padding + len(data)
    header = abi.ArtifactHeader()
    header.magic = abi.ARTIFACT_MAGIC
    header.abi_version = abi.ABI_VERSION
    header.num_sections = len(sections)
    header.total_size = end
    header.cpu_features = cpu_features
    for part in (table, *body):
        header.checksum = zlib.crc32(part, header.checksum)
    return b"".join((bytes(header), table, *body))
