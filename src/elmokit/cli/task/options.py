"""The options that say what a task model shall be; `train` and `compare` share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

TASKS = ("qa", "nli", "srl", "coref", "ner", "sentiment")  # as in tasks/, which imports torch
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--train", "train", required=True, metavar="FILE", help="What it learns from."),
    click.option(
        "--dev", required=True, metavar="FILE", help="What says which epoch is best, when to stop."
    ),
    click.option("--elmo", metavar="MODEL", help="A model or 'none': the baseline.  [builtin]"),
    click.option(
        "--place",
        type=click.Choice(["input", "output", "both"]),
        help="Where ELMo goes.  [as in the paper]",
    ),
    click.option(
        "--layers",
        type=click.Choice(["all", "last", "projection"]),
        help="A learned average of all layers, the top one, or a matrix over all.  [all]",
    ),
    click.option(
        "--l2", type=click.FloatRange(min=0), help="λ: draws the layers together.  [0.001]"
    ),
    click.option("--tune", is_flag=True, default=None, help="Let the biLM learn too."),
    click.option(
        "--vectors",
        metavar="FILE",
        help="Static vectors: 'glove', a text file, or 'none' to learn them.  [glove]",
    ),
    click.option(
        "--preset",
        type=click.Choice(["cpu", "paper"]),
        help="Minutes on a laptop, or the sizes of the paper.  [cpu]",
    ),
    click.option("--epochs", type=click.IntRange(min=1), help="At most.  [preset]"),
    click.option("--batch", type=click.IntRange(min=1), help="Examples a step.  [preset]"),
    click.option(
        "--rate", type=click.FloatRange(min=0, min_open=True), help="Learning rate.  [preset]"
    ),
    click.option("--patience", type=click.IntRange(min=1), help="Epochs without a gain.  [preset]"),
    click.option(
        "--dropout",
        type=click.FloatRange(0, 1, max_open=True),
        help="Of x and of ELMo.  [preset]",
    ),
    click.option(
        "--size",
        "sizes",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another number of the model than the preset's, such as hidden=200.",
    ),
)


def choices(function: F) -> F:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def given(sizes: tuple[str, ...], **chosen: Any) -> dict[str, Any]:
    """What was said, without what was not."""
    found = {name: value for name, value in chosen.items() if value is not None}
    if sizes:
        found["sizes"] = dict(_size(text) for text in sizes)
    return found


def _size(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--size {text}: expected NAME=VALUE, such as hidden=200")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    words = {"true": True, "false": False}
    return name, words.get(value.lower(), value)
