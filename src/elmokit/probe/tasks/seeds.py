"""Scores of the same system with several seeds, as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev


def spread(numbers: Sequence[float]) -> float:
    """The standard deviation; 0 for a single number."""
    return stdev(numbers) if len(numbers) > 1 else 0.0


def differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Seed by seed."""
    return [a - b for a, b in zip(ours, theirs, strict=True)]


def score(scores: Sequence[float]) -> str:
    """The mean, and how far the seeds are apart."""
    return f"{mean(scores):.2f}" + (f" ± {spread(scores):.2f}" if len(scores) > 1 else "")


def gain(ours: Sequence[float], theirs: Sequence[float]) -> tuple[str, str]:
    """The mean of the differences, and with how many seeds there is a gain."""
    found = differences(ours, theirs)
    return f"{mean(found):+.2f}", f"{sum(each > 0 for each in found)} of {len(found)}"


def count(scores: Sequence[float]) -> str:
    """How many seeds."""
    return "1 seed" if len(scores) == 1 else f"{len(scores)} seeds"
