"""The options that say what a task model shall be; all commands that train some share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

TASKS = ("qa", "nli", "srl", "coref", "ner", "sentiment")  # as in tasks/, which imports torch
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = {
    "train": click.option(
        "--train", "train", required=True, metavar="FILE", help="What it learns from."
    ),
    "dev": click.option(
        "--dev", required=True, metavar="FILE", help="What says which epoch is best, when to stop."
    ),
    "elmo": click.option(
        "--elmo", metavar="MODEL", help="A model or 'none': the baseline.  [builtin]"
    ),
    "place": click.option(
        "--place",
        type=click.Choice(["input", "output", "both"]),
        help="Where ELMo goes.  [as in the paper]",
    ),
    "layers": click.option(
        "--layers",
        type=click.Choice(["all", "last", "projection"]),
        help="A learned average of all layers, the top one, or a matrix over all.  [all]",
    ),
    "l2": click.option(
        "--l2", type=click.FloatRange(min=0), help="λ: draws the layers together.  [0.001]"
    ),
    "tune": click.option("--tune", is_flag=True, default=None, help="Let the biLM learn too."),
    "vectors": click.option(
        "--vectors",
        metavar="FILE",
        help="Static vectors: 'glove', a text file, or 'none' to learn them.  [glove]",
    ),
    "preset": click.option(
        "--preset",
        type=click.Choice(["cpu", "paper"]),
        help="Minutes on a laptop, or the sizes of the paper.  [cpu]",
    ),
    "epochs": click.option("--epochs", type=click.IntRange(min=1), help="At most.  [preset]"),
    "batch": click.option("--batch", type=click.IntRange(min=1), help="Examples a step.  [preset]"),
    "rate": click.option(
        "--rate", type=click.FloatRange(min=0, min_open=True), help="Learning rate.  [preset]"
    ),
    "patience": click.option(
        "--patience", type=click.IntRange(min=1), help="Epochs without a gain.  [preset]"
    ),
    "dropout": click.option(
        "--dropout",
        type=click.FloatRange(0, 1, max_open=True),
        help="Of x and of ELMo.  [preset]",
    ),
    "sizes": click.option(
        "--size",
        "sizes",
        multiple=True,
        metavar="NAME=VALUE",
        help="Another number of the model than the preset's, such as hidden=200.",
    ),
}


def choices(function: F) -> F:
    """Add the options to a command."""
    return choices_but()(function)


def choices_but(*left_out: str) -> Callable[[F], F]:
    """Add the options to a command that decides these itself."""

    def add(function: F) -> F:
        for name in reversed(_OPTIONS):
            if name not in left_out:
                function = _OPTIONS[name](function)
        return function

    return add


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
