"""The learning-rate schedules, shared by the biLM and the task models."""

from __future__ import annotations

from typing import Literal

Schedule = Literal["linear", "trapezoid", "constant"]
"""How the learning rate falls: over the whole budget, over its last part, or not at all."""

WARMUP_FRACTION = 0.05
"""Largest fraction of the budget that the warm-up takes, however many steps it asks for."""


def learning_rate(
    peak: float,
    fraction: float,
    *,
    schedule: Schedule = "linear",
    step: int = 0,
    warmup_steps: int = 0,
    decay: float = 0.25,
) -> float:
    """Return the learning rate of a step.

    Args:
        peak: Highest learning rate.
        fraction: Fraction of the budget that is spent, from 0 to 1.
        schedule: How the rate falls after the warm-up.
        step: Number of the step, from 0; matters during the warm-up only.
        warmup_steps: Steps in which the rate rises linearly to its peak.
        decay: Fraction of the budget in which a trapezoid falls to zero.
    """
    rising = 1.0
    if warmup_steps:
        rising = min(1.0, max((step + 1) / warmup_steps, fraction / WARMUP_FRACTION))
    match schedule:
        case "linear":
            falling = 1 - fraction
        case "trapezoid":
            falling = min(1.0, (1 - fraction) / decay)
        case "constant":
            falling = 1.0
    return peak * rising * max(falling, 0.0)
