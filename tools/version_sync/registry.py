"""Asks package registries, through their own clients: pip and apt.

Which registry that is, is the business of the clients' settings; no address is known here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 600
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "15")


class RegistryError(RuntimeError):
    """The registry did not answer, or does not have what was asked for."""


@dataclass(frozen=True)
class Archive:
    """A file of a package, pinned by its hash."""

    package: str
    version: str
    sha256: str
    python: str


def _pip(*arguments: str, what: str) -> str:
    command = [sys.executable, *PIP, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise RegistryError(f"{what}: pip gave no answer in {TIMEOUT} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        raise RegistryError(f"{what}: {' '.join(errors[:2]) or 'pip failed without a message'}")
    return done.stdout


def versions(package: str, python: str = "", pre: bool = False, index: str = "") -> list[str]:
    """The versions of a package in pip's registry, the newest first.

    `python` ("3.12") gives those that have a file for that Python; `pre` counts pre-releases
    too; `index` asks another index than the configured one.

    Raises:
        RegistryError: the registry cannot be reached, or has no such package.
    """
    options = ["--pre"] if pre else []
    if python:
        options += ["--python-version", python, "--only-binary", ":all:"]
    if index:
        options += ["--index-url", index]
    text = _pip("index", "versions", package, *options, what=f"The versions of {package}")
    match = re.search(r"^Available versions: (.*)$", text, re.MULTILINE)
    if match is None:
        raise RegistryError(f"The versions of {package}: pip's answer has no list of versions")
    return [version.strip() for version in match[1].split(",")]


def download(archive: Archive, folder: Path) -> Path:
    """Fetches a wheel into `folder` and gives its path.

    Raises:
        RegistryError: the registry cannot be reached, or what it has is another file.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(f"{archive.package}=={archive.version} --hash=sha256:{archive.sha256}\n")
        requirements.flush()
        options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--quiet"]
        options += ["--python-version", archive.python, "--dest", str(folder), "-r", requirements.name]
        _pip("download", *options, what=f"Fetching {archive.package} {archive.version}")
    (file,) = folder.iterdir()
    return file


def debian_version(package: str) -> str:
    """The version that apt would install, without Debian's own part of it.

    Raises:
        RegistryError: there is no apt here, or it does not know the package.
    """
    if shutil.which("apt-cache") is None:
        raise RegistryError(f"The version of {package}: there is no apt-cache here")
    done = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False)
    match = re.search(r"Candidate: (\S+)", done.stdout)
    if match is None or match[1] == "(none)":
        raise RegistryError(f"The version of {package}: apt knows no such package (apt-get update?)")
    return re.split(r"[-+~]", match[1].partition(":")[2] or match[1])[0]
