"""The header sets that are made from the pinned one: `diff` agrees with what they claim to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.version_sync import variants
from tools.version_sync.compare import compare
from tools.version_sync.header import PJRT, Header, parse, read

PINNED = Path(os.environ["RUNFILES_DIR"]) / "xla_headers"
TEXT = (PINNED / "xla" / PJRT).read_text()


def parsed(text: str) -> Header:
    header = Header()
    parse(text, header, PJRT)
    return header


def test_the_older_one_lacks_what_was_added_since():
    older = parsed(variants.older(TEXT, 112))
    assert older.version("PJRT_API") == "0.112"
    difference = compare(older, parsed(TEXT))
    assert difference.breaking == []
    assert [(change.kind, change.name) for change in difference.changes] == [
        ("version", "PJRT"),
        ("struct_grown", "PJRT_Device_MemoryStats_Args"),
        ("enum_value_added", "PJRT_Buffer_Type"),
        ("enum_value_added", "PJRT_Buffer_Type"),
    ]
    assert "185 bytes -> 201 bytes" in difference.changes[1].text


def test_the_newer_one_adds_and_breaks_nothing(tmp_path: Path):
    folder = variants.write(PINNED, tmp_path / "newer", variants.newer(TEXT))
    difference = compare(read(PINNED), read(folder))
    assert difference.breaking == []
    assert {change.kind for change in difference.changes} == {
        "version",
        "slot_added",
        "struct_added",
        "struct_grown",
        "extension_type_added",
        "enum_value_added",
    }
    assert read(folder).slots[-1] == variants.NEW_SLOT


def test_what_is_not_known_cannot_be_taken_back():
    with pytest.raises(ValueError, match=r"what PJRT 0\.96 added is not known"):
        variants.older(variants._with_minor(TEXT, 96), 95)
    with pytest.raises(ValueError, match="it cannot be taken out"):
        variants._without(TEXT, "PJRT_LoadOptions")
