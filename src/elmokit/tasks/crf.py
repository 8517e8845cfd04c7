"""A linear-chain CRF over tags: probabilities of sequences and of spans, and the best sequence.

Which tags may follow each other is fixed; forbidden transitions have probability zero and are never
decoded. All sentences of a batch are computed at once, one step per word.

Knows nothing about what the tags mean.
Shape letters: B sentences, T words, K tags.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

_TINY = 1e-300
SPANS_AT_ONCE = 256
"""Number of spans whose probabilities are computed together."""


def viterbi(
    scores_BTK: Tensor, lengths_B: Tensor, steps_KK: Tensor, first_K: Tensor, last_K: Tensor
) -> list[list[int]]:
    """Return the tags with the highest sum of scores for each sentence.

    Of equal scores the lowest tag wins.

    Args:
        scores_BTK: Score of each tag at each word.
        lengths_B: Number of words of each sentence, at least 1; on the CPU.
        steps_KK: Score of tag k (second axis) after tag j (first axis); -inf forbids it.
        first_K: Score of each tag at the first word.
        last_K: Score of each tag at the last word.
    """
    T = scores_BTK.shape[1]
    best_BK = scores_BTK[:, 0] + first_K
    alive_TB = torch.arange(T)[:, None] < lengths_B
    alive_TB = alive_TB.to(scores_BTK.device)
    steps_KK = steps_KK.T.contiguous()  # the maximum over the last axis is the fast one
    back = []
    for t in range(1, T):
        reached_BK, from_BK = (best_BK[:, None, :] + steps_KK).max(dim=-1)
        back.append(from_BK)
        best_BK = torch.where(alive_TB[t, :, None], reached_BK + scores_BTK[:, t], best_BK)
    tag_B = (best_BK + last_K).argmax(dim=-1)
    path = [tag_B]
    for t in range(T - 1, 0, -1):
        earlier_B = back[t - 1].gather(1, tag_B[:, None])[:, 0]
        tag_B = torch.where(alive_TB[t], earlier_B, tag_B)
        path.append(tag_B)
    path_BT = torch.stack(path[::-1], dim=1).tolist()
    return [row[:length] for row, length in zip(path_BT, lengths_B.tolist(), strict=True)]


def log_partition(
    scores_BTK: Tensor, lengths_B: Tensor, steps_KK: Tensor, first_K: Tensor, last_K: Tensor
) -> Tensor:
    """Return log Σ exp(score) over all allowed sequences, (B,): the scaled forward algorithm.

    Padding is computed as well, and its results are ignored. The arguments are those of `viterbi`,
    with the scores in double precision.
    """
    step_KK, begin_K, end_K = (score.double().exp() for score in (steps_KK, first_K, last_K))
    top_BT = scores_BTK.detach().amax(-1)
    likely_TBK = (scores_BTK - top_BT[:, :, None]).exp().transpose(0, 1).unbind(0)
    forward_BK = likely_TBK[0] * begin_K
    forwards, sizes = [], []
    for t, likely_BK in enumerate(likely_TBK):
        if t:
            forward_BK = (forward_BK @ step_KK) * likely_BK
        size_B1 = forward_BK.sum(-1, keepdim=True).clamp_min(_TINY)
        forward_BK = forward_BK / size_B1
        forwards.append(forward_BK)
        sizes.append(size_B1)
    log_BT = torch.cat(sizes, dim=1).log() + top_BT
    final_B = lengths_B - 1
    row_B = torch.arange(len(lengths_B), device=lengths_B.device)
    final_BK = torch.stack(forwards, dim=1)[row_B, final_B]
    end_B = (final_BK * end_K).sum(-1).clamp_min(_TINY).log()
    return end_B + log_BT.cumsum(1)[row_B, final_B]


class TagRun(NamedTuple):
    """Tags of consecutive words of a sentence, whose probability is asked for."""

    row: int
    """Number of the sentence in the batch."""
    start: int
    """Position of the first word."""
    tags: Sequence[int]
    """The tag of each word."""
    not_after: int | None = None
    """A tag that the next word must not have, because it would make the span longer."""


def span_probabilities(
    scores_BTK: Tensor,
    lengths_B: Tensor,
    steps_KK: Tensor,
    first_K: Tensor,
    last_K: Tensor,
    spans: Sequence[TagRun],
) -> list[float]:
    """Return the marginal probability that a sentence has these tags at these words, of each span.

    It is the weight of all sequences with these tags, divided by that of all sequences. All
    arguments but the last are those of `viterbi`.
    """
    lengths_B = lengths_B.to(scores_BTK.device)
    scores_BTK = scores_BTK.double()
    chain = (steps_KK, first_K, last_K)
    all_B = log_partition(scores_BTK, lengths_B, *chain)
    probabilities: list[float] = []
    for begin in range(0, len(spans), SPANS_AT_ONCE):
        some = spans[begin : begin + SPANS_AT_ONCE]
        row_S = torch.tensor([span.row for span in some], device=scores_BTK.device)
        scores_STK = scores_BTK[row_S]
        for s, (_, start, tags, not_after) in enumerate(some):
            position_W = torch.arange(start, start + len(tags), device=row_S.device)
            kept_W = scores_STK[s, position_W, tags]
            scores_STK[s, position_W] = -math.inf
            scores_STK[s, position_W, tags] = kept_W
            if not_after is not None and start + len(tags) < scores_STK.shape[1]:
                scores_STK[s, start + len(tags), not_after] = -math.inf
        log_S = log_partition(scores_STK, lengths_B[row_S], *chain) - all_B[row_S]
        probabilities += log_S.exp().clamp(max=1.0).tolist()
    return probabilities


class CRF(torch.nn.Module):
    """P(y | scores) ∝ exp(Σ_t score_t[y_t] + step[y_t−1, y_t]), over the allowed sequences."""

    allowed_KK: Tensor
    first_K: Tensor
    last_K: Tensor

    def __init__(self, allowed_KK: Tensor, first_K: Tensor, last_K: Tensor) -> None:
        """Create the chain.

        Args:
            allowed_KK: True where tag k (second axis) may follow tag j (first axis).
            first_K: True where a tag may begin a sentence.
            last_K: True where a tag may end a sentence.
        """
        super().__init__()
        tags = len(first_K)
        self.register_buffer("allowed_KK", allowed_KK, persistent=False)
        self.register_buffer("first_K", first_K, persistent=False)
        self.register_buffer("last_K", last_K, persistent=False)
        self.step_KK = torch.nn.Parameter(torch.zeros(tags, tags))
        self.begin_K = torch.nn.Parameter(torch.zeros(tags))
        self.end_K = torch.nn.Parameter(torch.zeros(tags))

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores of transitions, beginnings and ends, -inf where forbidden."""
        return (
            self.step_KK.masked_fill(~self.allowed_KK, -math.inf),
            self.begin_K.masked_fill(~self.first_K, -math.inf),
            self.end_K.masked_fill(~self.last_K, -math.inf),
        )

    def loss(self, scores_BTK: Tensor, tags_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return −log P(tags) of each sentence, (B,).

        Args:
            scores_BTK: Score of each tag at each word.
            tags_BT: Gold tags, which must be an allowed sequence; any tag at padding.
            lengths_B: Number of words of each sentence, at least 1; on the CPU.
        """
        lengths_B = lengths_B.to(scores_BTK.device)
        # Double precision, because the forward probabilities are not stored as logarithms: that
        # makes a step one small matrix product.
        scores_BTK = scores_BTK.double()
        return (
            log_partition(scores_BTK, lengths_B, *self._scores())
            - self._score(scores_BTK, tags_BT, lengths_B)
        ).float()

    def _score(self, scores_BTK: Tensor, tags_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return the score of these tags."""
        T = scores_BTK.shape[1]
        mask_BT = torch.arange(T, device=lengths_B.device) < lengths_B[:, None]
        words_BT = scores_BTK.gather(2, tags_BT[:, :, None])[:, :, 0]
        steps_BT = self.step_KK[tags_BT[:, :-1], tags_BT[:, 1:]]
        final_B = tags_BT.gather(1, lengths_B[:, None] - 1)[:, 0]
        return (
            (words_BT * mask_BT).sum(1)
            + (steps_BT * mask_BT[:, 1:]).sum(1)
            + self.begin_K[tags_BT[:, 0]]
            + self.end_K[final_B]
        )

    def decode(self, scores_BTK: Tensor, lengths_B: Tensor) -> list[list[int]]:
        """Return the likeliest tags of each sentence."""
        return viterbi(scores_BTK, lengths_B, *self._scores())

    def span_probabilities(
        self, scores_BTK: Tensor, lengths_B: Tensor, spans: Sequence[TagRun]
    ) -> list[float]:
        """Return the probability of each span; see the function of this name."""
        return span_probabilities(scores_BTK, lengths_B, *self._scores(), spans)
