"""What each op of the tensor IR means: type rules and NumPy semantics, one file per family.

Importing the package registers every op; `registry` answers questions about them.
"""

from treadle.compiler.ops import control, conversion, elementwise, fusion, indexing, linear, reduction, scatter, shape

__all__ = ["control", "conversion", "elementwise", "fusion", "indexing", "linear", "reduction", "scatter", "shape"]
