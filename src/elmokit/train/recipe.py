"""Training recipes: every choice that is not the architecture, the text or the budget.

Two recipes have names. `bilm-tf` is the method of the original authors. `recommended` gives better
models in equal time on two cores (docs/training.md has the comparison): Adam, whole sentences, and
a sampled softmax whose loss estimates the full one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from elmokit._deprecations import warn_renamed
from elmokit.engine.native import Products
from elmokit.errors import ConfigError, InputError
from elmokit.train.schedule import Schedule, learning_rate

TextMode = Literal["sentences", "passages", "stream"]
OptimizerName = Literal["adam", "adagrad", "muon"]
SamplerName = Literal["poisson", "log-uniform", "full"]

MIN_SHARD_WORDS = 256
"""Fewest words per shard: smaller matrices waste processor time."""

_OLD_NAMES = {"optimiser": "optimizer"}
"""Names of fields in run.json files of earlier versions, with the names they have now."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train a biLM; `RECIPES` has two that are known to work."""

    text: TextMode = "sentences"
    """What a batch consists of: whole sentences that start from the zero state; passages of a few
    consecutive sentences, which do; or windows of one long stream of text with the LSTM state
    carried from batch to batch."""
    batch: int = 4480
    """Words per optimizer step over all shards (text "sentences" and "passages")."""
    passage: int = 8
    """Sentences of the longest passages; shorter ones are as frequent (text "passages")."""
    lanes: int = 128
    """Parts of the stream that are read in parallel (text "stream")."""
    window: int = 20
    """Words per lane and optimizer step: the length of backpropagation (text "stream")."""
    optimizer: OptimizerName = "adam"
    """Optimization algorithm. "muon" learns the matrices of the LSTMs by Muon, and everything else
    by Adam; it takes the learning rates of Adam."""
    rate: float = 5e-3
    """Peak learning rate."""
    schedule: Schedule = "linear"
    """How the learning rate falls over the budget; see `elmokit.train.schedule`."""
    warm_up: int = 500
    """Warm-up steps in which the learning rate rises; at most a twentieth of the budget."""
    decay: float = 0.25
    """Fraction of the budget in which the rate falls to zero (schedule "trapezoid")."""
    clip: float = 1.0
    """Largest gradient norm over all parameters; longer gradients are scaled down to it."""
    loss_scale: float = 1.0
    """Factor of the mean loss; matters to Adagrad and to gradient clipping."""
    sampler: SamplerName = "poisson"
    """How the candidates of the sampled softmax are drawn; "full" takes the whole vocabulary."""
    negatives: int = 2048
    """Candidate words per step that the target words compete with."""
    dropout: float = 0.0
    """Dropout probability of the inputs of each layer."""
    products: Products = "float32"
    """How the two factors of every matrix product are rounded; "bfloat16" trains several times
    faster on a CPU with AMX (Intel since Sapphire Rapids), twice as fast with AVX512_BF16 (AMD
    since Zen 4), and slower on others."""
    shards: int = 2
    """Parts of a batch that are computed in parallel and summed in order. Part of the recipe
    because the order of a sum shows in its last bits; any number of threads or processes can
    compute them."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        for name, choices in (
            ("text", TextMode),
            ("optimizer", OptimizerName),
            ("schedule", Schedule),
            ("sampler", SamplerName),
            ("products", Products),
        ):
            if getattr(self, name) not in get_args(choices):
                raise ConfigError(
                    f"recipe: {name} is {getattr(self, name)!r}; "
                    f"expected one of {', '.join(get_args(choices))}"
                )
        for name, minimum in (
            ("batch", 1),
            ("passage", 1),
            ("lanes", 1),
            ("window", 1),
            ("warm_up", 0),
            ("negatives", 1),
            ("shards", 1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
                raise ConfigError(
                    f"recipe: {name} is {value!r}; expected a whole number from {minimum} up"
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
        """Return a copy with some fields changed; a change to None is ignored."""
        return replace(self, **{k: v for k, v in changes.items() if v is not None})

    def but(self, **changes: Any) -> Recipe:
        """Old name of `replace`; deprecated."""
        warn_renamed("Recipe.but", "Recipe.replace")
        return self.replace(**changes)

    def learning_rate(self, step: int, fraction: float) -> float:
        """Return the learning rate of a step when `fraction` of the budget is spent."""
        return learning_rate(
            self.rate,
            fraction,
            schedule=self.schedule,
            step=step,
            warmup_steps=self.warm_up,
            decay=self.decay,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recipe:
        """Make a recipe from what `to_dict` returned, also of an earlier version."""
        values = {_OLD_NAMES.get(name, name): value for name, value in data.items()}
        names = [f.name for f in fields(cls)]
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ConfigError(
                f"recipe: unknown {', '.join(unknown)}; expected some of {', '.join(names)}"
            )
        return cls(**values)


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
"""Recipes by name."""


def get_recipe(name: str) -> Recipe:
    """Return one of `RECIPES` by name."""
    if name not in RECIPES:
        raise InputError(f"the recipe is {name!r}; expected one of {', '.join(RECIPES)}")
    return RECIPES[name]


def count_shards(recipe: Recipe, processors: int, processes: int = 1) -> int:
    """Return how many shards keep the processors busy.

    The number is a multiple of `processes`, divides the lanes of a stream, and leaves each shard
    enough words to be worth a thread, but there is at least one shard per process.
    """
    is_stream = recipe.text == "stream"
    words = recipe.lanes * recipe.window if is_stream else recipe.batch
    limit = min(processors, words // MIN_SHARD_WORDS)
    for shards in range(limit - limit % processes, processes, -processes):
        if not is_stream or recipe.lanes % shards == 0:
            return shards
    return processes
