"""The output layer of the language model: from the top layer to the probability of every word.

It is always the full softmax over the vocabulary, never a sample of it, and both directions share
it. It is computed in blocks that stay in the processor's cache, so that memory does not grow with
the vocabulary. Each block of positions is computed by one thread, so that the result does not
depend on the number of threads. Nothing here depends on sentences.

Shape letters: N positions, V vocabulary, P width, R positions of a block, W words of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.arrays import check_room_for_products
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX, FloatArray
from elmokit.engine.batching import IntArray
from elmokit.engine.native import usable_processors
from elmokit.errors import WeightsError
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.threads import ThreadPool

DoubleArray = npt.NDArray[np.float64]

POSITIONS_AT_ONCE = 512
"""Positions per block."""
WORDS_AT_ONCE = 512
"""Words of the vocabulary per block; a block of scores is one megabyte."""


class Softmax:
    """The output layer of a model."""

    def __init__(self, bilm: BiLM, threads: int | None = None) -> None:
        """Prepare the softmax, or raise `WeightsError` if the model has none or no vocabulary.

        Args:
            bilm: Model with softmax and vocabulary.
            threads: Number of threads; by default as many as the process may use.
        """
        self.vocabulary = _vocabulary(bilm)
        # Not copied where it is float32 already.
        self._weight_VP: FloatArray = np.asarray(bilm.weights[SOFTMAX[0]], np.float32)
        self._bias_V: FloatArray = np.asarray(bilm.weights[SOFTMAX[1]], np.float32)
        self._threads = threads or usable_processors()
        self.begin, self.end, self.unknown = map(self.vocabulary.index_of, (BOS, EOS, UNKNOWN))

    def __len__(self) -> int:
        """Return the size V of the vocabulary."""
        return len(self._bias_V)

    def ids(self, words: Sequence[str]) -> IntArray:
        """Return the indices of words in the vocabulary; unknown words have that of `<UNK>`."""
        return np.array([self.vocabulary.index_of(word) for word in words], np.int64)

    def log_probability(self, x_NP: FloatArray, ids_N: IntArray) -> DoubleArray:
        """Return the log probability (natural) of one word at each position."""
        out_N = np.empty(len(x_NP), np.float64)

        def work(start: int) -> None:
            block = slice(start, start + POSITIONS_AT_ONCE)
            out_N[block] = self._log_probability(x_NP[block], ids_N[block])

        starts = range(0, len(x_NP), POSITIONS_AT_ONCE)
        threads = min(self._threads, len(starts))
        check_room_for_products(threads)
        # The threads divide the blocks, so BLAS gets one thread for each.
        with self._blas.limit(limits=1, user_api="blas"):
            if threads <= 1:
                for start in starts:
                    work(start)
            else:
                with ThreadPool(threads, "softmax") as pool:
                    list(pool.map(work, starts))  # list: so that an exception is not lost
        return out_N

    def log_probabilities(self, x_NP: FloatArray) -> DoubleArray:
        """Return the log probabilities of all words at each position, (N, V), for few positions."""
        check_room_for_products(self._threads)
        with self._blas.limit(limits=self._threads, user_api="blas"):
            scores_NV = (x_NP @ self._weight_VP.T + self._bias_V).astype(np.float64)
        return log_softmax(scores_NV)

    def _log_probability(self, x_RP: FloatArray, ids_R: IntArray) -> DoubleArray:
        """Return score of the word − ln Σ exp(scores), the sum relative to the largest so far."""
        positions = np.arange(len(x_RP))
        largest_R = np.full(len(x_RP), -np.inf, np.float32)
        total_R = np.zeros(len(x_RP), np.float64)
        word_score_R = np.zeros(len(x_RP), np.float64)
        for start in range(0, len(self), WORDS_AT_ONCE):
            scores_RW = x_RP @ self._weight_VP[start : start + WORDS_AT_ONCE].T
            scores_RW += self._bias_V[start : start + WORDS_AT_ONCE]
            column_R = ids_R - start
            in_block = positions[(column_R >= 0) & (column_R < scores_RW.shape[1])]
            word_score_R[in_block] = scores_RW[in_block, column_R[in_block]]

            before_R = largest_R
            largest_R = np.maximum(before_R, scores_RW.max(axis=1))
            scores_RW -= largest_R[:, None]
            np.exp(scores_RW, out=scores_RW)
            total_R *= np.exp((before_R - largest_R).astype(np.float64))
            total_R += scores_RW.sum(axis=1)
        result: DoubleArray = word_score_R - largest_R - np.log(total_R)
        return result

    @cached_property
    def _blas(self) -> Any:
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController()


def log_softmax(scores_NV: DoubleArray) -> DoubleArray:
    """Convert scores to log probabilities in place, and return them."""
    scores_NV -= scores_NV.max(axis=1, keepdims=True)
    scores_NV -= np.log(np.exp(scores_NV).sum(axis=1, keepdims=True))
    return scores_NV


def _vocabulary(bilm: BiLM) -> Vocabulary:
    """Return the vocabulary of a model that can predict words."""
    if SOFTMAX[0] not in bilm.weights:
        raise WeightsError(
            "this model has no softmax, so it cannot predict words; published HDF5 files do not "
            "contain it. Load the TensorFlow checkpoint that the file was made from, or train a "
            "softmax with `elmo finetune`"
        )
    rows = len(bilm.weights[SOFTMAX[0]])
    if bilm.vocabulary is None:
        raise WeightsError(
            f"this model has a softmax over {rows:,} words, but no vocabulary; put the vocab.txt "
            "that it was trained with next to its files"
        )
    missing = bilm.vocabulary.missing_marks()
    if missing:
        raise WeightsError(
            f"the model's vocabulary of {rows:,} words lacks {', '.join(missing)}; a language "
            "model needs <S>, </S> and <UNK>. Use the vocab.txt that it was trained with"
        )
    return bilm.vocabulary
