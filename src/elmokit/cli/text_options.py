"""Options shared by the commands that read text: its form, the layer, the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from elmokit.elmo import LayerChoice
    from elmokit.train.chunks import TextForm

F = TypeVar("F", bound=Callable[..., Any])


def text_options(function: F) -> F:
    """Add `--lines`, `--tokenized` and `--column` to a command."""
    options = (
        click.option("--lines", is_flag=True, help="The text has one sentence per line."),
        click.option(
            "--tokenized",
            is_flag=True,
            help="The text has one sentence per line, with spaces between the words.",
        ),
        click.option("--column", metavar="NAME", help="Column of the text in Parquet files."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def text_form(lines: bool, tokenized: bool) -> TextForm:
    """Return the form of a text for `--lines` and `--tokenized`."""
    if lines and tokenized:
        raise click.UsageError("give --lines or --tokenized, not both")
    return "tokenized" if tokenized else "lines" if lines else "running"


def context_option(function: F) -> F:
    """Add `--context` to a command."""
    return click.option(
        "--context",
        type=click.Choice(["word", "sentence"]),
        default="word",
        show_default=True,
        help="Compare the vector of the word in its sentence, or that vector and the mean of the "
        "sentence, each standardized.",
    )(function)


def layer_option(function: F) -> F:
    """Add `--layer` to a command."""
    return click.option(
        "--layer",
        default="top",
        show_default=True,
        metavar="top|mix|N",
        callback=lambda context, parameter, value: parse_layer(value),
        help="Layer of the vectors: the top layer, the mix of all layers, or layer N "
        "(0: characters only).",
    )(function)


def parse_layer(text: str) -> LayerChoice:
    """Return the layer that a user named: `top`, `mix` or a number."""
    if text == "top":
        return "top"
    if text == "mix":
        return "mix"
    if text.isdecimal():
        return int(text)
    raise click.BadParameter(
        f"{text!r} is not a layer; expected top, mix or a number, 0 being the character layer"
    )
