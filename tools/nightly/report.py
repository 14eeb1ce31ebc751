"""The report of a run: what was tested, what broke first, and what changed since nothing was broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.nightly import kinds
from tools.nightly.engine import Outcome, Result, first_break
from tools.nightly.kinds import Kind

SCHEMA = "treadle-nightly-1"
PACKAGES = ("llvmlite", "ml_dtypes", "numpy", "scipy")


@dataclass(frozen=True)
class Context:
    """What the report says besides what the steps found."""

    key: str
    commit: str
    changes: str
    started: str
    injected: str | None
    last_good: Mapping[str, Any] | None
    commits: Sequence[str]  # since the last good run


def document(results: Sequence[Result], context: Context) -> dict[str, Any]:
    """The report as plain values."""
    facts = {result.name: result.facts for result in results}
    tested = {name: facts["find"].get(name) for name in ("jax", "jaxlib", "python", "source", "is_nightly")}
    installed = facts.get("environment", {}).get("packages", {})
    tested |= {name: installed.get(name) for name in PACKAGES}
    tested |= {"commit": context.commit, "uncommitted": context.changes}
    broke = first_break(results)
    return {
        "schema": SCHEMA,
        "key": context.key,
        "started": context.started,
        "verdict": "broke" if broke else "passed",
        "exit_code": broke[1].kind.exit_code if broke else kinds.OK,
        "injected": context.injected,
        "tested": tested,
        "first_break": {"step": broke[0].name, "log": broke[0].log, **vars(broke[1])} if broke else None,
        "steps": [result.to_json() for result in results],
        "last_good": dict(context.last_good) if context.last_good else None,
        "since_last_good": _changes(tested, context),
    }


def _changes(tested: Mapping[str, Any], context: Context) -> dict[str, Any] | None:
    if context.last_good is None:
        return None
    before = context.last_good["tested"]
    versions = {
        name: [before.get(name), now]
        for name, now in tested.items()
        if name not in ("commit", "uncommitted", "source", "is_nightly") and now != before.get(name)
    }
    return {"versions": versions, "commits": list(context.commits)}


def markdown(report: Mapping[str, Any]) -> str:
    """The report for people."""
    sections = (_head, _tested, _together, _steps, _notes, _tests, _others, _since)
    parts = [section(report) for section in sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Mapping[str, Any]) -> str:
    tested = report["tested"]
    lines = [f"# Nightly: jaxlib {tested['jaxlib'] or '(none found)'}: {report['verdict']}"]
    if report["injected"]:
        lines += ["", f"**A self-test: the break {report['injected']!r} was injected (--inject). It is no news.**"]
    if first := report["first_break"]:
        kind = Kind(first["kind"])
        lines += ["", f"**Broke first: {kind}** in the step `{first['step']}` (exit code {kind.exit_code}):"]
        lines += [f"{kind.meaning}.", "", f"> {_inline(first['summary'])}"]
        if first["detail"]:
            lines += ["", *_block(first["detail"])]
        if first["log"]:
            lines += ["", f"The whole log: `{first['log']}`"]
    else:
        lines += ["", "Nothing broke."]
    return "\n".join(lines)


def _tested(report: Mapping[str, Any]) -> str:
    tested = report["tested"]
    origin = "a nightly build" if tested["is_nightly"] else "no nightly build"
    rows = [
        ("jax", tested["jax"]),
        ("jaxlib", f"{tested['jaxlib']} ({origin}; from the {tested['source']})" if tested["jaxlib"] else None),
        ("Python", tested["python"]),
        *((name, tested[name]) for name in PACKAGES),
        ("Treadle", tested["commit"][:12] + (" with uncommitted changes" if tested["uncommitted"] else "")),
        ("started", report["started"]),
    ]
    return _table(("tested", ""), [(name, value or "not known") for name, value in rows])


def _together(report: Mapping[str, Any]) -> str:
    facts = {step["name"]: step["facts"] for step in report["steps"]}
    rows = []
    if checked := facts.get("versions"):
        plugin, jaxlib = checked["plugin"], checked["jaxlib"]
        told = plugin.get("attributes") or {}
        reads = [".".join(map(str, told.get(f"stablehlo_{end}_version", ["?"]))) for end in ("minimum", "current")]
        rows = [
            ("PJRT C API", plugin.get("pjrt", "?"), f"{jaxlib['pjrt'] or '?'} ({jaxlib['pjrt_source']})"),
            ("StableHLO", " to ".join(reads), f"{jaxlib['stablehlo_minimum']} to {jaxlib['stablehlo_current']}"),
            ("version_sync check", checked["verdict"], ""),
        ]
    if names := facts.get("private-names"):
        rows.append(("private names of JAX", f"{names['checked']} relied on", f"{len(names['broken'])} broken"))
    return _table(("", "the plugin", "jaxlib"), rows) if rows else ""


def _steps(report: Mapping[str, Any]) -> str:
    rows = []
    for step in report["steps"]:
        found = ", ".join(dict.fromkeys(str(item["kind"]) for item in step["breaks"]))
        if step["outcome"] == Outcome.NOT_RUN:
            found = step["notes"][0]
        seconds = f"{step['seconds']:.0f} s" + (" (kept from an earlier run)" if step["resumed"] else "")
        rows.append((step["name"], str(step["outcome"]), found, "" if step["outcome"] == Outcome.NOT_RUN else seconds))
    return _table(("step", "outcome", "", "time"), rows)


def _notes(report: Mapping[str, Any]) -> str:
    notes = [
        f"- {step['name']}: {_inline(note)}"
        for step in report["steps"]
        if step["outcome"] != Outcome.NOT_RUN
        for note in step["notes"]
    ]
    return "\n".join(["## Noticed", "", *notes]) if notes else ""


def _tests(report: Mapping[str, Any]) -> str:
    rows = []
    for step in report["steps"]:
        if counts := step["facts"].get("tests"):
            failed = ", ".join(f"{number} {kind}" for kind, number in counts["failed"].items()) or "0"
            if too := counts.get("fail on jaxlib's CPU backend too"):
                failed += f" ({too} of them on jaxlib's CPU backend too)"
            rows.append((step["name"], str(counts["passed"]), failed, str(counts["skipped"])))
    return "## Tests\n\n" + _table(("tests", "passed", "failed", "skipped"), rows) if rows else ""


def _others(report: Mapping[str, Any]) -> str:
    first = report["first_break"]
    lines = []
    for step in report["steps"]:
        for item in step["breaks"]:
            if first and (step["name"], item["summary"]) == (first["step"], first["summary"]):
                continue
            lines += ["", f"**{item['kind']}** in `{step['name']}`: {_inline(item['summary'])}"]
            if item["detail"]:
                lines += ["", *_block(item["detail"])]
    return "\n".join(["## Broke too", *lines]) if lines else ""


def _since(report: Mapping[str, Any]) -> str:
    good, changes = report["last_good"], report["since_last_good"]
    if not good:
        return "## Since the last good run\n\nThere was none yet."
    lines = [f"The last good run was that of {good['started']}, of commit {good['tested']['commit'][:12]}."]
    versions = [f"- {name}: {old or 'none'} -> {new or 'none'}" for name, (old, new) in changes["versions"].items()]
    commits = [f"- {_inline(line)}" for line in changes["commits"]]
    if not versions and not commits:
        lines.append("Neither versions nor commits have changed since.")
    for title, changed in (("Versions:", versions), ("Commits:", commits)):
        lines += ["", title, "", *changed] if changed else []
    return "\n".join(["## Since the last good run", "", *lines])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_inline(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def _inline(text: str) -> str:
    return " ".join(text.split())


def _block(text: str) -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, *text.strip("\n").splitlines(), fence]
