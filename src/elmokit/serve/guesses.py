"""What a biLM expects at one place of a sentence, and how it ranks any other word there.

The numbers are those of `elmokit.lm.substitutes`, for one position and several words at once.
Shape letters: V vocabulary, P width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.lm.context import read_contexts
from elmokit.lm.softmax import DoubleArray, Softmax, log_softmax

_SOFTMAX: WeakKeyDictionary[Elmo, Softmax] = WeakKeyDictionary()
"""The softmax of each model, whose weights are converted to float32 only once."""


def guess_word(
    elmo: Elmo, words: Sequence[str], position: int, others: Sequence[str] = (), k: int = 10
) -> dict[str, Any]:
    """Return what each direction and both together expect at a place, as a JSON object.

    Args:
        elmo: Model with softmax and vocabulary.
        words: Words of the sentence.
        position: Index of the place; neither direction sees the word that is there.
        others: Further words to rank at this place.
        k: Number of the likeliest words.
    """
    if not 0 <= position < len(words):
        raise InputError(f"position is {position}; expected 0 to {len(words) - 1}")
    softmax = _SOFTMAX.get(elmo)
    if softmax is None:
        softmax = _SOFTMAX[elmo] = Softmax(elmo.bilm, elmo.threads)
    # Row i of the forward direction predicts word i, row i + 1 of the backward direction does.
    context = next(iter(read_contexts(elmo, [words])))
    rows_2P = np.stack([context.forward_NP[position], context.backward_NP[position + 1]])
    forward_V, backward_V = softmax.log_probabilities(rows_2P)
    both_V = forward_V + backward_V
    both_V[[softmax.begin, softmax.end]] = -np.inf
    log_softmax(both_V[None])
    ranked = [words[position], *others]
    ids = softmax.ids(ranked).tolist()
    return {
        "words": [
            {"word": word, "known": softmax.vocabulary[i]}
            for word, i in zip(ranked, ids, strict=True)
        ],
        "vocabulary": len(softmax),
        **{
            name: _ranking(softmax, scores_V, ids, min(k, len(softmax)))
            for name, scores_V in (
                ("forward", forward_V),
                ("backward", backward_V),
                ("both", both_V),
            )
        },
    }


def _ranking(softmax: Softmax, scores_V: DoubleArray, ids: list[int], k: int) -> dict[str, Any]:
    own = scores_V[ids]
    scores_V[[softmax.begin, softmax.end]] = -np.inf  # never candidates
    best_K = np.argpartition(-scores_V, k - 1)[:k]
    best_K = best_K[np.lexsort((best_K, -scores_V[best_K]))]
    return {
        "best": [
            [softmax.vocabulary[i], float(np.exp(scores_V[i]))]
            for i in best_K.tolist()
            if scores_V[i] > -np.inf
        ],
        "ranks": [1 + int((scores_V > score).sum()) for score in own],
        "probabilities": [float(np.exp(score)) for score in own],
    }
