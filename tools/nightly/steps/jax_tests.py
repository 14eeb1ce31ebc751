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

FILE_TIMEOUT = 3600  # seconds for a file of JAX's tests
TEST_TIMEOUT = 300


class JaxSource:
    """Takes the tests out of the clone, those of the installed version if it has them."""

    name = "jax-source"
    title = "taking JAX's tests out of the clone"
    needs = ("find",)

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        clone = self.options.jax_clone
        if clone is None:
            raise NothingToDoError("no clone of JAX was given (--jax-clone)")
        version = run.fact("find", "jax")
        try:
            reference = choose(clone, version)
            told = describe(clone, reference)
            archive = archived(clone, reference)
        except (OSError, subprocess.CalledProcessError) as error:
            raise StepError(Kind.ENVIRONMENT, f"{clone} is no clone of JAX that can be read: {error}") from None
        # Without the clone's own jax/: the installed one is under test.
        folder = run.folder / "jax"
        shutil.rmtree(folder, ignore_errors=True)
        archive.extractall(folder, filter="data")
        found = Findings(facts={"clone": told}, products={"tests": str(folder)})
        if reference == "HEAD":
            found.notes.append(
                f"the clone has no tag jax-v{version}: the tests are those of its HEAD, {told}; tests of another "
                "version than the installed one can fail for that reason alone"
            )
        return found


class JaxTests:
    """Runs a file on Treadle, and again on jaxlib's CPU backend the tests that failed there.

    A test that jaxlib's own backend fails too says nothing about Treadle. One in which Treadle says UNIMPLEMENTED is
    counted, and is no break. What else fails is one.
    """

    needs = ("environment", "build", "jax-source")

    def __init__(self, options: Options, file: str) -> None:
        self.options = options
        self.file = file
        self.name = f"jax-{file}"
        self.title = f"running JAX's {file}"

    def run(self, run: Run) -> Findings:
        if not (run.product("jax-source", "tests") / "tests" / f"{self.file}.py").is_file():
            raise StepError(Kind.ENVIRONMENT, f"the clone has no tests/{self.file}.py")
        report = self._pytest(run, "treadle,cpu", [f"tests/{self.file}.py"])
        missing = [failure for failure in report.failures if failure.kind is Kind.UNIMPLEMENTED]
        failures = [failure for failure in report.failures if failure.kind is not Kind.UNIMPLEMENTED]
        not_ours = self._fails_on_jaxlib(run, failures)
        ours = [failure for failure in failures if failure.test not in not_ours]
        facts = {
            "tests": {**report.counts(), "fail on jaxlib's CPU backend too": len(not_ours)},
            "unimplemented": sorted(failure.test for failure in missing),
            "broken": sorted(failure.test for failure in ours),
        }
        return Findings(breaks=[*report.trouble, *breaks(ours)], facts=facts)

    def _fails_on_jaxlib(self, run: Run, failures: Sequence[Failure]) -> set[str]:
        if not failures:
            return set()
        ids = [node_id(failure.test) for failure in failures]
        return {failure.test for failure in self._pytest(run, "cpu", ids).failures}

    def _pytest(self, run: Run, platforms: str, what: Sequence[str]) -> Report:
        variables = {
            **treadle_variables(run),
            "JAX_PLATFORMS": platforms,
            "JAX_NUM_GENERATED_CASES": "2",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        arguments = [f"-n{self.options.workers}", f"--timeout={TEST_TIMEOUT}", *what]
        folder = run.product("jax-source", "tests")
        return pytest(run, arguments, timeout=FILE_TIMEOUT, variables=variables, cwd=folder)


def steps(options: Options) -> list[JaxSource | JaxTests]:
    """One that takes the tests out of the clone, and one for each file; without a clone the first says so alone."""
    files = options.jax_tests if options.jax_clone else ()
    return [JaxSource(options), *(JaxTests(options, file) for file in files)]


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
