"""Weights, state, mix, and the model that joins them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config

from elmokit.bilm.config import LexiconConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import expected_shapes
from elmokit.errors import ConfigError, WeightsError
from elmokit.text.characters import ALPHABET_MARKS
from elmokit.text.dictionary import Dictionary
from elmokit.text.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("forward.1.bias"), r"the weights lack forward\.1\.bias"),
        (lambda w: w.update({"x": np.zeros(2)}), "the weights contain x"),
        (
            lambda w: w.update({"forward.0.bias": np.zeros(3, np.float32)}),
            r"forward\.0\.bias has the shape \(3,\); the architecture needs \(44,\)",
        ),
        (
            lambda w: w.update({"forward.0.bias": np.zeros(44, int)}),
            r"forward\.0\.bias is of type int64; expected floating-point",
        ),
        (
            lambda w: w.update({"forward.0.bias": np.full(44, np.inf, np.float32)}),
            "NaN or infinite",
        ),
        (
            lambda w: w.update({"softmax.weight": np.zeros((5, 6), np.float32)}),
            r"only softmax\.weight",
        ),
        (
            lambda w: w.update(
                {
                    "softmax.weight": np.zeros((5, 7), np.float32),
                    "softmax.bias": np.zeros(5, np.float32),
                }
            ),
            r"softmax\.weight has the shape \(5, 7\).*expected \(V, 6\)",
        ),
    ],
)
def test_weights_that_do_not_fit(bilm: BiLM, change, message: str) -> None:
    weights = dict(bilm.weights)
    change(weights)
    with pytest.raises(WeightsError, match=message):
        BiLM(bilm.config, weights)


def test_a_softmax_belongs_to_its_vocabulary(bilm: BiLM) -> None:
    weights = dict(bilm.weights) | {
        "softmax.weight": np.zeros((5, 6), np.float32),
        "softmax.bias": np.zeros(5, np.float32),
    }
    assert BiLM(bilm.config, weights, Vocabulary("abcde")).parameters == bilm.parameters
    with pytest.raises(WeightsError, match="5 rows, but the vocabulary has 2 words"):
        BiLM(bilm.config, weights, Vocabulary("ab"))


def test_the_fingerprint_knows_every_bit_and_no_format(bilm: BiLM) -> None:
    assert random_bilm(bilm.config).fingerprint == bilm.fingerprint
    weights = dict(bilm.weights)
    weights["backward.1.bias"] = np.nextafter(weights["backward.1.bias"], np.float32(9))
    assert BiLM(bilm.config, weights).fingerprint != bilm.fingerprint
    assert random_bilm(small_config(skip=False)).fingerprint != bilm.fingerprint
    noted = replace(bilm.config, extra={"dropout": 0.1})
    assert BiLM(noted, bilm.weights, Vocabulary("ab")).fingerprint == bilm.fingerprint


def test_a_settled_state_of_another_model(bilm: BiLM) -> None:
    other = State.zeros(small_config(cells=12))
    with pytest.raises(
        WeightsError, match=r"cell of .* is float32 \(2, 2, 1, 12\).*\(2, 2, 1, 11\)"
    ):
        BiLM(bilm.config, bilm.weights, settled=other)
    good = State.zeros(bilm.config)
    good.hidden[0] = np.nan
    with pytest.raises(WeightsError, match="hidden of the settled state has NaN"):
        BiLM(bilm.config, bilm.weights, settled=good)


def test_rows_of_a_state() -> None:
    config = small_config()
    state = State.zeros(config, 3)
    state.hidden[:] = np.arange(3)[:, None]
    assert state.select([2, 0]).hidden[0, 0, :, 0].tolist() == [2, 0]
    longer = state.extend(5)
    assert longer.hidden[0, 0, :, 0].tolist() == [0, 1, 2, 0, 0]
    assert state.extend(2).rows == 3
    new = longer.replace([4, 1], state.select([1, 2]))
    assert new.hidden[0, 0, :, 0].tolist() == [0, 2, 2, 0, 1]
    assert longer.hidden[0, 0, :, 0].tolist() == [0, 1, 2, 0, 0], "a state was changed in place"


def test_a_mix_is_a_weighted_sum() -> None:
    layers = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    assert np.allclose(Mix.uniform(3).apply(layers), layers.mean(axis=0), atol=1e-6)
    mix = Mix((0.0, np.log(2.0), np.log(5.0)), gamma=2.0)
    assert mix.weights == pytest.approx((1 / 8, 2 / 8, 5 / 8))
    expected = 2 * (layers[0] + 2 * layers[1] + 5 * layers[2]) / 8
    assert np.allclose(mix.apply(layers), expected, atol=1e-6)
    assert Mix((1000.0, -1000.0)).weights == pytest.approx((1, 0)), "no overflow"


def test_a_mix_that_is_none(bilm: BiLM) -> None:
    for scalars in ((), (1.0, float("nan")), ("a", "b")):
        with pytest.raises(ConfigError, match="mix"):
            Mix(scalars)
    with pytest.raises(ConfigError, match="the mix has 2 scalars, but the model has 3 layers"):
        BiLM(bilm.config, bilm.weights, mix=Mix.uniform(2))


# -- dictionaries ----------------------------------------------------------------------------------


def known_words(bilm: BiLM, alphabet: Dictionary | None, lexicon: Dictionary | None) -> BiLM:
    """The model with 8 characters and 3 words."""
    cnn = replace(bilm.config.char_cnn, characters=8, scheme="code_points")
    config = replace(bilm.config, char_cnn=cnn, words=LexiconConfig(entries=3, dim=2))
    weights = dict(bilm.weights)
    weights["characters.embedding"] = weights["characters.embedding"][:8]
    weights["words.embedding"] = np.ones((3, 2), np.float32)
    weights["words.projection"] = np.ones((2, 6), np.float32)
    return BiLM(config, weights, alphabet=alphabet, lexicon=lexicon)


ALPHABET = Dictionary(["a", "b", *ALPHABET_MARKS])
LEXICON = Dictionary(["<oov>", "the", "<pad>"])
FINGERPRINT = "e8f6e7693bfb18e8f788f1ea269a0ed848aec24bca83f6a3d5546d3fdf72d4ce"


def test_dictionaries_belong_to_their_tables(bilm: BiLM) -> None:
    good = known_words(bilm, ALPHABET, LEXICON)
    assert good.parameters == sum(array.size for array in good.weights.values())
    for alphabet, lexicon, message in (
        (None, LEXICON, "the model has no alphabet, which its architecture needs"),
        (ALPHABET, None, "the model has no lexicon"),
        (
            Dictionary([*ALPHABET, "c"]),
            LEXICON,
            "has 9 entries, but its embedding has 8 rows",
        ),
        (
            Dictionary("abcdefgh"),
            LEXICON,
            "the alphabet lacks .*entries <bos>, <eos>, <bow>",
        ),
        (ALPHABET, Dictionary("abc"), "the lexicon lacks the required entries <oov>"),
    ):
        with pytest.raises(WeightsError, match=message):
            known_words(bilm, alphabet, lexicon)
    with pytest.raises(WeightsError, match="has an unexpected alphabet"):
        replace(bilm, alphabet=ALPHABET)


def test_dictionaries_are_part_of_the_fingerprint(bilm: BiLM) -> None:
    models = [
        known_words(bilm, ALPHABET, LEXICON),
        known_words(bilm, Dictionary(["b", "a", *ALPHABET_MARKS]), LEXICON),
        known_words(bilm, ALPHABET, Dictionary(["the", "<oov>", "<pad>"])),
    ]
    assert len({model.fingerprint for model in models}) == 3


def test_the_fingerprint_of_a_model_of_bytes_is_what_it_was() -> None:
    """Stored in manifests and beside vectors; it must not move as the architecture grows."""
    weights = {
        name: np.full(shape, 0.5, np.float32)
        for name, shape in expected_shapes(small_config()).items()
    }
    assert BiLM(small_config(), weights).fingerprint == FINGERPRINT
