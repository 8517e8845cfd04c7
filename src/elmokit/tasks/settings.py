"""The settings of a training run of a task: everything that determines the model, except the data.

Two runs with equal settings and equal data end in the same model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from elmokit._deprecations import warn_renamed
from elmokit.elmo import BUILTIN
from elmokit.errors import ConfigError
from elmokit.tasks.task import Mixing, Placement, Preset, Task, get_task
from elmokit.vectors.static import GLOVE

PRESETS = ("cpu", "paper")
"""Names of the presets that every task has."""
NONE = "none"
"""The name of no ELMo model, or of no pretrained word vectors."""

LARGEST_SIZE = 10_000
"""Hyperparameter of a network at most."""
_WHOLE = ("epochs", "batch", "patience", "seed")
_MINIMUM = {"epochs": 1, "batch": 1, "patience": 1, "seed": 0, "l2": 0}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a training run. What is None comes from the preset, or from the paper."""

    task: str
    """Name of the task: qa, nli, srl, coref, ner or sentiment."""
    preset: str = "cpu"
    """`"cpu"` trains in minutes on a laptop; `"paper"` has the sizes of the task's paper."""
    elmo: str = BUILTIN
    """ELMo model, as `Elmo.load` takes it; `"none"` trains the baseline without ELMo."""
    placement: Placement | None = None
    """Where the model uses ELMo; None for the task's own placement."""
    layers: Mixing = "all"
    """How the layers of ELMo become one vector."""
    l2: float = 0.001
    """Strength λ of the penalty that keeps the layer weights close to each other."""
    tune: bool = False
    """Whether the biLM is fine-tuned with the task."""
    vectors: str = GLOVE
    """Static word vectors: `"glove"`, a file, or `"none"` to learn them with the task."""
    seed: int = 0
    """Random seed."""
    share: float = 1.0
    """Fraction of the training set to use, above 0 and at most 1."""
    epochs: int | None = None
    """Maximum number of epochs; None for the preset's, which grows on small training sets."""
    batch: int | None = None
    """Examples per optimizer step."""
    rate: float | None = None
    """Initial learning rate."""
    patience: int | None = None
    """Number of epochs without a better development score after which training stops."""
    dropout: float | None = None
    """Dropout of the word vectors and of ELMo."""
    sizes: Mapping[str, Any] | None = None
    """Hyperparameters of the task's `Sizes` that differ from the preset's, by name."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for values out of range and unknown names."""
        task = self.definition
        for name, value, allowed in (
            ("preset", self.preset, PRESETS),
            ("layers", self.layers, get_args(Mixing)),
            ("placement", self.placement, (None, *get_args(Placement))),
        ):
            if value not in allowed:
                names = ", ".join(str(each) for each in allowed if each is not None)
                raise ConfigError(f"{name} is {value!r}; expected one of {names}")
        for name in _WHOLE:
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise ConfigError(f"{name} is {value!r:.60}; expected a whole number")
        for name, minimum in _MINIMUM.items():
            value = getattr(self, name)
            if value is not None and not value >= minimum:
                raise ConfigError(f"{name} is {value}; expected at least {minimum}")
        if not 0 < self.share <= 1:
            raise ConfigError(f"share is {self.share}; expected a fraction: 0 < share ≤ 1")
        if self.rate is not None and not self.rate > 0:
            raise ConfigError(f"rate is {self.rate}; expected a number above 0")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}; expected at least 0 and less than 1")
        known_sizes = asdict(task.presets[self.preset].sizes)
        if unknown := set(self.sizes or {}) - set(known_sizes):
            raise ConfigError(
                f"{self.task} has no size named {', '.join(sorted(unknown))}; "
                f"it has {', '.join(known_sizes)}"
            )
        for name, value in (self.sizes or {}).items():
            whole = isinstance(known_sizes[name], int)
            if not isinstance(value, int if whole else int | float) or not value <= LARGEST_SIZE:
                raise ConfigError(
                    f"{name} is {value!r:.60}; expected a {'whole ' * whole}number up to "
                    f"{LARGEST_SIZE:,}"
                )

    @property
    def definition(self) -> Task:
        """The task that these settings are for."""
        return get_task(self.task)

    @property
    def effective_placement(self) -> Placement:
        """Where the model uses ELMo: as set, or else the task's own placement."""
        return self.placement or self.definition.placement

    @property
    def effective_preset(self) -> Preset:
        """The preset with all changes that these settings make to it."""
        preset = self.definition.presets[self.preset]
        changes = {name: getattr(self, name) for name in ("epochs", "batch", "rate", "patience")}
        changes = {name: value for name, value in changes.items() if value is not None}
        return Preset(
            sizes=replace(preset.sizes, **(self.sizes or {})),
            training=replace(preset.training, **changes),
            dropout=preset.dropout if self.dropout is None else self.dropout,
            total_steps=preset.total_steps if self.epochs is None else 0,
        )

    @property
    def baseline(self) -> bool:
        """Whether the model is trained without ELMo."""
        return self.elmo == NONE

    def replace(self, **changes: Any) -> Settings:
        """Return the same settings with some of them changed."""
        return replace(self, **changes)

    def but(self, **changes: Any) -> Settings:
        """Old name of `replace`; deprecated."""
        warn_renamed("Settings.but", "Settings.replace")
        return self.replace(**changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a JSON object."""
        return {("place" if k == "placement" else k): value for k, value in asdict(self).items()}

    def to_full_dict(self) -> dict[str, Any]:
        """Return the settings and all values of the preset, exactly as JSON gives them back.

        Runs are the same if this, their data and their biLM are equal.
        """
        preset = self.effective_preset
        whole = {
            "settings": self.to_dict(),
            "preset": {
                "sizes": asdict(preset.sizes),
                "schooling": asdict(preset.training),
                "dropout": preset.dropout,
            },
        }
        plain: dict[str, Any] = json.loads(json.dumps(whole))
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> Settings:
        """Return the settings from a JSON object.

        Args:
            data: The object that `to_dict` returned.
            where: File that it comes from, for messages.
        """
        try:
            fields = {("placement" if k == "place" else k): value for k, value in data.items()}
            return cls(**fields)
        except (TypeError, AttributeError) as error:
            raise ConfigError(
                f"{where}: {error}; it was written by another version of elmokit"
            ) from None


def with_current_keys(data: Any) -> Any:
    """Return JSON data of an older version of elmokit with the keys that this version writes."""
    if isinstance(data, dict):
        return {
            ("optimizer" if key == "optimiser" else key): with_current_keys(value)
            for key, value in data.items()
        }
    return data
