"""What `diff` says about each kind of change, and that it calls the right ones incompatible."""

from __future__ import annotations

import pytest

from tests.version_sync.sources import small
from tools.version_sync.compare import compare

ADD_SLOT = ("PJRT_One);\n} PJRT_Api;", "PJRT_One);\n  _PJRT_API_STRUCT_FIELD(PJRT_Three);\n} PJRT_Api;")
READY_TRAITS = "};\nPJRT_DEFINE_STRUCT_TRAITS(PJRT_One_Args, ready)"
GROW_ONE = (READY_TRAITS, "  int64_t more;\n};\nPJRT_DEFINE_STRUCT_TRAITS(PJRT_One_Args, more)")
TAG_TRAITS = "};\nPJRT_DEFINE_STRUCT_TRAITS(PJRT_Value, tag)"
GROW_VALUE = (TAG_TRAITS, "  int64_t more;\n};\nPJRT_DEFINE_STRUCT_TRAITS(PJRT_Value, more)")
GROW_VERSION = ("  int minor_version;\n", "  int minor_version;\n  int64_t patch;\n")

# The edit, the kind of change, what it says, and why it is incompatible (None: it is not).
CASES = [
    (("MINOR 50", "MINOR 51"), "version", "0.50 -> 0.51", None),
    (("MAJOR 0", "MAJOR 1"), "version", "0.50 -> 1.50", "major version"),
    (("#define PJRT_API_MINOR 50\n", ""), "version", "0.50 -> (none)", "NEW does not say its version"),
    (ADD_SLOT, "slot_added", "slot 2", None),
    (
        ("_PJRT_API_STRUCT_FIELD(PJRT_Two);", ""),
        "slot_removed",
        "slot 0 removed; slot 0 is PJRT_One now",
        "callers of slot 0",
    ),
    (
        ("_PJRT_API_STRUCT_FIELD(PJRT_Two);", "_PJRT_API_STRUCT_FIELD(PJRT_Three); _PJRT_API_STRUCT_FIELD(PJRT_Two);"),
        "slot_moved",
        "slot 0 -> 1",
        "callers of slot 0 reach PJRT_Three",
    ),
    (GROW_ONE, "struct_grown", "41 bytes -> 56 bytes: more", None),
    ((READY_TRAITS, f"  int64_t more;\n{READY_TRAITS}"), "struct_grown", "41 bytes -> 41 bytes: more (but its", None),
    (("  bool ready;  // out\n", ""), "struct_changed", "fields removed: ready", "run past its end"),
    (("size_t num_values;\n", ""), "struct_changed", "field num_values (size_t) gave way to deleter", "something else"),
    (
        ("size_t num_values;\n", "int64_t stage;\n  size_t num_values;\n"),
        "struct_changed",
        "field stage stands before num_values",
        "inserted or rearranged",
    ),
    (("bool ready;", "int ready;"), "struct_changed", "field ready: bool -> int", "the type of a field"),
    (("bool ready;", "bool is_ready;"), "field_renamed", "field ready is called is_ready now", None),
    (
        ("const PJRT_Value* values", "PJRT_Value* values"),
        "field_retyped",
        "field values: const PJRT_Value* -> PJRT_Value*",
        None,
    ),
    (("    bool flag;\n", ""), "struct_changed", "the union has other members", "something else"),
    (GROW_VALUE, "struct_grown", "27 bytes -> 40 bytes: more", "PJRT_One_Args.values is an array of it"),
    (GROW_VERSION, "struct_changed", "field colour moves from byte 32 to 40", "because PJRT_Api_Version grew"),
    (("COLOUR_BLUE }", "COLOUR_BLUE, COLOUR_GREY }"), "enum_value_added", "COLOUR_GREY = 6", None),
    (("COLOUR_RED = 1", "COLOUR_RED = 0"), "enum_value_changed", "COLOUR_RED: 1 -> 0", "another number"),
    (("COLOUR_GREEN", "COLOUR_LIME"), "enum_value_renamed", "COLOUR_GREEN = 4 is called COLOUR_LIME now", None),
    ((", COLOUR_BLUE", ""), "enum_value_removed", "COLOUR_BLUE = 5 removed", "5 means nothing now"),
    (
        ("PJRT_Extension_Type_Second,", "PJRT_Extension_Type_Second, PJRT_Extension_Type_Third,"),
        "extension_type_added",
        "PJRT_Extension_Type_Third = 2",
        None,
    ),
    (
        ("typedef void PJRT_Two", "typedef PJRT_Error* PJRT_Two"),
        "type_changed",
        "void(PJRT_Two_Args*) -> PJRT_Error*",
        "callers",
    ),
    (
        ("typedef struct PJRT_Error PJRT_Error;", "struct PJRT_Error { const void* vtable; };"),
        "struct_opened",
        "begins with vtable (8 bytes)",
        None,
    ),
]


@pytest.mark.parametrize(("edit", "kind", "text", "why"), CASES, ids=[f"{case[1]}-{case[2]}" for case in CASES])
def test_each_kind_of_change(edit: tuple[str, str], kind: str, text: str, why: str | None):
    changes = [change for change in compare(small(), small(edit)).changes if change.kind == kind]
    matching = [change for change in changes if change.text.startswith(text)]
    assert len(matching) == 1, changes
    if why is None:
        assert matching[0].breaking is None
    else:
        assert why in (matching[0].breaking or "")


@pytest.mark.parametrize("edit", [case[0] for case in CASES if case[3] is None], ids=str)
def test_a_compatible_edit_breaks_nothing_else(edit: tuple[str, str]):
    assert compare(small(), small(edit)).breaking == []


def test_the_same_header_has_no_differences():
    assert compare(small(), small()).changes == ()


def test_a_struct_without_a_size_field_may_not_grow():
    edits = [("  size_t struct_size;\n  const char* name;", "  const char* name;"), GROW_VALUE]
    (change,) = compare(small(edits[0]), small(*edits)).breaking
    assert "no struct_size" in (change.breaking or "")


def test_padding_that_is_used_moves_no_array_elements():
    (change,) = compare(small(), small((TAG_TRAITS, f"  char more;\n{TAG_TRAITS}"))).changes
    assert (change.kind, change.breaking) == ("struct_grown", None)
