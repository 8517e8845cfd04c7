from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmokit.tasks import srl
from elmokit.tasks.srl.data import Example, Frame
from elmokit.tasks.srl.metric import arguments

GOLDEN = Path(__file__).parents[2] / "golden" / "tasks" / "srl_eval.json"


def scored(gold: list[list[str]], found: list[list[str]]) -> dict[str, float]:
    examples = [Example(("w",) * len(tags), 0, tuple(tags), (0,)) for tags in gold]
    return srl.metric.score(examples, [(Frame(0, tuple(tags)),) for tags in found])


def test_arguments() -> None:
    tags = "B-A1 I-A1 B-V B-C-A1 B-A1 O B-C-A1 B-C-V B-R-A0 B-C-A0".split()
    assert arguments(tags) == {
        ("A1", ((0, 2), (3, 4))),
        ("A1", ((4, 5), (6, 7))),
        ("R-A0", ((8, 9),)),
        ("A0", ((9, 10),)),
    }


def test_by_hand() -> None:
    gold = ["B-A0 B-V B-A1 I-A1".split(), "B-V B-A1".split()]
    found = ["B-A0 B-V B-A1 B-A2".split(), "B-V B-A1".split()]
    scores = scored(gold, found)
    assert scores["precision"] == 50.0
    assert scores["recall"] == pytest.approx(200 / 3)
    assert scores["f1"] == pytest.approx(400 / 7)
    assert (scores["perfect"], scores["predicates"], scores["arguments"]) == (50.0, 2.0, 3.0)


def test_the_predicate_does_not_count() -> None:
    assert scored([["B-V", "O"]], [["B-V", "B-C-V"]])["perfect"] == 100.0
    assert scored([["B-V", "O"]], [["B-V", "O"]])["f1"] == 0.0


def test_only_the_predicate_asked_for_counts() -> None:
    example = Example(("a", "b"), 0, ("B-V", "B-A1"), (0, 1))
    right, other = Frame(0, ("B-V", "B-A1")), Frame(1, ("B-A0", "B-V"))
    assert srl.metric.score([example], [(other, right)])["f1"] == 100.0
    assert srl.metric.score([example], [(other,)]) == {
        "f1": 0.0,
        "precision": 0.0,
        "recall": 0.0,
        "perfect": 0.0,
        "predicates": 1.0,
        "arguments": 1.0,
    }
    assert srl.metric.score([Example(("a", "b"))], [(other,)])["predicates"] == 0.0


def test_as_srl_eval_has_it() -> None:
    """The file is made by tests/golden/tasks/srl_make.py."""
    for case in json.loads(GOLDEN.read_text()):
        right, excess, missed = case["right"], case["excess"], case["missed"]
        scores = scored(case["gold"], case["found"])
        assert scores["precision"] == pytest.approx(100 * right / ((right + excess) or 1))
        assert scores["recall"] == pytest.approx(100 * right / ((right + missed) or 1))
        assert scores["f1"] == pytest.approx(200 * right / ((2 * right + excess + missed) or 1))
        assert scores["perfect"] == pytest.approx(case["perfect"], abs=0.006)  # two digits printed
