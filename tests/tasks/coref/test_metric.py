from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from tests.conftest import GOLDEN

from elmokit.errors import InputError
from elmokit.tasks.coref.data import Clusters, Example, Mention
from elmokit.tasks.coref.metric import METRICS, score, without_repeated_mentions

GOLD: dict[str, Any] = json.loads((GOLDEN / "tasks" / "coref.json").read_text(encoding="utf-8"))


def clusters_of(partition: list[list[int]]) -> Clusters:
    return tuple(tuple(Mention(0, m, m + 1) for m in cluster) for cluster in partition)


def letters(text: str) -> Clusters:
    """`a bc` is a cluster of one and a cluster of two."""
    return clusters_of([[ord(letter) for letter in cluster] for cluster in text.split()])


def example_of(clusters: Clusters | None) -> Example:
    return Example("(d); part 000", (("w",) * 200,), ("",), clusters)


@pytest.mark.parametrize("case", GOLD["alone"])
def test_as_scorch_with_clusters_of_one(case: dict[str, Any]) -> None:
    for name in ("muc", "b_cubed", "ceaf"):
        counts = METRICS[name](clusters_of(case["key"]), clusters_of(case["response"]))
        assert (counts.recall, counts.precision, counts.f1) == pytest.approx(case[name]), name


@pytest.mark.parametrize("case", GOLD["together"])
def test_as_e2e_coref_over_documents(case: dict[str, Any]) -> None:
    keys = [example_of(clusters_of(key)) for key, _ in case["documents"]]
    scores = score(keys, [clusters_of(response) for _, response in case["documents"]])
    assert scores["average"] == pytest.approx(100 * case["average"])
    for name in ("muc", "b_cubed", "ceaf"):
        found = (scores[f"{name}_recall"], scores[f"{name}_precision"], scores[name])
        assert found == pytest.approx([100 * value for value in case[name]]), name


# Of the test cases that come with the official scorer: key, response, then recall and precision.
OFFICIAL = [
    ("A-1", "a bc def", "a bc def", "muc", "3/3", "3/3"),
    ("A-1", "a bc def", "a bc def", "b_cubed", "6/6", "6/6"),
    ("A-1", "a bc def", "a bc def", "ceaf", "3/3", "3/3"),
    ("A-2", "a bc def", "a de", "muc", "1/3", "1/1"),
    ("A-2", "a bc def", "a de", "b_cubed", "7/18", "3/3"),
    ("A-2", "a bc def", "a de", "ceaf", "3/5", "9/10"),
    ("A-3", "a bc def", "a bcx defy z", "muc", "3/3", "3/5"),
    ("A-3", "a bc def", "a bcx defy z", "b_cubed", "6/6", "55/108"),
    ("A-3", "a bc def", "a bcx defy z", "ceaf", "31/35", "93/140"),
    ("A-4", "a bc def", "a bcx dy z", "muc", "1/3", "1/3"),
    ("A-4", "a bc def", "a bcx dy z", "b_cubed", "5/9", "17/42"),
    ("A-4", "a bc def", "a bcx dy z", "ceaf", "11/15", "11/20"),
    ("A-7", "a bc def", "a bcxb dy z", "b_cubed", "5/9", "17/42"),  # a mention twice in a cluster
    ("A-7", "a bc def", "a bcxb dy z", "muc", "1/3", "1/3"),
    ("A-8", "a bc def", "a bcx dy bz", "ceaf", "11/15", "11/20"),  # twice in two clusters
    ("A-8", "a bc def", "a bcx dy bz", "b_cubed", "5/9", "17/42"),
    ("A-9", "a bc def", "a bcx dy bbbbbbbbbbz", "b_cubed", "5/9", "17/42"),
    ("A-10", "a bc def", "a b c d e f", "b_cubed", "3/6", "6/6"),
    ("A-10", "a bc def", "a b c d e f", "muc", "0/1", "0/1"),
    ("A-11", "a bc def", "abcdef", "muc", "3/3", "3/5"),
    ("A-12", "a bc def", "a x y c d e z", "b_cubed", "13/36", "4/7"),
    ("A-13", "a bc def", "axycdez", "b_cubed", "17/36", "6/49"),
    ("A-13", "a bc def", "axycdez", "muc", "1/3", "1/6"),
    ("D-1", "12345 67 89ABC", "12345 6789ABC", "b_cubed", "12/12", "16/21"),
    ("E-1", "12345 67 89ABC", "1234589ABC 67", "muc", "9/9", "9/10"),
    ("K-1", "BCDEGHJ", "ABC DEF GHI", "muc", "3/6", "3/6"),
    ("L-1", "ABC DEFG", "AB CD FGH", "muc", "2/5", "2/4"),
    ("N-1", "a b c d e f", "a b c d e f", "muc", "0/1", "0/1"),
    ("N-1", "a b c d e f", "a b c d e f", "ceaf", "1/1", "1/1"),
]


@pytest.mark.parametrize(("case", "key", "response", "name", "recall", "precision"), OFFICIAL)
def test_cases_of_the_official_scorer(
    case: str, key: str, response: str, name: str, recall: str, precision: str
) -> None:
    counts = METRICS[name](letters(key), without_repeated_mentions(letters(response)))
    expected = (float(Fraction(recall)), float(Fraction(precision)))
    assert (counts.recall, counts.precision) == pytest.approx(expected)


def test_clusters_of_one_do_not_count() -> None:
    key, response = example_of(letters("a bc def")), letters("g bc de")
    assert score([key], [response]) == score([example_of(letters("bc def"))], [letters("bc de")])
    # A repeated mention goes first, and what it leaves behind is a cluster of one.
    assert score([key], [letters("bc bd")]) == score([key], [letters("bc")])


def test_mentions_found() -> None:
    scores = score([example_of(letters("ab cd"))], [letters("ac xyz")])
    assert scores["mentions_precision"] == pytest.approx(40)
    assert scores["mentions_recall"] == pytest.approx(50)


def test_counts_are_summed_before_they_are_divided() -> None:
    keys = [example_of(letters("ab")), example_of(letters("abcdefghijk"))]
    scores = score(keys, [letters("ab"), ()])
    assert scores["muc_recall"] == pytest.approx(100 * 1 / 11)
    assert scores["muc_precision"] == pytest.approx(100)


def test_nothing_predicted_and_nothing_to_find() -> None:
    assert score([example_of(())], [()])["average"] == 0
    assert score([example_of(letters("ab"))], [()])["average"] == 0


def test_without_a_key_there_is_no_score() -> None:
    with pytest.raises(InputError, match="no gold clusters"):
        score([example_of(None)], [()])
