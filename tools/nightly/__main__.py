"""`python -m tools.nightly`, and `./bazelw run //tools/nightly`."""

import sys

from tools.nightly.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
