"""Which versions the plugin and the jaxlib under test have, and whether they go together."""

from __future__ import annotations

import json
from typing import Any

from tools.nightly.classify import of_command
from tools.nightly.engine import Findings, Run, StepError
from tools.nightly.kinds import Kind
from tools.nightly.options import Options
from tools.nightly.process import Done, Words
from tools.nightly.steps.project_tests import treadle_variables

CHECKING = 300  # seconds
SCHEMA = "treadle-check-1"


class Versions:
    """Runs `version_sync check` in the environment."""

    name = "versions"
    title = "checking that the versions go together"
    needs = ("environment", "build")

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        command: Words = [
            run.product("environment", "python"),
            "-m",
            "tools.version_sync",
            "check",
            "--json",
        ]
        command += ["--plugin", run.product("build", "plugin")]
        done = run.command(*command, timeout=CHECKING, variables=treadle_variables(run))
        return judge(last_json(done, SCHEMA, "version_sync check"), done.tail())


def judge(document: dict[str, Any], tail: str) -> Findings:
    """From version_sync's report to findings: only what is incompatible is a break."""
    found = Findings(facts={"verdict": document["verdict"], "jaxlib": document["jaxlib"], "plugin": document["plugin"]})
    for item in document["findings"]:
        action = f" ({item['action']})" if item["action"] else ""
        if item["verdict"] != "incompatible":
            found.notes.append(f"{item['text']}{action}")
        else:
            kind = Kind.STABLEHLO if "StableHLO" in item["text"] else Kind.HEADER
            found.broke(kind, f"{item['text']}{action}", tail)
    return found


def last_json(done: Done, schema: str, what: str) -> dict[str, Any]:
    """The JSON object of this schema at the end of what a command printed.

    Raises:
      StepError: it printed none.
    """
    for start in (at for at, letter in enumerate(done.output) if letter == "{"):
        try:
            document, _ = json.JSONDecoder().raw_decode(done.output, start)
        except ValueError:
            continue
        if isinstance(document, dict) and document.get("schema") == schema:
            return document
    evidence = of_command(done)
    raise StepError(evidence.kind, f"{what} {done.ending()} and gave no answer: {evidence.line}", done.tail())
