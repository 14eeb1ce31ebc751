"""A changelog's section from the commits since the last release, in the form of "Keep a Changelog".

It is a draft that a person edits: the sections are chosen from the files that a commit touched and
from the words of its subject, which is right often and not always.
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.release.repository import Commit, RefusedError, Version

FILE = "CHANGELOG.md"
HEADER = """\
# Changelog

The form is that of "Keep a Changelog"; versions follow semantic versioning. A section is drafted from the
commits by `./bazelw run //tools/release -- changelog` and then edited.
"""
# Stands for the day in a section that was written by hand before the release.
UNRELEASED = "unreleased"
SECTIONS = ("Added", "Changed", "Fixed", "Removed")

# What a user of the wheel can notice. The rest (tests, CI, the tools of the repository) is no news.
PRODUCT = ("plugin/", "treadle/", "jax_plugins/", "third_party/onednn/", "tools/wheel/", "README.md")
_SOURCES = (".py", ".cc", ".h", ".c", ".inl")
_FIXED = re.compile(
    r"\b(fix(es|ed)?|bug|wrong|crash(es|ed)?|no longer|leak(s|ed)?|was not|were not|not .* any more)\b", re.IGNORECASE
)
_REMOVED = re.compile(r"^(remove|drop|delete)(s|d)?\b|\b(is|are) gone\b", re.IGNORECASE)
_REVERT = re.compile(r'^Revert "(.*)"$')


def without_reverted(commits: list[Commit]) -> list[Commit]:
    """The commits, the newest first, less each revert and the commit that it took back."""
    kept: list[Commit] = []
    taken_back: list[str] = []
    for commit in commits:
        if commit.subject in taken_back:
            taken_back.remove(commit.subject)
        elif found := _REVERT.match(commit.subject):
            taken_back.append(found[1])
        else:
            kept.append(commit)
    return kept


def section_of(commit: Commit) -> str | None:
    """The section that a commit belongs to; None if no user of the wheel can notice it."""
    touched = [(letter, name) for letter, name in commit.files if name.startswith(PRODUCT)]
    if not touched or all(name.endswith("BUILD") for _, name in touched):
        return None
    if _REMOVED.search(commit.subject):
        return "Removed"
    if _FIXED.search(commit.subject):
        return "Fixed"
    if any(letter == "A" and name.endswith(_SOURCES) for letter, name in touched):
        return "Added"
    return "Changed"


def section(version: Version, date: str, commits: list[Commit]) -> str:
    """The text of a version's section; commits come the newest first, entries the oldest first."""
    entries: dict[str, list[str]] = {name: [] for name in SECTIONS}
    internal = 0
    for commit in reversed(without_reverted(commits)):
        name = section_of(commit)
        if name is None:
            internal += 1
        elif commit.subject not in entries[name]:
            entries[name].append(commit.subject)
    lines = [f"## [{version}] - {date}", ""]
    for name, subjects in entries.items():
        if subjects:
            lines += [f"### {name}", "", *(f"- {subject}" for subject in subjects), ""]
    if internal:
        one = internal == 1
        lines += [f"And {internal} commit{'' if one else 's'} to tests, tools and documents.", ""]
    return "\n".join(lines)


def has_section(text: str, version: Version) -> bool:
    """Whether the changelog `text` tells of `version`."""
    return re.search(rf"^## \[{re.escape(str(version))}\]", text, re.MULTILINE) is not None


def dated(text: str, version: Version, date: str) -> str:
    """The changelog `text` with the day of release in place of "unreleased", if that is what its section says."""
    return text.replace(f"## [{version}] - {UNRELEASED}\n", f"## [{version}] - {date}\n")


def with_section(text: str, version: Version, new: str, replace: bool = False) -> str:
    """The changelog `text` with the section `new` above the others.

    RefusedError: it has one for `version`, and `replace` is not set: the one that is there may have been edited.
    """
    if has_section(text, version):
        if not replace:
            raise RefusedError(f"{FILE} has a section for {version}; edit it, or give --replace to draft it anew")
        text = re.sub(rf"^## \[{re.escape(str(version))}\].*?(?=^## |\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = text or HEADER
    head, mark, rest = text.partition("\n## ")
    return head.rstrip("\n") + "\n\n" + new.rstrip("\n") + "\n" + (f"\n## {rest}" if mark else "")


def write(root: Path, version: Version, new: str, replace: bool = False) -> Path:
    """Puts the section `new` into the changelog of the checkout `root`, which is made if there is none."""
    path = root / FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    path.write_text(with_section(text, version, new, replace), encoding="utf-8")
    return path
