"""Runs the steps of a nightly job in order, keeps what each found, and resumes where an earlier run ended."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tools.nightly import process, store
from tools.nightly.classify import of_command
from tools.nightly.kinds import Kind, first_of


class Outcome(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    BROKE = "broke"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Break:
    """Something that no longer works."""

    kind: Kind
    summary: str  # one line
    detail: str = ""  # the end of a log


@dataclass
class Findings:
    """What a step found out. With a break it has broken; else it has passed."""

    breaks: list[Break] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    products: dict[str, str] = field(default_factory=dict)  # paths that later steps use, by name

    def broke(self, kind: Kind, summary: str, detail: str = "") -> Findings:
        """Adds a break."""
        self.breaks.append(Break(kind, summary, detail))
        return self


class NothingToDoError(Exception):
    """The step has nothing to do in this run; the text says why."""


class StepError(Exception):
    """The step cannot go on; it carries the break."""

    def __init__(self, kind: Kind, summary: str, detail: str = "") -> None:
        super().__init__(summary)
        self.found = Break(kind, summary, detail)


@dataclass(frozen=True)
class Result:
    """What is kept of a step."""

    name: str
    outcome: Outcome
    seconds: float = 0.0
    log: str = ""
    breaks: tuple[Break, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    products: Mapping[str, str] = field(default_factory=dict)
    resumed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "breaks": [asdict(found) for found in self.breaks], "notes": list(self.notes)}

    @staticmethod
    def from_json(document: dict[str, Any]) -> Result:
        breaks = tuple(Break(Kind(item["kind"]), item["summary"], item["detail"]) for item in document["breaks"])
        rest = {"outcome": Outcome(document["outcome"]), "breaks": breaks, "notes": tuple(document["notes"])}
        return Result(**{**document, **rest, "resumed": False})

    @property
    def final(self) -> bool:
        """Whether running the step again with the same inputs would tell nothing new."""
        if self.outcome is Outcome.NOT_RUN:
            return False
        again = (Kind.ENVIRONMENT, Kind.INTERNAL)
        return not any(found.kind in again for found in self.breaks) and all(
            Path(path).exists() for path in self.products.values()
        )


class Run:
    """One run: its folder, what the finished steps found, and how a step runs a command."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.results: dict[str, Result] = {}
        self.step = ""

    @property
    def log(self) -> Path:
        """The log of the step that runs."""
        return self.folder / "logs" / f"{self.step}.log"

    def fact(self, step: str, name: str) -> Any:
        """What a finished step found out."""
        return self.results[step].facts[name]

    def product(self, step: str, name: str) -> Path:
        """A file or folder that a finished step made."""
        return Path(self.results[step].products[name])

    def command(self, *words: str | Path, timeout: float, **options: Any) -> process.Done:
        """Runs a command in the checkout, with its output in the step's log."""
        return process.run(words, self.log, timeout=timeout, cwd=options.pop("cwd", self.root), **options)

    def must(self, what: str, *words: str | Path, timeout: float, kind: Kind, **options: Any) -> process.Done:
        """Like `command`, for one without which the step cannot go on.

        Raises:
          StepError: it did not end well. Its kind is what its output is evidence of, `kind` where that is of nothing.
        """
        done = self.command(*words, timeout=timeout, **options)
        if not done.ok:
            evidence = of_command(done, otherwise=kind)
            raise StepError(evidence.kind, f"{what} {done.ending()}: {evidence.line}", done.tail())
        return done


class Step(Protocol):
    """A part of the job."""

    @property
    def name(self) -> str:
        """Short; also the name of its log."""
        ...

    @property
    def title(self) -> str:
        """What it does, for the one who waits."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The steps that must have passed."""
        ...

    def run(self, run: Run) -> Findings:
        """Does it.

        Raises:
          NothingToDoError: it has nothing to do.
          StepError: it broke and cannot go on.
        """
        ...


class Engine:
    """Runs steps and writes the state after each."""

    STATE_SCHEMA = "treadle-nightly-state-1"

    def __init__(self, run: Run, fresh: bool = False) -> None:
        self.current = run
        self.state = run.folder / "state.json"
        kept = None if fresh else store.read_json(self.state, self.STATE_SCHEMA)
        results = [Result.from_json(item) for item in kept["steps"]] if kept else []
        self._earlier = {result.name: result for result in results}

    def run(self, steps: Sequence[Step]) -> list[Result]:
        """Runs what has to be run; a step that broke keeps only those from running that need it."""
        for step in steps:
            if step.name not in self.current.results:
                result = self._one(step)
                if not result.resumed:  # what an earlier run made of this step's products is void
                    for other in steps:
                        if step.name in other.needs:
                            self._earlier.pop(other.name, None)
                self.current.results[step.name] = result
                self._save()
        return [self.current.results[step.name] for step in steps]

    def _one(self, step: Step) -> Result:
        results = self.current.results
        missing = [name for name in step.needs if results[name].outcome is not Outcome.PASSED]
        if missing:
            return self._not_run(step, f"it needs the step {', '.join(missing)}")
        earlier = self._earlier.get(step.name)
        if earlier and earlier.final:
            progress(f"{step.name}: {earlier.outcome}, kept from an earlier run")
            return Result(**{**vars(earlier), "resumed": True})
        return self._do(step)

    def _do(self, step: Step) -> Result:
        progress(f"{step.name}: {step.title} ...")
        self.current.step = step.name
        self.current.log.unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            found = step.run(self.current)
        except NothingToDoError as reason:
            return self._not_run(step, str(reason))
        except StepError as failure:
            found = Findings(breaks=[failure.found])
        except Exception as error:  # the report is worth most when something unforeseen happens
            text = traceback.format_exc()
            with self.current.log.open("a") as file:
                file.write(text)
            found = Findings().broke(Kind.INTERNAL, f"{type(error).__name__}: {error}", text)
        seconds = round(time.monotonic() - begun, 1)
        outcome = Outcome.BROKE if found.breaks else Outcome.PASSED
        log = str(self.current.log) if self.current.log.exists() else ""
        progress(f"{step.name}: {outcome} in {seconds:.1f} s")
        for item in found.breaks:
            progress(f"    {item.kind}: {item.summary}")
        breaks, notes = tuple(found.breaks), tuple(found.notes)
        return Result(step.name, outcome, seconds, log, breaks, notes, found.facts, found.products)

    def _not_run(self, step: Step, reason: str) -> Result:
        progress(f"{step.name}: not run: {reason}")
        return Result(step.name, Outcome.NOT_RUN, notes=(reason,))

    def _save(self) -> None:
        # The steps of an earlier run that this one has not come to yet stay: it may be interrupted too.
        results = {**self._earlier, **self.current.results}
        store.write_json(
            self.state, {"schema": self.STATE_SCHEMA, "steps": [item.to_json() for item in results.values()]}
        )


def first_break(results: Sequence[Result]) -> tuple[Result, Break] | None:
    """The break that comes first in the order of the steps, and in a step the one that explains the others."""
    for result in results:
        if result.breaks:
            kind = first_of([found.kind for found in result.breaks])
            return result, next(found for found in result.breaks if found.kind is kind)
    return None


def progress(text: str) -> None:
    """Tells the one who waits."""
    print(f"nightly: {text}", file=sys.stderr, flush=True)
