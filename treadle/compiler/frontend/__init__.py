"""From the bytes that JAX sends to Treadle's tensor IR.

`bytecode.py` and `options.py` judge the bytes before anything native sees them, `mlir.py` is the
only file of the compiler that imports jaxlib's MLIR, `convert.py` builds the `Program`.
"""
