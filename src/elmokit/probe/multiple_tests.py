"""Corrections of p-values for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return q-values by Benjamini and Hochberg's method, in the order of the p-values.

    Of all tests with a q-value of at most 0.05, about 5 % at most are false alarms.

    Args:
        p_values: p-values of the tests; None where there was no test, which then has no q-value.
    """
    tested = sorted((p, k) for k, p in enumerate(p_values) if p is not None)
    q_values: list[float | None] = [None] * len(p_values)
    smallest = 1.0
    for rank in range(len(tested), 0, -1):
        p, k = tested[rank - 1]
        smallest = min(smallest, p * len(tested) / rank)
        q_values[k] = round(smallest, 6)
    return q_values
