"""SNLI and MultiNLI files to pairs of sentences, and answers back to files and people.

A line is a JSON object with `gold_label`, `sentence1` and `sentence2`; the parses beside them are
not read. A pair whose annotators did not agree (`gold_label` is "-") is left out and counted, as
everyone does. A pair without `gold_label` can be answered but not learned from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from elmokit.errors import FormatError, InputError
from elmokit.tasks.lines import placed
from elmokit.tasks.task import Examples
from elmokit.text.tokenize import words

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("premise", "hypothesis")
NO_CONSENSUS = "-"
_STYLES = {"entailment": "green", "contradiction": "red", "neutral": "yellow"}


@dataclass(frozen=True, slots=True)
class Example:
    """Does the hypothesis follow from the premise?"""

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str | None = None
    pair: str | None = None
    """The data set's own name of the pair, `pairID`."""
    where: str = field(default="", compare=False)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Premise and hypothesis."""
        return (self.premise, self.hypothesis)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The likeliest label, and how likely each is."""

    label: str
    probabilities: dict[str, float]


def read(path: Path) -> Examples[Example]:
    """The pairs of a file in the format of SNLI and MultiNLI (jsonl)."""
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    for where, line in placed(path):
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
        left_out = f" ({skipped.total()} are labeled {NO_CONSENSUS!r})" if skipped else ""
        raise FormatError(
            f"{path}: no pair of sentences{left_out}; expected a JSON object a line with "
            "gold_label, sentence1 and sentence2"
        )
    return Examples(items, skipped)


def _object(where: str, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
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
    if not (tokens := tuple(words(text))):
        raise FormatError(f"{where}: {key} is empty; remove the line or write the sentence")
    return tokens


def _label(where: str, pair: dict[str, Any]) -> str | None:
    label = pair.get("gold_label")
    if "gold_label" in pair and (not isinstance(label, str) or not label.strip()):
        raise FormatError(
            f"{where}: gold_label is {json.dumps(label)[:40]}; expected a label such as "
            "'entailment', or no gold_label for a pair that is only to be answered"
        )
    return label


def answer(example: Example) -> str:
    """The gold label; a pair without one is an error here."""
    if example.label is None:
        place = f"{example.where}: " if example.where else ""
        raise FormatError(f"{place}no 'gold_label'; it takes one to learn from a pair or to score")
    return example.label


def parse(texts: Sequence[str]) -> Example:
    """A pair to answer, from a premise and a hypothesis as raw text."""
    if len(texts) != len(ARGUMENTS):
        raise InputError(f"{len(texts)} texts; expected {len(ARGUMENTS)}: {', '.join(ARGUMENTS)}")
    premise, hypothesis = (tuple(words(text)) for text in texts)
    for name, tokens in zip(ARGUMENTS, (premise, hypothesis), strict=True):
        if not tokens:
            raise InputError(f"the {name} has no words; give a sentence")
    return Example(premise, hypothesis)


def labels(example: Example) -> Iterable[str]:
    """The gold label, if there is one."""
    return () if example.label is None else (example.label,)


def facts(examples: Sequence[Example]) -> dict[str, Any]:
    """The labels of the training set, in alphabetical order, so that no order of pairs matters."""
    found = sorted({answer(example) for example in examples})
    if len(found) < 2:
        raise FormatError(
            f"{_file(examples)}every pair is labeled {found[0]!r}; expected two labels or more"
        )
    return {"labels": found}


def _file(examples: Sequence[Example]) -> str:
    path = examples[0].where.rpartition(":")[0]
    return f"{path}: " if path else ""


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
    """An object a line: pairID, gold_label (null if unknown) and prediction."""
    for example, prediction in zip(examples, predictions, strict=True):
        line = {
            "pairID": example.pair,
            "gold_label": example.label,
            "prediction": prediction.label,
        }
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def record(example: Example, prediction: Prediction) -> dict[str, Any]:
    """An answer as a JSON object."""
    named = {} if example.pair is None else {"pairID": example.pair}
    gold = {} if example.label is None else {"gold_label": example.label}
    return {
        **named,
        "premise": list(example.premise),
        "hypothesis": list(example.hypothesis),
        **gold,
        "prediction": prediction.label,
        "probabilities": prediction.probabilities,
    }


def show(example: Example, prediction: Prediction) -> Text:
    """The pair, and under it a bar for each label."""
    from rich.text import Text

    from elmokit.tasks.probability_bars import bars

    text = Text()
    text.append("premise     ", style="dim").append(" ".join(example.premise) + "\n")
    text.append("hypothesis  ", style="dim").append(" ".join(example.hypothesis) + "\n")
    names, shares = zip(*prediction.probabilities.items(), strict=True)
    text.append_text(bars(names, shares, [_STYLES.get(name, "cyan") for name in names]))
    if example.label is not None and example.label != prediction.label:
        text.append(f"\n  gold: {example.label}", style="dim")
    return text
