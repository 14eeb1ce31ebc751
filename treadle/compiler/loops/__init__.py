"""The loop IR: what one kernel computes, as loops over affine indices, before it becomes LLVM IR."""
