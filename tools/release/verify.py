"""Verifies a release's files: with other people's tools, and in a clean environment for each supported Python."""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from third_party.python import environment
from third_party.python import lock as locks
from tools.release import artifacts, checks, clean
from tools.release.checks import Finding
from tools.release.repository import Repository

# Bazel's launcher names the interpreter of @release_env; without Bazel the same lock file makes one.
TOOLS_VARIABLE = "TREADLE_RELEASE_PYTHON"


@dataclass
class Report:
    """What was found, and what was not looked at and why."""

    findings: list[Finding] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything that was looked at is good."""
        return all(finding.passed for finding in self.findings)


def tools_python(root: Path, into: Path) -> Path:
    """The interpreter that has the tools: the one Bazel made, or one made in the folder `into`.

    SystemExit: the tools cannot be fetched, or not for this Python; the text says which or has pip's message.
    """
    if given := os.environ.get(TOOLS_VARIABLE):
        return Path(given)
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    lock = root / "third_party" / "python" / "lock" / f"release-py{version}.txt"
    if not lock.is_file():
        raise SystemExit(
            f"Python {sys.version.split()[0]} is none that is supported: there is no {lock.name}; use another"
        )
    artifacts.say(f"making an environment from {lock.name}")
    files = environment.wheelhouse(lock)
    python = environment.make_venv(into / "tools")
    environment.install(python, files, lock)
    return Path(python)


def sdist_contents(repository: Repository, sdist: Path) -> Finding:
    """The source archive holds every file under version control, and its PKG-INFO is of this version."""
    stem = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        names = set(archive.getnames())
    tracked = {f"{stem}/{name}" for name in repository.git("ls-files", "-z").split("\0") if name}
    missing = sorted(tracked - names)
    passed = not missing and f"{stem}/PKG-INFO" in names and stem == f"treadle-{repository.version}"
    text = (
        f"{len(names)} files"
        if passed
        else f"{stem} lacks {', '.join(missing[:5]) or 'PKG-INFO, or is of another version'}"
    )
    return Finding("source archive", passed, text)


def verify(
    repository: Repository, release: artifacts.Artifacts, interpreters: dict[str, str], all_pairs: bool = False
) -> Report:
    """Runs every check on the release; `interpreters` names Pythons by version ("3.12")."""
    report = Report()
    wrong = artifacts.check_hashes(release)
    report.findings.append(Finding(artifacts.HASHES, not wrong, "\n".join(wrong) or "all three files"))
    if wrong:
        report.not_run.append("all other checks: these are not the files that `build` made; build again")
        return report
    report.findings.append(sdist_contents(repository, release.sdist))
    with tempfile.TemporaryDirectory(prefix="treadle-release-") as name:
        python = tools_python(repository.root, Path(name))
        artifacts.say("auditwheel, twine, check-wheel-contents, CycloneDX")
        report.findings += [
            checks.platform(python, release.wheel),
            checks.wheel_contents(python, release.wheel),
            checks.index_page(python, release.wheel),
            checks.index_page(python, release.sdist),
            checks.bill_of_materials(python, release.sbom),
        ]
    for pair in clean.pairs(repository.pins, all_pairs):
        interpreter = locks.find_python(pair.python, interpreters)
        if interpreter is None:
            report.not_run.append(
                f"{pair}: there is no Python {pair.python} here (--python {pair.python}=PATH names one)"
            )
        else:
            report.findings += clean.try_wheel(repository.root, release.wheel, pair, interpreter)
    return report
