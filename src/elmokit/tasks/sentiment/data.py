"""Stanford Sentiment Treebank files to sentences with labels, and answers back to files and people.

A file is read once, with five labels for the sentence and for every phrase in it. What a model
learns from and is asked is then chosen by `prepare`, from the model's sizes: five classes, or two
(neutral sentences are left out and counted, as everyone does); whole sentences, or in training
phrases too. An example knows of how many classes its label is one, so that the answers of a model
of two classes are never scored against five.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from elmokit.errors import FormatError, InputError
from elmokit.tasks.lines import placed
from elmokit.tasks.sentiment import trees
from elmokit.tasks.sentiment.trees import Phrase
from elmokit.tasks.task import Examples
from elmokit.text.tokenize import words as tokens

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("sentence",)
NAMES = {
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
    2: ("negative", "positive"),
}
"""The names of the labels 0, 1, …, by how many there are."""
_STYLES = {5: ("red", "bright_red", "yellow", "bright_green", "green"), 2: ("red", "green")}
_NEUTRAL = 2


class Choice(Protocol):
    """What of the model's sizes `prepare` looks at."""

    @property
    def classes(self) -> int:
        """5 or 2."""
        ...

    @property
    def phrases(self) -> int:
        """The least number of words of a phrase to learn from; 0 for whole sentences only."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """How does the writer like it?"""

    words: tuple[str, ...]
    label: int | None = None
    """0 is the worst, classes - 1 the best."""
    classes: int = 5
    phrases: tuple[Phrase, ...] = field(default=(), compare=False)
    """The labeled phrases inside, always of five classes; for training."""
    where: str = field(default="", compare=False)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentence alone."""
        return (self.words,)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The likeliest label, and how likely each is."""

    label: int
    probabilities: tuple[float, ...]

    @property
    def name(self) -> str:
        """The label in words."""
        return NAMES[len(self.probabilities)][self.label]


def read(path: Path) -> Examples[Example]:
    """The trees of a file, one a line, with labels from 0 to 4."""
    items: list[Example] = []
    for where, line in placed(path):
        words, label, phrases = trees.parse(line, where)
        items.append(Example(words, label, 5, phrases, where))
    if not items:
        raise FormatError(f"{path}: no tree; expected one a line, such as '(3 (2 very) (4 good))'")
    return Examples(items)


def prepare(examples: Examples[Example], sizes: Choice, training: bool) -> Examples[Example]:
    """What a model of these sizes learns from (`training`) or is scored on.

    A phrase that stands in several sentences is learned from once.
    """
    skipped = Counter(examples.skipped)
    items: list[Example] = []
    seen: set[tuple[str, ...]] = {example.words for example in examples.items}
    for example in examples.items:
        if (whole := _of(example, sizes.classes)) is None:
            skipped["neutral"] += 1
        else:
            items.append(whole)
        if not (training and sizes.phrases):
            continue
        for start, end, label in example.phrases:
            words = example.words[start:end]
            if len(words) < sizes.phrases or words in seen:
                continue
            seen.add(words)
            phrase = _of(Example(words, label, where=example.where), sizes.classes)
            if phrase is None:
                skipped["neutral phrase"] += 1
            else:
                items.append(phrase)
    if not items:
        raise FormatError(
            f"{examples.items[0].where.rpartition(':')[0]}: all of {len(examples)} sentences are "
            "neutral, which two classes leave out; use five classes"
        )
    return Examples(items, skipped)


def _of(example: Example, classes: int) -> Example | None:
    """The example with its label as one of so many classes; None if it is none of them."""
    if classes not in NAMES:
        raise InputError(f"classes={classes}; expected 5 or 2")
    if classes == example.classes or example.label is None:
        return replace(example, classes=classes, phrases=())
    if example.classes != 5:
        raise InputError(
            f"an example of {example.classes} classes cannot have {classes}; read the file again"
        )
    if example.label == _NEUTRAL:
        return None
    return replace(example, label=int(example.label > _NEUTRAL), classes=classes, phrases=())


def answer(example: Example) -> int:
    """The gold label; a sentence without one is an error here."""
    if example.label is None:
        raise InputError("a sentence has no label; it takes one to learn from it or to score")
    return example.label


def parse(texts: Sequence[str]) -> Example:
    """A sentence to answer, from raw text."""
    if len(texts) != len(ARGUMENTS):
        raise InputError(f"{len(texts)} texts; expected {len(ARGUMENTS)}: {', '.join(ARGUMENTS)}")
    if not (words := tuple(tokens(texts[0]))):
        raise InputError("the sentence has no words; give a sentence")
    return Example(words)


def labels(example: Example) -> Iterable[str]:
    """None that a model could miss: the scale is the same for every training set."""
    return ()


def facts(examples: Sequence[Example]) -> dict[str, Any]:
    """Nothing: what a model must know is in its sizes."""
    return {}


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """A line for each sentence: the predicted label, a tab, the words."""
    for example, prediction in zip(examples, predictions, strict=True):
        file.write(f"{prediction.label}\t{' '.join(example.words)}\n")


def record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """An answer as a JSON object."""
    names = NAMES[len(prediction.probabilities)]
    same = example.label is not None and example.classes == len(names)
    gold = {"gold": example.label} if same else {}
    return {
        "words": list(example.words),
        **gold,
        "prediction": prediction.label,
        "name": prediction.name,
        "probabilities": dict(zip(names, prediction.probabilities, strict=True)),
    }


def show(example: Example, prediction: Prediction) -> Text:
    """The sentence, and under it a bar for each label."""
    from rich.text import Text

    from elmokit.tasks.probability_bars import bars

    classes = len(prediction.probabilities)
    text = Text(" ".join(example.words) + "\n")
    text.append_text(bars(NAMES[classes], prediction.probabilities, _STYLES[classes]))
    if example.label not in (None, prediction.label) and example.classes == classes:
        text.append(f"\n  gold: {NAMES[classes][answer(example)]}", style="dim")
    return text
