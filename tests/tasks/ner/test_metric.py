from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import pytest

from elmokit.tasks import ner
from elmokit.tasks.ner.data import Example

GOLDEN = Path(__file__).parents[2] / "golden" / "tasks" / "ner_seqeval.json"


def scored(gold: list[list[str]], found: list[list[str]]) -> dict[str, float]:
    examples = [Example(("w",) * len(tags), tuple(tags)) for tags in gold]
    return ner.metric.score(examples, [tuple(tags) for tags in found])


def test_by_hand() -> None:
    scores = scored(
        [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]],
        [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "B-LOC"]],
    )
    assert scores["precision"] == 50.0
    assert scores["recall"] == pytest.approx(200 / 3)
    assert scores["f1"] == pytest.approx(400 / 7)
    assert scores["entities"] == 3.0
    assert scores["f1 PER"] == 0.0 and scores["recall LOC"] == 100.0
    assert scores["precision LOC"] == pytest.approx(200 / 3)


def test_nothing_to_find() -> None:
    assert scored([["O"]], [["O"]]) == {"f1": 0, "precision": 0, "recall": 0, "entities": 0}
    assert scored([["O"]], [["B-X"]])["precision"] == 0.0


def test_sentences_without_gold_do_not_count() -> None:
    known, unknown = Example(("w",), ("B-X",)), Example(("w",))
    assert ner.metric.score([known, unknown], [("B-X",), ("B-X",)])["precision"] == 100.0


def test_as_seqeval_once_had_it() -> None:
    """The file is made by tests/golden/tasks/ner_make.py."""
    for case in json.loads(GOLDEN.read_text()):
        scores = scored(case["gold"], case["found"])
        for name, value in case["scores"].items():
            assert scores[name] == pytest.approx(value), (name, case)


def test_as_seqeval_has_it() -> None:
    sequence_labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")
    draw = random.Random(5)
    alphabet = ["O", "O", *(f"{p}-{t}" for p in "BIES" for t in ("PER", "LOC", "A-B"))]
    for _ in range(40):
        lengths = [draw.randint(1, 9) for _ in range(draw.randint(1, 4))]
        gold = [[draw.choice(alphabet) for _ in range(n)] for n in lengths]
        found = [
            [tag if draw.random() < 0.8 else draw.choice(alphabet) for tag in tags] for tags in gold
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = sequence_labeling.precision_recall_fscore_support(
                gold, found, average="micro"
            )
        scores = scored(gold, found)
        assert scores["precision"] == pytest.approx(100 * expected[0])
        assert scores["recall"] == pytest.approx(100 * expected[1])
        assert scores["f1"] == pytest.approx(100 * expected[2])
        assert scores["entities"] == expected[3]
