"""Products of large float32 matrices in training, by PyTorch or the kernel: whichever is faster.

PyTorch multiplies by Intel's MKL, which uses AVX-512 on Intel's own CPUs and AVX2 on others. A CPU
with AVX-512 of another maker multiplies up to twice as fast by the kernel. It runs in the calling
thread, so it is used only where PyTorch has one thread, as in training.

Shape letters: M rows, K depth, N columns; I inputs, O outputs of an affine map.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmokit.engine import native
from elmokit.nn.kernel import kernel_supports, to_kernel_array

if native.kernel_available():
    from elmokit import _native


def multiply(
    a_MK: Tensor, b_KN: Tensor, bias_N: Tensor | None = None, out_MN: Tensor | None = None
) -> Tensor:
    """Return the product of two matrices plus a bias, without a gradient.

    Args:
        a_MK: The first factor; it may be the transpose of another matrix.
        b_KN: The second factor, likewise.
        bias_N: Added to every row.
        out_MN: Where to write the result.
    """
    if kernel_multiplies(a_MK, b_KN):
        if out_MN is None:
            out_MN = a_MK.new_empty(len(a_MK), b_KN.shape[1])
        if out_MN.is_contiguous():
            _multiply(a_MK, b_KN, bias_N, out_MN, add=False)
            return out_MN
    if bias_N is None:
        return torch.mm(a_MK, b_KN, out=out_MN)
    return torch.addmm(bias_N, a_MK, b_KN, out=out_MN)


def add_product(out_MN: Tensor, a_MK: Tensor, b_KN: Tensor) -> None:
    """Add the product of two matrices to a third one, without a gradient."""
    if kernel_multiplies(a_MK, b_KN) and out_MN.is_contiguous():
        _multiply(a_MK, b_KN, None, out_MN, add=True)
    else:
        out_MN.addmm_(a_MK, b_KN)


def float32_affine(x_MI: Tensor, weight_IO: Tensor, bias_O: Tensor) -> Tensor:
    """Return x·W + bias, with gradients."""
    if not kernel_multiplies(x_MI, weight_IO):
        return torch.addmm(bias_O, x_MI, weight_IO)
    y_MO: Tensor = _Float32Affine.apply(x_MI, weight_IO, bias_O)  # type: ignore[no-untyped-call]
    return y_MO


def kernel_multiplies(*matrices: Tensor) -> bool:
    """Return whether the kernel multiplies these matrices, since it is faster than PyTorch here."""
    return (
        torch.get_num_threads() == 1
        and kernel_supports(*matrices)
        and all(x.numel() for x in matrices)
        and native.instruction_set().startswith("avx512")
        and not _native.INTEL_CPU
        and all(x.is_contiguous() or x.t().is_contiguous() for x in matrices)
    )


def _multiply(a_MK: Tensor, b_KN: Tensor, bias_N: Tensor | None, out_MN: Tensor, add: bool) -> None:
    a_stored, b_stored = (x if x.is_contiguous() else x.t() for x in (a_MK, b_KN))
    _native.multiply(
        native.instruction_set(),
        to_kernel_array(a_stored),
        a_stored is not a_MK,
        to_kernel_array(b_stored),
        b_stored is not b_KN,
        None if bias_N is None else to_kernel_array(bias_N),
        out_MN.detach().numpy(),
        add,
    )


class _Float32Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_MI: Tensor, weight_IO: Tensor, bias_O: Tensor) -> Tensor:
        ctx.save_for_backward(x_MI, weight_IO)
        return multiply(x_MI, weight_IO, bias_O)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_y_MO: Tensor) -> tuple[Tensor | None, ...]:
        x_MI, weight_IO = ctx.saved_tensors
        d_y_MO = d_y_MO.contiguous()
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            multiply(d_y_MO, weight_IO.t()) if to_x else None,
            multiply(x_MI.t(), d_y_MO) if to_weight else None,
            d_y_MO.sum(0) if to_bias else None,
        )
