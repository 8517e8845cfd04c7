from __future__ import annotations

import numpy as np
import pytest

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.similarity.measure import (
    best_threshold,
    cross_fitted,
    measure_similarity,
    pair_cosines,
    rater_agreement,
)
from elmokit.probe.similarity.pairs import ContextPair, PairDataset, WordInContext


def use(sentence: str, start: int, end: int | None = None) -> WordInContext:
    return WordInContext(sentence.split(), start, start + 1 if end is None else end)


def answered(pairs: list[ContextPair], answers: list[bool]) -> PairDataset:
    return PairDataset("wic", pairs, answers, [], [])


def test_cosines(elmo: Elmo) -> None:
    one, other = use("I sat by the bank .", 4), use("a bank of clouds", 1)
    reports: list[tuple[int, int | None]] = []
    pairs = [
        ContextPair(one, other, True),
        ContextPair(one, use("I sat by the bank .", 3, 5), False),
    ]
    found = pair_cosines(elmo, pairs, lambda *report: reports.append(report))
    a = elmo.embed([one.words], layers="all")[0][:, 4]
    b = elmo.embed([other.words], layers="all")[0][:, 1]
    expected = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(found[:-1, 0], expected, atol=2e-6)
    # Layer 0 knows no context; all layers are the mean of their cosines.
    assert found[0, 0] == 1.0 and found[1, 0] < 0.999
    np.testing.assert_allclose(found[-1], found[:-1].mean(0), atol=2e-6)
    # Two words are the mean of both.
    both = elmo.embed([one.words], layers="all")[0][:, 3:5].mean(1)
    expected = (a * both).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(both, axis=1)
    np.testing.assert_allclose(found[:-1, 1], expected, atol=2e-6)
    assert reports == [(1, 2), (2, 2)]


def test_the_threshold() -> None:
    values = np.array([0.9, 0.1, 0.8, 0.2])
    assert best_threshold(values, [True, False, True, False]) == pytest.approx(0.5)
    # 0.2, 0.4 and 0.6 would be wrong once, 0 and 0.8 more often: the middle one is taken.
    values = np.array([0.1, 0.3, 0.3, 0.5, 0.5, 0.7])
    answers = [False, True, False, True, False, True]
    assert best_threshold(values, answers) == pytest.approx(0.4)
    # All equal: yes or no to all of them, whatever there is more of.
    equal = np.ones(3)
    assert (
        best_threshold(equal, [True, True, False])
        <= 1.0
        < best_threshold(equal, [False, True, False])
    )


def test_halves_have_the_same_answers() -> None:
    """Equal cosines and as many yes as no: exactly half is right, not less by bad luck."""
    answers = [True, True, False, True, False, False, False, True]
    _, right = cross_fitted(np.ones(8), answers)
    assert right.mean() == 0.5


def test_nothing_of_a_half_is_used_for_itself() -> None:
    # Halves by turns: 0.1 and 0.9 are the one's answers, 0.6 and 0.7 the other's.
    values = np.array([0.1, 0.6, 0.9, 0.7] * 2)
    answers = [False, False, True, True] * 2
    cuts, right = cross_fitted(values, answers)
    assert cuts == [pytest.approx(0.5), pytest.approx(0.65)]
    # Told by 0.5, 0.6 is taken for a yes; told by 0.65, all of the others are right.
    assert right.tolist() == [True, False, True, True] * 2


def made_up(elmo: Elmo) -> PairDataset:
    """Yes if the contexts are the same but for their first word, which an LSTM can see."""
    source = np.random.default_rng(0)
    pairs, answers = [], []
    for i in range(40):
        # A generator with a fixed seed draws the words around "it".
        context = ["".join(source.choice(list("abcdefgh"), 4)) for _ in range(3)]
        other = ["".join(source.choice(list("abcdefgh"), 4)) for _ in range(3)]
        same = i % 2 == 0
        end = context if same else other
        first = WordInContext([context[0], "it", *context[1:]], 1, 2)
        pairs.append(ContextPair(first, WordInContext([end[0], "it", *end[1:]], 1, 2), True))
        answers.append(same)
    return answered(pairs, answers)


def test_answers(elmo: Elmo) -> None:
    data = made_up(elmo)
    reports: list[tuple[int, int | None]] = []
    found = measure_similarity(
        elmo,
        data,
        results.make_signature(elmo, {}),
        progress=lambda *report: reports.append(report),
    )
    assert reports[-1] == (80, 80) and len(reports) == 80
    assert (found["pairs"], found["same"], found["asked"]) == (40, 20, "answers")
    scores = {(s["network"], s["layer"]): s for s in found["scores"]}
    assert scores["trained", "0"]["accuracy"] == scores["trained", "0"]["auc"] == 0.5
    assert scores["trained", "1"]["accuracy"] > 0.95 and scores["trained", "2"]["auc"] == 1.0
    assert scores["trained", "2"]["cosine same"] == 1.0
    assert found["upper_against_lower"]["questions"] == 40
    (table,) = results.render_tables(found)
    assert table.rows[0][:2] == ["always the same answer", "50.0"]
    assert [row[0] for row in table.rows[5:7]] == ["characters", "LSTM 1"]
    assert {row for row, _ in table.bold} <= {6, 7} and "the other half" in table.note
    right, area = results.render_figures(found)
    assert "always the same answer 50.0" in right.svg and (right.name, area.name) == ("", "auc")


def test_answers_with_pairs_to_train_on(elmo: Elmo) -> None:
    data = made_up(elmo)
    signature = results.make_signature(elmo, {})
    found = measure_similarity(elmo, data, signature, train=data)
    layer = found["scores"][1]
    assert layer["thresholds"] == [best_threshold(pair_cosines(elmo, data.pairs)[1], data.answers)]
    assert (
        found["threshold from"] == 40
        and "on 40 training pairs" in results.render_tables(found)[0].note
    )
    rated = PairDataset("scws", data.pairs, [], [1.0] * 40, [])
    with pytest.raises(InputError, match="no pairs to train on"):
        measure_similarity(elmo, rated, signature, train=data)
    with pytest.raises(InputError, match="have ratings"):
        measure_similarity(elmo, data, signature, train=rated)
    with pytest.raises(InputError, match=r"have 40 that mean the same and 0"):
        measure_similarity(elmo, answered(data.pairs, [True] * 40), signature)


def test_ratings(elmo: Elmo) -> None:
    made = made_up(elmo)
    upper = pair_cosines(elmo, made.pairs)[2]
    pairs = [ContextPair(p.first, p.second, i % 2 == 0) for i, p in enumerate(made.pairs)]
    # People say what the upper layer says, so that it alone is right.
    raters = [[float(c), float(c) + 1] for c in upper]
    data = PairDataset("scws", pairs, [], [10 * float(c) for c in upper], raters)
    found = measure_similarity(elmo, data, results.make_signature(elmo, {}))
    scores = {(s["network"], s["layer"]): s for s in found["scores"]}
    assert scores["trained", "2"]["all"]["spearman"] == pytest.approx(1.0)
    assert scores["trained", "0"]["all"]["spearman"] is None
    assert scores["trained", "1"]["all"]["spearman"] < 0.999
    assert found["sizes"] == {"all": 40, "same": 20, "different": 20}
    assert found["people"] == pytest.approx(1.0)
    (table,) = results.render_tables(found)
    assert table.columns[:2] == ["", "all pairs"] and (6, 1) in table.bold
    assert table.rows[4] == ["characters", "–", *["–"] * (len(table.columns) - 2)]
    assert "One person against the others: 100.0" in table.note
    assert "untrained" in results.render_figures(found)[0].svg


def test_how_people_agree() -> None:
    assert rater_agreement([]) is None
    assert rater_agreement([[1, 1], [2, 2], [3, 3]]) == pytest.approx(1.0)
    assert rater_agreement([[1, 3], [2, 2], [3, 1]]) == pytest.approx(-1.0)
