"""What defines a task: `Task`, the one object that each of the six packages beside this file has.

Training, saving and the command line know a task only through it. Nothing here knows any task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TextIO, TypeVar

from elmokit.errors import InputError
from elmokit.extras import require

if TYPE_CHECKING:
    from rich.text import Text
    from torch import Tensor

    from elmokit.tasks.word_embedding import WordEmbedding
    from elmokit.text.tokenize import Token

TASKS = ("qa", "nli", "srl", "coref", "ner", "sentiment")
"""Names of the tasks, in the order of the paper's Table 1."""

Placement = Literal["input", "output", "both"]
"""Where a task model uses ELMo: beside its word vectors, beside the output of its encoder, or
both."""
Mixing = Literal["all", "last", "projection"]
"""How the layers of ELMo become one vector: a learned weighted average of all layers, the top layer
alone, or a learned matrix over all of them."""
OptimizerName = Literal["adam", "adagrad", "adadelta"]


class Example(Protocol):
    """One input of a task with its answer, if that is known: a sentence, a pair, a document."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The word sequences that the model will embed, exactly as it will pass them to ELMo."""
        ...

    @property
    def where(self) -> str:
        """File and line of the example, for messages; empty if it comes from no file."""
        ...


E = TypeVar("E", bound=Example)


@dataclass
class Examples(Generic[E]):
    """The examples of a file."""

    items: list[E]
    """The examples, in the order of the file."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many examples were skipped by the conventions of the dataset, by reason."""

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a task model is trained; the training loop is in `fitting.py`."""

    epochs: int
    """Maximum number of epochs."""
    batch: int
    """Examples per optimizer step."""
    rate: float
    """Initial learning rate; it falls linearly to zero over all epochs."""
    patience: int = 3
    """Number of epochs without a better score on the development set after which training stops."""
    steps: int = 100
    """Minimum number of optimizer steps per epoch: a small training set is read several times
    before the development set is scored."""
    clip: float = 5.0
    """Maximum norm of the gradient over all parameters."""
    optimizer: OptimizerName = "adam"
    """The optimizer."""

    def steps_per_epoch(self, examples: int) -> int:
        """Return the optimizer steps per epoch for a number of examples."""
        batches = max(1, math.ceil(examples / self.batch))
        return batches * math.ceil(self.steps / batches)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The size of a task model together with how to train it."""

    sizes: Any
    """Hyperparameters of the model: an instance of the task's own `Sizes`."""
    training: TrainingConfig
    """How the model is trained."""
    dropout: float
    """Dropout of the word vectors and of ELMo at each place where it enters."""
    total_steps: int = 0
    """Optimizer steps that training may take in any case: on a small training set, the maximum
    number of epochs grows until they fit. Patience ends training before."""

    def max_epochs(self, examples: int) -> int:
        """Return the maximum number of epochs for a training set.

        Args:
            examples: Number of examples of the whole training set. A share of it gets as many
                epochs as the whole, so that shares can be compared.
        """
        steps = self.training.steps_per_epoch(examples)
        return max(self.training.epochs, math.ceil(self.total_steps / steps))


class TaskModel(Protocol):
    """The network of a task, from words to predictions; a `torch.nn.Module`."""

    words: WordEmbedding

    def loss(self, examples: Sequence[Any]) -> Tensor:
        """Return the loss to minimize: a scalar, the mean over the examples."""
        ...

    def predict(self, examples: Sequence[Any]) -> list[Any]:
        """Return one prediction per example. Called in evaluation mode, without gradients."""
        ...


def keep_examples(examples: Examples[Any], sizes: Any, training: bool) -> Examples[Any]:
    """Return the examples unchanged: the default of `Task.prepare`."""
    return examples


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that the rest of the library knows about a task."""

    name: str
    """One of `TASKS`."""
    title: str
    """The task's full name."""
    paper: str
    """The model and the paper that it comes from."""
    placement: Placement
    """Where the ELMo paper uses ELMo in this model."""
    main_score: str
    """The score by which epochs and models are compared; a key of what `score` returns."""
    arguments: tuple[str, ...]
    """Names of the raw texts that one prediction takes."""
    presets: Mapping[str, Preset]
    """The available presets, by name."""
    Sizes: type[Any]
    """Dataclass of the model's hyperparameters."""
    Model: Callable[[WordEmbedding, Any, dict[str, Any]], TaskModel]
    """Class of the model; called with the word embedding, the sizes and the label set."""
    read: Callable[[Path], Examples[Any]]
    """Read a file of the dataset; errors in it are reported with their line."""
    parse: Callable[[Sequence[str]], Any]
    """Return an example without an answer from raw texts, one for each of `arguments`."""
    write: Callable[[TextIO, Sequence[Any], Sequence[Any]], None]
    """Write examples and predictions in the dataset's own format, as official scorers read it."""
    to_record: Callable[[Any, Any], dict[str, Any]]
    """Return an example and its prediction as a JSON object."""
    render: Callable[[Any, Any], Text]
    """Return an example and its prediction as colored text for a terminal."""
    labels: Callable[[Any], Iterable[str]]
    """Return the labels of an example that a model can only predict if training has shown them."""
    label_set: Callable[[Sequence[Any]], dict[str, Any]]
    """Return what a model has to remember of its training set, mostly its labels, as JSON."""
    score: Callable[[Sequence[Any], Sequence[Any]], dict[str, float]]
    """Return the scores of predictions in percent, `main_score` among them."""
    from_tokens: Callable[[Sequence[Token]], Any] | None = None
    """Return an example without an answer from the words of a sentence and their positions in a raw
    text; None for tasks whose examples are not single sentences."""
    prepare: Callable[[Examples[Any], Any, bool], Examples[Any]] = keep_examples
    """Return the examples as a model of the given sizes needs them, for training or evaluation."""


def get_task(name: str) -> Task:
    """Return the task of this name; its package is imported at the first call."""
    if name not in TASKS:
        raise InputError(f"unknown task {name!r}; expected one of {', '.join(TASKS)}")
    require("torch", "Task models")
    task: Task = import_module(f"elmokit.tasks.{name}").TASK
    return task


def read(task: str, path: str | Path) -> Examples[Any]:
    """Return the examples of a dataset file, in the format of the task.

    Args:
        task: Name of the task; one of `TASKS`.
        path: File to read, or a directory where the task's format allows one. May be compressed.
    """
    location = Path(path).expanduser()
    if not location.exists():
        raise InputError(f"{path}: no such file")
    return get_task(task).read(location)
