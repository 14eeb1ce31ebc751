"""`./bazelw run //tools/version_sync -- COMMAND`, or `python3 -m tools.version_sync COMMAND` in the checkout."""

from __future__ import annotations

import sys

from tools.version_sync import cli

if __name__ == "__main__":
    sys.exit(cli.main())
