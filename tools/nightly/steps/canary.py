"""Whether the private names and layouts of JAX that Treadle relies on are there."""

from __future__ import annotations

from typing import Any

from tools.nightly.engine import Findings, Run
from tools.nightly.kinds import Kind
from tools.nightly.options import Options
from tools.nightly.steps.versions import last_json

CHECKING = 300  # seconds
SCHEMA = "treadle-nightly-canary-1"

# Runs in the environment under test; its arguments are further names that must be there.
PROGRAM = f"""\
import json, sys
from treadle import private_jax
broken = private_jax.check(extra=sys.argv[1:])
rows = [dict(name=item.entry.name, why=item.entry.why, users=item.entry.users, problem=item.problem) for item in broken]
print(json.dumps(dict(schema={SCHEMA!r}, checked=len(private_jax.ENTRIES) + len(sys.argv) - 1, broken=rows)))
"""

INJECTED_NAME = "jax._src.xla_bridge.injected_by_nightly"


class Canary:
    """Has `treadle.private_jax` check itself in the environment."""

    name = "private-names"
    title = "checking the private names of JAX"
    needs = ("environment",)

    def __init__(self, options: Options) -> None:
        self.options = options

    def run(self, run: Run) -> Findings:
        extra = [INJECTED_NAME] if self.options.inject == "private-name" else []
        variables = {"PYTHONPATH": str(run.root), "PYTHONDONTWRITEBYTECODE": "1", "JAX_PLATFORMS": "cpu"}
        python = run.product("environment", "python")
        done = run.command(python, "-c", PROGRAM, *extra, timeout=CHECKING, variables=variables)
        return judge(last_json(done, SCHEMA, "the canary"))


def judge(document: dict[str, Any]) -> Findings:
    """From the canary's answer to findings: one break that names all that is gone."""
    broken = document["broken"]
    found = Findings(facts={"checked": document["checked"], "broken": [item["name"] for item in broken]})
    if broken:
        names = ", ".join(item["name"] for item in broken)
        detail = "\n".join(
            f"{item['name']}: {item['problem']}\n    needed: {item['why']} ({', '.join(item['users']) or 'no file'})"
            for item in broken
        )
        found.broke(Kind.PRIVATE_API, f"{len(broken)} of {document['checked']} are gone or changed: {names}", detail)
    return found
