"""Reads XLA's C headers: versions, the slots of PJRT_Api, structs, enums, function types.

The headers are plain C in one style (PJRT's): structs whose last field a macro names,
enums, opaque structs, and typedefs of function types. What is none of these is kept in
`Header.unread`, so that nothing is overlooked in silence.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.version_sync.preprocess import TRAITS, HeaderError, Macro, call_arguments, preprocess

PJRT = "pjrt/c/pjrt_c_api.h"
FFI = "ffi/api/c_api.h"
# In the order of their includes. The other files of these folders are C++.
_FILES = (
    "pjrt/c/pjrt_c_api_macros.h",
    PJRT,
    "backends/profiler/plugin/profiler_c_api.h",
    "pjrt/c/pjrt_c_api_device_event.h",
    "pjrt/c/pjrt_c_api_*_extension.h",
    FFI,
)


@dataclass(frozen=True)
class Field:
    """A field of a struct; `members` are those of an anonymous struct or union."""

    name: str
    type: str
    members: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Struct:
    """A struct (or union) with its fields, and the last field as the traits macro names it.

    The two can differ: the macro's field is what NAME_STRUCT_SIZE is computed from, and in
    XLA's FFI header it is not always the field that comes last.
    """

    name: str
    fields: tuple[Field, ...]
    file: str
    last_field: str | None = None


@dataclass(frozen=True)
class Enum:
    """An enum's values by name, in order, and the type that it is stored as."""

    name: str
    values: dict[str, int]
    file: str
    underlying: str = "int"


@dataclass
class Header:
    """What a set of headers declares."""

    files: list[str] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    # Typedefs: of functions as "R(A)", of pointers to them as "R(*)(A)", of other types as these.
    types: dict[str, str] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)

    def number(self, macro: str) -> int | None:
        """The value of a macro that is a number."""
        return self.macros[macro].value if macro in self.macros else None

    def version(self, prefix: str) -> str | None:
        """The version in the macros PREFIX_MAJOR and PREFIX_MINOR ("0.114"), None if they are not there."""
        major, minor = self.number(f"{prefix}_MAJOR"), self.number(f"{prefix}_MINOR")
        return None if major is None or minor is None else f"{major}.{minor}"

    @property
    def slots(self) -> list[str]:
        """The function pointers of PJRT_Api, in order."""
        fields = self.structs["PJRT_Api"].fields if "PJRT_Api" in self.structs else ()
        return [entry.name for entry in fields if entry.type == f"{entry.name}*"]

    @property
    def extensions(self) -> dict[str, int]:
        """The extensions' versions, by the name in PJRT_API_<name>_EXTENSION_VERSION."""
        found = {}
        for name in self.macros:
            match = re.fullmatch(r"PJRT_API_(\w+)_EXTENSION_VERSION", name)
            number = self.number(name)
            if match and number is not None:
                found[match[1]] = number
        return found


def read(path: Path, called: str = "") -> Header:
    """Reads a header file, or the headers of a directory that holds xla/ (or is it).

    `called` is what a single file is called in the answer, if not by its own name: files are compared by theirs.

    Raises:
        HeaderError: there is no pjrt_c_api.h, or a file is not C as XLA writes it.
    """
    if path.is_file():
        files = [(path, called or path.name)]
    else:
        root = path / "xla" if (path / "xla").is_dir() else path
        files = [(file, str(file.relative_to(root))) for pattern in _FILES for file in sorted(root.glob(pattern))]
        if not any(name == PJRT for _, name in files):
            raise HeaderError(f"{path} holds no xla/{PJRT}: name a directory with XLA's headers, or one header file")
    header = Header()
    for file, name in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise HeaderError(f"{file} cannot be read: {error}") from error
        parse(text, header, name)
    return header


def parse(text: str, header: Header, file: str) -> None:
    """Adds one file's declarations to `header`; raises HeaderError if a brace or a macro is not closed."""
    header.files.append(file)
    words = preprocess(text, header.macros, file)
    position = 0
    while position < len(words):
        if TRAITS.match(words[position]):
            arguments, position = call_arguments(words, position + 1)
            _traits(arguments, header)
        elif words[position] == "extern" and words[position + 1 : position + 2] == ['"C"']:
            position += 3 if words[position + 2] == "{" else 2
        elif words[position] in (";", "}"):
            position += 1
        else:
            end = _declaration_end(words, position, file)
            _declaration(words[position:end], header, file)
            position = end + 1


def _traits(arguments: list[list[str]], header: Header) -> None:
    name, last = "".join(arguments[0]), "".join(arguments[1])
    if known := header.structs.get(name):
        header.structs[name] = Struct(name, known.fields, known.file, last)
    else:
        header.unread.append(f"struct traits of {name}, which is not defined")


def _declaration_end(words: list[str], start: int, file: str) -> int:
    depth = 0
    for position in range(start, len(words)):
        depth += (words[position] in "({[") - (words[position] in ")}]")
        if depth == 0 and words[position] == ";":
            return position
    raise HeaderError(f"{file}: this declaration has no end: {join(words[start : start + 12])} ...")


def _declaration(words: list[str], header: Header, file: str) -> None:
    typedef = words[0] == "typedef"
    body = words[1:] if typedef else words
    kind = body[0]
    if kind in ("struct", "union", "enum") and "{" in body:
        opening = body.index("{")
        closing = _closing(body, opening)
        tag = [word for word in body[1:opening] if word != "class"]
        underlying = "int"
        if ":" in tag:
            underlying = join(tag[tag.index(":") + 1 :])
            tag = tag[: tag.index(":")]
        alias = body[closing + 1] if typedef and closing + 1 < len(body) else ""
        name = tag[0] if tag else alias
        if alias != name and alias:
            header.types[alias] = name
        inside = body[opening + 1 : closing]
        if kind == "enum":
            header.enums[name or f"(anonymous in {file})"] = Enum(name, _values(inside, header), file, underlying)
        else:
            header.structs[name] = Struct(name, tuple(fields(inside)), file)
    elif kind in ("struct", "union") and len(body) == (3 if typedef else 2):
        header.opaque.add(body[-1])
    elif typedef or (words[-1] == ")" and body[0] not in ("static_assert", "_Static_assert")):
        entry = _declarator(body)
        header.types[entry.name] = entry.type
    elif body[0] not in ("static_assert", "_Static_assert"):
        header.unread.append(f"{file}: {join(body[:12])}")


def _closing(words: list[str], opening: int) -> int:
    depth = 0
    for position in range(opening, len(words)):
        depth += (words[position] == "{") - (words[position] == "}")
        if depth == 0:
            return position
    raise HeaderError(f"no end of {join(words[:opening])}")


def fields(words: list[str]) -> list[Field]:
    """The fields of a struct's body, given as tokens."""
    found: list[Field] = []
    start = 0
    while start < len(words):
        end = _declaration_end([*words, ";"], start, "a struct")
        declaration = words[start:end]
        start = end + 1
        while declaration[:2] == ["[", "["]:  # an attribute
            declaration = declaration[declaration.index("]") + 2 :]
        if not declaration:
            continue
        if "{" in declaration and declaration[0] in ("union", "struct"):
            opening = declaration.index("{")
            closing = _closing(declaration, opening)
            members = tuple(fields(declaration[opening + 1 : closing]))
            found.append(Field("".join(declaration[closing + 1 :]), declaration[0], members))
            continue
        head, *others = _split(declaration)
        found.append(_declarator(head))
        base = found[-1].type.rstrip("*")
        found += [_declarator([base, *other]) for other in others]
    return found


def _split(words: list[str]) -> list[list[str]]:
    """Declarators that share a type are separated by commas outside of brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word in "([") - (word in ")]")
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _declarator(words: list[str]) -> Field:
    """`const char* name`, `T name[3]`, `R (*name)(A)`, `R name(A)`: a name and its type."""
    if "(" in words:
        opening = words.index("(")
        if words[opening + 1 : opening + 2] == ["*"]:
            closing = words.index(")", opening)
            name = words[closing - 1]
            return Field(name, f"{join(words[:opening])}(*){_arguments(words[closing + 1 :])}")
        return Field(words[opening - 1], f"{join(words[: opening - 1])}{_arguments(words[opening:])}")
    if "[" in words:
        opening = words.index("[")
        return Field(words[opening - 1], join(words[: opening - 1]) + join(words[opening:]))
    return Field(words[-1], join(words[:-1]))


def _arguments(words: list[str]) -> str:
    """A parameter list without the parameters' names, which are no part of the type."""
    parameters = []
    for parameter in _split(words[1:-1]):
        named = len(parameter) > 1 and parameter[-1].isidentifier() and parameter[-2] != "struct"
        parameters.append(join(parameter[:-1] if named and "(" not in parameter else parameter))
    return f"({', '.join(parameters)})"


def join(words: list[str]) -> str:
    """A type's text in one spelling: a space only between two words."""
    text = ""
    for word in words:
        text += f" {word}" if text and re.match(r"\w", word) and re.search(r"[\w*]$", text) else word
    return re.sub(r"\bstruct ", "", text)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "<<": operator.lshift,
    "+": operator.add,
    "-": operator.sub,
    "|": operator.or_,
}


def _values(words: list[str], header: Header) -> dict[str, int]:
    values: dict[str, int] = {}
    following = 0
    for part in _split(words):
        if not part:
            continue
        name, *rest = part
        if rest and rest[0] == "=":
            number = _constant(rest[1:], values, header)
            if number is None:
                if name.endswith("_STRUCT_SIZE") and rest[1:3] == ["offsetof", "("]:
                    _traits([[rest[3]], [rest[5]]], header)  # the traits macro, written out
                else:
                    header.unread.append(f"the value of {name}: {join(rest[1:])}")
                continue
            following = number
        values[name] = following
        following += 1
    return values


def _constant(words: list[str], values: dict[str, int], header: Header) -> int | None:
    """A constant expression of numbers, names and binary operators, left to right."""
    words = [word for word in words if word not in ("(", ")")]
    total: int | None = None
    pending: Callable[[int, int], int] | None = None
    sign = 1
    for word in words:
        if word in _OPERATORS and total is not None and pending is None:
            pending = _OPERATORS[word]
        elif word == "-":
            sign = -sign
        else:
            stem = re.sub(r"(?<=\d)[uUlL]+$", "", word)
            number = int(stem, 0) if stem[0].isdigit() else values.get(word, header.number(word))
            if number is None:
                return None
            total = sign * number if pending is None else pending(total or 0, sign * number)
            pending, sign = None, 1
    return total
