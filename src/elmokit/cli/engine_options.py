"""Options shared by the commands that run a model: its arithmetic, state, threads and device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def dtype_option(function: F) -> F:
    """Add `--dtype` to a command."""
    return click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16", "int8"]),
        default="float32",
        show_default=True,
        help="Arithmetic of the network; bfloat16 and int8 are faster and less exact.",
    )(function)


def threads_option(function: F) -> F:
    """Add `--threads` to a command."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        show_default="all cores",
        help="Number of threads.",
    )(function)


def device_option(function: F) -> F:
    """Add `--device` to a command that embeds."""
    return click.option(
        "--device",
        default="cpu",
        show_default=True,
        metavar="cpu|cuda|cuda:N|mps|cpu-torch",
        help="Device that runs the network; all but cpu need PyTorch.",
    )(function)


def state_option(function: F) -> F:
    """Add `--state` to a command."""
    return click.option(
        "--state",
        type=click.Choice(["settled", "zero", "carry"]),
        default="settled",
        show_default=True,
        help="LSTM state at the start of a sentence; carry continues from the sentence before.",
    )(function)
