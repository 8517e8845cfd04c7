"""A bidirectional layer by the kernel: equal to PyTorch's, in values and in all gradients."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

import torch

from elmokit.engine import native
from elmokit.nn.bilstm import bidirectional_lstm, kernel_runs, kernel_weights
from elmokit.nn.kernel import without_kernel
from elmokit.tasks.recurrent import BiLSTM, LongBiLSTM

needs_kernel = pytest.mark.skipif(
    not native.kernel_available(), reason="needs the compiled kernel: pip install . with a compiler"
)

LENGTHS = [[1], [7], [3, 5, 1, 5], [2, 2, 2], [9, 1, 1, 1, 1, 1, 1]]


def outputs_and_gradients(
    model: BiLSTM | LongBiLSTM, x_BTE: torch.Tensor, lengths: list[int]
) -> list[torch.Tensor]:
    model.zero_grad()
    x_BTE = x_BTE.clone().requires_grad_()
    out_BTH = model(x_BTE, torch.tensor(lengths))
    torch.manual_seed(1)
    (out_BTH * torch.randn_like(out_BTH)).sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert x_BTE.grad is not None and all(each is not None for each in gradients)
    return [out_BTH.detach(), x_BTE.grad, *(each.clone() for each in gradients if each is not None)]


@needs_kernel
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("size", "hidden", "layers"), [(5, 16, 1), (40, 48, 2)])
def test_equals_pytorch(lengths: list[int], size: int, hidden: int, layers: int) -> None:
    torch.manual_seed(0)
    model = BiLSTM(size, hidden, layers)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    x_BTE = torch.randn(len(lengths), max(lengths) + 2, size)
    assert all(kernel_runs(layer, x_BTE) for layer in model.layers)
    found = outputs_and_gradients(model, x_BTE, lengths)
    with without_kernel():
        assert not kernel_runs(model.layers[0], x_BTE)
        expected = outputs_and_gradients(model, x_BTE, lengths)
    assert len(found) == 2 + 8 * layers
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@needs_kernel
@pytest.mark.parametrize("lengths", LENGTHS)
def test_long_texts_equal_pytorch(lengths: list[int]) -> None:
    torch.manual_seed(0)
    model = LongBiLSTM(7, 32)
    x_BTE = torch.randn(len(lengths), max(lengths) + 2, 7)
    assert kernel_runs(model.forth, x_BTE)
    found = outputs_and_gradients(model, x_BTE, lengths)
    with without_kernel():
        expected = outputs_and_gradients(model, x_BTE, lengths)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@needs_kernel
def test_padding_is_zero_and_is_not_read() -> None:
    torch.manual_seed(0)
    layer = torch.nn.LSTM(3, 16, bidirectional=True)
    x_BTE, lengths_B = torch.randn(2, 4, 3), torch.tensor([2, 4])
    weights = kernel_weights(layer), kernel_weights(layer, "_reverse")
    found = bidirectional_lstm(*weights, x_BTE, lengths_B)
    assert (found[0, 2:] == 0).all() and (found[0, :2] != 0).all()
    x_BTE[0, 2:] = torch.nan
    assert torch.equal(bidirectional_lstm(*weights, x_BTE, lengths_B), found)


def test_pytorch_runs_what_the_kernel_does_not() -> None:
    torch.manual_seed(0)
    odd, double = BiLSTM(3, 20), BiLSTM(3, 16).double()
    x_BTE = torch.randn(2, 3, 3)
    with torch.no_grad():
        assert not kernel_runs(BiLSTM(3, 16).layers[0], x_BTE)
    assert not kernel_runs(odd.layers[0], x_BTE)
    assert not kernel_runs(double.layers[0], x_BTE.double())
    assert odd(x_BTE, torch.tensor([3, 1])).shape == (2, 3, 40)
    assert double(x_BTE.double(), torch.tensor([3, 1])).dtype == torch.float64
