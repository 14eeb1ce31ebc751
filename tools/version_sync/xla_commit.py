"""Which commit of openxla/xla the pinned headers are: found by comparing them, byte for byte.

The package that carries the headers names no commit, so a clone of openxla/xla is asked. It
may be bare, and it needs no file contents (`git clone --bare --filter=blob:none`): git knows each
file's hash without them.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

HEADER = "xla/pjrt/c/pjrt_c_api.h"
UNKNOWN = "unknown"
HOW_TO = "give a clone of openxla/xla: version_sync pins --fix --xla-clone DIR"
_FOLDERS = ("xla/pjrt/c", "xla/ffi/api", "xla/backends/profiler/plugin")


class CloneError(RuntimeError):
    """The given folder is no git repository, or git cannot answer."""


@dataclass(frozen=True)
class Found:
    """A commit (or "unknown"), and how that was found out."""

    commit: str
    how: str


def _git(clone: Path, *arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={clone}", "-C", str(clone), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2]
        raise CloneError(f"git cannot read {clone}: {said or 'no message'}")
    return done.stdout


def find(headers: Path, clone: Path) -> Found:
    """The commit of `clone` whose headers are those of the folder `headers` (which holds xla/).

    First the commits that gave the main header its content are looked for; then, from there on
    and as long as it stays the same, the first one at which the other headers agree too.

    Raises:
        CloneError: `clone` is no git repository, or has no history of the header.
    """
    clone = clone.resolve()
    wanted = _hashes(headers)
    history = _history(clone, HEADER)
    if not history:
        raise CloneError(f"{clone} has no history of {HEADER}: is it a clone of openxla/xla, and not a shallow one?")
    places = [index for index, (_, blob) in enumerate(history) if blob == wanted[HEADER]]
    if not places:
        newest, oldest = history[0][0][:12], history[-1][0][:12]
        return Found(
            UNKNOWN, f"none of the {len(history)} versions of {HEADER} from {oldest} to {newest} is byte-identical"
        )
    place = places[0]
    first = history[place][0]
    until = f"{history[place - 1][0]}^" if place else "HEAD"
    between = _git(clone, "log", "--format=%H", "--reverse", f"{first}..{until}", "--", *_FOLDERS).split()
    best, agreeing = first, -1
    for commit in [first, *between]:
        there = _tree(clone, commit)
        count = sum(there.get(name) == blob for name, blob in wanted.items())
        if count > agreeing:
            best, agreeing = commit, count
        if agreeing == len(wanted):
            break
    day = _git(clone, "show", "--no-patch", "--format=%cs", best).strip()
    others = f"{agreeing - 1} of the {len(wanted) - 1} other headers" if len(wanted) > 1 else "no other header"
    return Found(best, f"{HEADER} and {others} are byte-identical there ({day}), by git's hashes of them")


def _hashes(headers: Path) -> dict[str, str]:
    files = sorted(headers.glob("xla/**/*.h"))
    names = [str(file.relative_to(headers)) for file in files]
    if HEADER not in names:
        raise CloneError(f"{headers} holds no {HEADER}")
    command = ["git", "hash-object", "--no-filters", *(str(file) for file in files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(names, done.stdout.split(), strict=True))


def _history(clone: Path, name: str) -> list[tuple[str, str]]:
    """The commits that changed a file, the newest first, each with the file's hash after it."""
    found = []
    commit = ""
    for line in _git(clone, "log", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--", name).splitlines():
        if line.startswith(":"):
            found.append((commit, line.split()[3]))
        elif line:
            commit = line
    return found


def _tree(clone: Path, commit: str) -> dict[str, str]:
    lines = _git(clone, "ls-tree", "-r", "--full-tree", commit, "--", *_FOLDERS).splitlines()
    return {line.partition("\t")[2]: line.split()[2] for line in lines}


def record(pins: Path, found: Found) -> bool:
    """Writes the commit into versions.toml; gives whether that changed it.

    Raises:
        ValueError: versions.toml has no line for it.
    """
    text = pins.read_text(encoding="utf-8")
    edited = text
    for key, value in (("xla_commit", found.commit), ("xla_commit_how", found.how)):
        quoted = value.replace("\\", "\\\\").replace('"', "'")
        lines = re.findall(rf"(?m)^{key} = .*$", edited)
        if len(lines) != 1:
            problem = f"{len(lines)} lines that begin with `{key} =`"
            raise ValueError(f"{pins} has {problem}; it needs one, under [xla_headers]")
        edited = edited.replace(lines[0], f'{key} = "{quoted}"')
    if edited != text:
        pins.write_text(edited, encoding="utf-8")
    return edited != text
