"""The command line of a release."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.release import artifacts, sizes, steps, verify
from tools.release.repository import RefusedError, Repository, Version, find_root

SCHEMA = "treadle-release-1"
OK, INTERNAL, USAGE, REFUSED, FAILED, UNKNOWN = range(6)

DESCRIPTION = """\
Makes a release of Treadle, up to the upload, which is a person's to do.

The steps, in order: `bump` writes the version, `changelog` drafts its section from the commits, `build` makes wheel,
source archive and bill of materials, `verify` checks them. `all` does everything, and commits and tags between.
"""

EPILOG = """\
exit codes:
  0  done; every check passed
  1  an internal error
  2  wrong usage
  3  refused: the checkout is not in a state for it, or a step that it needs failed; the message says what to do
  4  a check of the release failed
  5  cannot tell: something that is needed for a check cannot be had
"""

Answer = tuple[int, dict[str, Any], str]


def _version(text: str) -> Version:
    try:
        return Version.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _day(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day of the form YYYY-MM-DD") from None


def _interpreter(text: str) -> tuple[str, str]:
    version, equals, path = text.partition("=")
    if not equals or not Path(path).is_file():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not VERSION=PATH of an interpreter, such as 3.12=/opt/bin/python3.12"
        )
    return version, path


def parser() -> argparse.ArgumentParser:
    """The options."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help=f"print one JSON object (schema {SCHEMA})")
    common.add_argument("--root", type=Path, default=find_root(), help=argparse.SUPPRESS)
    dry = argparse.ArgumentParser(add_help=False)
    dry.add_argument("--dry-run", action="store_true", help="change nothing in the checkout and in git")
    pythons = argparse.ArgumentParser(add_help=False)
    pythons.add_argument(
        "--python",
        action="append",
        type=_interpreter,
        default=[],
        metavar="3.x=PATH",
        help="an interpreter to try the wheel on",
    )
    pythons.add_argument("--all-pairs", action="store_true", help="every tested jaxlib, not only each Python's default")

    made = argparse.ArgumentParser(
        prog="tools/release",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, text: str, run: Callable[[argparse.Namespace], Answer], *parents: argparse.ArgumentParser
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, parents=[common, *parents])
        added.set_defaults(run=run)
        return added

    added = command("bump", "write the version into versions.toml", _bump, dry)
    added.add_argument("version", type=_version)
    added = command(
        "changelog", "draft the version's section of CHANGELOG.md from the commits since the last tag", _changelog, dry
    )
    added.add_argument("--date", type=_day, default=steps.today(), metavar="YYYY-MM-DD", help="(default: today)")
    added.add_argument("--replace", action="store_true", help="draft it anew, over one that is there")
    added = command("build", "build wheel, source archive, bill of materials and their hashes", _build)
    added.add_argument("--out", type=Path, default=Path("dist"), help="(default: dist)")
    added = command("verify", "check what `build` made, here and in clean environments", _verify, pythons)
    added.add_argument("folder", type=Path, nargs="?", default=Path("dist"), help="(default: dist)")
    added = command("sizes", "print the sizes of a wheel's parts", _sizes)
    added.add_argument("wheel", type=Path, nargs="?", help="(default: the one in dist)")
    added = command("all", "everything in order, up to the upload", _all, dry, pythons)
    added.add_argument("version", type=_version)
    added.add_argument("--out", type=Path, default=Path("dist"), help="(default: dist)")
    return made


def _bump(options: argparse.Namespace) -> Answer:
    text = steps.bump(Repository(options.root), options.version, options.dry_run)
    return OK, {"version": str(options.version)}, text


def _changelog(options: argparse.Namespace) -> Answer:
    repository = Repository(options.root)
    text = steps.write_changelog(repository, options.date, options.replace, options.dry_run)
    return OK, {"version": str(repository.version), "section": text}, text


def _describe(release: artifacts.Artifacts) -> tuple[dict[str, Any], str]:
    hashes = release.hashes()
    text = "\n".join(f"{digest}  {release.wheel.parent / name}" for name, digest in sorted(hashes.items()))
    return {"version": str(release.version), "folder": str(release.wheel.parent), "sha256": hashes}, text


def _build(options: argparse.Namespace) -> Answer:
    release = artifacts.build(Repository(options.root), options.out)
    document, text = _describe(release)
    return OK, {**document, "sizes": sizes.as_json(release.wheel)}, f"{text}\n\n{sizes.text(release.wheel)}"


def _found(report: verify.Report) -> tuple[int, dict[str, Any], str]:
    lines = []
    for finding in report.findings:
        said = finding.text.splitlines()
        # What passed is told in a line; what failed in full.
        result = f": {said[-1][:100]}" if finding.passed and said else ""
        lines.append(f"{'ok' if finding.passed else 'FAILED':6} {finding.name}{result}")
        lines += [] if finding.passed else [f"         {line}" for line in said]
    lines += [f"not run: {reason}" for reason in report.not_run]
    failed = sum(not finding.passed for finding in report.findings)
    lines.append(f"{len(report.findings) - failed} passed, {failed} failed, {len(report.not_run)} not run")
    document = {
        "passed": report.passed,
        "findings": [{"name": item.name, "passed": item.passed, "text": item.text} for item in report.findings],
        "not_run": report.not_run,
    }
    return (OK if report.passed else FAILED), document, "\n".join(lines)


def _verify(options: argparse.Namespace) -> Answer:
    release = artifacts.Artifacts.of(options.folder)
    report = verify.verify(Repository(options.root), release, dict(options.python), options.all_pairs)
    code, document, text = _found(report)
    described, _ = _describe(release)
    if code != OK:
        return code, {**described, **document}, text  # the wheel may not even be one
    return (
        code,
        {**described, **document, "sizes": sizes.as_json(release.wheel)},
        f"{text}\n\n{sizes.text(release.wheel)}",
    )


def _sizes(options: argparse.Namespace) -> Answer:
    wheel = options.wheel or artifacts.Artifacts.of(Path("dist")).wheel
    if not wheel.is_file():
        raise RefusedError(f"there is no wheel {wheel}")
    if not zipfile.is_zipfile(wheel):
        raise RefusedError(f"{wheel} is no wheel")
    return OK, {"wheel": wheel.name, **sizes.as_json(wheel)}, sizes.text(wheel)


def _all(options: argparse.Namespace) -> Answer:
    run = steps.rehearse if options.dry_run else steps.everything
    out = options.out.absolute()
    release, report = run(Repository(options.root), options.version, out, dict(options.python), options.all_pairs)
    code, document, text = _found(report)
    described, hashes = _describe(release)
    if code != OK:
        end = (
            f"{options.version} was not tagged: a check failed. Mend it, commit, and run `all {options.version}` again."
        )
    elif options.dry_run:
        end = f"A rehearsal: nothing was changed in {options.root}; the files are in {out}."
    else:
        end = steps.remaining(options.version, options.out)
    return code, {**described, **document}, f"{text}\n\n{hashes}\n\n{end}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, prints its answer, and gives the exit code."""
    options = parser().parse_args(arguments)
    if folder := os.environ.get("BUILD_WORKING_DIRECTORY"):
        os.chdir(folder)  # `bazel run` starts a program elsewhere; names are meant from where the caller is
    code: int
    try:
        code, document, text = options.run(options)
    except RefusedError as error:
        code, document, text = REFUSED, {"error": str(error)}, ""
        print(f"refused: {error}", file=sys.stderr)
    except (SystemExit, RuntimeError) as error:  # what fetching packages and asking the tools end with
        code, document, text = UNKNOWN, {"error": str(error)}, ""
        print(f"cannot tell: {error}", file=sys.stderr)
    if options.json:
        print(json.dumps({"schema": SCHEMA, "command": options.command, "exit_code": code, **document}, indent=1))
    elif text:
        print(text)
    return code
