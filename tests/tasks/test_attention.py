"""Attention and pooling that never look at padding."""

import torch

from elmokit.tasks.attention import attend, masked_max, masked_mean, masked_softmax

MASK = torch.tensor([[True, True, False], [True, True, True]])


def test_a_masked_softmax_is_the_softmax_of_what_is_left() -> None:
    scores = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
    found = masked_softmax(scores, MASK)
    torch.testing.assert_close(found[0], torch.cat([scores[0, :2].softmax(0), torch.zeros(1)]))
    torch.testing.assert_close(found[1], scores[1].softmax(0))


def test_gradients_stay_finite_and_padding_gets_none() -> None:
    scores = torch.tensor([[1e4, -1e4, 1e4]], requires_grad=True)
    masked_softmax(scores, MASK[:1])[0, 1].backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 2] == 0


def test_every_word_gets_its_own_average_of_the_others() -> None:
    values = torch.randn(2, 3, 5)
    scores = torch.tensor([[[50.0, 0, 99], [0, 50, 99]], [[0, 0, 0], [0, 0, 50]]])
    found = attend(scores, values, MASK)
    torch.testing.assert_close(found[0], values[0, :2])
    torch.testing.assert_close(found[1], torch.stack([values[1].mean(0), values[1, 2]]))


def test_pooling_is_over_words_only() -> None:
    x = torch.tensor([[[-1.0, 2], [-3, 4], [9, -9]], [[-1, 2], [-3, 4], [-2, 0]]])
    torch.testing.assert_close(masked_mean(x, MASK), torch.tensor([[-2.0, 3], [-2, 2]]))
    torch.testing.assert_close(masked_max(x, MASK), torch.tensor([[-1.0, 4], [-1, 4]]))
