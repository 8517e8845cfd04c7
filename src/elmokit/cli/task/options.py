"""The options that define a task model, shared by all commands that train some."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from elmokit.tasks.task import TASKS

if TYPE_CHECKING:
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import TaskFiles

Command = Callable[..., None]

_FROM_PRESET = "from the preset"
_DATA: tuple[Callable[[Command], Command], ...] = (
    click.option("--train", required=True, metavar="FILE", help="Training data."),
    click.option(
        "--dev",
        required=True,
        metavar="FILE",
        help="Development data, which decide which epoch is the best and when to stop.",
    ),
)
_SETTINGS: dict[str, Callable[[Command], Command]] = {
    "elmo": click.option(
        "--elmo",
        metavar="MODEL",
        show_default="builtin",
        help="ELMo model, as a name or a path; 'none' trains the baseline without ELMo.",
    ),
    "placement": click.option(
        "--place",
        "placement",
        type=click.Choice(["input", "output", "both"]),
        show_default="as in the ELMo paper",
        help="Where ELMo enters: beside the word vectors, beside the encoder's output, or both.",
    ),
    "layers": click.option(
        "--layers",
        type=click.Choice(["all", "last", "projection"]),
        show_default="all",
        help="A learned average of all layers, the top layer only, or a learned matrix over all.",
    ),
    "l2": click.option(
        "--l2",
        type=click.FloatRange(min=0),
        show_default="0.001",
        help="Strength λ of the penalty that keeps the layer weights close to each other.",
    ),
    "tune": click.option(
        "--tune", is_flag=True, default=None, help="Fine-tune the biLM with the task."
    ),
    "vectors": click.option(
        "--vectors",
        metavar="FILE",
        show_default="glove",
        help="Static word vectors: 'glove', a text file, or 'none' to learn them with the task.",
    ),
    "preset": click.option(
        "--preset",
        type=click.Choice(["cpu", "paper"]),
        show_default="cpu",
        help="Model size and training: minutes on a laptop, or as in the task's paper.",
    ),
    "epochs": click.option(
        "--epochs",
        type=click.IntRange(min=1),
        show_default=_FROM_PRESET,
        help="Maximum number of epochs; the preset's grows on small training sets.",
    ),
    "batch": click.option(
        "--batch",
        type=click.IntRange(min=1),
        show_default=_FROM_PRESET,
        help="Examples per optimizer step.",
    ),
    "rate": click.option(
        "--rate",
        type=click.FloatRange(min=0, min_open=True),
        show_default=_FROM_PRESET,
        help="Initial learning rate.",
    ),
    "patience": click.option(
        "--patience",
        type=click.IntRange(min=1),
        show_default=_FROM_PRESET,
        help="Epochs without a better development score after which training stops.",
    ),
    "dropout": click.option(
        "--dropout",
        type=click.FloatRange(0, 1, max_open=True),
        show_default=_FROM_PRESET,
        help="Dropout of the word vectors and of ELMo.",
    ),
    "sizes": click.option(
        "--size",
        "sizes",
        multiple=True,
        metavar="NAME=VALUE",
        help="Hyperparameter that differs from the preset's, such as hidden=200; repeatable.",
    ),
}
"""The options of `Settings`, by the name of their field."""


@dataclass(frozen=True)
class TaskOptions:
    """The values of the shared options."""

    task: str
    """Name of the task."""
    train: str
    """Training data."""
    dev: str
    """Development data."""
    changes: dict[str, Any]
    """The fields of `Settings` that were set by options."""

    def settings(self) -> Settings:
        """Return the settings of the task."""
        from elmokit.tasks.settings import Settings

        return Settings(task=self.task, **self.changes)

    def files(self, test: str | None) -> TaskFiles:
        """Return the data files, with those of the test set."""
        from elmokit.tasks.trials import TaskFiles

        return TaskFiles(self.train, self.dev, test)


def task_options(
    *excluded: str, metavar: str = "NAME", **replaced: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command a task, its data and the options of its settings.

    The command receives their values as one argument, `options`.

    Args:
        excluded: Fields of `Settings` that the command sets itself.
        metavar: Name of the argument for the task in the help.
        replaced: Options to use instead of the usual ones, or besides them, by their field.
    """
    settings = {**_SETTINGS, **replaced}
    fields = [name for name in settings if name not in excluded]

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def collect(*, task: str, train: str, dev: str, **values: Any) -> None:
            changes = {name: values.pop(name) for name in fields}
            changes["sizes"] = dict(map(_parse_size, changes["sizes"])) or None
            changes = {name: value for name, value in changes.items() if value is not None}
            function(options=TaskOptions(task, train, dev, changes), **values)

        command: Command = collect
        for option in reversed([*_DATA, *(settings[name] for name in fields)]):
            command = option(command)
        return click.argument("task", metavar=metavar, type=click.Choice(TASKS))(command)

    return decorate


def _parse_size(text: str) -> tuple[str, Any]:
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
