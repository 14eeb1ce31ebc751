"""The compiler: StableHLO in, an artifact of machine code out.

`driver.compile_request` is the way in. Importing this package is cheap: MLIR and LLVM are loaded by
the first compile.
"""
