"""The language model's loss: how likely is each true word among candidates?

`softmax_loss` computes the loss and all its gradients in one pass over blocks of rows whose logits
stay in the cache; elsewhere than in float32 on a CPU, plain PyTorch does. `samplers.py` chooses
the candidates: with all words it is the full softmax.

A step touches few rows of a softmax: take those that `gathered_rows` names, and hand them in.

Shape letters: N words of a batch, V vocabulary, S candidates, P width, R touched rows, the
candidates first.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.engine import native
from elmokit.errors import InputError
from elmokit.nn.compiled import floats, usable
from elmokit.nn.samplers import Candidates, Everything, LogUniform, Poisson, Sampler

if native.available():
    from elmokit import _native

__all__ = [
    "Candidates",
    "Everything",
    "LogUniform",
    "Poisson",
    "Sampler",
    "gathered_rows",
    "softmax_loss",
]

BLOCK_ROWS = 320
"""Many enough that products run at full speed, few enough that the logits stay in the cache."""
BLOCK_LOGITS = 1 << 24
"""A bound on memory, for the full softmax of large vocabularies."""
LEAST_ROWS = 64


def gathered_rows(candidates: Candidates, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """Ids of all rows of the softmax that a loss touches (R,), and for each target its row (N,).

    The candidates come first, then the other targets.
    """
    words_S = candidates.words_S.to(targets_N.device)
    everything = torch.arange(len(words_S), device=words_S.device)
    if torch.equal(words_S, everything) and bool((targets_N < len(words_S)).all()):
        return words_S, targets_N
    distinct = torch.unique(targets_N)
    words_R = torch.cat([words_S, distinct[~torch.isin(distinct, words_S)]])
    sorted_R, order_R = words_R.sort()
    return words_R, order_R[torch.searchsorted(sorted_R, targets_N)]


def softmax_loss(
    h_NP: Tensor,
    rows_RP: Tensor,
    bias_R: Tensor,
    target_rows_N: Tensor,
    candidates: Candidates,
    words_R: Tensor | None = None,
) -> Tensor:
    """The SUM over N of the negative log likelihoods, with gradients to h, rows and bias.

    `rows_RP` and `bias_R` are those of the words that `gathered_rows` names; the names themselves,
    `words_R`, are needed only if the candidates correct the true word too. A candidate that is a
    row's true word does not count as a candidate there.
    """
    correction_N = None
    if candidates.true_correction_V is not None:
        if words_R is None:
            raise InputError(
                "these candidates correct the true word: hand in words_R, the ids of the rows"
            )
        targets_N = words_R[target_rows_N].to(candidates.true_correction_V.device)
        correction_N = candidates.true_correction_V[targets_N].to(h_NP)
    correction_S = candidates.correction_S.to(h_NP)
    if not usable(h_NP, rows_RP, bias_R):
        return _plain_loss(h_NP, rows_RP, bias_R, target_rows_N, correction_S, correction_N)
    learning = torch.is_grad_enabled()
    loss: Tensor = _SoftmaxLoss.apply(  # type: ignore[no-untyped-call]
        h_NP, rows_RP, bias_R, target_rows_N, correction_S, correction_N, learning
    )
    return loss


def _plain_loss(
    h_NP: Tensor,
    rows_RP: Tensor,
    bias_R: Tensor,
    target_rows_N: Tensor,
    correction_S: Tensor,
    correction_N: Tensor | None,
) -> Tensor:
    """The same in plain PyTorch, on any device."""
    size = len(correction_S)
    columns = torch.arange(size, device=h_NP.device)
    bias_S = bias_R[:size] + correction_S
    true_N = (h_NP * rows_RP[target_rows_N]).sum(1) + bias_R[target_rows_N]
    if correction_N is not None:
        true_N = true_N + correction_N
    rows = _block_rows(size)
    losses = []
    for h, true, targets in zip(
        *(torch.split(x, rows) for x in (h_NP, true_N, target_rows_N)), strict=True
    ):
        logits = torch.addmm(bias_S, h, rows_RP[:size].t())
        logits = logits.masked_fill(columns == targets[:, None], -torch.inf)
        losses.append(torch.cat([logits, true[:, None]], dim=1).logsumexp(1) - true)
    return torch.cat(losses).sum()


def _block_rows(columns: int) -> int:
    return min(BLOCK_ROWS, max(LEAST_ROWS, BLOCK_LOGITS // max(1, columns)))


class _SoftmaxLoss(torch.autograd.Function):
    """The gradients are computed with the loss, while the logits are at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        h_NP: Tensor,
        rows_RP: Tensor,
        bias_R: Tensor,
        target_rows_N: Tensor,
        correction_S: Tensor,
        correction_N: Tensor | None,
        learning: bool,
    ) -> Tensor:
        h_NP, rows_RP, bias_R = h_NP.contiguous(), rows_RP.contiguous(), bias_R.contiguous()
        target_rows_N = target_rows_N.contiguous()
        size, isa = len(correction_S), native.instruction_set()
        rows_SP = rows_RP[:size]
        columns = -(-size // _native.SOFTMAX_COLUMNS) * _native.SOFTMAX_COLUMNS
        bias_X = bias_R.new_full((columns,), -torch.inf)  # X: S, padded
        torch.add(bias_R[:size], correction_S, out=bias_X[:size])
        target_bias_N = bias_R[target_rows_N]
        if correction_N is not None:
            target_bias_N += correction_N

        to_h, to_rows, to_bias = (learning and needed for needed in ctx.needs_input_grad[:3])
        dh_NP = torch.empty_like(h_NP) if to_h else None
        drows_RP = torch.zeros_like(rows_RP) if to_rows else None
        dbias_X = bias_R.new_zeros(max(len(bias_R), columns)) if to_bias else None

        block = _block_rows(columns)
        logits_BX = h_NP.new_zeros(min(block, len(h_NP)), columns)
        loss = 0.0
        for start in range(0, len(h_NP), block):
            at = slice(start, start + block)
            h = h_NP[at]
            z = logits_BX[: len(h)]
            torch.mm(h, rows_SP.t(), out=z[:, :size])
            loss += _native.softmax(
                isa,
                size,
                z.numpy(),
                bias_X.numpy(),
                floats(h),
                floats(rows_RP),
                target_rows_N[at].numpy(),
                floats(target_bias_N[at]),
                None if dh_NP is None else dh_NP[at].numpy(),
                None if drows_RP is None else drows_RP.numpy(),
                None if dbias_X is None else dbias_X.numpy(),
            )
            if dh_NP is not None:
                dh_NP[at].addmm_(z[:, :size], rows_SP)
            if drows_RP is not None:
                drows_RP[:size].addmm_(z[:, :size].t(), h)
        ctx.gradients = dh_NP, drows_RP, None if dbias_X is None else dbias_X[: len(bias_R)]
        return h_NP.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if x is None else x * gradient for x in ctx.gradients)
        return *scaled, None, None, None, None
