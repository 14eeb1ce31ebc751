"""Sizes and offsets of a header's structs, as the x86-64 System V ABI lays them out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tools.version_sync.header import Field, Header

_BASIC = {
    "bool": 1,
    "char": 1,
    "int8_t": 1,
    "uint8_t": 1,
    "int16_t": 2,
    "uint16_t": 2,
    "int": 4,
    "unsigned": 4,
    "unsigned int": 4,
    "float": 4,
    "int32_t": 4,
    "uint32_t": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "double": 8,
    "long": 8,
    "size_t": 8,
    "intptr_t": 8,
    "uintptr_t": 8,
}


class Layout:
    """The layout of one header's types. What it cannot know is None."""

    def __init__(self, header: Header):
        self._header = header
        self._known: dict[str, tuple[int, int] | None] = {}

    def size(self, name: str) -> int | None:
        """sizeof a type."""
        found = self._measure(name)
        return found[0] if found else None

    def struct_size(self, name: str) -> int | None:
        """NAME_STRUCT_SIZE: where the last field ends, without the padding behind it."""
        struct = self._header.structs[name]
        offsets = self.offsets(struct.fields)
        for entry, offset in zip(reversed(struct.fields), reversed(offsets or ()), strict=False):
            if struct.last_field in (None, entry.name) and (measured := self._field(entry)):
                return offset + measured[0]
        return None

    def offsets(self, fields: Sequence[Field]) -> list[int] | None:
        """The offset of each field, or None if the size of one is not known."""
        offsets = []
        end = 0
        for entry in fields:
            measured = self._field(entry)
            if measured is None:
                return None
            size, alignment = measured
            start = -(-end // alignment) * alignment
            offsets.append(start)
            end = start + size
        return offsets

    def _field(self, entry: Field) -> tuple[int, int] | None:
        if entry.members:
            return self._aggregate(entry.members, entry.type == "union")
        return self._measure(entry.type)

    def _aggregate(self, fields: Sequence[Field], union: bool) -> tuple[int, int] | None:
        parts = [self._field(entry) for entry in fields]
        known = [part for part in parts if part]
        offsets = self.offsets(fields)
        if offsets is None or len(known) != len(parts):
            return None
        alignment = max((part[1] for part in known), default=1)
        starts = [0] * len(known) if union else offsets
        end = max((start + part[0] for start, part in zip(starts, known, strict=True)), default=0)
        return -(-end // alignment) * alignment, alignment

    def _measure(self, name: str) -> tuple[int, int] | None:
        name = re.sub(r"\bconst\b ?", "", name).strip()
        if name not in self._known:
            self._known[name] = None  # a struct that holds itself has no size
            self._known[name] = self._compute(name)
        return self._known[name]

    def _compute(self, name: str) -> tuple[int, int] | None:
        if name.endswith("*") or "(*)" in name:
            return 8, 8
        if match := re.fullmatch(r"(.*?)\[(\w+)\](.*)", name):
            element = self._measure(match[1] + match[3])
            count = int(match[2], 0) if match[2].isdigit() else self._header.number(match[2])
            return (element[0] * count, element[1]) if element and count is not None else None
        if name in _BASIC:
            return _BASIC[name], _BASIC[name]
        if name in self._header.enums:
            return self._measure(self._header.enums[name].underlying)
        if name in self._header.structs:
            return self._aggregate(self._header.structs[name].fields, union=False)
        if name in self._header.types:
            return self._measure(self._header.types[name])
        return None
