"""A bidirectional LSTM layer over sentences of different lengths, by the compiled kernel.

Task models consist of such layers, about a hundred cells wide. PyTorch multiplies the gradient of
the weights at every step of packed sequences; here the kernel takes the steps, and the weights get
their gradient from one product over all words. The parameters stay in a `torch.nn.LSTM`.

Shape letters: B sentences, T words, N words of the batch without padding, E size of the input, H
cells of a direction, G = 4H gates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elmokit.bilm.config import LSTMConfig
from elmokit.bilm.weights import FORGET_BIAS
from elmokit.engine.batching import pack
from elmokit.nn.kernel import kernel_supports
from elmokit.nn.lstm import KERNEL_UNITS, LSTMWeights, projected_lstm


def kernel_runs(layer: torch.nn.LSTM, x_BTE: Tensor) -> bool:
    """Return whether `bidirectional_lstm` should run a layer on this input.

    The kernel must support it, and gradients must be wanted: without them PyTorch is as fast, and
    faster for a single sentence.
    """
    return (
        torch.is_grad_enabled()
        and layer.hidden_size % KERNEL_UNITS == 0
        and kernel_supports(x_BTE, *layer.parameters())
    )


def bidirectional_lstm(
    forth: LSTMWeights, back: LSTMWeights, x_BTE: Tensor, lengths_B: Tensor
) -> Tensor:
    """Map (B, T, E) to (B, T, 2H), zero at padding.

    Args:
        forth: Weights of the direction from left to right, from `kernel_weights`.
        back: Weights of the direction from right to left.
        x_BTE: Input; what is beyond the lengths is not read.
        lengths_B: Number of words of each sentence, at least one.
    """
    sentences, words, _ = x_BTE.shape
    packing = pack(lengths_B.cpu().numpy())
    is_word_BT = torch.arange(words) < lengths_B.cpu()[:, None]
    # Where each row of the packed batch stands in the padded one.
    rows_N = is_word_BT.flatten().nonzero()[:, 0][torch.from_numpy(packing.source)]
    mirror_N = torch.from_numpy(packing.mirror)
    x_NE = x_BTE.flatten(0, 1).index_select(0, rows_N)
    cells = len(forth.recurrent_PG)
    config = LSTMConfig(
        cells=cells, width=cells, layers=1, skip=False, cell_clip=None, projection_clip=None
    )
    zeros_BH = x_BTE.new_zeros(sentences, cells)

    def run(weights: LSTMWeights, x_NE: Tensor) -> Tensor:
        return projected_lstm(config, weights, x_NE, packing.alive, zeros_BH, zeros_BH).outputs_NP

    forth_NH = run(forth, x_NE)
    back_NH = run(back, x_NE.index_select(0, mirror_N)).index_select(0, mirror_N)
    both_N2H = torch.cat([forth_NH, back_NH], 1)
    out = x_BTE.new_zeros(sentences * words, 2 * cells).index_copy(0, rows_N, both_N2H)
    return out.view(sentences, words, 2 * cells)


def kernel_weights(layer: torch.nn.LSTM, suffix: str = "") -> LSTMWeights:
    """Return the weights of one direction of a `torch.nn.LSTM` as the kernel wants them.

    PyTorch's gates are i, f, j, o, the kernel's i, j, f, o with a constant added to f. The kernel
    projects the output of the cells: here by the identity, which changes nothing.

    Args:
        layer: A layer with biases; of several layers, the first.
        suffix: `"_reverse"` for the direction from right to left of a bidirectional layer.
    """

    def in_kernel_order(gates: Tensor) -> Tensor:
        i, f, j, o = gates.chunk(4)
        return torch.cat([i, j, f, o])

    weight_ih, weight_hh, bias_ih, bias_hh = (
        getattr(layer, f"{name}_l0{suffix}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    i, f, j, o = (bias_ih + bias_hh).chunk(4)
    return LSTMWeights(
        in_kernel_order(weight_ih).t(),
        in_kernel_order(weight_hh).t(),
        torch.cat([i, j, f - FORGET_BIAS, o]),
        torch.eye(layer.hidden_size),
    )
