"""Which words of the vocabulary a softmax compares the true word with, drawn anew for every step.

The words are numbered as `vocab.txt` has them: the marks `<S>`, `</S>`, `<UNK>`, then words by
falling frequency. Knows nothing about weights; `softmax.py` computes the loss.

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

MARKS = 3
"""`<S>`, `</S>`, `<UNK>`."""


class Candidates(NamedTuple):
    """Words to compare the true word with."""

    words_S: Tensor
    """Distinct word ids, rising; int64."""
    correction_S: Tensor
    """What is added to their logits for having been drawn: -ln q; float32."""
    true_correction_V: Tensor | None
    """What is added to the logit of the true word, by its id; none for most samplers."""


class Sampler(Protocol):
    """Draws candidates; the same ones from the same state of the generator."""

    def draw(self, random: np.random.Generator) -> Candidates:
        """The candidates of one step."""


class Poisson:
    """Every word is drawn by itself with the probability q = min(1, k·p^power), the marks always.

    k is such that `negatives` words are drawn on average. With a candidate's logit corrected by
    -ln q, the expected sum of the exponentials is that of the full softmax, so the true word needs
    no correction and the loss estimates that of the full softmax.
    """

    def __init__(self, counts: npt.NDArray[np.int64], negatives: int, power: float = 0.75) -> None:
        """`counts`: how often each word of the vocabulary occurs; what never does counts once."""
        counts_V = np.asarray(counts)
        if counts_V.ndim != 1 or counts_V.dtype.kind not in "iu" or (counts_V < 0).any():
            raise InputError(
                f"the counts are {counts_V.dtype} of the shape {counts_V.shape}; "
                "expected one whole number from 0 up for each word"
            )
        _check(len(counts_V), negatives)
        self.q_V = _inclusion(np.maximum(counts_V, 1).astype(np.float64) ** power, negatives)
        self._correction_V = -np.log(self.q_V).astype(np.float32)

    def draw(self, random: np.random.Generator) -> Candidates:
        """The candidates of one step."""
        words_S = np.flatnonzero(random.random(len(self.q_V)) < self.q_V)
        correction_S = self._correction_V[words_S]
        return Candidates(torch.from_numpy(words_S), torch.from_numpy(correction_S), None)


def _inclusion(weights_V: npt.NDArray[np.float64], negatives: int) -> npt.NDArray[np.float64]:
    """min(1, k·weight), 1 for the marks, with the k that makes it sum to `negatives`."""
    weights_V[:MARKS] = math.inf
    falling_V = np.sort(weights_V)[::-1]
    rest_V = np.cumsum(falling_V[::-1])[::-1]  # of a weight and all smaller ones
    sure_V = np.arange(len(weights_V))  # how many words are drawn for certain
    with np.errstate(invalid="ignore"):  # inf · 0, among the marks
        k_V = (negatives - sure_V) / rest_V
        fits_V = k_V * falling_V <= 1
    fits_V[:MARKS] = False
    if not fits_V.any():
        return np.ones_like(weights_V)
    q_V: npt.NDArray[np.float64] = np.minimum(1, k_V[fits_V.argmax()] * weights_V)
    return q_V


class LogUniform:
    """Distinct words by rank k from P(k) = ln((k+2) / (k+1)) / ln(V+1), as bilm-tf and TensorFlow.

    Words are drawn until there are `negatives` different ones; how often each was to be expected
    in so many tries corrects the candidates and the true word. Not an estimate of the full softmax.
    """

    def __init__(self, vocabulary: int, negatives: int) -> None:
        """`vocabulary` words, by falling frequency."""
        _check(vocabulary, negatives)
        self._vocabulary, self._negatives = vocabulary, negatives
        k_V = np.arange(vocabulary)
        self.p_V = np.log1p(1 / (k_V + 1)) / math.log(vocabulary + 1)
        self._log_miss_V = torch.from_numpy(np.log1p(-self.p_V).astype(np.float32))

    def draw(self, random: np.random.Generator) -> Candidates:
        """The candidates of one step."""
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
        """(V,) how probable it is that each word is among so many draws."""
        return -torch.expm1(tries * self._log_miss_V)


class Everything:
    """All words: the full softmax."""

    def __init__(self, vocabulary: int) -> None:
        """`vocabulary` words."""
        if vocabulary < 1:
            raise InputError(f"the vocabulary has {vocabulary} words; expected at least 1")
        self._all = Candidates(torch.arange(vocabulary), torch.zeros(vocabulary), None)

    def draw(self, random: np.random.Generator | None = None) -> Candidates:
        """The candidates of every step."""
        return self._all


def _check(vocabulary: int, negatives: int) -> None:
    if not MARKS < negatives <= vocabulary:
        raise InputError(
            f"{negatives} negatives are to be drawn from {vocabulary} words; expected more than "
            f"the {MARKS} marks and at most all of them"
        )
