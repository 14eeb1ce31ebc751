"""Reads a PJRT plugin's table: its version, which functions it has, its extensions and its attributes."""

from __future__ import annotations

import ctypes
import functools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treadle.versions import children
from treadle.versions.api_version import ApiVersion

ENTRY = "GetPjrtApi"

_TABLES = Path(__file__).parent / "slots.json"
_MAX_EXTENSIONS = 1000  # a chain that is longer bites its tail


class NoPluginError(Exception):
    """The file is no plugin that could be loaded. Its text says why."""


@dataclass(frozen=True)
class Plugin:
    """What a plugin says of itself.

    Attributes:
      path: the file.
      pjrt: the version that it was built with.
      struct_size: of its PJRT_Api.
      num_slots: how many functions that leaves room for.
      missing: those of them that are null; one with no name here is called "slot <number>".
      extensions: the types of its extensions, by name or as "type <number>".
      attributes: the attributes of PJRT_Plugin_Attributes.
      attributes_problem: why there are none, if that is an error.
    """

    path: str
    pjrt: ApiVersion
    struct_size: int
    num_slots: int
    missing: tuple[str, ...]
    extensions: tuple[str, ...]
    attributes: dict[str, Any]
    attributes_problem: str = ""

    def stablehlo(self, which: str) -> str | None:
        """The StableHLO version that the plugin gives as `current` or `minimum`: "1.18.0"; None if it gives none."""
        numbers = self.attributes.get(f"stablehlo_{which}_version")
        return ".".join(map(str, numbers)) if isinstance(numbers, list) else None


def read(path: Path, timeout: float = children.SECONDS) -> Plugin:
    """Loads the file in a child process and reads its table.

    Raises:
      FileNotFoundError: there is no such file.
      NoPluginError: it cannot be loaded, has no GetPjrtApi, or that gives no table, crashes or hangs.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        answer, _ = children.run(__name__, os.fspath(path.absolute()), timeout=timeout)
    except children.ChildError as error:
        raise NoPluginError(f"{path}: a process that loads it and calls {ENTRY} {error}") from None
    if "error" in answer:
        raise NoPluginError(f"{path} {answer['error']}")
    version = ApiVersion(*answer.pop("pjrt"))
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in answer.items()}
    return Plugin(path=str(path), pjrt=version, **fields)


@functools.cache
def names() -> dict[str, list[str]]:
    """`slots`: the functions of PJRT_Api in order; `extensions`: the names of the extension types by number."""
    tables: dict[str, list[str]] = json.loads(_TABLES.read_text(encoding="utf-8"))
    return tables


class _Base(ctypes.Structure):
    """PJRT_Extension_Base."""

    _fields_ = (("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p))


class _Api(ctypes.Structure):
    """The head of PJRT_Api; the functions follow."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version_struct_size", ctypes.c_size_t),
        ("version_extension_start", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    )


class _Value(ctypes.Union):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        ("int64", ctypes.c_int64),
        ("float", ctypes.c_float),
        ("bool", ctypes.c_bool),
    )


class _NamedValue(ctypes.Structure):
    """PJRT_NamedValue."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("value", _Value),
        ("value_size", ctypes.c_size_t),
    )


class _AttributesArgs(ctypes.Structure):
    """PJRT_Plugin_Attributes_Args; its first two fields are PJRT_Plugin_Initialize_Args."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_size_t),
    )


def api_version(path: Path) -> ApiVersion:
    """The version alone, read in this process: for a library that is loaded here anyway.

    Raises:
      OSError: it cannot be loaded.
      ValueError: it is no plugin.
    """
    table = _Api.from_address(_table(path))
    return ApiVersion(table.major, table.minor)


def _table(path: Path) -> int:
    library = ctypes.CDLL(os.fspath(path))
    try:
        entry = library[ENTRY]
    except AttributeError:
        raise ValueError(f"is a library without {ENTRY}") from None
    entry.restype = ctypes.c_void_p
    address: int | None = entry()
    if not address:
        raise ValueError(f"is no plugin: its {ENTRY} gives a null pointer")
    return address


def answer(arguments: Sequence[str]) -> None:
    """The child's part: reads the library that the arguments name."""
    try:
        address = _table(Path(arguments[0]))
    except OSError as error:
        # The loader's text begins with the path.
        children.reply({"error": f"cannot be loaded: {str(error).removeprefix(f'{arguments[0]}: ')}"})
    except ValueError as error:
        children.reply({"error": str(error)})
    else:
        children.reply(_read_table(address))


def _read_table(address: int) -> dict[str, Any]:
    table = _Api.from_address(address)
    head = ctypes.sizeof(_Api)
    count = max(0, table.struct_size - head) // ctypes.sizeof(ctypes.c_void_p)
    slots = (ctypes.c_void_p * count).from_address(address + head)
    known = names()["slots"]
    attributes, problem = _attributes(dict(zip(known, slots, strict=False)))
    return {
        "pjrt": [table.major, table.minor],
        "struct_size": table.struct_size,
        "num_slots": count,
        "missing": [
            known[i] if i < len(known) else f"slot {i}" for i, function in enumerate(slots) if not function
        ],
        "extensions": list(_extensions(table.extension_start)),
        "attributes": attributes,
        "attributes_problem": problem,
    }  # fmt: skip


def _extensions(address: int | None) -> Iterator[str]:
    known = names()["extensions"]
    for _ in range(_MAX_EXTENSIONS):
        if not address:
            return
        extension = _Base.from_address(address)
        yield known[extension.type] if 0 <= extension.type < len(known) else f"type {extension.type}"
        address = extension.next


def _attributes(slots: dict[str, int | None]) -> tuple[dict[str, Any], str]:
    """The attributes by name, and what went wrong; initialises the plugin first, as the API demands."""
    for name, size in (("PJRT_Plugin_Initialize", 16), ("PJRT_Plugin_Attributes", ctypes.sizeof(_AttributesArgs))):
        function = slots.get(name)
        if not function:
            return {}, f"it has no {name}"
        args = _AttributesArgs(struct_size=size)
        if ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(function)(ctypes.byref(args)):
            return {}, f"{name} fails"
    values = (_NamedValue * args.num_attributes).from_address(args.attributes or 0) if args.num_attributes else ()
    return {ctypes.string_at(v.name, v.name_size).decode("utf-8", "replace"): _plain(v) for v in values}, ""


def _plain(value: _NamedValue) -> Any:
    content = value.value
    match value.type:  # PJRT_NamedValue_Type
        case 0:
            return ctypes.string_at(content.pointer, value.value_size).decode("utf-8", "replace")
        case 1:
            return content.int64
        case 2:
            return list((ctypes.c_int64 * value.value_size).from_address(content.pointer)) if value.value_size else []
        case 3:
            return content.float
        case 4:
            return content.bool
        case other:
            return f"a value of type {other}"
