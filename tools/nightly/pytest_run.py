"""Runs pytest in the environment under test, and says what failed and of which kind it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools.nightly.classify import classify, of_command
from tools.nightly.engine import Break, Run
from tools.nightly.kinds import Kind
from tools.nightly.process import Words

NO_TESTS = 5  # pytest's exit code

SHOWN = 3  # failures of each kind that are named


@dataclass(frozen=True)
class Failure:
    """A test that failed."""

    test: str
    kind: Kind
    line: str
    text: str = field(repr=False, compare=False, default="")


@dataclass
class Report:
    """What a run of pytest told."""

    passed: list[str] = field(default_factory=list)
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    trouble: list[Break] = field(default_factory=list)  # what went wrong with the run itself

    def counts(self) -> dict[str, Any]:
        """For the report: how many passed, were skipped, and failed of each kind."""
        kinds = Counter(failure.kind.value for failure in self.failures)
        return {"passed": len(self.passed), "skipped": self.skipped, "failed": dict(kinds)}


def pytest(
    run: Run, arguments: Sequence[str | Path], *, timeout: float, variables: Mapping[str, str], cwd: Path
) -> Report:
    """Runs pytest with the environment's Python."""
    xml = run.folder / "results" / f"{run.step}.xml"
    xml.parent.mkdir(exist_ok=True)
    xml.unlink(missing_ok=True)
    command: Words = [run.product("environment", "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"--junitxml={xml}", *arguments]
    done = run.command(*command, timeout=timeout, variables=variables, cwd=cwd)
    report = parse(xml.read_text()) if xml.is_file() else Report()
    if done.timed_out:
        report.trouble.append(Break(Kind.TEST, f"pytest was ended after {timeout:.0f} s", done.tail()))
    elif done.returncode not in (0, 1, NO_TESTS) and not report.failures:
        evidence = of_command(done, otherwise=Kind.TEST)
        report.trouble.append(Break(evidence.kind, f"pytest {done.ending()}: {evidence.line}", done.tail()))
    elif not report.passed and not report.failures:
        report.trouble.append(Break(Kind.TEST, "no test ran", done.tail()))
    return report


def parse(xml: str) -> Report:
    """Reads pytest's JUnit file."""
    report = Report()
    for case in ElementTree.fromstring(xml).iter("testcase"):
        # A file that is outside of the checkout, and one that could not be read, have no class name.
        test = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        bad = [child for child in case if child.tag in ("failure", "error")]
        if bad:
            text = "\n".join(f"{child.get('message', '')}\n{child.text or ''}" for child in bad)
            evidence = classify(text, otherwise=Kind.TEST)
            report.failures.append(Failure(test, evidence.kind, evidence.line, text))
        elif any(child.tag == "skipped" for child in case):
            report.skipped += 1
        else:
            report.passed.append(test)
    return report


def breaks(failures: Sequence[Failure]) -> list[Break]:
    """One break for each kind of failure."""
    found = []
    for kind in Kind:
        of_kind = [failure for failure in failures if failure.kind is kind]
        if of_kind:
            first = of_kind[0]
            more = f" (and {len(of_kind) - 1} more)" if len(of_kind) > 1 else ""
            detail = "\n".join(f"{failure.test}: {failure.line}" for failure in of_kind[:SHOWN])
            detail += "\n\n" + "\n".join(first.text.strip().splitlines()[-30:])
            found.append(Break(kind, f"{first.test}{more}: {first.line}", detail))
    return found
