"""The recurrent layer of He et al. 2017: an LSTM with a highway from its input to its output.

At each word, with [h ; x] the output at the word before and the input at this one:

    i, f, o, r = σ(W [h ; x] + b)      input, forget, output and transform gate
    c = f ∘ c' + i ∘ tanh(W_c [h ; x] + b_c)
    h = z ∘ (r ∘ o ∘ tanh(c) + (1 − r) ∘ W_h x)

z is the dropout mask of a sentence, the same at all its words. The gradient is written by hand,
because such a model spends its time in the loop over words: a step is one matrix product and half a
dozen operations, forward and backward, and all that need not be sequential is computed at once.

Shape letters: T words, B sentences, E size of the input, H cells, G = 5H gates.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class HighwayLSTM(torch.nn.Module):
    """One layer, from the first word to the last; reverse the input for the other direction."""

    def __init__(self, size: int, hidden: int, dropout: float = 0.0) -> None:
        """Create the layer.

        Args:
            size: Size E of the input.
            hidden: Number of cells H.
            dropout: Dropout of h, with one mask per sentence.
        """
        super().__init__()
        self.hidden, self.dropout = hidden, dropout
        self.input = torch.nn.Linear(size, 6 * hidden)
        self.recurrent_HG = torch.nn.Parameter(torch.empty(hidden, 5 * hidden))
        with torch.no_grad():  # orthonormal, as in the paper
            for gate in (*self.input.weight.chunk(6), *self.recurrent_HG.chunk(5, dim=1)):
                torch.nn.init.orthogonal_(gate)
            self.input.bias.zero_()
            self.input.bias[3 * hidden : 4 * hidden] = 1.0  # the forget gate: remember at first

    def forward(self, x_TBE: Tensor) -> Tensor:
        """Map (T, B, E) to (T, B, H)."""
        keep_BH = None
        if self.training and self.dropout:
            kept = 1 - self.dropout
            keep_BH = x_TBE.new_empty(x_TBE.shape[1], self.hidden).bernoulli_(kept).div_(kept)
        h_TBH: Tensor = _Steps.apply(self.input(x_TBE), self.recurrent_HG, keep_BH)  # type: ignore[no-untyped-call]
        return h_TBH


class _Steps(torch.autograd.Function):
    """The recurrence. Gates are in the order o, r, i, f, j (tanh), then the highway's W_h x."""

    @staticmethod
    def forward(ctx: Any, x_TB6H: Tensor, w_HG: Tensor, keep_BH: Tensor | None) -> Tensor:
        """Return h at all words, from the input's contribution to all gates."""
        T, B, H6 = x_TB6H.shape
        H = H6 // 6
        gates_TBG = x_TB6H.new_empty(T, B, 5 * H)
        c_TBH, tanh_TBH, h_TBH = (x_TB6H.new_empty(T, B, H) for _ in range(3))
        h_BH = c_BH = x_TB6H.new_zeros(B, H)
        for t in range(T):
            gates_BG = torch.addmm(x_TB6H[t, :, : 5 * H], h_BH, w_HG, out=gates_TBG[t])
            gates_BG[:, : 4 * H].sigmoid_()
            gates_BG[:, 4 * H :].tanh_()
            o, r, i, f, j = gates_BG.chunk(5, dim=1)
            c_BH = torch.addcmul(i * j, f, c_BH, out=c_TBH[t])
            torch.tanh(c_BH, out=tanh_TBH[t])
            h_BH = torch.lerp(x_TB6H[t, :, 5 * H :], o * tanh_TBH[t], r, out=h_TBH[t])
            if keep_BH is not None:
                h_BH.mul_(keep_BH)
        ctx.save_for_backward(x_TB6H, w_HG, keep_BH, gates_TBG, c_TBH, tanh_TBH, h_TBH)
        return h_TBH

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of the input's contribution and of the recurrent weights."""
        x_TB6H, w_HG, keep_BH, gates_TBG, c_TBH, tanh_TBH, h_TBH = ctx.saved_tensors
        (dh_TBH,) = grads
        T, B, H = h_TBH.shape
        o, r, i, f, j = gates_TBG.chunk(5, dim=2)
        before_TBH = torch.cat([torch.zeros_like(c_TBH[:1]), c_TBH[:-1]])
        # Factor from the gradient of h (for o, r) or of c (for i, f, j) to that of a gate.
        slope_TBG = gates_TBG * (1 - gates_TBG)
        slope_TBG[:, :, 4 * H :] = (1 - j * j) * i
        slope_TBG[:, :, :H] *= r * tanh_TBH
        slope_TBG[:, :, H : 2 * H] *= o * tanh_TBH - x_TB6H[:, :, 5 * H :]
        slope_TBG[:, :, 2 * H : 3 * H] *= j
        slope_TBG[:, :, 3 * H : 4 * H] *= before_TBH
        to_c_TBH = r * o * (1 - tanh_TBH * tanh_TBH)

        dx_TB6H = torch.empty_like(x_TB6H)
        dgates_TB5H, slope_TB5H = dx_TB6H.view(T, B, 6, H)[:, :, :5], slope_TBG.view(T, B, 5, H)
        dh_TBH = dh_TBH.clone()
        dc_BH = torch.zeros_like(h_TBH[0])
        w_GH = w_HG.T
        for t in range(T - 1, -1, -1):
            dh_BH = dh_TBH[t]
            if t < T - 1:
                dh_BH.addmm_(dx_TB6H[t + 1, :, : 5 * H], w_GH)
            if keep_BH is not None:
                dh_BH.mul_(keep_BH)
            dc_BH = torch.addcmul(dc_BH, dh_BH, to_c_TBH[t])
            torch.mul(slope_TB5H[t, :, :2], dh_BH[:, None], out=dgates_TB5H[t, :, :2])
            torch.mul(slope_TB5H[t, :, 2:], dc_BH[:, None], out=dgates_TB5H[t, :, 2:])
            dc_BH = dc_BH * f[t]
        dx_TB6H[:, :, 5 * H :] = dh_TBH * (1 - r)
        dw_HG = h_TBH[:-1].reshape(-1, H).T @ dx_TB6H[1:, :, : 5 * H].reshape(-1, 5 * H)
        return dx_TB6H, dw_HG, None
