"""SNLI and MultiNLI files to pairs of sentences, and predictions back to files.

Each line is a JSON object with `gold_label`, `sentence1` and `sentence2`; other keys are ignored. A
pair whose annotators did not agree (`gold_label` is "-") is skipped and counted, as is the custom.
A pair without `gold_label` can be predicted, but not trained or scored on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.errors import FormatError, InputError
from elmokit.json_text import parse_json
from elmokit.tasks.lines import nonblank_lines
from elmokit.tasks.task import Examples
from elmokit.text.tokenize import split_words

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("premise", "hypothesis")
NO_CONSENSUS = "-"
"""The `gold_label` of a pair whose annotators did not agree."""
_STYLES = {"entailment": "green", "contradiction": "red", "neutral": "yellow"}


@dataclass(frozen=True, slots=True)
class Example:
    """A premise and a hypothesis, with their label if it is known."""

    premise: tuple[str, ...]
    """Words of the premise."""
    hypothesis: tuple[str, ...]
    """Words of the hypothesis."""
    label: str | None = None
    """The gold label, such as `entailment`; None if it is unknown."""
    pair: str | None = None
    """The dataset's own name of the pair, `pairID`."""
    where: str = field(default="", compare=False)
    """File and line of the pair."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Premise and hypothesis, the texts to embed."""
        return (self.premise, self.hypothesis)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The likeliest label, and the probability of each label."""

    label: str
    """The likeliest label."""
    probabilities: dict[str, float]
    """Probability of each label."""


def read(path: Path) -> Examples[Example]:
    """Read the pairs of a file in the format of SNLI and MultiNLI (jsonl)."""
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    for where, line in nonblank_lines(path):
        pair = _object(where, line)
        if pair.get("gold_label") == NO_CONSENSUS:
            skipped["annotators did not agree"] += 1
            continue
        items.append(
            Example(
                _sentence(where, pair, "sentence1"),
                _sentence(where, pair, "sentence2"),
                _label(where, pair),
                None if pair.get("pairID") is None else str(pair["pairID"]),
                where,
            )
        )
    if not items:
        unlabeled = f" ({skipped.total()} are labeled {NO_CONSENSUS!r})" if skipped else ""
        raise FormatError(
            f"{path}: no pair of sentences{unlabeled}; expected one JSON object per line with "
            "gold_label, sentence1 and sentence2"
        )
    return Examples(items, skipped)


def _object(where: str, line: str) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "too deep"
        raise FormatError(
            f"{where}: not JSON ({reason}); expected an object with gold_label, sentence1 and "
            "sentence2"
        ) from None
    if not isinstance(value, dict):
        raise FormatError(
            f"{where}: {type(value).__name__} found; expected an object with gold_label, "
            "sentence1 and sentence2"
        )
    return value


def _sentence(where: str, pair: dict[str, Any], key: str) -> tuple[str, ...]:
    if key not in pair:
        raise FormatError(f"{where}: no {key!r}; found {', '.join(map(repr, pair)) or 'nothing'}")
    text = pair[key]
    if not isinstance(text, str):
        raise FormatError(f"{where}: {key} is {json.dumps(text)[:40]}; expected a sentence")
    if not (tokens := tuple(split_words(text))):
        raise FormatError(f"{where}: {key} is empty; remove the line or write the sentence")
    return tokens


def _label(where: str, pair: dict[str, Any]) -> str | None:
    label = pair.get("gold_label")
    if "gold_label" in pair and (not isinstance(label, str) or not label.strip()):
        raise FormatError(
            f"{where}: gold_label is {json.dumps(label)[:40]}; expected a label such as "
            "'entailment', or no gold_label for a pair that is only to be predicted"
        )
    return label


def gold_label(example: Example) -> str:
    """Return the gold label; raise an error if the pair has none."""
    if example.label is None:
        where = f"{example.where}: " if example.where else ""
        raise FormatError(f"{where}no 'gold_label'; training and scoring need one for each pair")
    return example.label


def parse(texts: Sequence[str]) -> Example:
    """Return an example without a label from a premise and a hypothesis as raw text."""
    if len(texts) != len(ARGUMENTS):
        raise InputError(f"{len(texts)} texts; expected {len(ARGUMENTS)}: {', '.join(ARGUMENTS)}")
    premise, hypothesis = (tuple(split_words(text)) for text in texts)
    for name, tokens in zip(ARGUMENTS, (premise, hypothesis), strict=True):
        if not tokens:
            raise InputError(f"the {name} has no words; expected a sentence")
    return Example(premise, hypothesis)


def labels(example: Example) -> Iterable[str]:
    """Return the gold label, if there is one."""
    return () if example.label is None else (example.label,)


def label_set(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the labels of a training set, sorted, so that the order of pairs does not matter."""
    names = sorted({gold_label(example) for example in examples})
    if len(names) < 2:
        raise FormatError(
            f"{_file(examples)}every pair is labeled {names[0]!r}; expected two labels or more"
        )
    return {"labels": names}


def _file(examples: Sequence[Example]) -> str:
    path = examples[0].where.rpartition(":")[0]
    return f"{path}: " if path else ""


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """Write one JSON object per line: pairID, gold_label (null if unknown) and prediction."""
    for example, prediction in zip(examples, predictions, strict=True):
        line = {
            "pairID": example.pair,
            "gold_label": example.label,
            "prediction": prediction.label,
        }
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def to_record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """Return a pair and its prediction as a JSON object."""
    named = {} if example.pair is None else {"pairID": example.pair}
    gold = {} if example.label is None else {"gold_label": example.label}
    return {
        **named,
        "premise": list(example.premise),
        "hypothesis": list(example.hypothesis),
        **gold,
        "prediction": prediction.label,
        "confidence": prediction.probabilities[prediction.label],
        "probabilities": prediction.probabilities,
    }


def render(example: Example, prediction: Prediction) -> Text:
    """Return the pair and, below it, a bar for each label."""
    from rich.text import Text

    from elmokit.tasks.probability_bars import render_probabilities

    text = Text()
    text.append("premise     ", style="dim").append(" ".join(example.premise) + "\n")
    text.append("hypothesis  ", style="dim").append(" ".join(example.hypothesis) + "\n")
    names, probabilities = zip(*prediction.probabilities.items(), strict=True)
    styles = [_STYLES.get(name, "cyan") for name in names]
    text.append_text(render_probabilities(names, probabilities, styles))
    if example.label is not None and example.label != prediction.label:
        text.append(f"\n  gold: {example.label}", style="dim")
    return text
