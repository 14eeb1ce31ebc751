"""What changed between two sets of XLA's C headers, and what of it breaks binary compatibility.

The rule of PJRT (and of XLA's FFI) is that structs and the table of functions only
grow at their ends: whoever was built with the older header finds everything where it
was, and `struct_size` tells both sides how much the other one knows. A change of any
other kind is breaking, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tools.version_sync.header import FFI, PJRT, Enum, Field, Header, Struct
from tools.version_sync.layout import Layout

TABLE = "PJRT_Api"
EXTENSION_TYPES = "PJRT_Extension_Type"


@dataclass(frozen=True)
class Change:
    """One difference. `breaking` is the reason why it is not compatible, or None."""

    kind: str
    name: str
    text: str
    file: str
    breaking: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> str:
        """What the change concerns: PJRT, FFI, or the file of an extension."""
        return part_of(self.file)


def part_of(file: str) -> str:
    """The part of the interface that a header file is about."""
    if match := re.search(r"pjrt_c_api_(\w+?)(?:_extension)?\.h$", file):
        return f"extension {match[1]}"
    if file.endswith("profiler_c_api.h"):
        return "extension profiler"
    return "FFI" if file.endswith(FFI.rpartition("/")[2]) and not file.endswith("pjrt_c_api.h") else "PJRT"


@dataclass(frozen=True)
class Difference:
    """All changes from one header set to another; `only_old` and `only_new` are files that the other has not."""

    changes: tuple[Change, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]

    @property
    def breaking(self) -> list[Change]:
        """The changes that are not compatible."""
        return [change for change in self.changes if change.breaking]


def compare(old: Header, new: Header) -> Difference:
    """Compares what both sets declare. What stands in a file that only one of them has is not a change."""
    comparison = _Comparison(old, new)
    changes = [
        *comparison.versions(),
        *comparison.slots(),
        *comparison.structs(),
        *comparison.enums(),
        *comparison.types(),
        *comparison.extensions(),
    ]
    common = {_base(file) for file in old.files} & {_base(file) for file in new.files}
    return Difference(
        tuple(changes),
        tuple(file for file in old.files if _base(file) not in common),
        tuple(file for file in new.files if _base(file) not in common),
    )


def _base(file: str) -> str:
    return file.rpartition("/")[2]


class _Comparison:
    def __init__(self, old: Header, new: Header):
        self._old = old
        self._new = new
        self._old_layout = Layout(old)
        self._new_layout = Layout(new)
        self._common = {_base(file) for file in old.files} & {_base(file) for file in new.files}

    def versions(self) -> Iterator[Change]:
        """PJRT's and FFI's version numbers."""
        for prefix, name, file in (("PJRT_API", "PJRT", PJRT), ("XLA_FFI_API", "FFI", FFI)):
            old, new = self._old.version(prefix), self._new.version(prefix)
            if old == new:
                continue
            breaking = None
            if old is None or new is None:
                if not self._shared(file):  # one side has no such header: nothing is known of its version
                    continue
                breaking = f"{'OLD' if old is None else 'NEW'} does not say its version"
            elif old.partition(".")[0] != new.partition(".")[0]:
                breaking = "the major version is another"
            text = f"{old or '(none)'} -> {new or '(none)'}"
            yield Change("version", name, text, file, breaking, {"old": old, "new": new})

    def slots(self) -> Iterator[Change]:
        """The function pointers of PJRT_Api."""
        old, new = self._old.slots, self._new.slots
        places = {name: index for index, name in enumerate(new)}
        for index, name in enumerate(old):
            place = places.get(name)
            if place is None:
                instead = f"; slot {index} is {new[index]} now" if index < len(new) else ""
                why = f"callers of slot {index} reach another function or none"
                yield Change("slot_removed", name, f"slot {index} removed{instead}", PJRT, why, {"old_index": index})
            elif place != index:
                why = f"callers of slot {index} reach {new[index] if index < len(new) else 'nothing'}"
                where = {"old_index": index, "new_index": place}
                yield Change("slot_moved", name, f"slot {index} -> {place}", PJRT, why, where)
        known = set(old)
        for index, name in enumerate(new):
            if name not in known:
                yield Change("slot_added", name, f"slot {index}", PJRT, None, {"new_index": index})

    def _shared(self, file: str) -> bool:
        return _base(file) in self._common

    def structs(self) -> Iterator[Change]:
        """Structs by name, and their fields by place."""
        for name, struct in self._old.structs.items():
            if name not in self._new.structs:
                if self._shared(struct.file):
                    yield Change(
                        "struct_removed", name, "struct removed", struct.file, "nothing passes or reads it now"
                    )
            elif name != TABLE:
                yield from self._struct(struct, self._new.structs[name])
        for name, struct in self._new.structs.items():
            if name not in self._old.structs and self._shared(struct.file):
                size = self._new_layout.struct_size(name)
                details = {"new_size": size}
                if name in self._old.opaque:
                    first = struct.fields[0].name if struct.fields else "nothing"
                    text = f"begins with {first} ({_bytes(size)}): to be read only where the maker's version has it"
                    yield Change("struct_opened", name, text, struct.file, None, details)
                else:
                    yield Change("struct_added", name, _bytes(size), struct.file, None, details)

    def _struct(self, old: Struct, new: Struct) -> Iterator[Change]:
        kept = min(len(old.fields), len(new.fields))
        for before, after in zip(old.fields, new.fields, strict=False):
            if before == after:
                continue
            if self._same_type(before, after) and not self._elsewhere(before, after, old, new):
                text = f"field {before.name} is called {after.name} now"
                yield Change("field_renamed", new.name, text, new.file)
                continue
            if (
                before.name == after.name
                and _without_const(before.type) == _without_const(after.type)
                and not (before.members or after.members)
            ):
                text = f"field {before.name}: {before.type} -> {after.type}"
                yield Change("field_retyped", new.name, text, new.file)
                continue
            yield self._broken(old, new, before, after)
            return
        sizes = self._old_layout.struct_size(old.name), self._new_layout.struct_size(new.name)
        details: dict[str, Any] = {"old_size": sizes[0], "new_size": sizes[1]}
        if len(new.fields) < len(old.fields):
            gone = [entry.name for entry in old.fields[kept:]]
            text = f"fields removed: {', '.join(gone)}"
            yield Change("struct_changed", new.name, text, new.file, "readers of them run past its end", details)
            return
        moved = self._moved(old, new)
        added = new.fields[kept:]
        if added:
            shown = ", ".join(entry.name or entry.type for entry in added)
            details |= {"fields": [{"name": entry.name, "type": entry.type} for entry in added]}
            text = f"{_bytes(sizes[0])} -> {_bytes(sizes[1])}: {shown}"
            if sizes[0] == sizes[1]:
                text += f" (but its struct_size still ends at {new.last_field}, so a reader cannot see them)"
            yield Change("struct_grown", new.name, text, new.file, moved or self._cannot_grow(old), details)
        elif moved:
            yield Change("struct_changed", new.name, moved, new.file, moved, details)

    def _elsewhere(self, before: Field, after: Field, old: Struct, new: Struct) -> bool:
        """Whether this is no renaming, because one of the two names is at another place of the other struct."""
        return before.name in {entry.name for entry in new.fields} or after.name in {entry.name for entry in old.fields}

    def _same_type(self, before: Field, after: Field) -> bool:
        return before.type == after.type and before.members == after.members

    def _broken(self, old: Struct, new: Struct, before: Field, after: Field) -> Change:
        old_names = [entry.name for entry in old.fields]
        new_names = [entry.name for entry in new.fields]
        if before.name in new_names and new_names.index(before.name) != old_names.index(before.name):
            text = f"field {after.name} stands before {before.name}"
            why = "fields are inserted or rearranged, not appended"
        elif before.name not in new_names:
            text = f"field {before.name} ({before.type}) gave way to {after.name} ({after.type})"
            why = "the same place means something else"
        elif before.members:
            text = f"the {before.type} {before.name} has other members".replace("  ", " ")
            why = "the same place means something else"
        else:
            text = f"field {before.name}: {before.type} -> {after.type}"
            why = "the type of a field is another"
        sizes = {"old_size": self._old_layout.struct_size(old.name), "new_size": self._new_layout.struct_size(new.name)}
        return Change("struct_changed", new.name, text, new.file, why, sizes)

    def _moved(self, old: Struct, new: Struct) -> str | None:
        """Fields keep their names and types, but a struct among them grew and pushed the rest."""
        before = self._old_layout.offsets(old.fields)
        after = self._new_layout.offsets(new.fields)
        for index, (one, two) in enumerate(zip(before or (), after or (), strict=False)):
            if one != two:
                cause = old.fields[index - 1].type
                return f"field {old.fields[index].name} moves from byte {one} to {two}, because {cause} grew"
        return None

    def _cannot_grow(self, old: Struct) -> str | None:
        """Why a struct may not even grow at its end, or None."""
        if not old.fields or old.fields[0].name not in ("struct_size", "base"):
            return "it has no struct_size, so a reader cannot tell which of the two it was given"
        if self._old_layout.size(old.name) == self._new_layout.size(old.name):
            return None
        for struct in self._old.structs.values():
            names = {entry.name for entry in struct.fields}
            for entry in struct.fields:
                if re.fullmatch(rf"(const )?{old.name}\*", entry.type) and f"num_{entry.name}" in names:
                    return f"{struct.name}.{entry.name} is an array of it, whose elements move apart"
        return None

    def enums(self) -> Iterator[Change]:
        """Enums by name, and their values."""
        for name, enum in self._old.enums.items():
            if name not in self._new.enums:
                if self._shared(enum.file):
                    yield Change("enum_removed", name, "enum removed", enum.file, "its values mean nothing now")
                continue
            yield from self._enum(enum, self._new.enums[name])
        for name, enum in self._new.enums.items():
            if name not in self._old.enums and self._shared(enum.file):
                yield Change("enum_added", name, f"{len(enum.values)} values", enum.file)

    def _enum(self, old: Enum, new: Enum) -> Iterator[Change]:
        numbers = {number: name for name, number in new.values.items()}
        renamed = set()
        for name, number in old.values.items():
            found = new.values.get(name)
            if found == number:
                continue
            if found is not None:
                text = f"{name}: {number} -> {found}"
                yield Change("enum_value_changed", new.name, text, new.file, "the same name is another number")
            elif number in numbers and numbers[number] not in old.values:
                renamed.add(numbers[number])
                text = f"{name} = {number} is called {numbers[number]} now"
                yield Change("enum_value_renamed", new.name, text, new.file)
            else:
                gone = f"{number} means nothing now" if number not in numbers else f"{number} is {numbers[number]} now"
                yield Change("enum_value_removed", new.name, f"{name} = {number} removed", new.file, gone)
        kind = "extension_type_added" if new.name == EXTENSION_TYPES else "enum_value_added"
        for name, number in new.values.items():
            if name not in old.values and name not in renamed:
                yield Change(kind, new.name, f"{name} = {number}", new.file, None, {"value": number})
        if old.underlying != new.underlying:
            text = f"stored as {old.underlying} -> {new.underlying}"
            sizes = self._old_layout.size(old.underlying), self._new_layout.size(new.underlying)
            why = "its size is another" if sizes[0] != sizes[1] else None
            yield Change("enum_retyped", new.name, text, new.file, why)

    def types(self) -> Iterator[Change]:
        """The types of functions, and other typedefs."""
        for name, before in self._old.types.items():
            after = self._new.types.get(name)
            # A type that went with its struct or its slot was reported there.
            if after is not None and before != after:
                same = _without_const(before) == _without_const(after)
                why = None if same else "callers pass or expect something else"
                yield Change("type_changed", name, f"{before} -> {after}", self._file(name), why)

    def _file(self, name: str) -> str:
        """The file that a function type is from, by its arguments' struct."""
        struct = self._new.structs.get(f"{name}_Args")
        return struct.file if struct else FFI if name.startswith("XLA_FFI") else PJRT

    def extensions(self) -> Iterator[Change]:
        """The versions of the extensions."""
        old, new = self._old.extensions, self._new.extensions
        for name, before in old.items():
            after = new.get(name)
            file = f"pjrt/c/pjrt_c_api_{name.lower()}_extension.h"
            if after is not None and after != before:
                details = {"old": before, "new": after}
                yield Change("extension_version", name, f"{before} -> {after}", file, None, details)


def _without_const(text: str) -> str:
    return re.sub(r"\bconst\b ?", "", text)


def _bytes(size: int | None) -> str:
    return "? bytes" if size is None else f"{size} bytes"
