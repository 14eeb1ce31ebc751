"""The engine: what runs, what is kept, and what a break keeps from running."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nightly.fakes import Fake, breaks, run_steps
from tools.nightly.engine import Findings, NothingToDoError, Outcome, Result, Run, StepError, first_break
from tools.nightly.kinds import Kind

PASSED, BROKE, NOT_RUN = Outcome.PASSED, Outcome.BROKE, Outcome.NOT_RUN


def outcomes(results: list[Result]) -> list[Outcome]:
    return [result.outcome for result in results]


def test_a_break_stops_only_what_needs_the_step(tmp_path: Path):
    steps = [
        Fake("a", do=breaks(Kind.API)),
        Fake("b", needs=("a",)),
        Fake("c"),
        Fake("d", needs=("b",)),
        Fake("e", needs=("c",)),
    ]
    results = run_steps(tmp_path, steps)
    assert outcomes(results) == [BROKE, NOT_RUN, PASSED, NOT_RUN, PASSED]
    assert [step.ran for step in steps] == [1, 0, 1, 0, 1]
    assert results[1].notes == ("it needs the step a",)


def test_what_a_step_found_is_there_for_later_ones(tmp_path: Path):
    product = tmp_path / "wheel"
    product.touch()
    seen = []

    def use(run: Run) -> None:
        seen.append((run.fact("a", "answer"), run.product("a", "wheel")))

    found = Findings(facts={"answer": 42}, products={"wheel": str(product)})
    run_steps(tmp_path, [Fake("a", do=lambda _: found), Fake("b", needs=("a",), do=use)])
    assert seen == [(42, product)]


def test_finished_steps_are_not_done_again(tmp_path: Path):
    steps = [Fake("a"), Fake("b", do=breaks(Kind.NUMERICS, "2 is not 3")), Fake("c", needs=("a",))]
    run_steps(tmp_path, steps)
    again = run_steps(tmp_path, steps)
    assert [step.ran for step in steps] == [1, 1, 1]
    assert outcomes(again) == [PASSED, BROKE, PASSED]
    assert [result.resumed for result in again] == [True, True, True]
    assert again[1].breaks[0].summary == "2 is not 3"


def test_fresh_does_them_again(tmp_path: Path):
    steps = [Fake("a"), Fake("b", do=breaks(Kind.NUMERICS))]
    run_steps(tmp_path, steps)
    again = run_steps(tmp_path, steps, fresh=True)
    assert [step.ran for step in steps] == [2, 2]
    assert not any(result.resumed for result in again)


@pytest.mark.parametrize("kind", [Kind.ENVIRONMENT, Kind.INTERNAL])
def test_what_says_nothing_about_the_versions_is_tried_again(tmp_path: Path, kind: Kind):
    results = run_steps(tmp_path, [Fake("a"), Fake("b", do=breaks(kind)), Fake("c", needs=("b",))])
    assert outcomes(results) == [PASSED, BROKE, NOT_RUN]
    steps = [Fake("a"), Fake("b"), Fake("c", needs=("b",))]
    assert outcomes(run_steps(tmp_path, steps)) == [PASSED, PASSED, PASSED]
    assert [step.ran for step in steps] == [0, 1, 1]


def test_a_lost_product_is_made_again_and_what_was_made_of_it(tmp_path: Path):
    def make(_: Run) -> Findings:
        (tmp_path / "wheel").touch()
        return Findings(products={"wheel": str(tmp_path / "wheel")})

    steps = [Fake("a", do=make), Fake("b", needs=("a",)), Fake("c", needs=("b",)), Fake("d")]
    run_steps(tmp_path, steps)
    (tmp_path / "wheel").unlink()
    run_steps(tmp_path, steps)
    assert [step.ran for step in steps] == [2, 2, 2, 1]


def test_an_interrupted_run_is_resumed(tmp_path: Path):
    def interrupt(_: Run) -> Findings:
        raise KeyboardInterrupt

    first = Fake("a")
    with pytest.raises(KeyboardInterrupt):
        run_steps(tmp_path, [first, Fake("b", do=interrupt), Fake("c")])
    steps = [first, Fake("b"), Fake("c")]
    assert outcomes(run_steps(tmp_path, steps)) == [PASSED, PASSED, PASSED]
    assert [step.ran for step in steps] == [1, 1, 1]


def test_a_damaged_state_is_no_state(tmp_path: Path):
    steps = [Fake("a")]
    run_steps(tmp_path, steps)
    (tmp_path / "state.json").write_text('{"schema": "treadle-nightly-sta')
    run_steps(tmp_path, steps)
    assert steps[0].ran == 2


def test_nothing_to_do_is_no_break(tmp_path: Path):
    def nothing(_: Run) -> Findings:
        raise NothingToDoError("no clone was given")

    results = run_steps(tmp_path, [Fake("a", do=nothing)])
    assert outcomes(results) == [NOT_RUN]
    assert results[0].notes == ("no clone was given",)
    assert first_break(results) is None


def test_the_unforeseen_is_reported_and_the_rest_still_runs(tmp_path: Path):
    def fail(_: Run) -> Findings:
        raise ZeroDivisionError("division by zero")

    results = run_steps(tmp_path, [Fake("a", do=fail), Fake("b")])
    assert outcomes(results) == [BROKE, PASSED]
    assert results[0].breaks[0].kind is Kind.INTERNAL
    assert results[0].breaks[0].summary == "ZeroDivisionError: division by zero"
    assert "in fail" in Path(results[0].log).read_text()


def test_a_command_that_fails_is_classified_by_what_it_printed(tmp_path: Path):
    def install(run: Run) -> Findings:
        script = "echo 'ERROR: No matching distribution found for jaxlib==99'; exit 1"
        run.must("pip", "sh", "-c", script, timeout=10, kind=Kind.OTHER, cwd=tmp_path)
        return Findings()

    def fail(run: Run) -> Findings:
        run.must("it", "sh", "-c", "echo hm; kill -SEGV $$", timeout=10, kind=Kind.TEST, cwd=tmp_path)
        return Findings()

    results = run_steps(tmp_path, [Fake("a", do=install), Fake("b", do=fail)])
    found = [result.breaks[0] for result in results]
    assert [item.kind for item in found] == [Kind.ENVIRONMENT, Kind.CRASH]
    assert found[0].summary == "pip ended with code 1: ERROR: No matching distribution found for jaxlib==99"
    assert found[1].summary == "it died of the signal SIGSEGV: hm"
    assert Path(results[0].log).read_text().startswith("$ sh -c ")


def test_the_first_break_is_the_first_steps_and_the_lowest_layer_in_it(tmp_path: Path):
    def several(_: Run) -> Findings:
        found = Findings().broke(Kind.NUMERICS, "wrong").broke(Kind.STABLEHLO, "unreadable")
        return found.broke(Kind.TEST, "other")

    def refuse(_: Run) -> Findings:
        raise StepError(Kind.API, "refused")

    results = run_steps(tmp_path, [Fake("a"), Fake("b", do=several), Fake("c", do=refuse)])
    broke = first_break(results)
    assert broke is not None
    assert (broke[0].name, broke[1].kind, broke[1].summary) == ("b", Kind.STABLEHLO, "unreadable")
