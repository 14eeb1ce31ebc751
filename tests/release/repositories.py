"""Small git repositories with the few files that a release reads and writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.release.repository import Repository

VERSIONS = """\
# A comment that stays.
[treadle]
version = "0.1.0"

[bazel]
version = "4.2.3"

[python]
versions = ["3.11", "3.12"]

[jax]
minimum = "1.0"
below = "2.0"

[[jax.tested]]
jax = "1.5"
jaxlib = "1.5"
python = ["3.12"]

[[jax.tested]]
jax = "1.0"
jaxlib = "1.0"
python = ["3.11", "3.12"]

[llvmlite]
minimum = "0.45"
below = "0.51"

[numpy]
minimum = "2.0"

[ml_dtypes]
minimum = "0.5"
"""


def commit(repository: Repository, subject: str, files: dict[str, str]) -> None:
    """Writes the files and commits them."""
    for name, text in files.items():
        path = repository.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--allow-empty", "--message", subject)


def repository(folder: Path) -> Repository:
    """A repository with one commit, at version 0.1.0, with no tag."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    made = Repository(folder)
    made.git("config", "user.name", "A Tester")
    made.git("config", "user.email", "tester@example.org")
    files = {
        "versions.toml": VERSIONS,
        "README.md": "# Treadle\n\nSee [the pins](versions.toml).\n",
        "LICENSE": "text\n",
    }
    commit(made, "The first commit", files)
    return made
