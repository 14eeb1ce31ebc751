"""Serialized protobuf messages, written by hand."""

from __future__ import annotations

from collections.abc import Sequence


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def wire(field: int, value: int | bytes) -> bytes:
    """A field of a message."""
    if isinstance(value, int):
        return bytes([field << 3]) + varint(value)
    return bytes([field << 3 | 2]) + varint(len(value)) + value


def compile_options(replicas: int, partitions: int, ids: Sequence[Sequence[int]]) -> bytes:
    """A CompileOptionsProto; `ids` is a list of rows, one per replica."""
    columns = b"".join(wire(3, wire(1, b"".join(varint(row[p]) for row in ids))) for p in range(partitions))
    assignment = wire(1, replicas) + wire(2, partitions) + columns
    return wire(3, wire(4, replicas) + wire(5, partitions) + wire(9, assignment))
