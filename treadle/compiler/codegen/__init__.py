"""From a plan and the loop IR to LLVM IR text."""
