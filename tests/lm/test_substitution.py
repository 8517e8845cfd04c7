from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config
from tests.lm import by_hand
from tests.lm.conftest import SENTENCES, VOCABULARY

from elmokit.elmo import Elmo
from elmokit.errors import InputError, WeightsError
from elmokit.lm import score_sentences, substitutes

WORDS = "the unheard bank lent money".split()
MARKS = [VOCABULARY.index_of("<S>"), VOCABULARY.index_of("</S>")]


def ranked(chances: np.ndarray) -> list[str]:
    return [VOCABULARY[i] for i in np.argsort(-chances) if i not in MARKS]


def test_all_words_as_defined(elmo: Elmo) -> None:
    everything = len(VOCABULARY)
    (places,) = substitutes(elmo, [WORDS], k=everything)
    both, _ = by_hand.distributions(elmo.bilm, ["<S>", *WORDS, "</S>"], elmo.settled)
    assert [place.word for place in places] == WORDS
    for t, place in enumerate(places):
        forward, backward = np.exp(both[0, t]), np.exp(both[1, t + 2])
        product = forward * backward
        product[MARKS] = 0
        product /= product.sum()
        for ranking, chances in zip(place[2:], (forward, backward, product), strict=True):
            assert [word for word, _ in ranking.best] == ranked(chances)
            for word, chance in ranking.best:
                assert chance == pytest.approx(chances[VOCABULARY.index_of(word)], rel=1e-4)
            assert ranking.rank == 1 + ranked(chances).index(place.known)
            assert ranking.probability == dict(ranking.best)[place.known]


def test_unknown_words_are_unk(elmo: Elmo) -> None:
    (places,) = substitutes(elmo, [WORDS])
    assert [place.known for place in places] == ["the", "<UNK>", "bank", "lent", "money"]


def test_the_word_itself_is_not_seen(elmo: Elmo) -> None:
    one, two = substitutes(elmo, [["the", "bank", "."], ["the", "river", "."]])
    for side in (2, 3, 4):
        a, b = dict(one[1][side].best), dict(two[1][side].best)
        assert a.keys() == b.keys() and all(a[w] == pytest.approx(b[w], rel=1e-4) for w in a)
    assert dict(one[0].backward.best) != pytest.approx(dict(two[0].backward.best), rel=1e-4)


def test_probabilities_are_those_of_perplexity(elmo: Elmo) -> None:
    for places, scored in zip(
        substitutes(elmo, SENTENCES), score_sentences(elmo, SENTENCES), strict=True
    ):
        forward = [place.forward.probability for place in places]
        backward = [place.backward.probability for place in places]
        assert np.allclose(np.log(forward), scored.forward[:-1], atol=1e-5)
        assert np.allclose(np.log(backward), scored.backward[1:], atol=1e-5)


def test_the_best_k_first(elmo: Elmo) -> None:
    (few,), (all_,) = (substitutes(elmo, [WORDS], k=k) for k in (4, len(VOCABULARY)))
    for a, b in zip(few, all_, strict=True):
        for side in (2, 3, 4):
            assert a[side].best == b[side].best[:4]
            chances = [chance for _, chance in a[side].best]
            assert chances == sorted(chances, reverse=True)
            assert a[side].rank == b[side].rank


@pytest.mark.parametrize("at_once", [1, 50, 1 << 22])
def test_how_much_at_once_does_not_show(
    elmo: Elmo, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    module = sys.modules["elmokit.lm.substitution"]  # its function hides it in the package
    together = substitutes(elmo, SENTENCES, k=3)
    monkeypatch.setattr(module, "SCORES_AT_ONCE", at_once)
    assert [len(places) for places in together] == list(map(len, SENTENCES))
    for a, b in zip(together, substitutes(elmo, SENTENCES, k=3), strict=True):
        for place, same in zip(a, b, strict=True):
            assert [word for word, _ in place.both.best] == [word for word, _ in same.both.best]
            assert place.both.probability == pytest.approx(same.both.probability, rel=1e-4)


def test_one_string_is_one_sentence(elmo: Elmo) -> None:
    assert substitutes(elmo, "I sat.", k=2) == substitutes(elmo, [["I", "sat", "."]], k=2)[0]
    assert substitutes(elmo, "") == []
    assert [len(places) for places in substitutes(elmo, ["", "I sat", ""])] == [0, 2, 0]


def test_marks_typed_as_words(elmo: Elmo) -> None:
    (places,) = substitutes(elmo, [["the", "</S>", "bank"]], k=len(VOCABULARY))
    assert "</S>" not in dict(places[1].forward.best)
    assert places[1].both.probability == 0 and places[1].forward.probability > 0
    assert 1 <= places[1].forward.rank <= len(VOCABULARY)


@pytest.mark.parametrize("k", [0, -3, len(VOCABULARY) + 1])
def test_how_many_cannot_be(elmo: Elmo, k: int) -> None:
    with pytest.raises(InputError, match=f"k is {k}; expected a number from 1 to 19"):
        substitutes(elmo, [WORDS], k=k)


def test_a_model_without_softmax_is_refused() -> None:
    with pytest.raises(WeightsError, match="no softmax"):
        substitutes(Elmo(random_bilm(small_config())), "the bank")


def test_as_a_dict(elmo: Elmo) -> None:
    place = substitutes(elmo, "the bank", k=2)[1]
    plain = place.to_dict()
    assert list(plain) == ["word", "known", "forward", "backward", "both"]
    assert plain["both"] == {
        "rank": place.both.rank,
        "probability": place.both.probability,
        "best": place.both.best,
    }
