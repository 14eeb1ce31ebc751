"""`./check`: runs every check of the source tree and says what each found.

./check                      all of them
./check python_lint pins     these
./check --fix                formats C++ and Python first
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tools.lint.checks import CHECKS, LINE_LIMIT, Tree, line_counts

SHOWN = 60


def fix(tree: Tree) -> None:
    """Formats what the two formatters can format."""
    ruff = [sys.executable, "-m", "ruff"]
    python = tree.ending(".py")
    cpp = tree.ending(".cc", ".h", ".c")
    subprocess.run([*ruff, "check", "--quiet", "--no-cache", "--fix-only", *python], cwd=tree.root, check=False)
    subprocess.run([*ruff, "format", "--quiet", "--no-cache", *python], cwd=tree.root, check=False)
    if cpp:
        subprocess.run(["clang-format", "-i", *cpp], cwd=tree.root, check=False)


def main(arguments: list[str]) -> int:
    """Runs the checks that were asked for; 1 if one of them found a problem."""
    names = [check.__name__ for check in CHECKS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="format the sources first")
    parser.add_argument("check", nargs="*", help=f"of {', '.join(names)}")
    options = parser.parse_args(arguments)
    if unknown := set(options.check) - set(names):
        parser.error(f"no check is called {', '.join(sorted(unknown))}; there are {names}")
    tree = Tree.of(Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.getcwd()))
    if options.fix:
        fix(tree)
    failed = 0
    for check in CHECKS:
        if options.check and check.__name__ not in options.check:
            continue
        start = time.monotonic()
        problems = check(tree)
        seconds = time.monotonic() - start
        failed += bool(problems)
        print(f"{check.__name__:14} {'FAILED' if problems else 'ok':6} {seconds:5.1f} s", flush=True)
        for problem in problems[:SHOWN]:
            print(f"    {problem}")
        if len(problems) > SHOWN:
            print(f"    ... and {len(problems) - SHOWN} more lines")
    if long_files := line_counts(tree):
        print(f"\nFiles over {LINE_LIMIT} lines:")
        for lines, name in long_files:
            print(f"  {lines:6} {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
