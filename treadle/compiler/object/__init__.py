"""From LLVM IR text to object code, and the cache of compiled kernels."""
