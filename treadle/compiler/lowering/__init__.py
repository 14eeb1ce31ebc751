"""How ops run: the rule of each that gives one element of its result as an expression, and fusions as kernels.

Importing the package registers every element rule; `registry` finds them.
"""

from treadle.compiler.lowering import elementwise, indexing, linear, reduction, shape

__all__ = ["elementwise", "indexing", "linear", "reduction", "shape"]
