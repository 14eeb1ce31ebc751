"""Which elementwise ops cost many times an addition: what fusion, scheduling and passes count by."""

from __future__ import annotations

COSTLY = frozenset(
    (
        "atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic",
        "power", "remainder", "rsqrt", "sine", "sqrt", "tan", "tanh",
    )
)  # fmt: skip
