"""From the text of a failure to its kind."""

from __future__ import annotations

import re
from typing import NamedTuple

from tools.nightly.kinds import Kind
from tools.nightly.process import Done


class Evidence(NamedTuple):
    """A kind, and the line of the text that says so."""

    kind: Kind
    line: str


# In order of blame (see Kind), but for one thing: what Treadle itself calls UNIMPLEMENTED is told by that
# word, whatever the rest of the text is. The messages are those of jaxlib, XLA, JAX, NumPy, pip and Treadle.
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    (Kind.UNIMPLEMENTED, r"UNIMPLEMENTED: PJRT_\w+: "),
    (Kind.HEADER, r"pjrt_c_api\w*\.h(:\d+)+: (fatal )?error:|fatal error: xla/pjrt/\S+: No such file"),
    (Kind.HEADER, r"error: .*\b(PJRT_\w+)\b.*(not declared|no member named|has no member|does not name a type)"),
    (Kind.API, r"Mismatched PJRT plugin PJRT API (major )?version"),
    (Kind.API, r"Plugin PJRT API version \S+ is older than the minimum"),
    (Kind.API, r"Unexpected PJRT_\w+ size: expected"),
    (Kind.API, r"the argument struct's struct_size is \d+ and must be at least"),
    (Kind.API, r"PJRT_\w+ (is not implemented by|is null in) (this|the) plugin"),
    (Kind.API, r"symbol not found.*GetPjrtApi|undefined symbol: \S*[Pp][Jj][Rr][Tt]"),
    (Kind.STABLEHLO, r"bytecode version \d+ is newer than the current version"),
    (Kind.STABLEHLO, r"unregistered operation 'vhlo\.\w+'"),
    (Kind.STABLEHLO, r"[Ff]ailed to (de)?serializ\w+ (portable artifact|StableHLO)"),
    (Kind.STABLEHLO, r"[Ff]ailed to (upgrade|downgrade|convert|legalize)\b.*\b(VHLO|vhlo|StableHLO|stablehlo|SDY)"),
    (Kind.STABLEHLO, r"The program cannot be parsed; MLIR says:"),
    (Kind.PRIVATE_API, r"cannot import name '\w+' from '(jax\._src|jaxlib)[\w.]*'"),
    (Kind.PRIVATE_API, r"No module named '(jax\._src|jaxlib)\b[\w.]*'"),
    (Kind.PRIVATE_API, r"module '(jax\._src|jaxlib)\b[\w.]*' has no attribute '\w+'"),
    (Kind.PRIVATE_API, r"PrivateNameError|private name of (jax|jaxlib)"),
    (Kind.CRASH, r"worker '\w+' crashed while running"),
    (Kind.CRASH, r"Fatal Python error: (Segmentation fault|Aborted|Bus error|Illegal instruction|Floating)"),
    (Kind.CRASH, r"died of the signal SIG\w+|terminate called|double free or corruption"),
    (Kind.NUMERICS, r"Mismatched elements: \d+ / \d+"),
    (Kind.NUMERICS, r"Not equal to tolerance|Arrays are not (almost )?equal|Max absolute difference"),
    (Kind.ENVIRONMENT, r"No matching distribution found|Could not find a version that satisfies"),
    (Kind.ENVIRONMENT, r"ResolutionImpossible|conflicting dependencies"),
    (
        Kind.ENVIRONMENT,
        r"Temporary failure in name resolution|Connection (refused|reset|timed out)|No space left on device",
    ),
    (Kind.ENVIRONMENT, r"Max retries exceeded|NewConnectionError|ReadTimeoutError"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


def classify(text: str, otherwise: Kind = Kind.OTHER) -> Evidence:
    """What the text of a failure is evidence of.

    The first pattern of the table that fits decides. Where none does the kind is `otherwise`, and the line the last one
    that names an error, or else the last one.
    """
    for kind, pattern in _COMPILED:
        if match := pattern.search(text):
            return Evidence(kind, _line_at(text, match.start()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b\w*(Error|Exception)\b: |^E  |\berror: |^ERROR", line)]
    return Evidence(otherwise, _short((errors or lines or ["no output"])[-1]))


def of_command(done: Done, otherwise: Kind = Kind.OTHER) -> Evidence:
    """What a command that failed is evidence of: by what it printed, else by the signal that it died of."""
    died = done.returncode < 0 and not done.timed_out
    return classify(done.output, otherwise=Kind.CRASH if died else otherwise)


def _line_at(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return _short(text[start : end if end >= 0 else len(text)])


def _short(line: str, limit: int = 300) -> str:
    line = line.strip().removeprefix("E ").strip()
    return line if len(line) <= limit else line[: limit - 3] + "..."
