"""Which symbols a relocatable ELF object defines and needs."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB = 2
_LOCAL = 0


def symbols(code: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """The global symbols that an object LLVM has written defines, and those it leaves undefined."""
    header = _HEADER.unpack_from(code)
    table, count = header[6], header[12]
    sections = [_SECTION.unpack_from(code, table + i * _SECTION.size) for i in range(count)]
    defined: set[str] = set()
    undefined: set[str] = set()
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        names = sections[section[6]][4]
        for place in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, info, _, index, _, _ = _SYMBOL.unpack_from(code, place)
            if info >> 4 == _LOCAL or name == 0:
                continue
            start = names + name
            text = code[start : code.index(b"\0", start)].decode()
            (defined if index else undefined).add(text)
    return frozenset(defined), frozenset(undefined)
