"""Senses as vectors, on numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from elmokit.elmo import Elmo
from elmokit.probe.senses.corpus import SenseCorpus, SenseSentence, SenseUse
from elmokit.probe.senses.inventory import SenseInventory, count_senses, use_vector
from elmokit.probe.senses.wordnet import WordNet

LAND, MONEY, ROW = "bank%1:17:01::", "bank%1:14:00::", "bank%1:14:01::"
WORDNET = WordNet({("bank", "n"): (LAND, MONEY, ROW)})
BANK = ("bank", "n")


def use(*keys: str, start: int = 0, end: int = 1) -> SenseUse:
    return SenseUse(start, end, "bank", "n", keys)


def text(*uses: SenseUse) -> SenseCorpus:
    return SenseCorpus("t", [SenseSentence(["bank", "x"], [each]) for each in uses])


def test_the_frequent_comes_first_then_wordnets_order() -> None:
    counts = count_senses(text(use(ROW), use(MONEY), use(ROW), use(LAND)), WORDNET)
    assert list(counts[BANK].items()) == [(ROW, 2), (LAND, 1), (MONEY, 1)]


def test_a_use_of_two_senses_counts_for_both() -> None:
    assert count_senses(text(use(MONEY, LAND)), WORDNET) == {BANK: {LAND: 1, MONEY: 1}}


def test_what_is_not_wanted_or_not_in_wordnet_is_left_out() -> None:
    some = text(use("bank%1:99:00::"), use(MONEY))
    assert count_senses(some, WORDNET) == {BANK: {MONEY: 1}}
    assert count_senses(some, WORDNET, {("river", "n")}) == {}
    assert count_senses(text(use("bank%1:99:00::")), WORDNET) == {}


def test_several_words_have_the_mean_of_their_vectors() -> None:
    vectors_LTD = np.arange(2 * 3 * 2, dtype=np.float32).reshape(2, 3, 2)
    found_LD = use_vector(use(LAND, start=1, end=3), vectors_LTD)
    np.testing.assert_allclose(found_LD, [[3, 4], [9, 10]])


def vectors(*of_layers: tuple[float, float]) -> np.ndarray:  # type: ignore[type-arg]
    """One word, one vector a layer."""
    return np.array(of_layers, np.float32)[:, None, :]


def test_each_layer_takes_the_nearest_mean_and_the_last_answer_is_of_all() -> None:
    inventory = SenseInventory({BANK: {LAND: 2, MONEY: 1}}, layers=2, dim=2)
    inventory.add(use(LAND), vectors((1, 0), (0, 1)))
    inventory.add(use(LAND), vectors((3, 2), (0, 1)))
    inventory.add(use(MONEY), vectors((0, 1), (1, 0)))
    # Layer 0 is nearer to land, (4, 2), layer 1 to money; together the longer one decides.
    found = inventory.nearest(use(), vectors((4, 2), (9, 1)))
    assert found == [LAND, MONEY, MONEY]
    assert inventory.nearest(use(), vectors((40, 20), (9, 1))) == [LAND, MONEY, LAND]
    assert inventory.senses("bank", "n") == [LAND, MONEY]


def test_of_equally_near_senses_the_first_is_taken() -> None:
    for order in ([LAND, MONEY], [MONEY, LAND]):
        inventory = SenseInventory({BANK: dict.fromkeys(order, 1)}, layers=1, dim=2)
        inventory.add(use(LAND), vectors((1, 2)))
        inventory.add(use(MONEY), vectors((2, 4 + 1e-7)))
        assert inventory.nearest(use(), vectors((5, 1))) == [order[0]] * 2


def test_one_more_use_moves_the_mean() -> None:
    inventory = SenseInventory({BANK: {LAND: 2, MONEY: 1}}, layers=1, dim=2)
    inventory.add(use(LAND), vectors((1, 0)))
    inventory.add(use(MONEY), vectors((0, 1)))
    assert inventory.nearest(use(), vectors((1, 2)))[0] == MONEY
    inventory.add(use(LAND), vectors((1, 4)))
    assert inventory.nearest(use(), vectors((1, 2)))[0] == LAND


def test_a_lemma_that_was_not_seen_has_no_answer() -> None:
    inventory = SenseInventory({BANK: {LAND: 1}}, layers=1, dim=2)
    river = SenseUse(0, 1, "river", "n", ("river%1:17:00::",))
    inventory.add(river, vectors((1, 0)))
    assert inventory.nearest(river, vectors((1, 0))) == []
    assert inventory.senses("river", "n") == []


def test_a_corpus_is_read_once_and_only_where_it_matters(elmo: Elmo) -> None:
    sentences = [
        SenseSentence("the bank lends".split(), [SenseUse(1, 2, "bank", "n", (MONEY,))]),
        SenseSentence("nothing of interest".split(), []),
        SenseSentence("a bank of the river".split(), [SenseUse(1, 2, "bank", "n", (LAND,))]),
        SenseSentence("the bank pays".split(), [SenseUse(1, 2, "bank", "n", (MONEY,))]),
    ]
    corpus = SenseCorpus("t", sentences)
    reports: list[tuple[int, int | None]] = []
    counts = count_senses(corpus, WORDNET)
    inventory = SenseInventory.build(elmo, corpus, counts, lambda *report: reports.append(report))
    assert reports == [(1, 3), (2, 3), (3, 3)]
    by_hand = elmo.embed([sentences[0].words, sentences[3].words], "all")
    mean_LD = (by_hand[0][:, 1] + by_hand[1][:, 1]) / 2
    np.testing.assert_allclose(inventory.mean(MONEY), mean_LD, atol=1e-6)
    with pytest.raises(KeyError):
        inventory.mean(ROW)
