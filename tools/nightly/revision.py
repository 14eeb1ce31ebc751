"""Which sources a run tests."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Revision:
    """The checkout's commit, and a hash of what is not committed ("" for nothing)."""

    commit: str
    changes: str = ""

    @property
    def name(self) -> str:
        """For people and for folders."""
        return self.commit[:12] + (f"+{self.changes}" if self.changes else "")


def revision(root: Path) -> Revision:
    """Of the checkout at `root`.

    Raises:
      ValueError: it is no git checkout.
    """
    try:
        commit = git(root, "rev-parse", "HEAD").strip()
        status = git(root, "status", "--porcelain", "-z", "--untracked-files=all")
        changes = ""
        if status:
            digest = hashlib.sha256((status + git(root, "diff", "HEAD", "--binary")).encode())
            for name in git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0"):
                if name and (root / name).is_file():
                    digest.update((root / name).read_bytes())
            changes = digest.hexdigest()[:8]
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"{root} is no git checkout that can be read: {error}") from None
    return Revision(commit, changes)


def commits_since(root: Path, commit: str, limit: int = 20) -> list[str]:
    """The commits from there to HEAD, newest first, one line each; at most `limit`. [] where it is unknown here."""
    try:
        text = git(root, "log", f"-{limit + 1}", "--no-merges", "--format=%h %s", f"{commit}..HEAD")
    except subprocess.CalledProcessError:
        return []
    lines = text.splitlines()
    return lines if len(lines) <= limit else [*lines[:limit], "and older ones"]


def git(folder: Path, *arguments: str) -> str:
    """What a git command prints.

    Raises:
      subprocess.CalledProcessError: it failed.
    """
    return git_bytes(folder, *arguments).decode(errors="replace")


def git_bytes(folder: Path, *arguments: str) -> bytes:
    """Like `git`, for what is no text."""
    # In a container the checkout may belong to another user, which git refuses unless it is told.
    command = ["git", "-c", f"safe.directory={folder.resolve()}", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout
