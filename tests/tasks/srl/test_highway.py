from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elmokit.tasks.srl.highway import HighwayLSTM, _Steps


def plain(x_TB6H: Tensor, w_HG: Tensor, keep_BH: Tensor | None) -> Tensor:
    """The formulas of the module's docstring, word for word."""
    T, B, H6 = x_TB6H.shape
    H = H6 // 6
    h = c = x_TB6H.new_zeros(B, H)
    outputs = []
    for t in range(T):
        o, r, i, f, j = (x_TB6H[t, :, : 5 * H] + h @ w_HG).split(H, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * j.tanh()
        r = r.sigmoid()
        h = r * o.sigmoid() * c.tanh() + (1 - r) * x_TB6H[t, :, 5 * H :]
        if keep_BH is not None:
            h = h * keep_BH
        outputs.append(h)
    return torch.stack(outputs)


@pytest.mark.parametrize("words", [1, 4])
@pytest.mark.parametrize("dropped", [False, True])
def test_values_and_gradients(words: int, dropped: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(words, 3, 6 * 5, dtype=torch.double, requires_grad=True)
    w = torch.randn(5, 5 * 5, dtype=torch.double, requires_grad=True)
    keep = torch.randint(0, 2, (3, 5)).double() * 2 if dropped else None
    torch.testing.assert_close(_Steps.apply(x, w, keep), plain(x, w, keep))
    assert torch.autograd.gradcheck(lambda x, w: _Steps.apply(x, w, keep), (x, w))


def test_dropout_is_one_mask_a_sentence_and_only_in_training() -> None:
    torch.manual_seed(0)
    layer = HighwayLSTM(4, 50, dropout=0.5)
    x = torch.randn(6, 2, 4)
    dropped_TBH = layer(x) == 0
    assert (dropped_TBH == dropped_TBH[0]).all()
    assert 20 < dropped_TBH[0].sum() < 80
    assert not torch.equal(dropped_TBH[0, 0], dropped_TBH[0, 1])
    layer.eval()
    assert (layer(x) != 0).all()


def test_a_word_does_not_see_those_after_it() -> None:
    layer = HighwayLSTM(4, 8)
    x = torch.randn(5, 2, 4)
    other = x.clone()
    other[3:] = 0
    assert torch.equal(layer(x)[:3], layer(other)[:3])
    assert not torch.equal(layer(x)[3], layer(other)[3])
