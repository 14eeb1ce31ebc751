"""The command line of the versions: `treadle versions`, and the common part of `version_sync check`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import treadle
from treadle.versions import check, children, history, tested
from treadle.versions.rules import Finding, Verdict

SCHEMA = "treadle-check-1"
PRIVATE_SCHEMA = "treadle-private-1"

_PRIVATE_SECONDS = 300.0

EXIT_CODES = """\
exit codes:
  0  compatible
  1  an internal error
  2  wrong usage
  3  works with skew: versions differ that may differ, or something was not tested
  4  incompatible: it cannot work
  5  cannot tell: something is missing
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options, and the exit codes to the help."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXIT_CODES
    parser.add_argument("--plugin", type=Path, metavar="FILE", help="a plugin (default: the one that JAX would load)")
    parser.add_argument(
        "--python", default=sys.executable, metavar="INTERPRETER", help="whose packages are meant (default: this one)"
    )
    parser.add_argument(
        "--private",
        action="store_true",
        help="check instead every private name and layout of JAX and jaxlib that Treadle relies on",
    )
    parser.add_argument(
        "--private-extra",
        action="append",
        default=[],
        metavar="NAME",
        help="check that name too: one that is not there shows what a report of a broken one looks like",
    )
    parser.add_argument(
        "--json", action="store_true", help=f"print one JSON object (schema {SCHEMA}, or {PRIVATE_SCHEMA})"
    )


def run(options: argparse.Namespace, headers: check.Headers | None = None, version: str = "") -> int:
    """Checks, prints, and gives the exit code.

    Args:
      options: the command line's.
      headers: what the plugin should have been built with, where that is known.
      version: of Treadle; empty for the installed one's.
    """
    if options.private or options.private_extra:
        return _run_private(options)
    try:
        report = check.check(options.plugin, options.python, headers, version or treadle.__version__)
    except children.ChildError as error:
        return cannot_tell(options, f"the process that asks {options.python} for its packages {error}")
    print(json.dumps(as_json(report), indent=1) if options.json else as_text(report))
    return int(report.verdict)


def cannot_tell(options: argparse.Namespace, message: str) -> int:
    """Says why nothing can be said, and gives the exit code."""
    verdict = Verdict.UNKNOWN
    if options.json:
        answer = {"schema": SCHEMA, "verdict": verdict.name.lower(), "exit_code": int(verdict), "error": message}
        print(json.dumps(answer, indent=1))
    print(f"error: {message}", file=sys.stderr)
    return int(verdict)


def _run_private(options: argparse.Namespace) -> int:
    answer: dict[str, Any] = {"jax": None, "jaxlib": None, "checked": 0, "broken": []}
    verdict = Verdict.COMPATIBLE
    try:
        answer, _ = children.run(
            "treadle.versions.canary",
            *options.private_extra,
            python=options.python,
            environment={"JAX_PLATFORMS": "cpu"},  # what is checked is JAX alone
            timeout=_PRIVATE_SECONDS,
        )
    except children.ChildError as error:
        # A crash is an answer too: something is not as Treadle relies on it.
        verdict = Verdict.UNKNOWN if isinstance(error, children.NotStartedError) else Verdict.INCOMPATIBLE
        problem = f"the process that checks them {error}"
        answer["broken"] = [{"name": "all", "why": "", "users": [], "problem": problem, "output": error.output}]
    else:
        if missing := [name for name in ("jax", "jaxlib") if answer[name] is None]:
            # Each name would be broken, for one reason.
            verdict = Verdict.UNKNOWN
            problem = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
            answer["checked"], answer["broken"] = 0, [{"name": "all", "why": "", "users": [], "problem": problem}]
        elif answer["broken"]:
            verdict = Verdict.INCOMPATIBLE
    if options.json:
        content = {"schema": PRIVATE_SCHEMA, "verdict": verdict.name.lower(), "exit_code": int(verdict)}
        print(json.dumps(content | answer, indent=1))
        return int(verdict)
    broken, checked = len(answer["broken"]), answer["checked"]
    result = f"{broken} {'is' if broken == 1 else 'are'} broken" if broken else "all are as Treadle relies on them"
    said = f"of {checked} private names and layouts, {result}" if checked else "no private name could be checked"
    print(f"jax {answer['jax']}, jaxlib {answer['jaxlib']}: {said}")
    for item in answer["broken"]:
        print(f"  - {item['name']}: {item['problem']}")
        if item["why"]:
            print(f"    for: {item['why']}" + (f" ({', '.join(item['users'])})" if item["users"] else ""))
    return int(verdict)


def as_json(report: check.Report) -> dict[str, Any]:
    """The report as plain values; versions are texts, what is not known is null."""
    environment, plugin, headers = report.environment, report.plugin, report.headers
    known = tested.supported()
    return {
        "schema": SCHEMA,
        "verdict": report.verdict.name.lower(),
        "exit_code": int(report.verdict),
        "treadle": report.treadle,
        "python": {
            "version": environment.python,
            "executable": environment.executable,
            "supported": list(known.pythons),
        },
        "headers": headers and {"folder": headers.folder, "pjrt": str(headers.pjrt), "ffi": str(headers.ffi)},
        "built_for": {"pjrt": known.pjrt, "ffi": known.ffi},
        "plugin": {"problem": report.plugin_problem} if plugin is None else {
            "path": plugin.path,
            "pjrt": str(plugin.pjrt),
            "struct_size": plugin.struct_size,
            "num_slots": plugin.num_slots,
            "missing": list(plugin.missing),
            "extensions": list(plugin.extensions),
            "attributes": plugin.attributes,
        },
        "jaxlib": {
            "version": environment.jaxlib,
            "pjrt": report.framework.pjrt and str(report.framework.pjrt),
            "pjrt_source": report.framework.source,
            "pjrt_note": report.framework.note,
            "ffi": environment.ffi and str(environment.ffi),
            "stablehlo_current": environment.stablehlo and environment.stablehlo[0],
            "stablehlo_minimum": environment.stablehlo and environment.stablehlo[1],
        },
        "between": _between(report),
        "packages": {
            name: {
                "version": version,
                "accepted": str(known.accepted[name]),
                "is_accepted": version is not None and version in known.accepted[name],
                "is_tested": version is not None and known.is_tested(name, version),
            }
            for name, version in environment.packages.items()
        },
        "findings": [
            {"verdict": finding.verdict.name.lower(), "text": finding.text, "action": finding.action}
            for finding in report.findings
        ],
    }  # fmt: skip


def _between(report: check.Report) -> dict[str, list[str] | None] | None:
    plugin, pjrt = report.plugin, report.framework.pjrt
    if plugin is None or pjrt is None or plugin.pjrt.major != pjrt.major:
        return None
    added = history.between(plugin.pjrt, pjrt)
    return {version: None if names is None else list(names) for version, names in added.items()}


def as_text(report: check.Report) -> str:
    """The report for a reader: what speaks which version, what is installed, the verdict."""
    parts = [_interfaces(report), _packages(report), f"{report.verdict.text} (exit code {int(report.verdict)})"]
    return "\n\n".join(parts) + "".join(map(_finding, report.findings))


def _interfaces(report: check.Report) -> str:
    environment, plugin, headers = report.environment, report.plugin, report.headers
    rows = [[f"Treadle {report.treadle}", "PJRT C API", "XLA FFI", "StableHLO", ""]]
    if headers is not None:
        rows.append(["pinned headers", str(headers.pjrt), str(headers.ffi), "-", headers.folder])
    if plugin is None:
        rows.append(["plugin", "?", "?", "?", "not loaded"])
    else:
        read = f"{plugin.stablehlo('minimum')} - {plugin.stablehlo('current')}+" if plugin.stablehlo("minimum") else "?"
        ffi = tested.supported().ffi if "FFI" in plugin.extensions else "-"
        rows.append(["plugin", str(plugin.pjrt), ffi, read, plugin.path])
        empty = f", {len(plugin.missing)} of them null" if plugin.missing else ""
        extensions = f"extensions: {', '.join(plugin.extensions)}" if plugin.extensions else "no extensions"
        rows.append(["", "", "", "", f"{plugin.num_slots} functions{empty}; {extensions}"])
    framework = report.framework
    source = {"measured": "measured", "table": "from the table of known releases", "unknown": "unknown"}[
        framework.source
    ]
    rows.append(
        [
            f"jaxlib {environment.jaxlib or '(none)'}",
            str(framework.pjrt or "?"),
            str(environment.ffi or "?"),
            "{1} - {0}".format(*environment.stablehlo) if environment.stablehlo else "?",
            source + (f": {framework.note}" if framework.note else ""),
        ]
    )
    return _table(rows)


def _packages(report: check.Report) -> str:
    known = tested.supported()
    environment = report.environment
    short = environment.python.rpartition(".")[0]
    rows = [["package", "installed", "accepted", "tested"]]
    pythons = f"{known.pythons[0]} - {known.pythons[-1]}"
    rows.append(["Python", environment.python, pythons, "yes" if short in known.pythons else "no"])
    for name, version in environment.packages.items():
        is_tested = version is not None and known.is_tested(name, version)
        rows.append([name, version or "-", str(known.accepted[name]), "yes" if is_tested else "no"])
    return _table(rows)


def _finding(finding: Finding) -> str:
    return f"\n  - {finding.text}" + (f"\n    do: {finding.action}" if finding.action else "")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return "\n".join(lines)
