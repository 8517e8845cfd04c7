"""Tiny models that can speak."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.conftest import small_config

from elmokit.bilm.model import BiLM
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo
from elmokit.text.vocabulary import Vocabulary

WORDS = "the of bank river money sat by I , . naïve 天 went to lent me".split()
VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", *WORDS])
SENTENCES = [
    "I sat by the river bank .".split(),
    "the bank lent me money , naïve money .".split(),
    ["天"],
    "an unknown Word went to the of the bank .".split(),
    ["."],
    "money money money".split(),
]


def speaking(bilm: BiLM, seed: int = 1, scale: float = 1.0, dtype: type = np.float32) -> BiLM:
    """The model with a random softmax over `VOCABULARY`."""
    random = np.random.default_rng(seed)
    shape = (len(VOCABULARY), bilm.config.lstm.width)
    softmax = {
        "softmax.weight": (scale * random.normal(size=shape)).astype(dtype),
        "softmax.bias": (scale * random.normal(size=shape[0])).astype(dtype),
    }
    return replace(bilm, weights={**bilm.weights, **softmax}, vocabulary=VOCABULARY)


@pytest.fixture
def speaker() -> BiLM:
    return speaking(random_bilm(small_config()))


@pytest.fixture
def elmo(speaker: BiLM) -> Elmo:
    return Elmo(speaker, threads=1)
