from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config
from tests.lm import by_hand
from tests.lm.conftest import SENTENCES, VOCABULARY, speaking

import elmokit
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.elmo import Elmo
from elmokit.errors import InputError, WeightsError
from elmokit.lm import Perplexity, perplexity
from elmokit.text.vocabulary import Vocabulary

V = len(VOCABULARY)


def with_softmax(bilm: BiLM, weight: np.ndarray, bias: np.ndarray) -> BiLM:
    arrays = {"softmax.weight": weight.astype(np.float32), "softmax.bias": bias.astype(np.float32)}
    return replace(bilm, weights={**bilm.weights, **arrays})


def test_it_is_exp_of_the_mean_loss(elmo: Elmo) -> None:
    found = perplexity(elmo, SENTENCES)
    pairs = [by_hand.sentence(elmo.bilm, words, elmo.settled) for words in SENTENCES]
    forward, backward = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    assert len(forward) == len(backward) == found.tokens
    assert found.forward == pytest.approx(np.exp(-forward.mean()), rel=1e-5)
    assert found.backward == pytest.approx(np.exp(-backward.mean()), rel=1e-5)
    losses = (forward.mean() + backward.mean()) / 2
    assert found.mean == pytest.approx(np.exp(-losses), rel=1e-5)
    assert found.forward != pytest.approx(found.backward, rel=1e-2)


def test_counts(elmo: Elmo) -> None:
    found = perplexity(elmo, SENTENCES)
    words = [word for sentence in SENTENCES for word in sentence]
    assert found.words == len(words) and found.sentences == 6
    assert found.tokens == len(words) + 6
    unknown = [word for word in words if word not in VOCABULARY]
    assert unknown == ["an", "unknown", "Word"]
    assert found.oov == 3 / len(words)


def test_knowing_nothing_is_the_size_of_the_vocabulary(speaker: BiLM) -> None:
    flat = with_softmax(speaker, np.zeros((V, 6)), np.full(V, 3.0))
    found = perplexity(Elmo(flat), SENTENCES)
    assert found.forward == pytest.approx(V, rel=1e-12)
    assert found.backward == pytest.approx(V, rel=1e-12)
    assert found.mean == pytest.approx(V, rel=1e-12)


def test_the_unigram_distribution_by_the_bias_alone(speaker: BiLM) -> None:
    """With no weights the bias is all: a perplexity that can be computed on paper."""
    chances = np.full(V, 0.5 / (V - 1))
    chances[VOCABULARY.index_of("the")] = 0.5
    found = perplexity(
        Elmo(with_softmax(speaker, np.zeros((V, 6)), np.log(chances))), [["the", "the"], ["the"]]
    )
    expected = math.exp(-(3 * math.log(0.5) + 2 * math.log(0.5 / (V - 1))) / 5)
    assert found.forward == pytest.approx(expected, rel=1e-6)
    assert found.backward == pytest.approx(expected, rel=1e-6)


def test_a_text_that_is_known_by_heart_is_about_one() -> None:
    """A softmax that was solved for, so that each place says its word and no other."""
    config = small_config(width=24, cells=24, projection=False)
    words = ["<S>", "</S>", "<UNK>", "the", "river", "bank", "sat"]
    vocabulary = Vocabulary(words)
    bilm = replace(random_bilm(config), vocabulary=vocabulary)
    sentence = ["the", "river", "sat"]
    marked = [vocabulary.index_of(word) for word in ("<S>", *sentence, "</S>")]
    top = Elmo(bilm, state="zero")._runner.run_unmarked(
        [("<S>", *sentence, "</S>")], State.zeros(config), lambda layers: layers[-1]
    )[0][0]
    x = np.concatenate([top[:-1, :24], top[1:, 24:]]).astype(float)
    targets = np.array(marked[1:] + marked[:-1])
    wanted = np.zeros((len(x), len(words)))
    wanted[np.arange(len(x)), targets] = 60.0
    weight = np.linalg.lstsq(x, wanted, rcond=None)[0].T
    knows = with_softmax(bilm, weight, np.zeros(len(words)))
    found = perplexity(Elmo(knows, state="zero"), [sentence] * 3)
    assert 1 <= found.forward < 1.001 and 1 <= found.backward < 1.001
    assert perplexity(Elmo(knows, state="zero"), [sentence[::-1]]).mean > 2


def test_order_and_threads_do_not_matter(speaker: BiLM) -> None:
    one = perplexity(Elmo(speaker, threads=1), SENTENCES)
    two = perplexity(Elmo(speaker, threads=2), SENTENCES)
    assert (one.forward, one.backward) == (two.forward, two.backward)
    back = perplexity(Elmo(speaker), SENTENCES[::-1])
    assert back.mean == pytest.approx(one.mean, rel=1e-6)


def test_the_same_text_twice_has_the_same_perplexity(elmo: Elmo) -> None:
    once, often = perplexity(elmo, SENTENCES), perplexity(elmo, SENTENCES * 50)
    assert often.mean == pytest.approx(once.mean, rel=1e-6)
    assert often.tokens == 50 * once.tokens


def test_it_stops_after_so_many_words(elmo: Elmo) -> None:
    def sentences():
        yield ["the", "bank"]
        yield ["the", "river"]
        raise AssertionError("reads on")

    assert perplexity(elmo, sentences(), max_words=3).words == 4
    assert perplexity(elmo, [["the", "bank"]], max_words=100).words == 2


@pytest.mark.parametrize("words", [0, -1])
def test_no_number_of_words(elmo: Elmo, words: int) -> None:
    with pytest.raises(InputError, match=f"words is {words}"):
        perplexity(elmo, SENTENCES, max_words=words)


@pytest.mark.parametrize("sentences", [[], [""], [[]], ["  ", []]])
def test_a_text_without_words_has_none(elmo: Elmo, sentences: list) -> None:
    with pytest.raises(InputError, match="no words"):
        perplexity(elmo, sentences)


def test_a_string_is_no_list_of_sentences(elmo: Elmo) -> None:
    with pytest.raises(InputError, match="expected a list of sentences"):
        perplexity(elmo, "I sat by the bank .")


def test_a_model_without_softmax_is_refused_before_the_text_is_read() -> None:
    def sentences():
        raise AssertionError("reads")
        yield

    with pytest.raises(WeightsError, match="no softmax"):
        perplexity(Elmo(random_bilm(small_config())), sentences())


def test_a_model_gone_wild_is_refused(speaker: BiLM) -> None:
    bias = np.zeros(V)
    bias[-1] = 1e6
    with pytest.raises(WeightsError, match="nats per word"):
        perplexity(Elmo(with_softmax(speaker, np.zeros((V, 6)), bias)), SENTENCES)


def test_progress_is_told(elmo: Elmo) -> None:
    told: list[Perplexity] = []
    final = perplexity(elmo, SENTENCES * 200, on_progress=told.append)
    assert [t.words // 1000 for t in told] == list(range(1, final.words // 1000 + 1))
    assert told[-1].mean == pytest.approx(final.mean, rel=1e-2)


def test_the_signature_is_what_determines_it(speaker: BiLM) -> None:
    elmo = Elmo(speaker)
    found = perplexity(elmo, SENTENCES)
    text = "".join(" ".join(words) + "\n" for words in SENTENCES)
    signature = found.signature
    assert signature["data"] == hashlib.sha256(text.encode()).hexdigest()
    assert signature["model"] == speaker.fingerprint
    assert signature["tokens"] == found.tokens
    assert signature["version"] == elmokit.__version__
    assert signature["state"] == "settled" and signature["dtype"] == "float32"

    assert perplexity(Elmo(speaker), [tuple(s) for s in SENTENCES]).signature == signature
    other_words = Vocabulary([*VOCABULARY[:3], *reversed(VOCABULARY[3:])])
    elsewhere = Elmo(speaker)
    elsewhere.settle(["the bank"])
    for other, text in (
        (Elmo(speaker, state="zero"), SENTENCES),
        (Elmo(speaking(speaker, seed=2)), SENTENCES),
        (Elmo(replace(speaker, vocabulary=other_words)), SENTENCES),
        (elsewhere, SENTENCES),
        (elmo, SENTENCES[::-1]),
    ):
        changed = perplexity(other, text)
        assert changed.signature != signature
        if text is SENTENCES:
            assert changed.forward != found.forward


def test_as_a_dict(elmo: Elmo) -> None:
    found = perplexity(elmo, SENTENCES)
    plain = found.to_dict()
    names = ["forward", "backward", "mean", "tokens", "words", "sentences", "oov", "signature"]
    assert list(plain) == names
    assert plain["mean"] == pytest.approx(math.sqrt(plain["forward"] * plain["backward"]))
