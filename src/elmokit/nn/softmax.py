"""The loss of the language model: the negative log likelihood of each true word among candidates.

`softmax_loss` computes the loss and all its gradients in one pass over blocks of rows whose logits
stay in the cache. Other tensors than float32 on a CPU take the plain PyTorch path. `samplers.py`
chooses the candidates; with all words the loss is that of the full softmax.

A step touches few rows of a softmax: `gather_softmax_rows` names them, and the loss takes them.

Shape letters: N words of a batch, V vocabulary, S candidates, P width, R touched rows, the
candidates first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.engine import native
from elmokit.engine.native import Products
from elmokit.errors import InputError
from elmokit.nn.kernel import kernel_supports, to_kernel_array
from elmokit.nn.products import add_product, multiply
from elmokit.nn.samplers import Candidates

if native.kernel_available():
    from elmokit import _native

BLOCK_ROWS = 320
"""Rows per block: enough for products at full speed, few enough that logits stay in the cache."""
BLOCK_LOGITS = 1 << 24
"""Largest number of logits per block; bounds the memory of the full softmax."""
MIN_BLOCK_ROWS = 64
"""Smallest number of rows per block, however large the vocabulary."""


class SoftmaxRows(NamedTuple):
    """Rows of the softmax that the loss of a step touches."""

    words_R: Tensor
    """Word id of each touched row: the candidates, then the other targets."""
    target_rows_N: Tensor
    """Position of each target in `words_R`."""


def gather_softmax_rows(candidates: Candidates, targets_N: Tensor) -> SoftmaxRows:
    """Return the rows of the softmax that the loss of these targets touches."""
    words_S = candidates.words_S.to(targets_N.device)
    first_words = torch.arange(len(words_S), device=words_S.device)
    if torch.equal(words_S, first_words) and bool((targets_N < len(words_S)).all()):
        return SoftmaxRows(words_S, targets_N)
    distinct = torch.unique(targets_N)
    words_R = torch.cat([words_S, distinct[~torch.isin(distinct, words_S)]])
    sorted_R, order_R = words_R.sort()
    return SoftmaxRows(words_R, order_R[torch.searchsorted(sorted_R, targets_N)])


def softmax_loss(
    h_NP: Tensor,
    rows_RP: Tensor,
    bias_R: Tensor,
    target_rows_N: Tensor,
    candidates: Candidates,
    words_R: Tensor | None = None,
    products: Products = "float32",
) -> Tensor:
    """Return the SUM over N of the negative log likelihoods, with gradients to h, rows and bias.

    A candidate that is the true word of a row does not count as a candidate there.

    Args:
        h_NP: Outputs of the network that predict the words.
        rows_RP: Softmax weights of the words that `gather_softmax_rows` names.
        bias_R: Softmax biases of the same words.
        target_rows_N: Row of each true word.
        candidates: Words to compare with, and their corrections.
        words_R: Word id of each row; needed only if the candidates correct the true word.
        products: How the kernel rounds the factors of products; plain PyTorch does not round.
    """
    correction_N = None
    if candidates.true_correction_V is not None:
        if words_R is None:
            raise InputError(
                "these candidates correct the true word, so words_R is needed: the word id of "
                "each row, from gather_softmax_rows"
            )
        targets_N = words_R[target_rows_N].to(candidates.true_correction_V.device)
        correction_N = candidates.true_correction_V[targets_N].to(h_NP)
    correction_S = candidates.correction_S.to(h_NP)
    if not kernel_supports(h_NP, rows_RP, bias_R):
        return _plain_loss(h_NP, rows_RP, bias_R, target_rows_N, correction_S, correction_N)
    with_gradients = torch.is_grad_enabled()
    loss: Tensor = _SoftmaxLoss.apply(  # type: ignore[no-untyped-call]
        h_NP, rows_RP, bias_R, target_rows_N, correction_S, correction_N, with_gradients, products
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
    """Compute the loss in plain PyTorch, on any device."""
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
    return min(BLOCK_ROWS, max(MIN_BLOCK_ROWS, BLOCK_LOGITS // max(1, columns)))


class _SoftmaxLoss(torch.autograd.Function):
    """Computes the gradients together with the loss, while the logits are in the cache."""

    @staticmethod
    def forward(
        ctx: Any,
        h_NP: Tensor,
        rows_RP: Tensor,
        bias_R: Tensor,
        target_rows_N: Tensor,
        correction_S: Tensor,
        correction_N: Tensor | None,
        with_gradients: bool,
        products: Products,
    ) -> Tensor:
        h_NP, rows_RP, bias_R = h_NP.contiguous(), rows_RP.contiguous(), bias_R.contiguous()
        target_rows_N = target_rows_N.contiguous()
        size, isa = len(correction_S), native.instruction_set(products)
        groups = -(-size // _native.SOFTMAX_COLUMNS)
        if products == "float32":
            groups |= 1  # odd: a cache keeps few rows whose distance is a power of two
        columns = groups * _native.SOFTMAX_COLUMNS
        bias_X = bias_R.new_full((columns,), -torch.inf)  # X: S, padded
        torch.add(bias_R[:size], correction_S, out=bias_X[:size])
        target_bias_N = bias_R[target_rows_N]
        if correction_N is not None:
            target_bias_N += correction_N

        to_h, to_rows, to_bias = (
            with_gradients and needs_grad for needs_grad in ctx.needs_input_grad[:3]
        )
        dh_NP = torch.empty_like(h_NP) if to_h else None
        drows_RP = torch.zeros_like(rows_RP) if to_rows else None
        dbias_X = bias_R.new_zeros(max(len(bias_R), columns)) if to_bias else None

        ctx.gradients = dh_NP, drows_RP, None if dbias_X is None else dbias_X[: len(bias_R)]
        if products == "bfloat16":
            gradients = (None if d is None else d.numpy() for d in (dh_NP, drows_RP, dbias_X))
            loss = _native.tile_softmax(
                isa,
                size,
                to_kernel_array(bias_X),
                to_kernel_array(h_NP),
                to_kernel_array(rows_RP),
                target_rows_N.numpy(),
                to_kernel_array(target_bias_N),
                *gradients,
            )
            return h_NP.new_tensor(loss)
        block = _block_rows(columns)
        logits_BX = h_NP.new_zeros(min(block, len(h_NP)), columns)
        # The padding has a bias of minus infinity, so any row may fill it, if there are as many.
        used = columns if len(rows_RP) >= columns else size
        loss = 0.0
        for start in range(0, len(h_NP), block):
            at = slice(start, start + block)
            h = h_NP[at]
            logits = logits_BX[: len(h)]
            multiply(h, rows_RP[:used].t(), out_MN=logits[:, :used])
            loss += _native.softmax(
                isa,
                size,
                logits.numpy(),
                bias_X.numpy(),
                to_kernel_array(h),
                to_kernel_array(rows_RP),
                target_rows_N[at].numpy(),
                to_kernel_array(target_bias_N[at]),
                None if dh_NP is None else dh_NP[at].numpy(),
                None if drows_RP is None else drows_RP.numpy(),
                None if dbias_X is None else dbias_X.numpy(),
            )
            if dh_NP is not None:
                add_product(dh_NP[at], logits[:, :used], rows_RP[:used])
            if drows_RP is not None:
                add_product(drows_RP[:used], logits[:, :used].t(), h)
        return h_NP.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scaled = (None if x is None else x * gradient for x in ctx.gradients)
        return *scaled, None, None, None, None, None
