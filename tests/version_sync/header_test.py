"""The parser of C headers: on a small one, on what is not C, and on the pinned ones, against the compiler."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.version_sync.sources import SMALL, small
from tools.version_sync.header import Field, Header, parse, read
from tools.version_sync.layout import Layout
from tools.version_sync.preprocess import HeaderError

PINNED = Path(os.environ["RUNFILES_DIR"]) / "xla_headers"


def test_versions_and_slots():
    header = small()
    assert header.version("PJRT_API") == "0.50"
    assert header.version("XLA_FFI_API") is None
    assert header.slots == ["PJRT_Two", "PJRT_One"]
    assert header.structs["PJRT_Api"].last_field == "PJRT_One"
    assert header.unread == []


def test_structs_enums_and_types():
    header = small()
    assert header.structs["PJRT_One_Args"].fields == (
        Field("struct_size", "size_t"),
        Field("values", "const PJRT_Value*"),
        Field("num_values", "size_t"),
        Field("deleter", "PJRT_Deleter"),
        Field("done", "void(*)(PJRT_Error*, void*)"),
        Field("ready", "bool"),
    )
    assert header.structs["PJRT_Two_Args"].last_field == "colour"
    assert header.enums["Colour"].values == {"COLOUR_RED": 1, "COLOUR_GREEN": 4, "COLOUR_BLUE": 5}
    assert header.enums["PJRT_Extension_Type"].values == {
        "PJRT_Extension_Type_First": 0,
        "PJRT_Extension_Type_Second": 1,
    }
    assert header.types["PJRT_One"] == "PJRT_Error*(PJRT_One_Args*)"
    assert header.types["PJRT_Deleter"] == "void(*)(char*)"
    assert header.opaque == {"PJRT_Error"}
    assert not {"Wrong", "Commented"} & header.structs.keys()


def test_an_anonymous_union_keeps_its_members():
    union = small().structs["PJRT_Value"].fields[2]
    assert union.type == "union"
    assert [member.name for member in union.members] == ["number", "text", "flag"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct A { int a;", "x.h: this declaration has no end: A{int a; ..."),
        ("#if 1\nint f(int a);", "x.h: 1 #if without #endif"),
        ("#endif", "x.h: #endif without #if"),
        ("#define F(x) x\ntypedef F(int", "the call of F has no end"),
    ],
)
def test_a_broken_header_is_refused(text: str, message: str):
    with pytest.raises(HeaderError, match=re.escape(message)):
        parse(text, Header(), "x.h")


def test_what_is_no_such_declaration_is_not_dropped_in_silence():
    header = Header()
    parse("int counter; enum { UNKNOWN = sizeof(int) };", header, "x.h")
    assert header.unread == ["x.h: int counter", "the value of UNKNOWN: sizeof(int)"]


def test_conditionals_are_read_as_c():
    text = """
    #ifdef __cplusplus
    typedef int Wrong;
    #elif defined(OTHER) || !defined(NEVER)
    typedef int Right;
    #else
    typedef int Never;
    #endif
    """
    header = Header()
    parse(text, header, "x.h")
    assert list(header.types) == ["Right"]


def test_a_file_or_a_directory_can_be_named(tmp_path: Path):
    (tmp_path / "xla/pjrt/c").mkdir(parents=True)
    file = tmp_path / "xla/pjrt/c/pjrt_c_api.h"
    file.write_text(SMALL)
    assert read(file).slots == read(tmp_path).slots == read(tmp_path / "xla").slots == ["PJRT_Two", "PJRT_One"]
    with pytest.raises(HeaderError, match=r"holds no xla/pjrt/c/pjrt_c_api\.h"):
        read(tmp_path / "xla/pjrt")


@pytest.fixture(scope="module")
def pinned() -> Header:
    return read(PINNED)


def test_the_pinned_headers_are_understood(pinned: Header):
    assert pinned.version("PJRT_API") == "0.114"
    assert pinned.version("XLA_FFI_API") == "0.3"
    assert len(pinned.slots) == 138
    assert (pinned.slots[0], pinned.slots[-1]) == (
        "PJRT_Error_Destroy",
        "PJRT_TopologyDescription_GetMemorySpaceKindIds",
    )
    assert pinned.extensions["LAYOUTS"] == 4
    assert pinned.enums["PJRT_Extension_Type"].values["PJRT_Extension_Type_XlaTransform"] == 24
    assert pinned.unread == []


def test_every_size_is_the_compilers(pinned: Header, tmp_path: Path):
    includes = "".join(f'#include "xla/{file}"\n' for file in pinned.files)
    lines = []
    for name, struct in pinned.structs.items():
        lines.append(
            f'std::printf("{name} %zu %d\\n", sizeof({name}), {f"{name}_STRUCT_SIZE" if struct.last_field else 0});'
        )
    source = tmp_path / "sizes.cc"
    source.write_text(f"#include <cstdio>\n{includes}int main() {{\n" + "\n".join(lines) + "\n}\n")
    program = tmp_path / "sizes"
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-I", PINNED, source, "-o", program], check=True)
    expected = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    layout = Layout(pinned)
    found = [
        f"{name} {layout.size(name)} {layout.struct_size(name) if struct.last_field else 0}"
        for name, struct in pinned.structs.items()
    ]
    assert found == expected
    assert len(found) > 300
