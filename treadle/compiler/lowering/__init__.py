"""How ops run: each tensor op's rule that gives one element of its result as a loop-IR expression, and fusions as kernels."""
