"""The command line of the nightly job."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.nightly import job, kinds, store
from tools.nightly.engine import Step
from tools.nightly.kinds import Kind
from tools.nightly.options import INJECTIONS, JAX_TESTS, TESTS, Options
from tools.nightly.report import SCHEMA
from tools.nightly.steps import jax_tests, project_tests
from tools.nightly.steps.build import Build
from tools.nightly.steps.canary import Canary
from tools.nightly.steps.environment import Environment
from tools.nightly.steps.find import Find
from tools.nightly.steps.versions import Versions
from tools.nightly.steps.wheel import WheelStep

DESCRIPTION = """\
Rebuilds and tests Treadle with the newest jax and jaxlib, and writes a report that says what broke first.

It finds the newest versions, makes an environment with them, builds the wheel, checks that the versions go together and
that the private names of JAX that Treadle relies on are there, runs Treadle's tests and a slice of JAX's own, installs
the wheel into an environment of its own and runs a program on it. A run of the same versions, sources and options is
resumed: what it has finished is not done again.
"""


def epilog() -> str:
    """The exit codes, the places and the self-test's breaks."""
    codes = sorted((kind.exit_code, f"{kind}: {kind.meaning}") for kind in Kind)
    codes += [(kinds.OK, "nothing broke"), (kinds.USAGE, "wrong usage"), (kinds.BUSY, "another run uses the folder")]
    injections = "\n".join(f"  {name:12}  {meaning}" for name, meaning in INJECTIONS.items())
    return (
        "exit codes, by the kind of what broke first:\n"
        + "\n".join(f"  {code:2}  {text}" for code, text in sorted(codes))
        + "\n\nself-test, --inject:\n"
        + injections
        + "\n\nin the folder of --out:\n"
        "  report.md, report.json  the last report\n"
        "  last_good.json          the last run, of committed sources, in which nothing broke\n"
        "  runs/                   the newest runs: environment, logs, state, report\n"
    )


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="tools/nightly",
        description=DESCRIPTION,
        epilog=epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--out", type=Path, metavar="DIR", help="(default: treadle/nightly in the user's cache folder)")
    made.add_argument(
        "--index",
        metavar="URL",
        help="an index of nightly builds of jax and jaxlib. Without it, or where it does not answer, the newest "
        "release or pre-release of the registry that pip is set up for is taken, and the report says so",
    )
    made.add_argument("--jaxlib", metavar="VERSION", help="this jax and jaxlib, not the newest")
    made.add_argument("--python", metavar="PROGRAM", help="(default: the newest supported one on the PATH or pyenv's)")
    made.add_argument(
        "--tests",
        metavar="NAME,...",
        default=",".join(TESTS),
        help="the groups of Treadle's tests that are run (default: %(default)s)",
    )
    made.add_argument("--jax-clone", type=Path, metavar="DIR", help="a git clone of JAX: a slice of its tests is run")
    made.add_argument(
        "--jax-tests",
        metavar="NAME,...",
        default=",".join(JAX_TESTS),
        help="the files of JAX's tests that are run (default: %(default)s)",
    )
    made.add_argument("--workers", type=int, default=1, metavar="N", help="processes of tests at a time (default: 1)")
    made.add_argument("--inject", choices=sorted(INJECTIONS), help="a self-test: injects a break")
    made.add_argument("--fresh", action="store_true", help="do every step again")
    made.add_argument("--keep", type=int, default=3, metavar="N", help="folders of runs that are kept (default: 3)")
    made.add_argument("--json", action="store_true", help=f"print the report as JSON (schema {SCHEMA})")
    return made


def options(arguments: Sequence[str]) -> tuple[Options, bool]:
    """The run that is asked for, and whether JSON is to be printed. Ends the process on a wrong usage."""
    usage = parser()
    given = usage.parse_args(arguments)
    # Bazel runs a program in its runfiles; these variables name the checkout and the caller's folder.
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY") or Path(__file__).resolve().parents[2])
    if given.keep < 1 or given.workers < 1:
        usage.error("--keep and --workers must be at least 1")
    if given.jax_clone and not given.jax_clone.is_dir():
        usage.error(f"--jax-clone {given.jax_clone}: there is no such folder")
    groups = tuple(name.strip() for name in given.tests.split(",") if name.strip())
    if not groups:
        usage.error(f"--tests: no group is named; there are {', '.join(TESTS)}")
    if unknown := set(groups) - set(TESTS):
        usage.error(f"--tests: no group is called {', '.join(sorted(unknown))}; there are {', '.join(TESTS)}")
    names = tuple(name.strip().removesuffix(".py").removeprefix("tests/") for name in given.jax_tests.split(","))
    asked = Options(
        root=root,
        out=(given.out or store.default_folder()).absolute(),
        index=given.index,
        jaxlib=given.jaxlib,
        python=given.python,
        tests=groups,
        jax_clone=given.jax_clone.absolute() if given.jax_clone else None,
        jax_tests=tuple(name for name in names if name),
        workers=given.workers,
        inject=given.inject,
        fresh=given.fresh,
        keep=given.keep,
    )
    return asked, given.json


def steps(asked: Options) -> list[Step]:
    """The steps after the finding, in order: what an earlier one finds explains what a later one does."""
    return [
        Environment(asked),
        Build(asked),
        Versions(asked),
        Canary(asked),
        *project_tests.steps(asked),
        *jax_tests.steps(asked),
        WheelStep(asked),
    ]


def main(arguments: Sequence[str]) -> int:
    """Runs the job; the exit code is that of what broke first."""
    asked, as_json = options(arguments)
    # The children are in sessions of their own: a SIGTERM must unwind the stack, which ends them.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        asked.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"error: --out {asked.out} cannot be made: {error.strerror}", file=sys.stderr)
        return kinds.USAGE
    try:
        document = job.run(asked, Find(asked), steps(asked))
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return 128 + signal.SIGINT
    except store.BusyError as busy:
        print(f"error: {busy}", file=sys.stderr)
        return kinds.BUSY
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return kinds.USAGE
    if as_json:
        print(json.dumps(document, indent=2))
    else:
        first = document["first_break"]
        outcome = f"broke first: {first['kind']} in {first['step']}: {first['summary']}" if first else "nothing broke"
        print(f"jaxlib {document['tested']['jaxlib']}: {outcome}\n{asked.out / 'report.md'}")
    return int(document["exit_code"])
