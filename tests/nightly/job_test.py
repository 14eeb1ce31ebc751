"""Whole runs with fake steps: the reports, the last good result, the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.nightly.fakes import Fake, breaks, checkout, commit, find
from tools.nightly import cli, job, store
from tools.nightly.engine import Findings, Run
from tools.nightly.kinds import Kind
from tools.nightly.options import Options


def good(options: Options) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((options.out / "last_good.json").read_text())
    return document


def markdown(options: Options) -> str:
    return (options.out / "report.md").read_text()


def test_a_good_run(tmp_path: Path):
    options = checkout(tmp_path)
    document = job.run(options, find(), [Fake("build")])
    assert (document["verdict"], document["exit_code"], document["first_break"]) == ("passed", 0, None)
    assert good(options)["tested"] == document["tested"]
    assert document["tested"]["jaxlib"] == "1.0"
    assert json.loads((options.out / "report.json").read_text()) == document
    assert json.loads((options.out / "runs" / document["key"] / "report.json").read_text()) == document
    text = markdown(options)
    assert text.startswith("# Nightly: jaxlib 1.0: passed\n\nNothing broke.\n")
    assert "| jaxlib | 1.0 (no nightly build; from the registry) |" in text
    assert text.endswith("## Since the last good run\n\nThere was none yet.\n")


def test_what_changed_since_it_was_good(tmp_path: Path):
    options = checkout(tmp_path)
    first = job.run(options, find("1.0"), [Fake("tests")])
    commit(options.root, "the second")
    commit(options.root, "the third")
    document = job.run(options, find("1.1", nightly=True), [Fake("tests", do=breaks(Kind.STABLEHLO, "unreadable"))])
    assert document["exit_code"] == 12
    assert document["since_last_good"]["versions"] == {"jax": ["1.0", "1.1"], "jaxlib": ["1.0", "1.1"]}
    assert [line.split(maxsplit=1)[1] for line in document["since_last_good"]["commits"]] == ["the third", "the second"]
    assert good(options)["key"] == first["key"]
    text = markdown(options)
    assert "**Broke first: stablehlo** in the step `tests` (exit code 12):\n" in text
    assert "> unreadable\n\n```\nthe end of its log\n```" in text
    assert "| jaxlib | 1.1 (a nightly build; from the registry) |" in text
    assert "- jaxlib: 1.0 -> 1.1\n" in text


def test_the_same_again_does_nothing_again(tmp_path: Path):
    options = checkout(tmp_path)
    step = Fake("tests", do=breaks(Kind.NUMERICS))
    documents = [job.run(options, find(), [step]) for _ in range(2)]
    assert step.ran == 1
    assert documents[0]["key"] == documents[1]["key"]
    assert documents[0]["first_break"] == documents[1]["first_break"]
    assert "| tests | broke | numerics | 0 s (kept from an earlier run) |" in markdown(options)
    job.run(replace(options, fresh=True), find(), [step])
    assert step.ran == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda options: commit(options.root, "another"),
        lambda options: (options.root / "new.py").write_text("x = 1\n"),
    ],
    ids=["a commit", "an uncommitted file"],
)
def test_other_sources_are_another_run(tmp_path: Path, change: Callable[[Options], object]):
    options = checkout(tmp_path)
    step = Fake("tests")
    job.run(options, find(), [step])
    change(options)
    job.run(options, find(), [step])
    assert step.ran == 2


def test_an_injected_break_is_called_one_and_changes_nothing_that_is_kept(tmp_path: Path):
    options = checkout(tmp_path)
    job.run(options, find(), [Fake("tests")])
    before = good(options)
    injected = replace(options, inject="test")
    document = job.run(injected, find(), [Fake("tests", do=breaks(Kind.NUMERICS))])
    assert (document["injected"], document["exit_code"]) == ("test", 14)
    assert "**A self-test: the break 'test' was injected (--inject). It is no news.**" in markdown(options)
    # One that does not show is no good run either.
    assert job.run(replace(options, inject="private-name"), find("1.1"), [Fake("tests")])["verdict"] == "passed"
    assert good(options) == before


def test_uncommitted_sources_are_no_last_good(tmp_path: Path):
    options = checkout(tmp_path)
    (options.root / "new.py").touch()
    assert job.run(options, find(), [Fake("tests")])["verdict"] == "passed"
    assert not (options.out / "last_good.json").exists()
    assert " with uncommitted changes |" in markdown(options)


def test_a_part_of_the_tests_is_no_last_good(tmp_path: Path):
    options = replace(checkout(tmp_path), tests=("ops",))
    assert job.run(options, find(), [Fake("tests")])["verdict"] == "passed"
    assert not (options.out / "last_good.json").exists()


def test_a_run_without_an_answer_from_the_registry(tmp_path: Path):
    options = checkout(tmp_path)
    unreachable = Fake("find", do=breaks(Kind.ENVIRONMENT, "the registry does not answer"))
    document = job.run(options, unreachable, [Fake("environment", needs=("find",)), Fake("build")])
    assert document["exit_code"] == 3
    assert [step["outcome"] for step in document["steps"]] == ["broke", "not run", "passed"]
    assert markdown(options).startswith("# Nightly: jaxlib (none found): broke\n")


def test_every_break_is_in_the_report(tmp_path: Path):
    options = checkout(tmp_path)

    counts = {"passed": 7, "skipped": 1, "failed": {"numerics": 2}, "fail on jaxlib's CPU backend too": 1}

    def two(_: Run) -> Findings:
        found = Findings(notes=["seen | noted"], facts={"tests": counts})
        return found.broke(Kind.TEST, "a test").broke(Kind.NUMERICS, "a value", "0 is not 1")

    tests = Fake("tests", do=two)
    document = job.run(options, find(), [tests, Fake("wheel", do=breaks(Kind.CRASH, "it died"))])
    assert document["first_break"]["summary"] == "a value"
    text = markdown(options)
    assert "| tests | 7 | 2 numerics (1 of them on jaxlib's CPU backend too) | 1 |" in text
    assert "- tests: seen | noted\n" in text
    others = text.partition("## Broke too")[2]
    assert "**test** in `tests`: a test" in others
    assert "**crash** in `wheel`: it died" in others
    assert "a value" not in others


def test_the_versions_are_in_the_report(tmp_path: Path):
    options = checkout(tmp_path)
    attributes = {"stablehlo_minimum_version": [0, 9, 0], "stablehlo_current_version": [1, 17, 0]}
    jaxlib = {"pjrt": "0.116", "pjrt_source": "measured", "stablehlo_minimum": "0.9.0", "stablehlo_current": "1.22.0"}
    facts = {"verdict": "skew", "plugin": {"pjrt": "0.114", "attributes": attributes}, "jaxlib": jaxlib}
    names = Findings(facts={"checked": 70, "broken": ["jax._src.x"]}).broke(Kind.PRIVATE_API, "gone")
    steps = [Fake("versions", do=lambda _: Findings(facts=facts)), Fake("private-names", do=lambda _: names)]
    job.run(options, find(), steps)
    assert markdown(options).count("|  | the plugin | jaxlib |\n| --- | --- | --- |\n") == 1
    for row in (
        "| PJRT C API | 0.114 | 0.116 (measured) |",
        "| StableHLO | 0.9.0 to 1.17.0 | 0.9.0 to 1.22.0 |",
        "| version_sync check | skew |  |",
        "| private names of JAX | 70 relied on | 1 broken |",
    ):
        assert row in markdown(options)
    assert job.run(options, find("1.1"), [Fake("versions", do=lambda _: Findings(facts={**facts, "plugin": {}}))])
    assert "| PJRT C API | ? | 0.116 (measured) |\n| StableHLO | ? to ? |" in markdown(options)


def test_old_runs_are_deleted(tmp_path: Path):
    options = replace(checkout(tmp_path), keep=1)
    job.run(options, find("1.0"), [])
    document = job.run(options, find("1.1"), [])
    assert [folder.name for folder in (options.out / "runs").iterdir()] == [document["key"]]


class Line:
    """The command line, with fake steps."""

    def __init__(self, options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options = options
        self.steps: Sequence[Fake] = []
        monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(options.root))
        monkeypatch.setattr(cli, "Find", lambda _: find())
        monkeypatch.setattr(cli, "steps", lambda _: self.steps)

    def run(self, *arguments: str) -> int:
        return cli.main(["--out", str(self.options.out), *arguments])


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(checkout(tmp_path), monkeypatch)


@pytest.mark.parametrize(
    "kind, code", [("header", 10), ("api", 11), ("stablehlo", 12), ("private-api", 13), ("numerics", 14), ("crash", 15)]
)
def test_exit_codes(line: Line, kind: str, code: int, capsys: pytest.CaptureFixture[str]):
    line.steps = [Fake("tests", do=breaks(Kind(kind)))]
    assert line.run() == code
    printed = capsys.readouterr().out
    assert printed == f"jaxlib 1.0: broke first: {kind} in tests: it broke\n{line.options.out / 'report.md'}\n"


def test_success(line: Line, capsys: pytest.CaptureFixture[str]):
    assert line.run("--json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "treadle-nightly-1"


def test_busy(line: Line, capsys: pytest.CaptureFixture[str]):
    with store.Store(line.options.out).locked():
        assert line.run() == 4
    assert "is in use by process" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--jax-clone", "no/folder"], "--jax-clone no/folder: there is no such folder"),
        (["--keep", "0"], "must be at least 1"),
        (["--tests", ","], "--tests: no group is named; there are registration, "),
        (["--tests", "ops,all"], "--tests: no group is called all; there are registration, "),
        (["--inject", "nothing"], "invalid choice: 'nothing'"),
    ],
)
def test_wrong_usage(line: Line, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        line.run(*arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(line: Line, capsys: pytest.CaptureFixture[str]):
    assert line.run("--out", "/dev/null/reports") == 2
    assert "--out /dev/null/reports cannot be made: Not a directory" in capsys.readouterr().err


def test_an_interrupt(line: Line, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "run", interrupt)
    assert line.run() == 130
    assert "interrupted: the same command goes on from here" in capsys.readouterr().err


def test_outside_of_a_checkout(line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    assert line.run() == 2


def test_the_help_names_every_exit_code(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    for kind in Kind:
        assert f"\n  {kind.exit_code:2}  {kind}: {kind.meaning}" in text
