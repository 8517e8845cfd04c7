from __future__ import annotations

import numpy as np
from tests.conftest import small_config

from elmokit.bilm.random import random_bilm
from elmokit.bilm.state import State
from elmokit.engine.networks import choose_network
from elmokit.engine.runner import Runner
from elmokit.text.characters import encode_words


def test_characters_instead_of_words() -> None:
    """Strings and their ids give the same vectors and leave the same state."""
    bilm = random_bilm(small_config())
    runner = Runner(bilm, choose_network(bilm, "float32", 1), cache_bytes=0)
    sentences = [["the", "bank", "the"], [], ["</S>", "ü" * 30, ""]]
    state = runner.settle().repeat(3)
    ids = [encode_words(words, 20)[0] for words in sentences]
    by_word, after_words = runner.run(sentences, state, lambda layers: layers)
    by_ids, after_ids = runner.run_characters(ids, state, lambda layers: layers)
    for a, b in zip(by_word, by_ids, strict=True):
        assert a.shape == b.shape and np.allclose(a, b, atol=1e-6)
    assert np.allclose(after_words.cell, after_ids.cell, atol=1e-6)
    assert runner.run_characters([], State.zeros(bilm.config, 0), lambda x: x)[0] == []
