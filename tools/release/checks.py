"""What is checked of a release's files with other people's tools, each run on its own interpreter.

A check takes the interpreter of the environment that holds the tools (`@release_env`) and a
file; it gives what the tool said, and whether that is good enough to release.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The folders at the top of the wheel. There are two because JAX looks for plugins in the namespace
# package jax_plugins; check-wheel-contents takes every further top-level name for a mistake.
TOPLEVEL = ("jax_plugins", "treadle")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Finding:
    """One check's result: its name, whether it passed, and what it said."""

    name: str
    passed: bool
    text: str


def _run(python: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # -s, -I would do too, but twine's and auditwheel's own settings are variables that must not be inherited either.
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        [python, "-I", *arguments], env=environment, capture_output=True, text=True, errors="replace", check=False
    )


def manylinux_version(tag: str) -> tuple[int, int] | None:
    """The glibc that a manylinux tag names, or None for any other tag: "manylinux_2_34_x86_64" is (2, 34)."""
    found = re.fullmatch(r"manylinux_(\d+)_(\d+)_\w+", tag)
    return (int(found[1]), int(found[2])) if found else None


def platform_report(python: Path, wheel: Path) -> dict[str, Any]:
    """What auditwheel says of the wheel's shared libraries, as its JSON says it.

    RuntimeError: auditwheel did not run, or could not read the wheel.
    """
    done = _run(python, "-m", "auditwheel", "show", "--json", wheel)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"auditwheel gives no answer for {wheel.name}: {done.stdout}{done.stderr}") from None
    if "overall_tag" not in report:
        raise RuntimeError(f"auditwheel cannot judge {wheel.name}: {report.get('error', report)}")
    return report


def platform(python: Path, wheel: Path) -> Finding:
    """The tag in the wheel's name is one that auditwheel would give: no newer system is needed than it says."""
    claimed = manylinux_version(wheel.stem.rpartition("-")[2])
    report = platform_report(python, wheel)
    found = manylinux_version(report["overall_tag"])
    passed = claimed is not None and found is not None and found <= claimed
    text = f"named {wheel.stem.rpartition('-')[2]}, consistent with {report['overall_tag']}"
    if external := report["external_libs"]:
        text += f"; needs libraries from outside: {', '.join(external)}"
    return Finding("auditwheel", passed, text)


def _finding(name: str, file: Path, done: subprocess.CompletedProcess[str]) -> Finding:
    # Which file it is stands in the report already; twine colours what it says, whoever listens.
    text = _COLOUR.sub("", done.stdout + done.stderr).replace(f"{file.parent}/", "")
    return Finding(name, done.returncode == 0, text.strip())


def index_page(python: Path, file: Path) -> Finding:
    """The metadata is what an index accepts, and the description renders; a warning is an error."""
    return _finding("twine check --strict", file, _run(python, "-m", "twine", "check", "--strict", file))


def wheel_contents(python: Path, wheel: Path) -> Finding:
    """Nothing is in the wheel that should not be, and RECORD is right."""
    code = "from check_wheel_contents.__main__ import main; main()"
    done = _run(python, "-c", code, "--toplevel", ",".join(TOPLEVEL), wheel)
    return _finding("check-wheel-contents", wheel, done)


_VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read(), all_errors=True)
if errors:
    sys.exit("\\n".join(str(error) for error in errors))
print("valid CycloneDX 1.6")
"""


def bill_of_materials(python: Path, sbom: Path) -> Finding:
    """The bill of materials is what the published schema of CycloneDX 1.6 says, with nothing beside it."""
    return _finding("CycloneDX schema", sbom, _run(python, "-c", _VALIDATE, sbom))
