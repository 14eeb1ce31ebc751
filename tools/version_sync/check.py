"""`version_sync check`: do the pinned headers, the built plugin and the installed packages go together."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tools.version_sync import checkout
from tools.version_sync.registry import RegistryError
from treadle.versions import check, cli


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `treadle versions`, and where the headers are."""
    cli.add_arguments(parser)
    parser.add_argument(
        "--headers",
        type=Path,
        metavar="DIR",
        help="the folder that holds XLA's headers under xla/ (default: the pinned ones, which Bazel fetches)",
    )


def run(options: argparse.Namespace) -> int:
    """Checks, prints, and gives the exit code."""
    if options.private or options.private_extra:
        return cli.run(options)
    headers = None
    try:
        headers = check.read_headers(options.headers or pinned_headers())
    except (OSError, ValueError) as error:
        return cli.cannot_tell(options, f"the headers in {options.headers or 'the pinned package'}: {error}")
    except RegistryError as error:  # the rest can be checked without them
        checkout.say(f"the pinned headers are left out: {error}")
    return cli.run(options, headers, checkout.pins(checkout.root())["treadle"]["version"])


def pinned_headers() -> Path:
    """The pinned headers: those that Bazel built with, else the package's, which may have to be fetched.

    Raises:
      RegistryError: they cannot be fetched.
    """
    if runfiles := os.environ.get("RUNFILES_DIR"):
        built_with = Path(runfiles) / "xla_headers"
        if built_with.is_dir():
            return built_with
    root = checkout.root()
    return checkout.named_headers(checkout.pins(root)["xla_headers"]["pjrt_api"], root)
