"""What a C preprocessor does, as far as XLA's C headers need it: source text to tokens.

Comments go, conditionals are decided (as a C compiler that is not C++ would), macros
are expanded. Nothing is included: the caller reads one file after the other and
passes the macros on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Kept as calls: they say which field a struct ends with, which an expansion would lose.
TRAITS = re.compile(r"\w+_DEFINE_STRUCT_TRAITS$")

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\.?\d[\w.]*|\.\.\.|<<|>>|\S')
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
_DEFINE = re.compile(r"(\w+)(\([^)]*\))?\s*(.*)", re.DOTALL)


class HeaderError(ValueError):
    """A header that cannot be read; the message says which file and what in it."""


@dataclass(frozen=True)
class Macro:
    """A macro's replacement; `parameters` is None for one that is no function."""

    parameters: tuple[str, ...] | None
    body: tuple[str, ...]

    @property
    def value(self) -> int | None:
        """The number that the macro stands for, if it is one."""
        text = "".join(self.body)
        return int(text, 0) if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", text) else None


def tokens(text: str) -> list[str]:
    """The tokens of C source without comments or directives."""
    return _TOKEN.findall(text)


def without_comments(text: str) -> str:
    """The source with each comment replaced by a space, and continued lines joined."""
    text = text.replace("\\\r\n", " ").replace("\\\n", " ")
    return _COMMENT.sub(lambda match: match[0] if match[0][0] in "\"'" else " ", text)


def _condition(directive: str, rest: str, macros: dict[str, Macro]) -> bool:
    if directive in ("ifdef", "ifndef"):
        return (rest.strip() in macros) == (directive == "ifdef")
    words = re.sub(r"defined\s*\(\s*(\w+)\s*\)|defined\s+(\w+)", lambda m: str(int((m[1] or m[2]) in macros)), rest)
    value = False
    # `a && b || c`, with `!`: more the headers do not use, and a comparison is taken as false.
    for term in words.split("||"):
        factors = [re.sub(r"[\s()]", "", factor) for factor in term.split("&&")]
        value |= all(_is_true(factor, macros) for factor in factors)
    return value


def _is_true(factor: str, macros: dict[str, Macro]) -> bool:
    negated = len(factor) - len(factor.lstrip("!"))
    word = factor.lstrip("!")
    number = macros[word].value if word in macros else int(word) if word.isdigit() else 0
    return bool(number) != bool(negated % 2)


def _expand(words: list[str], macros: dict[str, Macro], hidden: frozenset[str] = frozenset()) -> list[str]:
    done: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        macro = macros.get(word)
        if macro is None or word in hidden or TRAITS.match(word):
            done.append(word)
            continue
        body = list(macro.body)
        if macro.parameters is not None:
            if position >= len(words) or words[position] != "(":
                done.append(word)
                continue
            arguments, position = call_arguments(words, position)
            given = dict(zip(macro.parameters, arguments, strict=False))
            body = [part for token in body for part in given.get(token, [token])]
        done += _expand(body, macros, hidden | {word})
    return done


def call_arguments(words: list[str], opening: int) -> tuple[list[list[str]], int]:
    """The arguments of the call whose "(" is at `opening`, and the place after its ")"."""
    arguments: list[list[str]] = [[]]
    depth = 0
    for position in range(opening, len(words)):
        word = words[position]
        if word == ")":
            depth -= 1
            if depth == 0:
                return arguments, position + 1
        if depth == 1 and word == ",":
            arguments.append([])
        elif depth >= 1:
            arguments[-1].append(word)
        if word == "(":
            depth += 1
    raise HeaderError(f"the call of {words[opening - 1]} has no end")


def preprocess(text: str, macros: dict[str, Macro], where: str) -> list[str]:
    """The tokens of a file after preprocessing; adds its macros to `macros`.

    A macro that the file undefines again stays in `macros` under its name if it is a
    number (the headers undefine only helpers).

    Raises:
        HeaderError: a conditional is not closed, or closed twice; `where` names the file.
    """
    found: list[str] = []
    pending: list[str] = []
    # For each open conditional: whether this branch is read, and whether one was already.
    open_branches: list[tuple[bool, bool]] = []

    def flush() -> None:
        found.extend(_expand(tokens("\n".join(pending)), macros))
        pending.clear()

    for line in without_comments(text).splitlines():
        match = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        active = all(branch for branch, _ in open_branches)
        if match is None:
            if active:
                pending.append(line)
            continue
        directive, rest = match[1], match[2].strip()
        if directive in ("if", "ifdef", "ifndef"):
            taken = active and _condition(directive, rest, macros)
            open_branches.append((taken, taken))
        elif directive in ("elif", "else", "endif"):
            if not open_branches:
                raise HeaderError(f"{where}: #{directive} without #if")
            _, taken = open_branches.pop()
            if directive == "else":
                open_branches.append((not taken, True))
            elif directive == "elif":
                chosen = not taken and _condition("if", rest, macros)
                open_branches.append((chosen, taken or chosen))
        elif active and directive in ("define", "undef"):
            flush()  # a macro counts for the lines below it
            _define(directive, rest, macros)
    if open_branches:
        raise HeaderError(f"{where}: {len(open_branches)} #if without #endif")
    flush()
    return found


def _define(directive: str, rest: str, macros: dict[str, Macro]) -> None:
    match = _DEFINE.match(rest)
    if match is None:
        return
    if directive == "undef":
        macros.pop(match[1], None)
        return
    parameters = None if match[2] is None else tuple(re.findall(r"\w+|\.\.\.", match[2]))
    macros[match[1]] = Macro(parameters, tuple(tokens(match[3])))
