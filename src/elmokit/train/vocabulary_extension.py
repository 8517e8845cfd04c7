"""Extending the vocabulary of a model: new rows at the end of its softmax.

A new word starts as a share of `<UNK>`, which is how the model has predicted it so far: it gets the
same row, and the exponential of the bias of `<UNK>` is divided among the new words and the
remaining `<UNK>` by their frequency in the text. So the probabilities of all old words stay exactly
as they were, and those of the new words are the best estimate without training.

Shape letters: V vocabulary, P width, N new words.
"""

from __future__ import annotations

import copy

import numpy as np

from elmokit.bilm.weights import SOFTMAX, FloatArray, Weights
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.train.corpus import Corpus


def extend_vocabulary(corpus: Corpus, words: int) -> Corpus:
    """Return the corpus with up to `words` frequent words added to its vocabulary.

    The word list of a corpus is the vocabulary, then the other words by frequency, so that only the
    border between the two moves.
    """
    size = len(corpus.vocabulary)
    new = int(np.count_nonzero(corpus.counts[size : size + words]))
    extended = copy.copy(corpus)
    extended.vocabulary = Vocabulary([*corpus.vocabulary, *corpus.words[size : size + new]])
    return extended


def extend_softmax(weights: Weights, corpus: Corpus) -> dict[str, FloatArray]:
    """Return the softmax arrays of a model, extended to the vocabulary of a corpus.

    Args:
        weights: Arrays of the model.
        corpus: Corpus that `extend_vocabulary` returned.
    """
    weight_VP, bias_V = (np.asarray(weights[name], np.float32) for name in SOFTMAX)
    old, new = len(bias_V), len(corpus.vocabulary)
    unknown = corpus.vocabulary.index_of(UNKNOWN)
    counts_N = corpus.counts[old:new]
    still_unknown = max(float(corpus.counts[new:].sum() + corpus.counts[unknown]), 0.5)
    log_shares_N = np.log(counts_N / (counts_N.sum() + still_unknown))
    bias_V = np.concatenate([bias_V, (bias_V[unknown] + log_shares_N).astype(np.float32)])
    bias_V[unknown] += np.float32(np.log(still_unknown / (counts_N.sum() + still_unknown)))
    rows_NP = np.repeat(weight_VP[[unknown]], len(counts_N), axis=0)
    return dict(zip(SOFTMAX, (np.concatenate([weight_VP, rows_NP]), bias_V), strict=True))
