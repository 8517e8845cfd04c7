"""How a biLM is taught: every choice that is not the architecture, the text or the budget.

Two recipes have names. `bilm-tf` is the method of the original authors. `recommended` is what we
found better at equal time on two cores (docs/training.md has the comparison): Adam, whole
sentences, a sample of the vocabulary that estimates the full softmax.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from elmokit.errors import ConfigError, InputError

Text = Literal["sentences", "stream"]
Optimizer = Literal["adam", "adagrad"]
Schedule = Literal["linear", "trapezoid", "constant"]
Sampler = Literal["poisson", "log-uniform", "full"]


LEAST_SHARD = 256
"""Words; matrices with fewer rows are slow."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The choices; `RECIPES` has good ones."""

    text: Text = "sentences"
    """Whole sentences that start from nothing, or windows of a stream with carried state."""
    batch: int = 4480
    """Words a step, over all shards, if the text is sentences."""
    lanes: int = 128
    """Places in the text that are read side by side, if it is a stream."""
    window: int = 20
    """Words a lane reads in a step; gradients go no further back."""
    optimizer: Optimizer = "adam"
    rate: float = 5e-3
    """The highest learning rate."""
    schedule: Schedule = "linear"
    """How the rate falls over the budget: all the way, in its last part (`decay`), or not."""
    warm_up: int = 500
    """Steps in which the rate rises, though at most a twentieth of the budget."""
    decay: float = 0.25
    """The part of the budget in which a trapezoid falls to zero."""
    clip: float = 1.0
    """The largest norm of the gradient over all parameters."""
    loss_scale: float = 1.0
    """Multiplies the mean loss; matters to Adagrad and to the clip."""
    sampler: Sampler = "poisson"
    negatives: int = 2048
    """Words a step compares the right ones with."""
    dropout: float = 0.0
    shards: int = 2
    """Parts of a batch that are computed side by side and added in order. Part of the recipe,
    because the order of a sum shows in its last bits; any number of threads or processes can do
    the work."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        for name, choices in (
            ("text", Text),
            ("optimizer", Optimizer),
            ("schedule", Schedule),
            ("sampler", Sampler),
        ):
            if getattr(self, name) not in get_args(choices):
                raise ConfigError(
                    f"recipe: {name} is {getattr(self, name)!r}; "
                    f"expected one of {', '.join(get_args(choices))}"
                )
        for name, least in (
            ("batch", 1),
            ("lanes", 1),
            ("window", 1),
            ("warm_up", 0),
            ("negatives", 1),
            ("shards", 1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(
                    f"recipe: {name} is {value!r}; expected a whole number from {least} up"
                )
        for name, low, high in (
            ("rate", 0.0, 100.0),
            ("clip", 0.0, 1e9),
            ("loss_scale", 0.0, 1e9),
            ("decay", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not low < value <= high:
                raise ConfigError(
                    f"recipe: {name} is {value!r}; expected a number above {low:g}, at most "
                    f"{high:g}"
                )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"recipe: dropout is {self.dropout!r}; expected 0 to below 1")
        if self.text == "stream" and self.lanes % self.shards:
            raise ConfigError(
                f"recipe: {self.lanes} lanes cannot be divided into {self.shards} equal shards"
            )

    def replace(self, **changes: Any) -> Recipe:
        """The same with other choices; None changes nothing."""
        return replace(self, **{k: v for k, v in changes.items() if v is not None})

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Recipe:
        """From JSON; unknown names raise, since they would be ignored."""
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise ConfigError(
                f"recipe: unknown {', '.join(unknown)}; expected some of "
                + ", ".join(f.name for f in fields(cls))
            )
        return cls(**data)


RECIPES = {
    "recommended": Recipe(),
    "bilm-tf": Recipe(
        text="stream",
        optimizer="adagrad",
        rate=0.2,
        schedule="constant",
        warm_up=0,
        clip=10.0,
        loss_scale=20.0,
        sampler="log-uniform",
        negatives=8192,
        dropout=0.1,
    ),
}


def recipe_named(name: str) -> Recipe:
    """One of `RECIPES`."""
    if name not in RECIPES:
        raise InputError(f"the recipe is {name!r}; expected one of {', '.join(RECIPES)}")
    return RECIPES[name]


def shards_for(recipe: Recipe, processors: int, processes: int = 1) -> int:
    """How many shards keep so many processors busy: a number that the processes can divide.

    At least one for each process, and lanes come out even; a shard of few words would not pay.
    """
    words = recipe.batch if recipe.text == "sentences" else recipe.lanes * recipe.window
    most = min(processors, words // LEAST_SHARD)
    for shards in range(most - most % processes, processes, -processes):
        if recipe.text == "sentences" or recipe.lanes % shards == 0:
            return shards
    return processes


def rate_at(recipe: Recipe, step: int, fraction: float) -> float:
    """The learning rate of a step, when so much of the budget is spent (0 to 1)."""
    rising = 1.0
    if recipe.warm_up:
        by_step = (step + 1) / recipe.warm_up
        rising = min(1.0, max(by_step, fraction / 0.05))
    match recipe.schedule:
        case "linear":
            falling = 1 - fraction
        case "trapezoid":
            falling = min(1.0, (1 - fraction) / recipe.decay)
        case "constant":
            falling = 1.0
    return recipe.rate * rising * max(falling, 0.0)
