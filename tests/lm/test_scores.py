from __future__ import annotations

import random

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config
from tests.lm import by_hand
from tests.lm.conftest import SENTENCES, speaking

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.elmo import Elmo
from elmokit.engine.reference import ReferenceNetwork
from elmokit.lm import context, score_sentences

ARCHITECTURES = [
    small_config(),
    small_config(layers=1),
    small_config(skip=False, cell_clip=0.3, projection_clip=0.4),
    small_config(cells=6, projection=False),
]


@pytest.mark.parametrize("config", ARCHITECTURES, ids=range(len(ARCHITECTURES)))
@pytest.mark.parametrize("state", ["settled", "zero"])
def test_word_by_word_as_defined(config, state: str) -> None:
    bilm = speaking(random_bilm(config))
    elmo = Elmo(bilm, state=state, threads=1)
    start = elmo.settled if state == "settled" else State.zeros(config)
    for scored, words in zip(score_sentences(elmo, SENTENCES), SENTENCES, strict=True):
        forward, backward = by_hand.sentence(bilm, words, start)
        assert scored.words == words
        assert np.allclose(scored.forward, forward, atol=2e-5)
        assert np.allclose(scored.backward, backward, atol=2e-5)


def test_the_states_differ(speaker: BiLM) -> None:
    """So that the test above, and the next, can fail."""
    found = [
        next(score_sentences(Elmo(speaker, state=s), SENTENCES)).forward
        for s in ("settled", "zero")
    ]
    assert not np.allclose(*found, atol=1e-3)


def test_carry_is_bilm_tfs_stream(speaker: BiLM) -> None:
    """Inputs <S> w1 … wn <S> w1 …, and backward </S> wn … w1 </S> …, each one endless sequence."""
    elmo = Elmo(speaker, state="carry", threads=1)
    scored = list(score_sentences(elmo, SENTENCES))
    before = [word for words in SENTENCES for word in ("<S>", *words)]
    behind = [word for words in SENTENCES for word in ("</S>", *reversed(words))]
    assert speaker.vocabulary is not None
    id_of = speaker.vocabulary.index_of
    zero = State.zeros(speaker.config)
    (forward, _), _ = by_hand.distributions(speaker, before, zero)
    # The backward network reads from the end: give it the stream mirrored.
    (_, backward), _ = by_hand.distributions(speaker, behind[::-1], zero)
    backward = backward[::-1]
    place = 0
    for words, found in zip(SENTENCES, scored, strict=True):
        targets = [id_of(word) for word in (*words, "</S>")]
        rows = np.arange(place, place + len(words) + 1)
        assert np.allclose(found.forward, forward[rows, targets], atol=2e-5)
        targets = [id_of(word) for word in (*reversed(words), "<S>")]
        assert np.allclose(found.backward[::-1], backward[rows, targets], atol=2e-5)
        place += len(words) + 1


def test_carry_starts_over_at_every_call(speaker: BiLM) -> None:
    elmo = Elmo(speaker, state="carry")
    elmo.embed(SENTENCES)
    kept = elmo.carried
    one, two = (list(score_sentences(elmo, SENTENCES)) for _ in range(2))
    assert all((a.forward == b.forward).all() for a, b in zip(one, two, strict=True))
    assert elmo.carried is kept, "what embed continues from is not touched"


def test_backward_does_not_see_the_words_before(elmo: Elmo) -> None:
    """… nor forward those behind, nor either the word itself."""
    one, two = score_sentences(elmo, ["I sat by the bank".split(), "I went by the bank".split()])
    same = np.isclose(one.forward, two.forward, atol=1e-6)
    assert same.tolist() == [True, False, False, False, False, False]
    same = np.isclose(one.backward, two.backward, atol=1e-6)
    assert same.tolist() == [False, False, False, True, True, True]


def test_company_and_order_do_not_matter(elmo: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [next(score_sentences(elmo, [words])) for words in SENTENCES]
    order = list(range(len(SENTENCES))) * 5
    random.Random(0).shuffle(order)
    for window in (1, 20, 10_000):
        monkeypatch.setattr(context, "WINDOW_WORDS", window)
        found = list(score_sentences(elmo, (SENTENCES[i] for i in order)))
        for i, scored in zip(order, found, strict=True):
            assert np.allclose(scored.forward, alone[i].forward, atol=1e-5)
            assert np.allclose(scored.backward, alone[i].backward, atol=1e-5)


def test_strings_are_tokenized_and_nothing_is_skipped_over(elmo: Elmo) -> None:
    found = list(score_sentences(elmo, ["", "I sat.", [], ["I", "sat", "."], "  "]))
    assert [scored.words for scored in found] == [["I", "sat", "."]] * 2
    assert (found[0].forward == found[1].forward).all()


def test_unknown_words_are_counted_and_read(elmo: Elmo) -> None:
    one, two = score_sentences(elmo, [["the", "Zebra", "bank"], ["the", "Yak", "bank"]])
    assert one.unknown == two.unknown == 1
    assert one.forward[1] == pytest.approx(two.forward[1], abs=1e-6), "both are <UNK> …"
    assert one.forward[2] != pytest.approx(two.forward[2], abs=1e-6), "… but read differently"


def test_it_reads_no_further_than_it_must(elmo: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant memory: a window is given out before the next is read."""
    monkeypatch.setattr(context, "WINDOW_WORDS", 30)
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield ["the", "bank"]

    stream = score_sentences(elmo, endless())
    for _ in range(100):
        next(stream)
    assert taken <= 110


def test_the_reference_engine_says_the_same(
    speaker: BiLM, elmo: Elmo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMOKIT_ENGINE", "reference")
    plain = Elmo(speaker, threads=1)
    assert plain.engine == ReferenceNetwork.name
    for a, b in zip(
        score_sentences(plain, SENTENCES), score_sentences(elmo, SENTENCES), strict=True
    ):
        assert np.allclose(a.forward, b.forward, atol=2e-5)
        assert np.allclose(a.backward, b.backward, atol=2e-5)
