"""What the page shows: guesses, steps and neighbors are those of the library."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.bilm.mix import Mix
from elmokit.errors import InputError
from elmokit.lm import substitutes
from elmokit.serve.array_message import pack_arrays, unpack_arrays
from elmokit.serve.corpus_search import SampleCorpus, find_corpus_neighbors
from elmokit.serve.guesses import guess_word
from elmokit.serve.network_trace import trace_word
from elmokit.serve.sentences import sample_sentences, sample_uses

WORDS = "The old king died without a son .".split()


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load()


def test_guesses_equal_substitutes(elmo: Elmo) -> None:
    found = guess_word(elmo, WORDS, 2, ["queen", "qqq"], k=10)
    for i, word in enumerate(["king", "queen", "qqq"]):
        expected = substitutes(elmo, [[*WORDS[:2], word, *WORDS[3:]]], 10)[0][2]
        assert found["words"][i] == {"word": word, "known": expected.known}
        for name in ("forward", "backward", "both"):
            ranking = getattr(expected, name)
            assert found[name]["ranks"][i] == ranking.rank
            assert found[name]["probabilities"][i] == pytest.approx(ranking.probability, rel=1e-5)
            assert [w for w, _ in found[name]["best"]] == [w for w, _ in ranking.best]


@pytest.mark.parametrize("model", ["builtin", "no_cnn_projection_highway", "no_projection", "tanh"])
def test_the_last_step_is_the_layer(model: str) -> None:
    elmo = Elmo.load(model if model == "builtin" else GOLDEN / "models" / model)
    layers_LTD = elmo.embed([WORDS], "all")[0]
    width = elmo.config.lstm.width
    for position in (0, 3, len(WORDS) - 1):
        fields, arrays = trace_word(elmo, WORDS, position)
        assert "".join(fields["characters"]) == f"‹{WORDS[position]}›"
        assert arrays["filters"].shape == arrays["windows"].shape
        for layer in range(elmo.config.lstm.layers):
            both = np.concatenate([arrays[f"{d}.{layer}.out"] for d in ("forward", "backward")])
            np.testing.assert_allclose(both, layers_LTD[layer + 1, position], atol=1e-5)
        if elmo.config.char_cnn.projection:
            last = elmo.config.char_cnn.highways - 1
            x_F = arrays[f"highway.{last}.out"] if last >= 0 else arrays["filters"]
            weights = elmo.bilm.weights
            word_P = x_F @ np.float32(weights["characters.projection.weight"])
            word_P += weights["characters.projection.bias"]
            np.testing.assert_allclose(word_P, layers_LTD[0, position, :width], atol=1e-5)


def test_neighbors_by_one_layer_and_without_the_sentence_itself(elmo: Elmo) -> None:
    sentence = sample_sentences()[0]
    words = elmo.tokenize(sentence.text)
    found = find_corpus_neighbors(elmo, words, words.index("bank"), Mix((-30, -30, 0)), 5)
    assert all(use["words"] != words for use in found["context"])
    cosines = [use["similarity"] for use in found["context"]]
    assert cosines == sorted(cosines, reverse=True)
    vector_D = elmo.embed([words], 2)[0][words.index("bank")]
    use = found["context"][0]
    other_D = elmo.embed([use["words"]], 2)[0][use["position"]]
    cosine = vector_D @ other_D / np.linalg.norm(vector_D) / np.linalg.norm(other_D)
    assert use["similarity"] == pytest.approx(cosine, abs=1e-5)
    with pytest.raises(InputError, match="2 scalars"):
        find_corpus_neighbors(elmo, words, 0, Mix((0, 0)))


def test_a_model_without_a_vocabulary_uses_the_words_of_the_corpus() -> None:
    elmo = Elmo.load(GOLDEN / "models" / "plain")
    found = find_corpus_neighbors(elmo, WORDS, 2, Mix.uniform(elmo.layers), 3)
    assert len(found["static"]) == 3 and found["static_words"] > 500
    assert len(SampleCorpus(elmo).places) == found["uses"]


def test_messages_come_back() -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float64([1.5])}
    header, found = unpack_arrays(pack_arrays({"words": ["naïve"]}, arrays))
    assert header["words"] == ["naïve"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_samples_have_the_word_and_two_senses() -> None:
    texts = [sentence.text for sentence in sample_sentences()]
    assert len(set(texts)) == len(texts)
    for word, uses in sample_uses().items():
        assert len({use.sense for use in uses}) >= 2, word
        for use in uses:
            assert word in use.text.lower(), use
