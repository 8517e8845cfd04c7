"""More words for a model to say: new rows at the end of its softmax.

A new word begins as a part of `<UNK>`, which is what the model has called it so far: it has the
same row, and the exponential of the bias of `<UNK>` is shared out among the new words and what is
left of `<UNK>`, by how often the domain has them. So the probabilities of all old words stay
exactly what they were, and those of the new words start as high as the model can know.

Shape letters: V vocabulary, P width, N new words.
"""

from __future__ import annotations

import copy

import numpy as np

from elmokit.bilm.weights import SOFTMAX, FloatArray, Weights
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.train.corpus import Corpus


def with_more_words(corpus: Corpus, most: int) -> Corpus:
    """The corpus with the most frequent words that its vocabulary lacks at the vocabulary's end.

    Its list of words is the vocabulary, then the others by frequency: only the border moves.
    """
    size = len(corpus.vocabulary)
    new = int(np.count_nonzero(corpus.counts[size : size + most]))
    wider = copy.copy(corpus)
    wider.vocabulary = Vocabulary([*corpus.vocabulary, *corpus.words[size : size + new]])
    return wider


def extended_softmax(weights: Weights, wider: Corpus) -> dict[str, FloatArray]:
    """The softmax of a model for a corpus `with_more_words` than it has rows."""
    weight_VP, bias_V = (np.asarray(weights[name], np.float32) for name in SOFTMAX)
    old, unknown = len(bias_V), wider.vocabulary.index_of(UNKNOWN)
    counts_N = wider.counts[old : len(wider.vocabulary)]
    left = max(float(wider.counts[len(wider.vocabulary) :].sum() + wider.counts[unknown]), 0.5)
    shares_N = np.log(counts_N / (counts_N.sum() + left))
    bias_V = np.concatenate([bias_V, (bias_V[unknown] + shares_N).astype(np.float32)])
    bias_V[unknown] += np.float32(np.log(left / (counts_N.sum() + left)))
    rows_NP = np.repeat(weight_VP[[unknown]], len(counts_N), axis=0)
    return dict(zip(SOFTMAX, (np.concatenate([weight_VP, rows_NP]), bias_V), strict=True))
