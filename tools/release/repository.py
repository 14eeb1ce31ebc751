"""The checkout that a release is made from: its version, its commits, and whether it may be released."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from functools import total_ordering
from pathlib import Path
from typing import Any

from tools.version_sync import derived

TAG_PREFIX = "v"
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")


class RefusedError(Exception):
    """A release step may not be done in this state; the text says why, and what to do."""


@total_ordering
@dataclass(frozen=True)
class Version:
    """A version of Treadle: X.Y.Z, or a pre-release of it such as X.Y.Zrc1."""

    numbers: tuple[int, int, int]
    phase: str = ""
    phase_number: int = 0

    @staticmethod
    def parse(text: str) -> Version:
        """Reads "X.Y.Z", "X.Y.ZaN", "X.Y.ZbN" or "X.Y.ZrcN". ValueError: it is none of these."""
        found = _VERSION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no version of the form X.Y.Z, X.Y.ZaN, X.Y.ZbN or X.Y.ZrcN")
        return Version((int(found[1]), int(found[2]), int(found[3])), found[4] or "", int(found[5] or 0))

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers)) + (f"{self.phase}{self.phase_number}" if self.phase else "")

    def __lt__(self, other: Version) -> bool:
        def key(version: Version) -> tuple[tuple[int, int, int], bool, str, int]:
            return version.numbers, not version.phase, version.phase, version.phase_number

        return key(self) < key(other)

    @property
    def tag(self) -> str:
        """The name of its tag in git."""
        return f"{TAG_PREFIX}{self}"


@dataclass(frozen=True)
class Commit:
    """A commit: its hash, its subject, and the files that it touched, each with git's letter (A for added, ...)."""

    id: str
    subject: str
    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Repository:
    """A git checkout of Treadle."""

    root: Path

    def git(self, *arguments: str) -> str:
        """What git prints. RefusedError: git fails; the text has its message."""
        # The owner of a checkout in CI may be another user; `git` of this one folder is meant all the same.
        command = ["git", "-c", f"safe.directory={self.root}", *arguments]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RefusedError(f"git {' '.join(arguments)} failed in {self.root}: {done.stderr.strip()}")
        return done.stdout

    @property
    def pins(self) -> dict[str, Any]:
        """versions.toml."""
        return tomllib.loads((self.root / "versions.toml").read_text(encoding="utf-8"))

    @property
    def version(self) -> Version:
        """The version that versions.toml says."""
        return Version.parse(self.pins["treadle"]["version"])

    def released(self) -> list[Version]:
        """The versions that have a tag, the newest first."""
        found = []
        for tag in self.git("tag", "--list", f"{TAG_PREFIX}*").split():
            try:
                found.append(Version.parse(tag[len(TAG_PREFIX) :]))
            except ValueError:
                continue  # a tag of another kind
        return sorted(found, reverse=True)

    def commits(self, since: str | None) -> list[Commit]:
        """The commits after the tag `since` (all of them if None), the newest first, merges left out."""
        span = f"{since}..HEAD" if since else "HEAD"
        text = self.git("log", "--no-merges", "--no-renames", "--name-status", "--format=%x01%H%x02%s", span)
        found = []
        for entry in text.split("\x01")[1:]:
            head, *lines = entry.strip().splitlines()
            commit, _, subject = head.partition("\x02")
            files = (line.split("\t", 1) for line in lines if line)
            found.append(Commit(commit, subject, tuple((letter, name) for letter, name in files)))
        return found

    def set_version(self, version: Version) -> None:
        """Writes the version into versions.toml, the one place where it stands. RefusedError: it has no such line."""
        path = self.root / "versions.toml"
        text = path.read_text(encoding="utf-8")
        pattern = re.compile(r'(^\[treadle\]\nversion = )"[^"\n]*"$', re.MULTILINE)
        changed, count = pattern.subn(rf'\g<1>"{version}"', text)
        if count != 1:
            raise RefusedError('versions.toml has no line `version = "..."` right under [treadle]')
        path.write_text(changed, encoding="utf-8")

    # --- what a release must not be made from -------------------------------------------

    def require_clean(self) -> None:
        """RefusedError: something is not committed, so a tag would not say what was built."""
        status = self.git("status", "--porcelain").splitlines()
        if status:
            shown = "\n  ".join(status[:10])
            raise RefusedError(f"{len(status)} files differ from what is committed; commit or remove them:\n  {shown}")

    def require_new(self, version: Version) -> None:
        """RefusedError: the version has a tag, or is older than one that has, or than versions.toml's."""
        released = self.released()
        if version in released:
            raise RefusedError(f"{version} has been released: there is a tag {version.tag}; choose a newer version")
        if released and version < released[0]:
            raise RefusedError(f"{version} is not newer than {released[0]}, which has a tag; choose a newer version")
        if version < self.version:
            raise RefusedError(f"{version} is not newer than {self.version}, which versions.toml says")

    def require_derived(self) -> None:
        """RefusedError: a file that is made from versions.toml is out of date."""
        if problems := derived.stale(self.root):
            raise RefusedError("derived files are out of date:\n  " + "\n  ".join(problems))

    def require_tagged(self) -> None:
        """RefusedError: the commit does not have the tag of the version that versions.toml says."""
        tags = self.git("tag", "--points-at", "HEAD").split()
        if self.version.tag not in tags:
            named = ", ".join(tags) or "none"
            raise RefusedError(
                f"versions.toml says {self.version}, so the commit needs the tag {self.version.tag}; it has {named}"
            )


def find_root() -> Path:
    """The checkout: the one that `bazel run` was called in, or the one that these sources lie in."""
    given = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    return Path(given) if given else Path(__file__).resolve().parents[2]
