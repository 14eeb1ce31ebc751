"""`diff OLD NEW`: what changed between two sets of XLA's C headers.

OLD and NEW are each a directory that holds xla/, one header file, or a PJRT version whose
headers can be fetched (the pinned one and those that versions.toml lists as older).

Exit codes: 0 no difference, 3 differences that are all compatible, 4 an incompatible
change, 5 headers that cannot be had or read.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.version_sync import checkout
from tools.version_sync.compare import Change, Difference, compare, part_of
from tools.version_sync.header import Header, read
from tools.version_sync.layout import Layout
from tools.version_sync.preprocess import HeaderError
from tools.version_sync.registry import RegistryError

SCHEMA = "treadle-diff-1"
SAME, COMPATIBLE, INCOMPATIBLE, UNKNOWN = 0, 3, 4, 5

# The order in which changes are shown, and their headings.
_HEADINGS = {
    "slot_removed": "Slots removed",
    "slot_moved": "Slots moved",
    "slot_added": "Slots added",
    "struct_changed": "Structs changed",
    "struct_removed": "Structs removed",
    "struct_grown": "Structs grown",
    "field_renamed": "Fields renamed",
    "field_retyped": "Fields whose type is spelled differently",
    "struct_opened": "Opaque types that have a layout now",
    "struct_added": "Structs added",
    "extension_type_added": "Extension types added",
    "extension_version": "Extension versions",
    "enum_removed": "Enums removed",
    "enum_value_removed": "Enum values removed",
    "enum_value_changed": "Enum values changed",
    "enum_value_renamed": "Enum values renamed",
    "enum_value_added": "Enum values added",
    "enum_retyped": "Enums stored differently",
    "enum_added": "Enums added",
    "type_changed": "Function types and typedefs changed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what `diff` takes."""
    parser.add_argument("old", metavar="OLD", help="a directory with xla/, a header file, or a PJRT version")
    parser.add_argument("new", metavar="NEW", help="likewise")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def find_headers(given: str, root: Path) -> Path:
    """Where the headers are that a command line names.

    Raises:
        HeaderError: there is no such directory, file or version.
        RegistryError: the named version cannot be fetched.
    """
    path = Path(given)
    if not path.exists():
        try:
            path = checkout.named_headers(given, root)
        except KeyError as error:
            names = ", ".join(checkout.header_names(root))
            raise HeaderError(
                f"{given} is no directory or file here, and the versions known by name are {names}"
            ) from error
    return path


def describe(given: str, header: Header) -> dict[str, Any]:
    """What a set of headers is, for the JSON output."""
    return {
        "given": given,
        "pjrt_api": header.version("PJRT_API"),
        "ffi_api": header.version("XLA_FFI_API"),
        "slots": len(header.slots),
        "table_size": Layout(header).struct_size("PJRT_Api") if "PJRT_Api" in header.structs else None,
        "structs": len(header.structs),
        "files": header.files,
        "unread": header.unread,
    }


def _entry(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "name": change.name,
        "text": change.text,
        "file": change.file,
        "part": change.part,
        "breaking": change.breaking,
        **change.details,
    }


def verdicts(difference: Difference, old: Header, new: Header) -> dict[str, str]:
    """For each part that both sets have: same, compatible or incompatible."""
    only = {*difference.only_old, *difference.only_new}
    parts = sorted({part_of(file) for file in (*old.files, *new.files) if file not in only})
    found = {}
    for part in parts:
        changes = [change for change in difference.changes if change.part == part]
        breaking = any(change.breaking for change in changes)
        found[part] = "incompatible" if breaking else "compatible" if changes else "same"
    return found


def exit_code(difference: Difference) -> int:
    """What the program says to a script."""
    return INCOMPATIBLE if difference.breaking else COMPATIBLE if difference.changes else SAME


def to_json(sides: Sequence[dict[str, Any]], difference: Difference, parts: dict[str, str]) -> dict[str, Any]:
    """The whole answer."""
    return {
        "schema": SCHEMA,
        "old": sides[0],
        "new": sides[1],
        "compatible": not difference.breaking,
        "verdicts": parts,
        "reasons": [_reason(change) for change in difference.breaking],
        "changes": [_entry(change) for change in difference.changes],
        "not_compared": {"only_in_old": list(difference.only_old), "only_in_new": list(difference.only_new)},
    }


def _reason(change: Change) -> str:
    return f"{change.name}: {change.text}: {change.breaking}"


def to_text(sides: Sequence[dict[str, Any]], difference: Difference, parts: dict[str, str]) -> str:
    """The whole answer, for people."""
    old, new = sides
    lines = []
    for name, key in (("PJRT", "pjrt_api"), ("FFI", "ffi_api")):
        if old[key] or new[key]:
            lines.append(f"{name:5} {old[key] or '(not in OLD)'} -> {new[key] or '(not in NEW)'}")
    broken = [change for change in difference.breaking if change.kind == "version"]
    lines += [f"  {change.name}: INCOMPATIBLE: {change.breaking}" for change in broken]
    lines.append(f"slots {old['slots']} -> {new['slots']}, PJRT_Api {old['table_size']} -> {new['table_size']} bytes")
    for kind, heading in _HEADINGS.items():
        group = [change for change in difference.changes if change.kind == kind]
        if not group:
            continue
        lines += ["", f"{heading} ({len(group)})"]
        width = max(len(change.name) for change in group)
        for change in group:
            lines.append(f"  {change.name:{width}}  {change.text}")
            if change.breaking:
                lines.append(f"  {'':{width}}  INCOMPATIBLE: {change.breaking}")
    for files, here, there in ((difference.only_new, "NEW", "OLD"), (difference.only_old, "OLD", "NEW")):
        if files:
            lines += [
                "",
                f"Not compared, because only {here} has these files (which {there}'s package may just not carry):",
            ]
            lines += [f"  {file}" for file in files]
    lines.append("")
    for part, verdict in parts.items():
        reasons = [change.breaking for change in difference.breaking if change.part == part]
        said = {
            "same": "nothing changed",
            "compatible": "compatible: things were only added at the end",
            "incompatible": f"INCOMPATIBLE: what was built with OLD breaks at {len(reasons)} places",
        }[verdict]
        lines.append(f"{part}: {said}")
    for side, name in ((old, "OLD"), (new, "NEW")):
        lines += [f"{name}, not understood: {entry}" for entry in side["unread"]]
    return "\n".join(lines)


def run(options: argparse.Namespace) -> int:
    """Compares and prints; gives the exit code."""
    root = checkout.root()
    try:
        paths = [find_headers(given, root) for given in (options.old, options.new)]
        # Two files are meant to be compared, whatever they are called.
        name = paths[0].name if all(path.is_file() for path in paths) else ""
        headers = [read(path, name) for path in paths]
    except (HeaderError, RegistryError) as error:
        return checkout.cannot("diff", SCHEMA, str(error), UNKNOWN, options.json)
    difference = compare(*headers)
    sides = [describe(given, header) for given, header in zip((options.old, options.new), headers, strict=True)]
    parts = verdicts(difference, *headers)
    if options.json:
        print(json.dumps(to_json(sides, difference, parts), indent=2))
    else:
        print(to_text(sides, difference, parts))
    return exit_code(difference)
