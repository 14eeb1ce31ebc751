"""Header sets made from the pinned ones: an older and a newer PJRT, to see that the plugin compiles with both.

No package carries the headers of the neighbouring versions. What those versions added is known
(treadle/versions/history.py), so the pinned header without it has the older one's structs, slots
and values. The newer one is invented: a function at the end of the table, a field at the
end of a struct, an extension type and a buffer type, as PJRT's rules let a version add them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tools.version_sync.header import PJRT, Header, parse
from treadle.versions import history

NEW_SLOT = "PJRT_Client_AddedByATest"
GROWN = "PJRT_Device_MemoryStats_Args"


def older(text: str, minor: int) -> str:
    """The main header as of PJRT 0.`minor`.

    Raises:
        ValueError: what a version in between added is not known, or is not in the header.
    """
    current = _minor(text)
    for version in range(current, minor, -1):
        if version not in history.ADDED:
            raise ValueError(f"what PJRT 0.{version} added is not known")
        for name in reversed(history.ADDED[version]):
            text = _without(text, name)
    return _with_minor(text, minor)


def newer(text: str) -> str:
    """The main header one version on, with one of each thing that a version may add."""
    declared = f"""
struct {NEW_SLOT}_Args {{
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
}};
PJRT_DEFINE_STRUCT_TRAITS({NEW_SLOT}_Args, client);
typedef PJRT_Error* {NEW_SLOT}({NEW_SLOT}_Args* args);

#define _PJRT_API_STRUCT_FIELD"""
    slot = _parsed(text).slots[-1]
    last = _parsed(text).structs[GROWN].last_field
    text = _once(r"\n#define _PJRT_API_STRUCT_FIELD", declared, text)
    text = _once(r"\n\} PJRT_Api;", f"\n  _PJRT_API_STRUCT_FIELD({NEW_SLOT});\n}} PJRT_Api;", text)
    text = _once(rf"PJRT_STRUCT_SIZE\(PJRT_Api,\s*{slot}\)", f"PJRT_STRUCT_SIZE(PJRT_Api, {NEW_SLOT})", text)
    grown = rf"\}};\s*PJRT_DEFINE_STRUCT_TRAITS\(\s*{GROWN},\s*{last}\s*\)"
    text = _once(grown, f"  int64_t added;\n}};\nPJRT_DEFINE_STRUCT_TRAITS({GROWN}, added)", text)
    for enum in ("PJRT_Extension_Type", "PJRT_Buffer_Type"):
        text = _once(rf",?\s*\}} {enum};", f",\n  {enum}_AddedByATest,\n}} {enum};", text)
    return _with_minor(text, _minor(text) + 1)


def write(pinned: Path, into: Path, text: str) -> Path:
    """A copy of the pinned headers (a folder that holds xla/) with another main header; gives its folder."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(pinned / "xla", into / "xla", symlinks=False)
    main = into / "xla" / PJRT
    main.unlink()
    main.write_text(text, encoding="utf-8")
    return into


def _parsed(text: str) -> Header:
    header = Header()
    parse(text, header, PJRT)
    return header


def _minor(text: str) -> int:
    number = _parsed(text).number("PJRT_API_MINOR")
    if number is None:
        raise ValueError("the header has no PJRT_API_MINOR")
    return number


def _with_minor(text: str, minor: int) -> str:
    return _once(r"#define PJRT_API_MINOR \d+", f"#define PJRT_API_MINOR {minor}", text)


def _once(pattern: str, replacement: str, text: str) -> str:
    found, count = re.subn(pattern, lambda _: replacement, text)
    if count != 1:
        raise ValueError(f"{count} places in the header match {pattern}; one was expected")
    return found


def _without(text: str, name: str) -> str:
    """The header without a field, an enum value or a function."""
    struct, _, field = name.partition(".")
    header = _parsed(text)
    if field:
        names = [entry.name for entry in header.structs[struct].fields]
        before = names[names.index(field) - 1]
        body = re.search(rf"(?s)struct {struct} \{{.*?\n\}};", text)
        if body is None or names[-1] != field:
            raise ValueError(f"{name} is not the last field of its struct")
        shorter = _once(rf"\n[^\n;]*\b{field};[^\n]*", "", body[0])
        text = text.replace(body[0], shorter)
        return _once(rf"TRAITS\(\s*{struct},\s*{field}\s*\)", f"TRAITS({struct}, {before})", text)
    if any(name in enum.values for enum in header.enums.values()):
        return _once(rf"\n\s*{name}\b[^\n]*", "", text)
    raise ValueError(f"{name} is neither a field nor an enum value; it cannot be taken out")
