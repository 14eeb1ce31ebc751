"""A slice of JAX's own tests on Treadle, out of a clone of JAX."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tools.nightly.engine import Findings, NothingToDoError, Run, StepError
from tools.nightly.kinds import Kind
from tools.nightly.options import Options
from tools.nightly.pytest_run import Failure, Report, breaks, pytest
from tools.nightly.revision import git, git_bytes
from tools.nightly.steps.project_tests import treadle_variables

FILE_TIMEOUT = 1500  # seconds for a file of JAX's tests
TEST_TIMEOUT = 120


class JaxTests:
    """Runs each file on Treadle, and again on jaxlib's CPU backend the tests that failed there.

    A test that jaxlib's own backend fails too says nothing about Treadle. One in which Treadle says UNIMPLEMENTED is
    counted, and is no break. What else fails is one.
    """

    name = "jax-tests"
    title = "running a slice of JAX's tests"
    needs = ("environment", "build")

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        if self.options.jax_clone is None:
            raise NothingToDoError("no clone of JAX was given (--jax-clone)")
        found = Findings()
        folder = self._tests(run, self.options.jax_clone, found)
        for name in self.options.jax_tests:
            file = folder / "tests" / f"{name}.py"
            if not file.is_file():
                found.broke(Kind.ENVIRONMENT, f"the clone has no tests/{name}.py")
                continue
            self._file(run, folder, name, found)
        return found

    def _tests(self, run: Run, clone: Path, found: Findings) -> Path:
        version = run.fact("find", "jax")
        try:
            reference = choose(clone, version)
            found.facts["clone"] = describe(clone, reference)
            archive = archived(clone, reference)
        except (OSError, subprocess.CalledProcessError) as error:
            raise StepError(Kind.ENVIRONMENT, f"{clone} is no clone of JAX that can be read: {error}") from None
        if reference == "HEAD":
            found.notes.append(
                f"the clone has no tag jax-v{version}: the tests are those of its HEAD, {found.facts['clone']}; tests "
                "of another version than the installed one can fail for that reason alone"
            )
        # Without the clone's own jax/: the installed one is under test.
        folder = run.folder / "jax"
        shutil.rmtree(folder, ignore_errors=True)
        archive.extractall(folder, filter="data")
        return folder

    def _file(self, run: Run, folder: Path, name: str, found: Findings) -> None:
        report = self._pytest(run, folder, name, "treadle,cpu", [f"tests/{name}.py"])
        if report.trouble:
            found.breaks.append(report.trouble)
        missing = [failure for failure in report.failures if failure.kind is Kind.UNIMPLEMENTED]
        failures = [failure for failure in report.failures if failure.kind is not Kind.UNIMPLEMENTED]
        not_ours = self._fails_on_jaxlib(run, folder, name, failures)
        ours = [failure for failure in failures if failure.test not in not_ours]
        found.breaks += breaks(ours)
        found.facts[name] = {
            **report.counts(),
            "fail on jaxlib's CPU backend too": len(not_ours),
            "seconds": report.seconds,
            "unimplemented": sorted(failure.test for failure in missing),
            "broken": sorted(failure.test for failure in ours),
        }

    def _fails_on_jaxlib(self, run: Run, folder: Path, name: str, failures: Sequence[Failure]) -> set[str]:
        if not failures:
            return set()
        ids = [node_id(failure.test) for failure in failures]
        report = self._pytest(run, folder, f"{name}-on-cpu", "cpu", ids)
        return {failure.test for failure in report.failures}

    def _pytest(self, run: Run, folder: Path, name: str, platforms: str, what: Sequence[str]) -> Report:
        variables = {
            **treadle_variables(run),
            "JAX_PLATFORMS": platforms,
            "JAX_NUM_GENERATED_CASES": "2",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        arguments = [f"-n{self.options.workers}", f"--timeout={TEST_TIMEOUT}", *what]
        return pytest(run, name, arguments, timeout=FILE_TIMEOUT, variables=variables, cwd=folder)


def choose(clone: Path, version: str) -> str:
    """The clone's tag of this version of jax, or HEAD where it has none."""
    tag = f"jax-v{version}"
    return tag if git(clone, "tag", "--list", tag).strip() else "HEAD"


def describe(clone: Path, reference: str) -> str:
    """The commit, its day and the version that it says it is."""
    commit = git(clone, "log", "-1", "--format=%h of %cs", f"{reference}^{{commit}}").strip()
    version = re.search(r'^_version = "(.+)"', git(clone, "show", f"{reference}:jax/version.py"), re.MULTILINE)
    return f"{commit} (jax {version[1] if version else 'of an unknown version'})"


def archived(clone: Path, reference: str) -> tarfile.TarFile:
    """The tests and pytest's configuration at that commit; the clone needs no work tree."""
    archive = git_bytes(clone, "archive", reference, "tests", "conftest.py", "pyproject.toml")
    return tarfile.open(fileobj=io.BytesIO(archive))


def node_id(test: str) -> str:
    """pytest's name of a test whose name in the JUnit file is "tests.lax_test.LaxTest::testAbs"."""
    where, _, name = test.partition("::")
    folder, file, *classes = where.split(".")
    return "::".join([f"{folder}/{file}.py", *classes, name])
