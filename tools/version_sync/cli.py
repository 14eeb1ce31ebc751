"""The command line of version_sync: a subcommand is a module that has `add_arguments(parser)` and `run(options)`."""

from __future__ import annotations

import argparse
import importlib
from types import ModuleType

# Name -> what it does. A subcommand's module has its name.
COMMANDS = {
    "check": "do the pinned headers, the built plugin and the installed packages go together",
    "pins": "which pins of versions.toml are stale, and is everything derived from it in step",
    "matrix": "which headers and which jaxlibs does the wheel work with",
    "diff": "what changed between two sets of XLA's C headers, and is it binary compatible",
}


def _exit_codes(module: ModuleType) -> str:
    """What a command's documentation says of its exit codes, for its help."""
    _, found, rest = (module.__doc__ or "").partition("Exit codes: ")
    return found + " ".join(rest.split())


def main(arguments: list[str] | None = None) -> int:
    """Runs a subcommand; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="version_sync",
        description="Says, proves and keeps in step which versions go together. Each command has its own --help.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules: dict[str, ModuleType] = {}
    for name, text in COMMANDS.items():
        modules[name] = importlib.import_module(f"tools.version_sync.{name}")
        added = commands.add_parser(name, help=text, description=f"Answers: {text}.")
        added.epilog = _exit_codes(modules[name])
        modules[name].add_arguments(added)
    options = parser.parse_args(arguments)
    return int(modules[options.command].run(options))
