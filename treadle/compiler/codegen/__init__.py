"""From the loop IR to LLVM IR text."""
