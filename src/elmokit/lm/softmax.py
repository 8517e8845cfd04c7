"""The last step of the language model: from the top layer to the probability of every word.

Always the full softmax over the vocabulary: never a sample of it. It is computed in blocks that
stay in the processor's cache, so that memory does not grow with the vocabulary; each block of
places is one thread's work, so that the result does not depend on how many threads there are.
Both directions share it. Knows nothing about sentences.

Shape letters: N places, V vocabulary, P width, R places of a block, W words of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX, FloatArray
from elmokit.engine.batching import IntArray
from elmokit.engine.native import usable_processors
from elmokit.errors import WeightsError
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import UNKNOWN, Vocabulary

DoubleArray = npt.NDArray[np.float64]

PLACES_AT_ONCE = 512
WORDS_AT_ONCE = 512
"""A block is a megabyte of scores."""


class Softmax:
    """The output of one model, ready to be asked."""

    def __init__(self, bilm: BiLM, threads: int | None = None) -> None:
        """Raise `WeightsError` unless the model has a softmax and the words it stands for."""
        self.vocabulary = _vocabulary(bilm)
        # Not copied where it is float32 already: a softmax may be mapped, and larger than memory.
        self._weight_VP: FloatArray = np.asarray(bilm.weights[SOFTMAX[0]], np.float32)
        self._bias_V: FloatArray = np.asarray(bilm.weights[SOFTMAX[1]], np.float32)
        self._threads = threads or usable_processors()
        self.begin, self.end, self.unknown = map(self.vocabulary.index_of, (BOS, EOS, UNKNOWN))

    def __len__(self) -> int:
        """V."""
        return len(self._bias_V)

    def ids(self, words: Sequence[str]) -> IntArray:
        """The numbers of words; those out of the vocabulary have that of `<UNK>`."""
        return np.array([self.vocabulary.index_of(word) for word in words], np.int64)

    def log_probability(self, x_NP: FloatArray, ids_N: IntArray) -> DoubleArray:
        """The natural logarithm of the probability of one word at each place."""
        out_N = np.empty(len(x_NP), np.float64)

        def work(start: int) -> None:
            block = slice(start, start + PLACES_AT_ONCE)
            out_N[block] = self._one_word(x_NP[block], ids_N[block])

        starts = range(0, len(x_NP), PLACES_AT_ONCE)
        threads = min(self._threads, len(starts))
        # Blocks are shared out here, so BLAS gets one thread for each.
        with self._blas.limit(limits=1, user_api="blas"):
            if threads <= 1:
                for start in starts:
                    work(start)
            else:
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(work, starts))  # list: so that an exception is not lost
        return out_N

    def log_probabilities(self, x_NP: FloatArray) -> DoubleArray:
        """The same for all words at each place, (N, V): for few places."""
        with self._blas.limit(limits=self._threads, user_api="blas"):
            scores_NV = (x_NP @ self._weight_VP.T + self._bias_V).astype(np.float64)
        return normalize(scores_NV)

    def _one_word(self, x_RP: FloatArray, ids_R: IntArray) -> DoubleArray:
        """ln p = score of the word − ln Σ exp(scores), the sum relative to the largest so far."""
        places = np.arange(len(x_RP))
        largest_R = np.full(len(x_RP), -np.inf, np.float32)
        total_R = np.zeros(len(x_RP), np.float64)
        asked_R = np.zeros(len(x_RP), np.float64)
        for start in range(0, len(self), WORDS_AT_ONCE):
            scores_RW = x_RP @ self._weight_VP[start : start + WORDS_AT_ONCE].T
            scores_RW += self._bias_V[start : start + WORDS_AT_ONCE]
            column_R = ids_R - start
            here = places[(column_R >= 0) & (column_R < scores_RW.shape[1])]
            asked_R[here] = scores_RW[here, column_R[here]]

            before_R = largest_R
            largest_R = np.maximum(before_R, scores_RW.max(axis=1))
            scores_RW -= largest_R[:, None]
            np.exp(scores_RW, out=scores_RW)
            total_R *= np.exp((before_R - largest_R).astype(np.float64))
            total_R += scores_RW.sum(axis=1)
        result: DoubleArray = asked_R - largest_R - np.log(total_R)
        return result

    @cached_property
    def _blas(self) -> Any:
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()


def normalize(scores_NV: DoubleArray) -> DoubleArray:
    """Scores to logarithms of probabilities, in place."""
    scores_NV -= scores_NV.max(axis=1, keepdims=True)
    scores_NV -= np.log(np.exp(scores_NV).sum(axis=1, keepdims=True))
    return scores_NV


def _vocabulary(bilm: BiLM) -> Vocabulary:
    """The words of a model that can predict any."""
    if SOFTMAX[0] not in bilm.weights:
        raise WeightsError(
            "this model has no softmax, so it cannot predict words; published HDF5 files have "
            "none. Load the TensorFlow checkpoint that the file was made from, which has it, or "
            "let `elmo finetune` learn one from a text"
        )
    rows = len(bilm.weights[SOFTMAX[0]])
    if bilm.vocabulary is None:
        raise WeightsError(
            f"this model has a softmax over {rows:,} words, but not the words: it lacks its "
            "vocabulary. Put the vocab.txt that it was trained with beside its files"
        )
    missing = bilm.vocabulary.missing_marks()
    if missing:
        raise WeightsError(
            f"the model's vocabulary of {rows:,} words lacks {', '.join(missing)}; a language "
            "model needs <S>, </S> and <UNK>: use the vocab.txt that it was trained with"
        )
    return bilm.vocabulary
