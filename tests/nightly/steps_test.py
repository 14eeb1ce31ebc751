"""What the real steps make of what other programs print."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.nightly.fakes import checkout, commit, git
from tools.nightly import pytest_run
from tools.nightly.engine import Engine, Outcome, Result, Run, Step, StepError
from tools.nightly.kinds import Kind
from tools.nightly.options import TESTS, Options
from tools.nightly.process import Done
from tools.nightly.steps import build, canary, environment, find, jax_tests, project_tests, versions

ROOT = Path(__file__).absolute().parents[2]
CLONE = {
    "tests/good_test.py": "def test_it(): pass\n",
    "conftest.py": "",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ''\n",
}


def test_versions_in_pips_report():
    def item(name: str, version: str) -> dict[str, object]:
        return {"metadata": {"name": name, "version": version}}

    install = [item("numpy", "2.5"), item("jaxlib", "0.13.0.dev20261128"), item("jax", "0.13.0.dev20261129")]
    assert find.chosen({"install": install}) == {"jax": "0.13.0.dev20261129", "jaxlib": "0.13.0.dev20261128"}


class Registry(Run):
    """A run in which pip answers with versions: from the nightly index, if it can be reached, and else of releases."""

    def __init__(self, folder: Path, reachable: bool) -> None:
        super().__init__(ROOT, folder)
        self.reachable = reachable

    def must(self, what: str, *words: str | Path, timeout: float, kind: Kind, **options: object) -> Done:
        if "--report" not in words:
            return Done(0, "", 1)
        if "--index-url" in words and not self.reachable:
            raise StepError(kind, "asking for jax and jaxlib ended with code 1: Connection refused")
        version = "0.13.0.dev20261128" if "--index-url" in words else "0.12.0.1"
        install = [{"metadata": {"name": name, "version": version}} for name in ("jax", "jaxlib")]
        Path(words[words.index("--report") + 1]).write_text(json.dumps({"install": install}))
        return Done(0, "", 1)


@pytest.mark.parametrize(
    "index, reachable, version, source, notes",
    [
        (True, True, "0.13.0.dev20261128", "nightly index", []),
        (
            True,
            False,
            "0.12.0.1",
            "registry",
            [
                "no nightly build could be had from the index at example.org: "
                "asking for jax and jaxlib ended with code 1: Connection refused",
                "this is a release, not a nightly build",
            ],
        ),
        (
            False,
            False,
            "0.12.0.1",
            "registry",
            ["no nightly index was given (--index)", "this is a release, not a nightly build"],
        ),
    ],
    ids=["nightly", "unreachable", "no index"],
)
def test_where_the_versions_come_from(
    tmp_path: Path, index: bool, reachable: bool, version: str, source: str, notes: list[str]
):
    options = Options(
        ROOT, tmp_path, index="https://me:secret@example.org/simple" if index else None, python=sys.executable
    )
    found = find.Find(options).run(Registry(tmp_path, reachable))
    assert (found.facts["jaxlib"], found.facts["source"]) == (version, source)
    assert found.facts["is_nightly"] is (source == "nightly index")
    assert found.notes == notes


@pytest.mark.parametrize("version, nightly", [("0.13.0.dev20261128", True), ("0.12.0.1", False), ("0.13.0rc1", False)])
def test_is_nightly(version: str, nightly: bool):
    assert find.is_nightly(version) is nightly


def test_of_an_address_only_the_host_is_named():
    assert find.host("https://me:secret@example.org:8080/simple/") == "example.org"


def test_the_python_that_was_asked_for():
    assert find.fitting_python(ROOT, sys.executable) == sys.executable
    with pytest.raises(StepError, match=r"no Python .* with the modules venv .* is /nonexistent/py"):
        find.fitting_python(ROOT, "/nonexistent/python3")


def test_what_the_locks_hold():
    lock = "# generated\njax==0.12 --hash=sha256:0\nnumpy==2 --hash=sha256:1\npytest==9.1 --hash=sha256:2\n"
    assert environment.held(lock) == ["pytest==9.1"]


def test_the_newest_wheel_of_this_version(tmp_path: Path):
    with pytest.raises(StepError, match="has no treadle-1"):
        build.newest_wheel(tmp_path, "1.0")
    for name in ("treadle-1.0-py3-none-any.whl", "treadle-0.9-py3-none-any.whl"):
        (tmp_path / name).touch()
    assert build.newest_wheel(tmp_path, "1.0").name == "treadle-1.0-py3-none-any.whl"


def version_report(*findings: tuple[str, str]) -> dict[str, object]:
    rows = [{"verdict": verdict, "text": text, "action": "do it"} for verdict, text in findings]
    return {"schema": "treadle-check-1", "verdict": "any", "jaxlib": {}, "plugin": {}, "findings": rows}


def test_only_what_is_incompatible_breaks():
    found = versions.judge(version_report(("skew", "the plugin speaks PJRT 0.114, jaxlib 0.116")), "")
    assert (found.breaks, found.notes) == ([], ["the plugin speaks PJRT 0.114, jaxlib 0.116 (do it)"])
    major = ("incompatible", "the plugin speaks PJRT 0.114, jaxlib 1.0: another major version")
    stablehlo = ("incompatible", "the plugin reads StableHLO up to 1.17.0, jaxlib writes from 1.18.0 on")
    kinds = [item.kind for item in versions.judge(version_report(major, stablehlo), "").breaks]
    assert kinds == [Kind.HEADER, Kind.STABLEHLO]


def test_an_answer_among_other_output():
    done = Done(3, 'a {warning}\n{"schema": "other"}\n{"schema": "treadle-x-1", "a": {"b": 1}}\n', 1.0)
    assert versions.last_json(done, "treadle-x-1", "it")["a"] == {"b": 1}


def test_no_answer():
    with pytest.raises(StepError, match="it died of the signal SIGSEGV and gave no answer: Fatal") as error:
        versions.last_json(Done(-11, "Fatal Python error: Segmentation fault\n", 1.0), "treadle-x-1", "it")
    assert error.value.found.kind is Kind.CRASH


def test_what_the_canary_says():
    assert canary.judge({"checked": 40, "broken": []}).breaks == []
    row = {"name": "jax._src.x.y", "problem": "AttributeError: no y", "why": "registering", "users": ["plugin.py"]}
    found = canary.judge({"checked": 40, "broken": [row]}).breaks[0]
    assert (found.kind, found.summary) == (Kind.PRIVATE_API, "1 of 40 are gone or changed: jax._src.x.y")
    assert found.detail == "jax._src.x.y: AttributeError: no y\n    needed: registering (plugin.py)"


XML = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.lax_test.LaxTest" name="testAbs0" time="0.1"/>
<testcase classname="tests.lax_test.LaxTest" name="testFft"><failure message="JaxRuntimeError">
UNIMPLEMENTED: PJRT_Client_Compile: The program uses 1 thing that Treadle cannot compile:</failure></testcase>
<testcase classname="tests.lax_test.LaxTest" name="testExp1"><failure message="AssertionError: Not equal to tolerance">
Mismatched elements: 3 / 4 (75%)</failure></testcase>
<testcase classname="tests.lax_test.LaxTest" name="testExp2"><failure message="AssertionError: Not equal to tolerance"/>
</testcase>
<testcase classname="tests.lax_test.LaxTest" name="testGpu"><skipped message="needs a GPU"/></testcase>
<testcase classname="" name="tests.ops.table_test"><error message="collection failure">ImportError: cannot import name
'f' from 'jax._src.util'</error></testcase>
</testsuite></testsuites>"""


def test_pytests_results():
    report = pytest_run.parse(XML)
    assert report.passed == ["tests.lax_test.LaxTest::testAbs0"]
    assert report.counts() == {"passed": 1, "skipped": 1, "failed": {"unimplemented": 1, "numerics": 2, "test": 1}}
    found = pytest_run.breaks(report.failures)
    assert [item.kind for item in found] == [Kind.UNIMPLEMENTED, Kind.NUMERICS, Kind.TEST]
    assert found[2].summary.startswith("tests.ops.table_test: ")
    assert found[1].summary == "tests.lax_test.LaxTest::testExp1 (and 1 more): Mismatched elements: 3 / 4 (75%)"


def test_the_name_of_a_test_on_pytests_command_line():
    assert jax_tests.node_id("tests.lax_test.LaxTest::testAbs0") == "tests/lax_test.py::LaxTest::testAbs0"
    assert jax_tests.node_id("tests.util_test::test_it") == "tests/util_test.py::test_it"


def run_with(folder: Path, *steps: Step, jax: str = "1.0") -> list[Result]:
    """Runs steps as if they came after the others, in this test's own environment."""
    (folder / "logs").mkdir(parents=True)
    run = Run(ROOT, folder)
    products = {"python": sys.executable, "plugin": "/nonexistent/treadle_pjrt.so"}
    for name in ("find", "environment", "build"):
        run.results[name] = Result(name, Outcome.PASSED, facts={"jax": jax}, products=products)
    return Engine(run).run(steps)


def test_a_run_of_pytest_and_an_injected_failure(tmp_path: Path):
    file = tmp_path / "small_test.py"
    file.write_text("import os\ndef test_it(): assert os.environ['NAME'] == 'x'\ndef test_two(): pass\n")
    options = Options(ROOT, tmp_path, tests=(), inject="test")
    group = project_tests.Group("small", (str(file),), 60, (("NAME", "x"),))
    small, injected = run_with(
        tmp_path / "run", project_tests.ProjectTests(options, group), *project_tests.steps(options)
    )
    assert (small.name, small.outcome) == ("tests-small", Outcome.PASSED)
    assert small.facts["tests"] == {"passed": 2, "skipped": 0, "failed": {}}
    assert (injected.name, injected.outcome) == ("tests-injected", Outcome.BROKE)
    assert injected.facts["tests"] == {"passed": 0, "skipped": 0, "failed": {"numerics": 1}}
    assert [item.kind for item in injected.breaks] == [Kind.NUMERICS]
    assert "test_injected_wrong_value" in injected.breaks[0].summary
    assert "Mismatched elements: 1 / 4 (25%)" in injected.breaks[0].detail


def test_the_groups_that_were_asked_for():
    names = [step.name for step in project_tests.steps(Options(ROOT, ROOT, tests=("ops", "capi")))]
    assert names == ["tests-capi", "tests-ops"]
    assert [group.name for group in project_tests.GROUPS] == list(TESTS)


class Canned(Run):
    """A run in which pytest is not started: it ended so, and wrote this."""

    def __init__(self, folder: Path, done: Done, xml: str = "") -> None:
        super().__init__(ROOT, folder)
        self.results["environment"] = Result("environment", Outcome.PASSED, products={"python": "python"})
        self.step = "tests"
        self.done, self.xml = done, xml

    def command(self, *words: str | Path, timeout: float, **options: object) -> Done:
        file = next(str(word).partition("=")[2] for word in words if str(word).startswith("--junitxml="))
        if self.xml:
            Path(file).write_text(self.xml)
        return self.done


EMPTY = "<testsuites><testsuite/></testsuites>"


@pytest.mark.parametrize(
    "done, xml, kind, summary",
    [
        (Done(5, "no tests ran", 1), EMPTY, Kind.TEST, "no test ran"),
        (Done(4, "ERROR: no such file: x", 1), "", Kind.TEST, "pytest ended with code 4: ERROR: no such file: x"),
        (Done(-11, "...", 1), "", Kind.CRASH, "pytest died of the signal SIGSEGV: ..."),
        (Done(-9, "...", 60, timed_out=True), "", Kind.TEST, "pytest was ended after 60 s"),
        (Done(3, "jax is odd\nImportError: cannot import name 'x' from 'jax._src.core'", 1), "", Kind.PRIVATE_API,
         "pytest ended with code 3: ImportError: cannot import name 'x' from 'jax._src.core'"),
    ],
)  # fmt: skip
def test_a_run_of_pytest_that_goes_wrong(tmp_path: Path, done: Done, xml: str, kind: Kind, summary: str):
    report = pytest_run.pytest(Canned(tmp_path, done, xml), [], timeout=60, variables={}, cwd=tmp_path)
    assert [(item.kind, item.summary) for item in report.trouble] == [(kind, summary)]


def test_failures_are_no_trouble(tmp_path: Path):
    report = pytest_run.pytest(Canned(tmp_path, Done(1, "", 1), XML), [], timeout=60, variables={}, cwd=tmp_path)
    assert report.trouble == []
    assert len(report.failures) == 4


def clone(folder: Path, files: dict[str, str], tag: str = "") -> Path:
    root = checkout(folder).root
    for name, text in {**CLONE, "jax/version.py": '_version = "1.0"\n', **files}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", ".")
    commit(root, "JAX")
    if tag:
        git(root, "tag", tag)
    return root


def jax_run(folder: Path, root: Path, *names: str) -> list[Result]:
    options = Options(ROOT, folder, jax_clone=root, jax_tests=names)
    return run_with(folder / "run", *jax_tests.steps(options))


def test_the_tests_of_the_installed_version_are_taken(tmp_path: Path):
    root = clone(tmp_path, {}, tag="jax-v1.0")
    (root / "tests/good_test.py").write_text("newer\n")
    git(root, "commit", "--quiet", "-a", "-m", "newer")
    (source,) = jax_run(tmp_path, root)
    assert (source.outcome, source.notes) == (Outcome.PASSED, ())
    assert source.facts["clone"].endswith("(jax 1.0)")
    taken = tmp_path / "run" / "jax"
    assert (taken / "tests/good_test.py").read_text() == CLONE["tests/good_test.py"]
    assert not (taken / "jax").exists()


def test_without_the_tag_the_report_says_so(tmp_path: Path):
    source, missing = jax_run(tmp_path, clone(tmp_path, {}, tag="jax-v0.9"), "missing_test")
    assert source.notes[0].startswith("the clone has no tag jax-v1.0: the tests are those of its HEAD, ")
    assert [item.summary for item in missing.breaks] == ["the clone has no tests/missing_test.py"]


def test_what_jaxlib_fails_too_is_not_treadles(tmp_path: Path):
    text = """
import os
ON_TREADLE = os.environ["JAX_PLATFORMS"] == "treadle,cpu"
def test_wrong_everywhere(): assert False
def test_wrong_on_treadle(): assert not ON_TREADLE, "Mismatched elements: 1 / 2 (50%)"
def test_missing(): assert not ON_TREADLE, "UNIMPLEMENTED: PJRT_Client_Compile: it uses something"
def test_right(): pass
"""
    result = jax_run(tmp_path, clone(tmp_path, {"tests/some_test.py": text}, tag="jax-v1.0"), "some_test")[-1]
    assert [item.kind for item in result.breaks] == [Kind.NUMERICS]
    assert result.breaks[0].summary.startswith("tests.some_test::test_wrong_on_treadle: ")
    assert result.facts["tests"]["passed"] == 1
    assert result.facts["tests"]["fail on jaxlib's CPU backend too"] == 1
    assert result.facts["unimplemented"] == ["tests.some_test::test_missing"]
    assert result.facts["broken"] == ["tests.some_test::test_wrong_on_treadle"]


def test_no_clone(tmp_path: Path):
    (none,) = run_with(tmp_path / "none", *jax_tests.steps(Options(ROOT, tmp_path)))
    assert none.notes == ("no clone of JAX was given (--jax-clone)",)
    (tmp_path / "empty").mkdir()
    source, file = jax_run(tmp_path, tmp_path / "empty", "good_test")
    assert source.breaks[0].kind is Kind.ENVIRONMENT
    assert file.outcome is Outcome.NOT_RUN
