"""Transcendental functions as LLVM IR, from polynomials of our own.

`math_function` gives the text of one LLVM function over a vector of lanes.
"""

from treadle.compiler.codegen.math.functions import NAMES, MathFunction, math_function

__all__ = ["NAMES", "MathFunction", "math_function"]
