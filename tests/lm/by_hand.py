"""The language model word by word, in float64 after the network, written from the definition."""

from __future__ import annotations

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.engine.batching import pack
from elmokit.engine.reference import ReferenceNetwork


def distributions(bilm: BiLM, inputs: list[str], state: State) -> tuple[np.ndarray, State]:
    """ln p of all words, (2, T, V), as each direction has it *at* each input; the state after."""
    network = ReferenceNetwork(bilm.config, bilm.weights)
    words = network.word_vectors(*bilm.characters.encode(inputs))
    layers, after = network.contextualize(words, pack([len(inputs)]), state)
    width = bilm.config.lstm.width
    weight = bilm.weights["softmax.weight"].astype(float)
    bias = bilm.weights["softmax.bias"].astype(float)
    both = []
    for half in (layers[-1][:, :width], layers[-1][:, width:]):
        scores = half.astype(float) @ weight.T + bias
        both.append(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))
    return np.array(both), after


def sentence(bilm: BiLM, words: list[str], start: State) -> tuple[list[float], list[float]]:
    """ln p of w1 … wn, </S> forward, and of <S>, w1 … wn backward."""
    assert bilm.vocabulary is not None
    marked = ["<S>", *words, "</S>"]
    (forward, backward), _ = distributions(bilm, marked, start)
    id_of = bilm.vocabulary.index_of
    return (
        [forward[t, id_of(marked[t + 1])] for t in range(len(words) + 1)],
        [backward[t + 1, id_of(marked[t])] for t in range(len(words) + 1)],
    )
