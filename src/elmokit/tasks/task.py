"""What every task offers, as types: the six packages beside this file have the same names in them.

Nothing here knows a task. `fitting.py`, `saved.py` and the command line know nothing else of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TextIO, TypeVar

from torch import Tensor

if TYPE_CHECKING:
    from rich.text import Text

    from elmokit.tasks.word_embedding import Words

Place = Literal["input", "output", "both"]
"""Where a task model gets ELMo: beside x, beside the top of its own network, or both."""
Optimizer = Literal["adam", "adagrad", "adadelta"]


class Example(Protocol):
    """One thing to learn from or to answer: a sentence, a pair, a document."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sequences of words that the model will ask for vectors of, as it will ask."""
        ...

    @property
    def where(self) -> str:
        """File and line, for messages; empty if it came from no file."""
        ...


E = TypeVar("E", bound=Example)


@dataclass
class Examples(Generic[E]):
    """What a file held."""

    items: list[E]
    skipped: Counter[str] = field(default_factory=Counter)
    """How many were left out, by reason, where the convention is to leave them out."""

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, kw_only=True)
class Schooling:
    """How a task model is taught; the loop is in `fitting.py`."""

    epochs: int
    """At most."""
    batch: int
    """Examples a step."""
    rate: float
    """The learning rate at the beginning; it falls to zero over all epochs."""
    patience: int = 3
    """Epochs without a better score on the development set, after which it stops."""
    steps: int = 100
    """At least so many an epoch: a small training set is read several times before the development
    set is scored."""
    clip: float = 5.0
    """The largest norm of the gradient over all parameters."""
    optimizer: Optimizer = "adam"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A size of a model, with how to teach it."""

    sizes: Any
    """The task's own `Sizes`."""
    schooling: Schooling
    dropout: float
    """Of x and of ELMo, where they enter."""


class TaskModel(Protocol):
    """A task's network, from words to answers. A `torch.nn.Module`."""

    words: Words

    def loss(self, examples: Sequence[Any]) -> Tensor:
        """What is to be made small: a scalar, the mean over the examples."""
        ...

    def predict(self, examples: Sequence[Any]) -> list[Any]:
        """An answer for each example, in order. Called in evaluation mode, without gradients."""
        ...


class Sister(Protocol):
    """The names in each task's package."""

    PAPER: str
    """Where the model is from."""
    PLACE: Place
    """Where the paper puts ELMo."""
    SCORE: str
    """Which of the scores counts."""
    ARGUMENTS: tuple[str, ...]
    """What a question on the command line consists of."""
    PRESETS: Mapping[str, Preset]
    Sizes: Callable[..., Any]
    Model: Callable[[Words, Any, Any], TaskModel]

    @staticmethod
    def read(path: Path) -> Examples[Any]:
        """A data set's file; what is wrong with it is told with its line."""
        ...

    @staticmethod
    def parse(texts: Sequence[str]) -> Any:
        """An example without an answer, from raw texts: one for each of `ARGUMENTS`."""
        ...

    @staticmethod
    def write(file: TextIO, examples: Sequence[Any], predictions: Sequence[Any]) -> None:
        """Answers in the data set's own format, as outside scorers read it."""
        ...

    @staticmethod
    def record(example: Any, prediction: Any) -> dict[str, Any]:
        """An answer as a JSON object."""
        ...

    @staticmethod
    def show(example: Any, prediction: Any) -> Text:
        """An answer for people."""
        ...

    @staticmethod
    def labels(example: Any) -> Iterable[str]:
        """The answers in an example that only a model that has seen them can give."""
        ...

    @staticmethod
    def facts(examples: Sequence[Any]) -> dict[str, Any]:
        """What a model has to remember of its training set, as JSON."""
        ...

    @staticmethod
    def score(examples: Sequence[Any], predictions: Sequence[Any]) -> dict[str, float]:
        """The task's scores in percent, `SCORE` among them."""
        ...
