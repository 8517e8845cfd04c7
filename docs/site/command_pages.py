"""The command reference: one page per command of `elmo`, made from the commands themselves."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import click

from elmokit.cli import elmo

_OPTION = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)")


def write_command_pages(directory: Path) -> None:
    """Write `index.md` and one page per command."""
    directory.mkdir(parents=True)
    context = click.Context(elmo, info_name="elmo")
    rows = []
    for name in elmo.list_commands(context):
        command = elmo.get_command(context, name)
        assert command is not None
        rows.append(f"| [`elmo {name}`]({name}.md) | {command.get_short_help_str(200)} |")
        text = "\n".join(_page(command, context, name, level=1))
        (directory / f"{name}.md").write_text(text, encoding="utf-8")
    (directory / "index.md").write_text(
        "# Commands\n\n"
        "`elmo COMMAND --help` prints the same in a terminal. `elmo --debug COMMAND` shows the "
        "full traceback of an error. Exit codes: 0 success, 1 error, 2 wrong usage, 130 "
        "interrupted. Every command has a function in the [public API](../api.md).\n\n"
        "| command | what it does |\n|---|---|\n" + "\n".join(rows) + "\n",
        encoding="utf-8",
    )


def _page(command: click.Command, parent: click.Context, name: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'#' * level} elmo {context.command_path.removeprefix('elmo').strip()}\n"
    yield from _help(command.help or "")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```\n"
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    rows = [record for option in options if (record := option.get_help_record(context))]
    if rows:
        yield '<dl class="options">'  # a table would be too narrow on a phone
        for names, text in rows:
            yield f"<dt><code>{html.escape(names)}</code></dt>\n<dd>{_html(text)}</dd>"
        yield "</dl>\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            subcommand = command.get_command(context, child)
            assert subcommand is not None
            yield from _page(subcommand, context, child, level + 1)


def _help(text: str) -> Iterator[str]:
    """Paragraphs of a help text; those that keep their lines (after a backspace) are examples."""
    for paragraph in re.split(r"\n\s*\n", text.partition("\f")[0]):
        if paragraph.lstrip(" \n").startswith("\b"):
            lines = [line for line in paragraph.splitlines() if line.strip() != "\b"]
            indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
            block = "\n".join(line[indent:] for line in lines)
            yield f"```{'sh' if 'elmo ' in block else 'text'}\n{block}\n```\n"
        elif paragraph.strip():
            yield _code(" ".join(paragraph.split())) + "\n"


def _code(text: str) -> str:
    """Options and placeholders outside of backticks as code, and nothing read as markup."""
    parts = text.split("`")
    parts[::2] = [
        _OPTION.sub(r"`\1`", re.sub(r"([*_<\[\]])", r"\\\1", part)) for part in parts[::2]
    ]
    return "`".join(parts)


def _html(text: str) -> str:
    """Return a help text as HTML: options and what is in backticks as code."""
    parts = html.escape(" ".join(text.split()), quote=False).split("`")
    parts[::2] = [_OPTION.sub(r"<code>\1</code>", part) for part in parts[::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return "".join(parts)
