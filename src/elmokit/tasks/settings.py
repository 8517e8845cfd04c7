"""What is asked for: which task, with which ELMo, how large, how taught; all but the data.

Two runs with equal settings and data end in the same model.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from elmokit.elmo import BUILTIN
from elmokit.errors import ConfigError, InputError
from elmokit.tasks.task import Examples, Place, Preset, Sister
from elmokit.tasks.word_embedding import Mixing
from elmokit.vectors.static import GLOVE

TASKS = ("qa", "nli", "srl", "coref", "ner", "sentiment")
PRESETS = ("cpu", "paper")
NONE = "none"


def sister_named(task: str) -> Sister:
    """A task's package."""
    if task not in TASKS:
        raise InputError(f"there is no task {task!r}; expected one of {', '.join(TASKS)}")
    found: Any = importlib.import_module(f"elmokit.tasks.{task}")
    sister: Sister = found
    return sister


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The choices of a run. What is None is taken from the task's preset, or from its paper."""

    task: str
    preset: str = "cpu"
    elmo: str = BUILTIN
    """A model as `Elmo.load` takes it, or `"none"`: the baseline."""
    place: Place | None = None
    """Where ELMo goes."""
    layers: Mixing = "all"
    l2: float = 0.001
    """λ, which draws the layers' weights together."""
    tune: bool = False
    """Whether the biLM learns with the task."""
    vectors: str = GLOVE
    """The static vectors x: `"glove"`, a file, or `"none"`: learned."""
    seed: int = 0
    share: float = 1.0
    """The part of the training set that is used."""
    epochs: int | None = None
    batch: int | None = None
    rate: float | None = None
    patience: int | None = None
    dropout: float | None = None
    sizes: Mapping[str, Any] | None = None
    """Numbers of the task's `Sizes` that are to be others than the preset's."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        sister = sister_named(self.task)
        for name, found, expected in (
            ("preset", self.preset, PRESETS),
            ("layers", self.layers, get_args(Mixing)),
            ("place", self.place, (None, *get_args(Place))),
        ):
            if found not in expected:
                known = ", ".join(str(choice) for choice in expected if choice is not None)
                raise ConfigError(f"{name} is {found!r}; expected one of {known}")
        for name, least in (("epochs", 1), ("batch", 1), ("patience", 1), ("seed", 0), ("l2", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ConfigError(f"{name} is {value}; expected at least {least}")
        if not 0 < self.share <= 1:
            raise ConfigError(f"share is {self.share}; expected a part of the whole: 0 < share ≤ 1")
        if self.rate is not None and not self.rate > 0:
            raise ConfigError(f"rate is {self.rate}; expected a number above 0")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}; expected at least 0 and less than 1")
        known_sizes = asdict(sister.PRESETS[self.preset].sizes)
        if unknown := set(self.sizes or {}) - set(known_sizes):
            raise ConfigError(
                f"{self.task} has no size named {', '.join(sorted(unknown))}; "
                f"it has {', '.join(known_sizes)}"
            )

    @property
    def sister(self) -> Sister:
        """The task's package."""
        return sister_named(self.task)

    @property
    def where(self) -> Place:
        """Where ELMo goes: as said, or as in the paper."""
        return self.place or self.sister.PLACE

    @property
    def chosen(self) -> Preset:
        """The preset with all that was asked for otherwise."""
        preset = self.sister.PRESETS[self.preset]
        asked = {name: getattr(self, name) for name in ("epochs", "batch", "rate", "patience")}
        asked = {name: value for name, value in asked.items() if value is not None}
        return Preset(
            sizes=replace(preset.sizes, **(self.sizes or {})),
            schooling=replace(preset.schooling, **asked),
            dropout=preset.dropout if self.dropout is None else self.dropout,
        )

    def determined(self) -> dict[str, Any]:
        """All choices, also those of the preset, as JSON gives them back: what a run depends on."""
        whole = {"settings": self.to_dict(), "preset": asdict(self.chosen)}
        found: dict[str, Any] = json.loads(json.dumps(whole))
        return found

    @property
    def baseline(self) -> bool:
        """Whether there is no ELMo."""
        return self.elmo == NONE

    def replace(self, **changes: Any) -> Settings:
        """The same with some choices changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> Settings:
        """From JSON; `where` for messages."""
        try:
            return cls(**data)
        except TypeError as error:
            raise ConfigError(f"{where}: {error}; it was written by another elmokit") from None


def read(task: str, path: str | Path) -> Examples[Any]:
    """A data set's file."""
    found = Path(path).expanduser()
    if not found.exists():
        raise InputError(f"{path}: there is no such file")
    return sister_named(task).read(found)
