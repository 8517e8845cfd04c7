"""Files that cannot be read are reported by what reads them, in one line."""

from __future__ import annotations

from collections.abc import Iterator

import click

from elmokit.cli import elmo


def commands(command: click.Command, context: click.Context) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, context)


def test_no_option_checks_whether_a_file_can_be_read() -> None:
    """click would print its usage, and refuse an output that is to be replaced."""
    paths = [
        (command.name, option.name, option.type.readable)
        for command in commands(elmo, click.Context(elmo))
        for option in command.params
        if isinstance(option.type, click.Path)
    ]
    assert len(paths) > 8
    assert [path for path in paths if path[2]] == []
