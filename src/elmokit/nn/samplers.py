"""Samplers: the words of the vocabulary that a softmax compares the true word with, for each step.

Words are numbered as in `vocab.txt`: the marks `<S>`, `</S>`, `<UNK>`, then words by falling
frequency. Knows nothing about weights; `softmax.py` computes the loss.

Shape letters: V vocabulary, S candidates.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.errors import InputError

N_MARKS = 3
"""Number of marks at the start of the vocabulary: `<S>`, `</S>`, `<UNK>`."""


class Candidates(NamedTuple):
    """Words that the true word is compared with in one step."""

    words_S: Tensor
    """Distinct word ids, ascending; int64."""
    correction_S: Tensor
    """Added to the candidates' logits to correct for sampling: -ln q; float32."""
    true_correction_V: Tensor | None
    """Added to the logit of the true word, by its id; None for most samplers."""


class CandidateSampler(Protocol):
    """Draws candidates; the same ones from the same state of the random generator."""

    def draw(self, random: np.random.Generator) -> Candidates:
        """Draw the candidates of one step."""


class PoissonSampler:
    """Draws every word independently with probability q = min(1, k·p^power), and the marks always.

    k is chosen so that `negatives` words are drawn on average. With -ln q added to a candidate's
    logit, the expected sum of the exponentials is that of the full softmax, so the true word needs
    no correction and the loss estimates that of the full softmax.
    """

    def __init__(self, counts: npt.NDArray[np.int64], negatives: int, power: float = 0.75) -> None:
        """Compute the probabilities of all words.

        Args:
            counts: Number of occurrences of each word of the vocabulary; 0 counts as 1.
            negatives: Number of candidates that are drawn on average.
            power: Exponent that flattens the distribution of the words.
        """
        counts_V = np.asarray(counts)
        if counts_V.ndim != 1 or counts_V.dtype.kind not in "iu" or (counts_V < 0).any():
            raise InputError(
                f"the counts are {counts_V.dtype} of shape {counts_V.shape}; "
                "expected one integer from 0 up for each word"
            )
        _check_negatives(len(counts_V), negatives)
        self.q_V = _inclusion(np.maximum(counts_V, 1).astype(np.float64) ** power, negatives)
        self._correction_V = -np.log(self.q_V).astype(np.float32)

    def draw(self, random: np.random.Generator) -> Candidates:
        """Draw the candidates of one step."""
        words_S = np.flatnonzero(random.random(len(self.q_V)) < self.q_V)
        correction_S = self._correction_V[words_S]
        return Candidates(torch.from_numpy(words_S), torch.from_numpy(correction_S), None)


def _inclusion(weights_V: npt.NDArray[np.float64], negatives: int) -> npt.NDArray[np.float64]:
    """Return min(1, k·weight), and 1 for the marks, with the k that makes the sum `negatives`."""
    weights_V[:N_MARKS] = math.inf
    falling_V = np.sort(weights_V)[::-1]
    rest_V = np.cumsum(falling_V[::-1])[::-1]  # sum of a weight and all smaller ones
    certain_V = np.arange(len(weights_V))  # number of words with probability 1
    with np.errstate(invalid="ignore"):  # inf · 0, among the marks
        k_V = (negatives - certain_V) / rest_V
        fits_V = k_V * falling_V <= 1
    fits_V[:N_MARKS] = False
    if not fits_V.any():
        return np.ones_like(weights_V)
    q_V: npt.NDArray[np.float64] = np.minimum(1, k_V[fits_V.argmax()] * weights_V)
    return q_V


class LogUniformSampler:
    """Draws distinct words by rank k from P(k) = ln((k+2) / (k+1)) / ln(V+1), as bilm-tf does.

    Words are drawn until there are `negatives` different ones; candidates and the true word are
    corrected by the probability that a word is among as many draws. The loss is not an estimate of
    that of the full softmax.
    """

    def __init__(self, vocabulary: int, negatives: int) -> None:
        """Compute the probabilities of all words.

        Args:
            vocabulary: Number of words, which are ordered by falling frequency.
            negatives: Number of different candidates to draw.
        """
        _check_negatives(vocabulary, negatives)
        self._vocabulary, self._negatives = vocabulary, negatives
        k_V = np.arange(vocabulary)
        self.p_V = np.log1p(1 / (k_V + 1)) / math.log(vocabulary + 1)
        self._log_miss_V = torch.from_numpy(np.log1p(-self.p_V).astype(np.float32))

    def draw(self, random: np.random.Generator) -> Candidates:
        """Draw the candidates of one step."""
        drawn = np.empty(0, np.int64)
        while True:
            u = random.random(2 * self._negatives + len(drawn))
            more = np.exp(u * math.log(self._vocabulary + 1)).astype(np.int64) - 1
            drawn = np.concatenate([drawn, np.minimum(more, self._vocabulary - 1)])
            words, first = np.unique(drawn, return_index=True)
            if len(words) >= self._negatives:
                break
        last = np.partition(first, self._negatives - 1)[self._negatives - 1]
        words_S = torch.from_numpy(words[first <= last])
        correction_V = -torch.log(self.expected(int(last) + 1))
        return Candidates(words_S, correction_V[words_S], correction_V)

    def expected(self, tries: int) -> Tensor:
        """Return the probability (V,) that each word is among this many draws."""
        return -torch.expm1(tries * self._log_miss_V)


class FullSampler:
    """Returns all words as candidates: the full softmax."""

    def __init__(self, vocabulary: int) -> None:
        """Prepare the candidates for a vocabulary of this many words."""
        if vocabulary < 1:
            raise InputError(f"the vocabulary has {vocabulary} words; expected at least 1")
        self._all = Candidates(torch.arange(vocabulary), torch.zeros(vocabulary), None)

    def draw(self, random: np.random.Generator | None = None) -> Candidates:
        """Return all words; nothing is random."""
        return self._all


def _check_negatives(vocabulary: int, negatives: int) -> None:
    if not N_MARKS < negatives <= vocabulary:
        raise InputError(
            f"cannot draw {negatives} negatives from {vocabulary} words; expected more than "
            f"the {N_MARKS} marks and at most all words"
        )
