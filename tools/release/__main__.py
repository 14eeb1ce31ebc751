"""`./bazelw run //tools/release -- COMMAND`, or `python3 -m tools.release COMMAND` in the checkout."""

from __future__ import annotations

import sys

from tools.release import cli

if __name__ == "__main__":
    sys.exit(cli.main())
