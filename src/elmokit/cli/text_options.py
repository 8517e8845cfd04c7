"""What the commands that look for words in texts have in common: how they are read, and a layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from elmokit.elmo import Layers
    from elmokit.train.chunks import Form

F = TypeVar("F", bound=Callable[..., Any])


def text_options(function: F) -> F:
    """Add `--lines`, `--tokenized` and `--column`."""
    options = (
        click.option("--lines", is_flag=True, help="A line is a sentence."),
        click.option(
            "--tokenized", is_flag=True, help="A line is a sentence, its words between spaces."
        ),
        click.option("--column", metavar="NAME", help="The text's column in Parquet files."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def form_of(lines: bool, tokenized: bool) -> Form:
    """What a line is."""
    if lines and tokenized:
        raise click.UsageError("give --lines or --tokenized, not both")
    return "tokenized" if tokenized else "lines" if lines else "running"


def layer_option(function: F) -> F:
    """Add `--layer`."""
    return click.option(
        "--layer",
        default="top",
        show_default=True,
        metavar="top|mix|N",
        callback=lambda context, parameter, value: layer_of(value),
        help="Whose vectors: the top layer's, the mix of all, or layer N (0: characters).",
    )(function)


def layer_of(text: str) -> Layers:
    """As the user wrote it."""
    if text == "top":
        return "top"
    if text == "mix":
        return "mix"
    if text.isdecimal():
        return int(text)
    raise click.BadParameter(f"{text!r}; expected top, mix or a number from 0 (characters) on")


def files_of(names: Sequence[str], what: str) -> dict[str, str]:
    """The files that a text is in, by what they are for: what determines a measurement."""
    from pathlib import Path

    from elmokit.errors import InputError
    from elmokit.text.files import STDIN, find_files

    if STDIN in names:
        raise InputError(
            f"{what} is read more than once, so it cannot come from stdin: give a file"
        )
    found: list[str] = []
    for name in names:
        place = Path(name).expanduser()
        found += [str(place)] if (place / "corpus.json").is_file() else find_files([name])
    return {what if k == 0 else f"{what} {k + 1}": path for k, path in enumerate(found)}
