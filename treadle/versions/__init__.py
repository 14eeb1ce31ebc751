"""Which versions go together: of the PJRT C API, XLA's FFI, StableHLO, and the Python packages.

`check.py` collects the facts, `rules.py` judges them, `cli.py` prints them (`treadle versions`); `tested.py` is what
every start of JAX asks. Nothing here imports JAX into the process that asks: what is measured is measured in a child.
"""
