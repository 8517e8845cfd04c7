from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from elmokit.tasks.crf import CRF, TagRun, log_partition, viterbi

B, T, K = 4, 5, 3
LENGTHS = torch.tensor([5, 1, 3, 2])


@pytest.fixture
def crf() -> CRF:
    torch.manual_seed(3)
    allowed = torch.tensor([[True, True, False], [True, False, True], [True, True, True]])
    made = CRF(allowed, torch.tensor([True, True, False]), torch.tensor([True, False, True]))
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


@pytest.fixture
def scores_BTK() -> Tensor:
    torch.manual_seed(4)
    return 2 * torch.randn(B, T, K)


def by_hand(crf: CRF, scores_TK: Tensor) -> dict[tuple[int, ...], float]:
    """The score of every allowed sequence of tags."""
    found = {}
    for path in itertools.product(range(K), repeat=len(scores_TK)):
        steps = list(itertools.pairwise(path))
        if crf.first_K[path[0]] and crf.last_K[path[-1]] and all(crf.allowed_KK[s] for s in steps):
            found[path] = (
                sum(scores_TK[t, k].item() for t, k in enumerate(path))
                + sum(crf.step_KK[s].item() for s in steps)
                + (crf.begin_K[path[0]] + crf.end_K[path[-1]]).item()
            )
    return found


def test_loss_is_the_share_among_all_sequences(crf: CRF, scores_BTK: Tensor) -> None:
    tags_BT = torch.zeros(B, T, dtype=torch.long)
    expected = []
    for row, length in enumerate(LENGTHS.tolist()):
        scores = by_hand(crf, scores_BTK[row, :length])
        path = sorted(scores)[len(scores) // 2]
        tags_BT[row, :length] = torch.tensor(path)
        expected.append(math.log(sum(map(math.exp, scores.values()))) - scores[path])
    loss_B = crf.loss(scores_BTK, tags_BT, LENGTHS)
    torch.testing.assert_close(loss_B, torch.tensor(expected), rtol=1e-5, atol=1e-5)


def test_decode_finds_the_best_sequence(crf: CRF, scores_BTK: Tensor) -> None:
    for row, path in enumerate(crf.decode(scores_BTK, LENGTHS)):
        scores = by_hand(crf, scores_BTK[row, : LENGTHS[row]])
        assert tuple(path) == max(scores, key=scores.__getitem__)


def test_padding_counts_for_nothing(crf: CRF, scores_BTK: Tensor) -> None:
    tags_BT = torch.zeros(B, T, dtype=torch.long)
    other = scores_BTK.clone()
    for row, length in enumerate(LENGTHS.tolist()):
        other[row, length:] = 1e4
    torch.testing.assert_close(
        crf.loss(scores_BTK, tags_BT, LENGTHS), crf.loss(other, tags_BT, LENGTHS)
    )
    assert crf.decode(scores_BTK, LENGTHS) == crf.decode(other, LENGTHS)


def test_gradients_are_right(crf: CRF) -> None:
    scores_BTK = torch.randn(B, T, K, dtype=torch.double, requires_grad=True)
    tags_BT = torch.zeros(B, T, dtype=torch.long)
    crf.double()

    def loss(scores_BTK: Tensor, *_: Tensor) -> Tensor:
        # `loss` gives float32, too coarse for differences: its two halves are double
        return log_partition(scores_BTK, LENGTHS, *crf._scores()) - crf._score(
            scores_BTK, tags_BT, LENGTHS
        )

    assert torch.autograd.gradcheck(loss, (scores_BTK, crf.step_KK, crf.begin_K, crf.end_K))


def test_scores_far_apart_stay_finite(crf: CRF) -> None:
    """A thousand nats between tags is more than exp can hold."""
    scores_BTK = torch.zeros(1, 3, K)
    scores_BTK[0, :, 1] = 1000.0
    scores_BTK.requires_grad_()
    loss = crf.loss(scores_BTK, torch.zeros(1, 3, dtype=torch.long), torch.tensor([3])).sum()
    loss.backward()
    assert loss.isfinite() and scores_BTK.grad is not None and scores_BTK.grad.isfinite().all()


def test_viterbi_obeys_what_is_forbidden_against_all_scores() -> None:
    steps_KK = torch.zeros(2, 2)
    steps_KK[0, 1] = -math.inf
    scores_BTK = torch.tensor([[[0.0, -1.0], [0.0, 100.0], [50.0, 0.0]]])
    first_K = torch.tensor([0.0, -math.inf])
    paths = viterbi(scores_BTK, torch.tensor([3]), steps_KK, first_K, torch.zeros(2))
    assert paths == [[0, 0, 0]]


def test_the_probability_of_a_span_is_its_share_of_all_sequences(
    crf: CRF, scores_BTK: Tensor
) -> None:
    spans = [
        TagRun(0, 1, [1, 2]),
        TagRun(0, 0, [0]),
        TagRun(2, 2, [2]),
        TagRun(1, 0, [0]),
        TagRun(0, 1, [1], not_after=0),
        TagRun(2, 2, [0], not_after=1),
    ]
    expected = []
    for row, start, tags, not_after in spans:
        scores = by_hand(crf, scores_BTK[row, : LENGTHS[row]])
        end = start + len(tags)
        having = [
            math.exp(score)
            for path, score in scores.items()
            if list(path[start:end]) == tags and path[end : end + 1] != (not_after,)
        ]
        expected.append(sum(having) / sum(map(math.exp, scores.values())))
    assert crf.span_probabilities(scores_BTK, LENGTHS, spans) == pytest.approx(expected, abs=1e-6)
    assert crf.span_probabilities(scores_BTK, LENGTHS, []) == []
