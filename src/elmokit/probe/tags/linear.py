"""Multinomial logistic regression: what a single linear layer can read off frozen vectors.

Features are standardized, the weights are learned by Adam whose rate falls to zero. The penalty on
‖W‖² is the one that does best on rows that were held out; then all rows are learned from. Fixed
seeds: the same vectors give the same classifier. Knows nothing about words.

Features come as several arrays of the same rows, so that layers need not be copied to be joined.

Shape letters: N rows, B rows of a batch, D features of all arrays, C penalties that are tried side
by side, K classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import InputError, MissingExtra

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise MissingExtra(
        f"a linear classifier is learned by torch, which cannot be imported ({error}): "
        "pip install 'elmokit[train]'"
    ) from None

IntArray = npt.NDArray[np.int64]

PENALTIES = (0.1, 1.0, 10.0)
"""Of ½‖W‖², beside the sum of the losses of all rows: the precision of a prior on the weights."""
EPOCHS, BATCH, RATE = 8, 512, 1e-2
FEWEST_STEPS, REACH = 300, 5.0
"""Few rows are read more often than `EPOCHS` times, and at a rate that lets a weight get so far."""
RUN, CHOOSE_FROM = 100, 4
"""Neighbors are alike, so rows are held out in runs of so many; the penalty is chosen from every
fourth run, since it depends little on how many rows there are."""


@dataclass(frozen=True)
class Linear:
    """A classifier."""

    weight_DK: Tensor
    bias_K: Tensor
    penalty: float
    """The one that was chosen."""

    def predict(self, features: Sequence[FloatArray]) -> IntArray:
        """The likeliest class of each row."""
        arrays = _tensors(features)
        found = []
        for start in range(0, len(arrays[0]), 8192):
            x_BD = torch.cat([array[start : start + 8192] for array in arrays], 1)
            found.append((x_BD @ self.weight_DK + self.bias_K).argmax(1))
        classes_N: IntArray = torch.cat(found).numpy()
        return classes_N


def fit_linear(
    features: Sequence[FloatArray],
    classes_N: IntArray,
    *,
    penalties: Sequence[float] = PENALTIES,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> Linear:
    """Learn to tell classes, numbered from 0, by features: arrays of the same N rows."""
    rows = len(classes_N)
    if not rows or any(len(each) != rows for each in features) or not penalties:
        raise InputError(
            f"{[len(each) for each in features]} rows of features, {rows} classes and "
            f"{len(penalties)} penalties; expected the same number of rows, and some of each"
        )
    arrays, targets_N = _tensors(features), torch.from_numpy(classes_N)
    chosen = penalties[0]
    if len(penalties) > 1:
        run_N = np.arange(rows) // RUN
        few_N = run_N % CHOOSE_FROM == 0
        held_out_N = few_N & (run_N % (5 * CHOOSE_FROM) == 0)
        learned_N = few_N & ~held_out_N
        if not learned_N.any():
            raise InputError(
                f"{rows} rows are too few to choose a penalty by; expected more than "
                f"{RUN * CHOOSE_FROM}, or a single penalty"
            )
        tried = _learn(
            arrays, targets_N, np.flatnonzero(learned_N), penalties, CHOOSE_FROM * epochs // 2, seed
        )
        apart = [array[held_out_N] for array in features]
        right = [float((one.predict(apart) == classes_N[held_out_N]).mean()) for one in tried]
        chosen = penalties[int(np.argmax(right))]
    return _learn(arrays, targets_N, np.arange(rows), [chosen], epochs, seed)[0]


def _learn(
    arrays: Sequence[Tensor],
    targets_N: Tensor,
    rows_N: IntArray,
    penalties: Sequence[float],
    epochs: int,
    seed: int,
) -> list[Linear]:
    """One classifier for each penalty, from some of the rows, side by side in one product."""
    mean_D, scale_D = _moments(arrays, rows_N)
    D, C, K = len(mean_D), len(penalties), int(targets_N.max()) + 1
    weight = torch.zeros(D, C * K, requires_grad=True)
    bias = torch.zeros(C * K, requires_grad=True)
    penalty_CK = torch.tensor(penalties, dtype=torch.float32).repeat_interleave(K) / len(rows_N)
    adam = torch.optim.Adam([weight, bias])
    batches = math.ceil(len(rows_N) / BATCH)
    epochs = max(epochs, math.ceil(FEWEST_STEPS / batches))
    steps = epochs * batches
    rate = max(RATE, 2 * REACH / steps)
    source = np.random.default_rng(seed)

    def standardized() -> tuple[Tensor, Tensor]:
        # ((x - mean) / scale) W + b, multiplied out: so the features stay as they are.
        scaled = weight / scale_D[:, None]
        return scaled, bias - mean_D @ scaled

    done = 0
    for _ in range(epochs):
        shuffled_N = torch.from_numpy(source.permutation(rows_N))
        for start in range(0, len(rows_N), BATCH):
            here_B = shuffled_N[start : start + BATCH]
            x_BD = torch.cat([array.index_select(0, here_B) for array in arrays], 1)
            scaled, shifted = standardized()
            scores = torch.addmm(shifted, x_BD, scaled).view(-1, K)
            targets = targets_N[here_B].repeat_interleave(C)
            fit = torch.nn.functional.cross_entropy(scores, targets) * C
            loss = fit + 0.5 * (penalty_CK * weight.square()).sum()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.param_groups[0]["lr"] = rate * (1 - done / steps)
            adam.step()
            done += 1
    with torch.no_grad():
        scaled, shifted = standardized()
    return [
        Linear(scaled.view(D, C, K)[:, c].contiguous(), shifted.view(C, K)[c].clone(), penalty)
        for c, penalty in enumerate(penalties)
    ]


def _moments(arrays: Sequence[Tensor], rows_N: IntArray) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature; that of a constant feature is 1."""
    rows = torch.from_numpy(rows_N)
    own = [torch.std_mean(array.index_select(0, rows), 0, correction=0) for array in arrays]
    scale_D, mean_D = (torch.cat(parts) for parts in zip(*own, strict=True))
    return mean_D, torch.where(scale_D < 1e-6, torch.ones_like(scale_D), scale_D)


def _tensors(features: Sequence[FloatArray]) -> list[Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(array, np.float32)) for array in features]
