"""Multinomial logistic regression on frozen vectors.

Features are standardized, and the weights are trained by Adam with a learning rate that decays to
zero. The penalty on ‖W‖² is the one with the best accuracy on held-out rows; the final classifier
is trained on all rows. Seeds are fixed: the same vectors give the same classifier. Knows nothing
about words.

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
from elmokit.errors import InputError
from elmokit.extras import require

require("torch", "Tag probes")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

IntArray = npt.NDArray[np.int64]

PENALTIES = (0.1, 1.0, 10.0)
"""Penalties to choose from: factors of ½‖W‖² added to the summed loss of all rows."""
EPOCHS, BATCH, RATE = 8, 512, 1e-2
"""Training epochs, rows per batch and initial learning rate."""
FEWEST_STEPS, REACH = 300, 5.0
"""Minimum number of optimizer steps, for which few rows are read in more than `EPOCHS` epochs, and
the distance that the learning rate must allow a weight to move in all of them."""
RUN, CHOOSE_FROM = 100, 4
"""Rows per run: neighboring rows are similar, so rows are held out in whole runs. The penalty is
chosen on every fourth run, since it depends little on the number of rows."""


@dataclass(frozen=True)
class LinearClassifier:
    """A trained linear classifier."""

    weight_DK: Tensor
    bias_K: Tensor
    penalty: float
    """The penalty that was chosen."""

    def predict(self, features: Sequence[FloatArray]) -> IntArray:
        """Return the likeliest class of each row."""
        arrays = _to_tensors(features)
        predictions = []
        for start in range(0, len(arrays[0]), 8192):
            x_BD = torch.cat([array[start : start + 8192] for array in arrays], 1)
            predictions.append((x_BD @ self.weight_DK + self.bias_K).argmax(1))
        classes_N: IntArray = torch.cat(predictions).numpy()
        return classes_N


def fit_linear(
    features: Sequence[FloatArray],
    classes_N: IntArray,
    *,
    penalties: Sequence[float] = PENALTIES,
    epochs: int = EPOCHS,
    seed: int = 0,
) -> LinearClassifier:
    """Train a linear classifier.

    Args:
        features: One or more arrays of N rows each, used side by side.
        classes_N: The class of each row, numbered from 0.
        penalties: Penalties to choose from; a single one is used as it is.
        epochs: Training epochs, at least.
        seed: Random seed of the order of the rows.
    """
    rows = len(classes_N)
    if not rows or any(len(each) != rows for each in features) or not penalties:
        raise InputError(
            f"features have {[len(each) for each in features]} rows, with {rows} classes and "
            f"{len(penalties)} penalties; expected one class per row, and at least one penalty"
        )
    arrays, targets_N = _to_tensors(features), torch.from_numpy(classes_N)
    chosen = penalties[0]
    if len(penalties) > 1:
        run_N = np.arange(rows) // RUN
        subset_N = run_N % CHOOSE_FROM == 0
        held_out_N = subset_N & (run_N % (5 * CHOOSE_FROM) == 0)
        train_N = subset_N & ~held_out_N
        if not train_N.any():
            raise InputError(
                f"{rows} rows are too few to choose a penalty; expected more than "
                f"{RUN * CHOOSE_FROM} rows, or a single penalty"
            )
        candidates = _train(
            arrays, targets_N, np.flatnonzero(train_N), penalties, CHOOSE_FROM * epochs // 2, seed
        )
        held_out = [array[held_out_N] for array in features]
        accuracies = [
            float((candidate.predict(held_out) == classes_N[held_out_N]).mean())
            for candidate in candidates
        ]
        chosen = penalties[int(np.argmax(accuracies))]
    return _train(arrays, targets_N, np.arange(rows), [chosen], epochs, seed)[0]


def _train(
    arrays: Sequence[Tensor],
    targets_N: Tensor,
    rows_N: IntArray,
    penalties: Sequence[float],
    epochs: int,
    seed: int,
) -> list[LinearClassifier]:
    """Train one classifier per penalty on some of the rows, all in one matrix product."""
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
    rng = np.random.default_rng(seed)

    def standardized() -> tuple[Tensor, Tensor]:
        # ((x - mean) / scale) W + b, multiplied out, so that the features need not be copied.
        scaled = weight / scale_D[:, None]
        return scaled, bias - mean_D @ scaled

    step = 0
    for _ in range(epochs):
        shuffled_N = torch.from_numpy(rng.permutation(rows_N))
        for start in range(0, len(rows_N), BATCH):
            batch_B = shuffled_N[start : start + BATCH]
            x_BD = torch.cat([array.index_select(0, batch_B) for array in arrays], 1)
            scaled, shifted = standardized()
            scores = torch.addmm(shifted, x_BD, scaled).view(-1, K)
            targets = targets_N[batch_B].repeat_interleave(C)
            fit = torch.nn.functional.cross_entropy(scores, targets) * C
            loss = fit + 0.5 * (penalty_CK * weight.square()).sum()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.param_groups[0]["lr"] = rate * (1 - step / steps)
            adam.step()
            step += 1
    with torch.no_grad():
        scaled, shifted = standardized()
    return [
        LinearClassifier(
            scaled.view(D, C, K)[:, c].contiguous(), shifted.view(C, K)[c].clone(), penalty
        )
        for c, penalty in enumerate(penalties)
    ]


def _moments(arrays: Sequence[Tensor], rows_N: IntArray) -> tuple[Tensor, Tensor]:
    """Return the mean and standard deviation of each feature; 1 for a constant feature."""
    rows = torch.from_numpy(rows_N)
    moments = [torch.std_mean(array.index_select(0, rows), 0, correction=0) for array in arrays]
    scale_D, mean_D = (torch.cat(parts) for parts in zip(*moments, strict=True))
    return mean_D, torch.where(scale_D < 1e-6, torch.ones_like(scale_D), scale_D)


def _to_tensors(features: Sequence[FloatArray]) -> list[Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(array, np.float32)) for array in features]
