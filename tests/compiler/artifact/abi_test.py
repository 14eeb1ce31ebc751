"""The Python mirror of program_abi.h says what the header says."""

import ctypes
import re
from pathlib import Path

import pytest

from treadle.compiler.artifact import abi

HEADER = Path("plugin/runtime/program_abi.h")
TEXT = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
CONSTANTS = dict(re.findall(r"#define (TREADLE_\w+) +(\S+)\n", TEXT))
TYPES = {
    "uint32_t": (ctypes.c_uint32, 4),
    "int32_t": (ctypes.c_int32, 4),
    "uint64_t": (ctypes.c_uint64, 8),
    "int64_t": (ctypes.c_int64, 8),
    "TreadleString": (abi.String, 8),
}


def macro_list(name):
    """The body of an X-macro, its line continuations joined."""
    found = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*\n)", TEXT)
    assert found is not None
    return found[1]


def test_constants():
    assert int(CONSTANTS["TREADLE_ABI_VERSION"]) == abi.ABI_VERSION
    assert int(CONSTANTS["TREADLE_MAX_BATCH"]) == abi.MAX_BATCH
    assert int(CONSTANTS["TREADLE_MAX_SPATIAL"]) == abi.MAX_SPATIAL
    assert CONSTANTS["TREADLE_ARTIFACT_MAGIC"] == '"TREADLE\\n"'
    assert abi.ARTIFACT_MAGIC == b"TREADLE\n"


def test_cpu_features():
    listed = re.findall(r"X\(\w+, (\d+), \"([^\"]+)\"\)", macro_list("TREADLE_CPU_FEATURES"))
    assert {name: int(bit) for bit, name in listed} == abi.CPU_FEATURES


def test_runtime_symbols():
    assert set(re.findall(r"X\((\w+)\)", macro_list("TREADLE_RUNTIME_SYMBOLS"))) == abi.RUNTIME_SYMBOLS


@pytest.mark.parametrize(
    ("enum", "prefix", "mirror"),
    [
        ("TreadleSectionKind", "TREADLE_SECTION_", abi.SectionKind),
        ("TreadleBufferFlags", "TREADLE_BUFFER_", abi.BufferFlags),
    ],
)
def test_enums(enum, prefix, mirror):
    found = re.search(rf"enum {enum} {{(.*?)}};", TEXT, re.DOTALL)
    assert found is not None
    values = {}
    for name, value in re.findall(r"(\w+) = ([^,}\n]+)", found[1]):
        shift = re.fullmatch(r"1u << (\d+)", value.strip())
        values[name.removeprefix(prefix)] = 1 << int(shift[1]) if shift else int(value)
    assert values == {member.name: member.value for member in mirror}


def fields_in_header(struct):
    """(name, type, array length or None) of each field."""
    found = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", TEXT, re.DOTALL)
    assert found is not None, f"{struct} is not in the header"
    fields = []
    for kind, names in re.findall(r"(?:const )?(\w+\*?) ([^;]+);", found[1]):
        for declared in names.split(","):
            match = re.fullmatch(r"\s*(\w+)(?:\[([^\]]+)\])?\s*", declared)
            assert match is not None
            length = match[2] and eval(match[2], {k: int(v) for k, v in CONSTANTS.items() if v.isdecimal()})
            fields.append((match[1], kind, length))
    return fields


@pytest.mark.parametrize("struct", abi.STRUCTS)
def test_structs(struct):
    mirror = abi.STRUCTS[struct]
    declared = fields_in_header(struct)
    assert [name for name, _, _ in declared] == [name for name, *_ in mirror._fields_]
    owns = [field[1] for field in mirror._fields_]
    for (name, kind, length), own in zip(declared, owns, strict=True):
        if kind.endswith("*"):
            assert own is ctypes.c_void_p, name
        elif kind == "char":
            assert own is ctypes.c_char * length, name
        else:
            base, _ = TYPES[kind]
            assert own is (base * length if length else base), name


def test_every_struct_has_a_mirror():
    declared = re.findall(r"typedef struct (\w+) {", TEXT)
    assert set(declared) == set(abi.STRUCTS)
