"""Scores of a system with several seeds: statistics, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev


def spread(scores: Sequence[float]) -> float:
    """Return the standard deviation; 0 for a single score."""
    return stdev(scores) if len(scores) > 1 else 0.0


def differences(scores: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the differences of two systems, seed by seed."""
    return [a - b for a, b in zip(scores, others, strict=True)]


def format_score(scores: Sequence[float]) -> str:
    """Return the mean and, of several seeds, the standard deviation: `84.10 ± 0.30`."""
    return f"{mean(scores):.2f}" + (f" ± {spread(scores):.2f}" if len(scores) > 1 else "")


def format_gain(scores: Sequence[float], others: Sequence[float]) -> tuple[str, str]:
    """Return the mean difference, and the number of seeds with a gain: `+1.50`, `2 of 3`."""
    gains = differences(scores, others)
    return f"{mean(gains):+.2f}", f"{sum(gain > 0 for gain in gains)} of {len(gains)}"


def format_seeds(scores: Sequence[object]) -> str:
    """Return the number of seeds: `3 seeds`."""
    return "1 seed" if len(scores) == 1 else f"{len(scores)} seeds"
