"""The container of MLIR bytecode, checked before MLIR reads it.

MLIR's reader is meant for what MLIR wrote. Some damage makes it crash, or allocate without end,
where an error would do. So everything that it trusts is checked here first: that sections, counts
and indices lie inside the file, that strings are UTF-8, that attributes and types do not contain
themselves. A file of a newer bytecode version is left to MLIR.

The check is Python and costs about a quarter of an import, hence the terse loops.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

MAGIC = b"ML\xefR"

# Versions whose layout is known here: from the first with properties to the newest of MLIR.
_MIN_VERSION = 5
_MAX_VERSION = 6


class Section(enum.IntEnum):
    """Section ids."""

    STRING = 0
    DIALECT = 1
    ATTR_TYPE = 2
    ATTR_TYPE_OFFSET = 3
    IR = 4
    RESOURCE = 5
    RESOURCE_OFFSET = 6
    DIALECT_VERSIONS = 7
    PROPERTIES = 8


_REQUIRED = (Section.STRING, Section.DIALECT, Section.ATTR_TYPE, Section.ATTR_TYPE_OFFSET, Section.IR)


class BytecodeError(ValueError):
    """Bytes that MLIR did not write."""


class Entry:
    """An attribute or a type in the file.

    Attributes:
      dialect: the dialect that encoded it.
      start: where its bytes begin.
      end: where they end.
      custom: encoded by the dialect; otherwise its assembly text.
    """

    __slots__ = ("custom", "dialect", "end", "start")

    def __init__(self, dialect: str, start: int, end: int, custom: bool):
        self.dialect = dialect
        self.start = start
        self.end = end
        self.custom = custom


class Tables:
    """What the IR section refers to by index.

    Attributes:
      data: the file.
      strings: all strings.
      op_names: with dialect, and whether the op was registered when written.
      attributes: all attributes.
      types: all types.
      properties: start and end of each property blob.
    """

    def __init__(self, data: bytes):
        self.data = data
        self.strings: list[str] = []
        self.op_names: list[tuple[str, bool]] = []
        self.attributes: list[Entry] = []
        self.types: list[Entry] = []
        self.properties: list[tuple[int, int]] = []


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next byte is. The low bits of its first byte tell its length."""
    first = data[at]
    if first & 1:
        return first >> 1, at + 1
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    size = (first & -first).bit_length()
    return int.from_bytes(data[at : at + size], "little") >> size, at + size


def read_tables(data: bytes) -> tuple[Tables, tuple[int, int]] | None:
    """The tables of a bytecode file, and where its IR section is; None for a newer version.

    Raises:
      BytecodeError: with what is wrong.
    """
    try:
        return _read_tables(data)
    except IndexError:
        raise BytecodeError("it ends in the middle of its tables") from None


def _read_tables(data: bytes) -> tuple[Tables, tuple[int, int]] | None:
    version, at = varint(data, len(MAGIC))
    if version < _MIN_VERSION:
        raise BytecodeError(
            f"its bytecode has version {version}, and no jaxlib that Treadle runs with writes one below 5"
        )
    if version > _MAX_VERSION:
        return None
    end_of_producer = data.find(b"\0", at)
    if end_of_producer < 0:
        raise BytecodeError("the name of its producer has no end")
    _utf8(data[at:end_of_producer], "the name of its producer")
    at = end_of_producer + 1
    sections: dict[int, tuple[int, int]] = {}
    while at < len(data):
        number, start, at = section(data, at, len(data))
        if number in sections:
            raise BytecodeError(f"section {number} appears twice")
        sections[number] = (start, at)
    for needed in _REQUIRED:
        if needed not in sections:
            raise BytecodeError(f"its {needed.name} section is missing")
    tables = Tables(data)
    _read_strings(tables, *sections[Section.STRING])
    dialects = _read_dialects(tables, *sections[Section.DIALECT])
    _read_entries(tables, dialects, sections[Section.ATTR_TYPE], *sections[Section.ATTR_TYPE_OFFSET])
    if Section.PROPERTIES in sections:
        _read_properties(tables, *sections[Section.PROPERTIES])
    return tables, sections[Section.IR]


def section(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Id, start and end of the section whose header is at `at`."""
    head = data[at]
    number = head & 0x7F
    size, at = varint(data, at + 1)
    if head & 0x80:
        alignment, at = varint(data, at)
        if alignment == 0 or alignment & (alignment - 1) or alignment > 1 << 20:
            raise BytecodeError(f"section {number} has the alignment {alignment}")
        at = -(-at // alignment) * alignment
    if number > max(Section) or size > end - at:
        raise BytecodeError(f"section {number} has {size} bytes where {max(0, end - at)} are left")
    return number, at, at + size


def _utf8(raw: bytes, what: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BytecodeError(f"{what}, {raw[:40]!r}, is not valid UTF-8") from None


def count(data: bytes, at: int, end: int, what: str) -> tuple[int, int]:
    """A number of things that take at least a byte each."""
    number, at = varint(data, at)
    if number > end - at:
        raise BytecodeError(f"it claims to have {number} {what} in {max(0, end - at)} bytes")
    return number, at


def _read_strings(tables: Tables, at: int, end: int) -> None:
    """Sizes come first, last string's first, then the strings with a zero after each."""
    data = tables.data
    number, at = count(data, at, end, "strings")
    sizes = []
    for _ in range(number):
        size, at = varint(data, at)
        sizes.append(size)
    if sum(sizes) != end - at:
        raise BytecodeError(f"its strings have {sum(sizes)} bytes in {max(0, end - at)}")
    for size in reversed(sizes):
        if size == 0 or data[at + size - 1] != 0:
            raise BytecodeError("one of its strings has no end")
        tables.strings.append(_utf8(data[at : at + size - 1], "one of its strings"))
        at += size


def _item(items: Sequence[str], index: int, what: str) -> str:
    if index >= len(items):
        raise BytecodeError(f"{what} {index} is used and there are {len(items)}")
    return items[index]


def _read_dialects(tables: Tables, at: int, end: int) -> list[str]:
    data = tables.data
    number, at = count(data, at, end, "dialects")
    dialects = []
    for _ in range(number):
        name, at = varint(data, at)
        dialects.append(_item(tables.strings, name >> 1, "string"))
        if name & 1:
            _, _, at = section(data, at, end)
    total, at = count(data, at, end, "op names")
    while at < end:
        dialect, at = varint(data, at)
        prefix = _item(dialects, dialect, "dialect")
        group, at = count(data, at, end, "op names")
        for _ in range(group):
            name, at = varint(data, at)
            tables.op_names.append((f"{prefix}.{_item(tables.strings, name >> 1, 'string')}", bool(name & 1)))
    if len(tables.op_names) != total or at != end:
        raise BytecodeError(f"it lists {len(tables.op_names)} op names and claims {total}")
    return dialects


def _read_entries(tables: Tables, dialects: list[str], where: tuple[int, int], at: int, end: int) -> None:
    data = tables.data
    start, limit = where
    num_attributes, at = count(data, at, end, "attributes")
    num_types, at = count(data, at, end, "types")
    entries: list[Entry] = []
    while at < end:
        dialect, at = varint(data, at)
        name = _item(dialects, dialect, "dialect")
        group, at = count(data, at, end, "attributes or types")
        for _ in range(group):
            size, at = varint(data, at)
            custom, size = bool(size & 1), size >> 1
            if size > limit - start:
                raise BytecodeError(f"an attribute or type has {size} bytes where {limit - start} are left")
            entries.append(Entry(name, start, start + size, custom))
            start += size
    if len(entries) != num_attributes + num_types or at != end:
        raise BytecodeError(f"it has {len(entries)} attributes and types and claims {num_attributes + num_types}")
    tables.attributes = entries[:num_attributes]
    tables.types = entries[num_attributes:]


def _read_properties(tables: Tables, at: int, end: int) -> None:
    data = tables.data
    number, at = count(data, at, end, "property lists")
    for _ in range(number):
        size, at = varint(data, at)
        if size > end - at:
            raise BytecodeError(f"a property list has {size} bytes where {max(0, end - at)} are left")
        tables.properties.append((at, at + size))
        at += size
