"""`treadle`, or `python -m treadle`: what an installed Treadle says about itself."""

from __future__ import annotations

import argparse
import sys

import treadle
from treadle.versions import cli


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="treadle", description="A CPU backend for JAX, outside XLA and jaxlib.")
    parser.add_argument("--version", action="version", version=treadle.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "which versions are installed, which the plugin needs, and whether they go together"
    cli.add_arguments(commands.add_parser("versions", help=text, description=f"Says {text}."))
    return cli.run(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
