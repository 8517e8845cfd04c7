"""Stanford Sentiment Treebank files to labeled sentences, and predictions back to files.

A file is read with one of five labels for each sentence and for every phrase in it. `prepare` then
selects what a model is trained and scored on, by the model's sizes: five classes, or two (neutral
sentences are skipped and counted, as is the custom); whole sentences, or in training phrases too.
An example knows the number of classes of its label, so that the predictions of a model of two
classes are never scored against five.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from elmokit.errors import FormatError, InputError
from elmokit.tasks.lines import nonblank_lines
from elmokit.tasks.offsets import CharacterSpans, character_fields, token_spans, token_words
from elmokit.tasks.sentiment import trees
from elmokit.tasks.sentiment.trees import Phrase
from elmokit.tasks.task import Examples
from elmokit.text.tokenize import Token, tokenize

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("sentence",)
NAMES = {
    5: ("very negative", "negative", "neutral", "positive", "very positive"),
    2: ("negative", "positive"),
}
"""Names of the labels 0, 1, …, by the number of classes."""
_STYLES = {5: ("red", "bright_red", "yellow", "bright_green", "green"), 2: ("red", "green")}
_NEUTRAL = 2
LONGEST_SENTENCE = 1000
"""Words of a sentence with phrases at most: these together have up to the square of them."""


class DataSizes(Protocol):
    """The part of the model's `Sizes` that `prepare` needs."""

    @property
    def classes(self) -> int:
        """Number of classes: 5 or 2."""
        ...

    @property
    def phrases(self) -> int:
        """Minimum number of words of a phrase to train on; 0 for whole sentences only."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, with its sentiment if it is known."""

    words: tuple[str, ...]
    """The words of the sentence."""
    label: int | None = None
    """The gold label, from 0 (most negative) to classes - 1; None if it is unknown."""
    classes: int = 5
    """Number of classes that the label is one of."""
    phrases: tuple[Phrase, ...] = field(default=(), compare=False)
    """The labeled phrases inside, always of five classes; for training."""
    where: str = field(default="", compare=False)
    """File and line of the sentence."""
    spans: CharacterSpans | None = field(default=None, compare=False, repr=False)
    """Where the words are in the raw text; None for an example from a file."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentence, as the only text to embed."""
        return (self.words,)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The likeliest label, and the probability of each label."""

    label: int
    """The likeliest label, from 0 (most negative)."""
    probabilities: tuple[float, ...]
    """Probability of each label."""

    @property
    def name(self) -> str:
        """Name of the likeliest label."""
        return NAMES[len(self.probabilities)][self.label]


def read(path: Path) -> Examples[Example]:
    """Read the trees of a file, one per line, with labels from 0 to 4."""
    items: list[Example] = []
    for where, line in nonblank_lines(path):
        words, label, phrases = trees.parse_tree(line, where)
        items.append(Example(words, label, 5, phrases, where))
    if not items:
        raise FormatError(
            f"{path}: no tree; expected one per line, such as '(3 (2 very) (4 good))'"
        )
    return Examples(items)


def prepare(examples: Examples[Example], sizes: DataSizes, training: bool) -> Examples[Example]:
    """Return the examples that a model of these sizes is trained or scored on.

    A phrase that occurs in several sentences is used once.

    Args:
        examples: Examples of five classes, as `read` returns them.
        sizes: The model's sizes.
        training: Whether the examples are for training, and may be phrases.
    """
    skipped = Counter(examples.skipped)
    items: list[Example] = []
    seen: set[tuple[str, ...]] = {example.words for example in examples.items}
    for example in examples.items:
        if (sentence := _with_classes(example, sizes.classes)) is None:
            skipped["neutral"] += 1
        else:
            items.append(sentence)
        if not (training and sizes.phrases):
            continue
        if len(example.words) > LONGEST_SENTENCE:
            raise FormatError(
                f"{example.where}: the sentence has {len(example.words):,} words; expected at most "
                f"{LONGEST_SENTENCE:,} where phrases are trained on, too. Divide it"
            )
        for start, end, label in example.phrases:
            words = example.words[start:end]
            if len(words) < sizes.phrases or words in seen:
                continue
            seen.add(words)
            phrase = _with_classes(Example(words, label, where=example.where), sizes.classes)
            if phrase is None:
                skipped["neutral phrase"] += 1
            else:
                items.append(phrase)
    if not items:
        raise FormatError(
            f"{examples.items[0].where.rpartition(':')[0]}: all of {len(examples)} sentences are "
            "neutral, which are skipped with two classes; use five classes"
        )
    return Examples(items, skipped)


def _with_classes(example: Example, classes: int) -> Example | None:
    """Return the example with its label in another number of classes; None if it has none there."""
    if classes not in NAMES:
        raise InputError(f"classes is {classes}; expected 5 or 2")
    if classes == example.classes or example.label is None:
        return replace(example, classes=classes, phrases=())
    if example.classes != 5:
        raise InputError(
            f"an example of {example.classes} classes cannot be converted to {classes}; read the "
            "file again"
        )
    if example.label == _NEUTRAL:
        return None
    return replace(example, label=int(example.label > _NEUTRAL), classes=classes, phrases=())


def gold_label(example: Example) -> int:
    """Return the gold label; raise an error if the sentence has none."""
    if example.label is None:
        raise InputError("a sentence has no label; training and scoring need one for each sentence")
    return example.label


def parse(texts: Sequence[str]) -> Example:
    """Return an example without a label from a raw sentence."""
    if len(texts) != len(ARGUMENTS):
        raise InputError(f"{len(texts)} texts; expected {len(ARGUMENTS)}: {', '.join(ARGUMENTS)}")
    if not (tokens := tokenize(texts[0])):
        raise InputError("the sentence has no words; expected at least one")
    return from_tokens(tokens)


def from_tokens(tokens: Sequence[Token]) -> Example:
    """Return an example without a label from the words of a sentence and their positions."""
    return Example(token_words(tokens), spans=token_spans(tokens))


def labels(example: Example) -> Iterable[str]:
    """Return nothing: every model knows all labels, whatever its training set."""
    return ()


def label_set(examples: Sequence[Example]) -> dict[str, Any]:
    """Return nothing: the classes are in the model's sizes."""
    return {}


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """Write one line per sentence: the predicted label, a tab, the words."""
    for example, prediction in zip(examples, predictions, strict=True):
        file.write(f"{prediction.label}\t{' '.join(example.words)}\n")


def to_record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """Return a sentence and its prediction as a JSON object."""
    names = NAMES[len(prediction.probabilities)]
    same = example.label is not None and example.classes == len(names)
    gold = {"gold": example.label} if same else {}
    return {
        "words": list(example.words),
        **gold,
        "prediction": prediction.label,
        "name": prediction.name,
        "confidence": prediction.probabilities[prediction.label],
        "probabilities": dict(zip(names, prediction.probabilities, strict=True)),
        **character_fields(example.spans, 0, len(example.words)),
    }


def render(example: Example, prediction: Prediction) -> Text:
    """Return the sentence and, below it, a bar for each label."""
    from rich.text import Text

    from elmokit.tasks.probability_bars import render_probabilities

    classes = len(prediction.probabilities)
    text = Text(" ".join(example.words) + "\n")
    text.append_text(
        render_probabilities(NAMES[classes], prediction.probabilities, _STYLES[classes])
    )
    if example.label not in (None, prediction.label) and example.classes == classes:
        text.append(f"\n  gold: {NAMES[classes][gold_label(example)]}", style="dim")
    return text
