from __future__ import annotations

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.probe.tags.linear import fit_linear


def blobs(rows: int, spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes around three points of the plane."""
    source = np.random.default_rng(seed)
    classes = source.integers(0, 3, rows)
    centers = np.array([[0, 0], [3, 0], [0, 3]], np.float32)
    points = centers[classes] + spread * source.standard_normal((rows, 2)).astype(np.float32)
    return points, classes


def test_what_a_line_can_tell_apart_is_told_apart() -> None:
    points, classes = blobs(900, 0.3)
    more, right = blobs(300, 0.3, seed=1)
    assert (fit_linear([points], classes).predict([more]) == right).mean() > 0.99


def test_it_reaches_the_optimum() -> None:
    """Against Newton's method in float64, on the same penalized loss."""
    points, classes = blobs(600, 1.5)
    penalty = 6.0
    found = fit_linear([points], classes, penalties=[penalty], epochs=500)

    mean, scale = points.mean(0, dtype=np.float64), points.std(0, dtype=np.float64)
    x_ND = np.hstack([(points - mean) / scale, np.ones((600, 1))])
    y_NK = np.eye(3)[classes]
    w_DK = np.zeros((3, 3))
    ridge = np.repeat([penalty, penalty, 1e-9], 3)  # the bias is free
    for _ in range(50):
        scores = x_ND @ w_DK
        p_NK = np.exp(scores - scores.max(1, keepdims=True))
        p_NK /= p_NK.sum(1, keepdims=True)
        slope = (x_ND.T @ (p_NK - y_NK)).reshape(-1) + ridge * w_DK.reshape(-1)
        curve = np.einsum("nd,nk,ne,nkl->dkel", x_ND, p_NK, x_ND, np.eye(3) - p_NK[:, None, :])
        w_DK -= np.linalg.solve(curve.reshape(9, 9) + np.diag(ridge), slope).reshape(3, 3)
    expected = p_NK.argmax(1)
    ours = points @ found.weight_DK.numpy() + found.bias_K.numpy()
    q_NK = np.exp(ours - ours.max(1, keepdims=True))
    q_NK /= q_NK.sum(1, keepdims=True)
    np.testing.assert_allclose(q_NK, p_NK, atol=0.02)
    assert (found.predict([points]) == expected).mean() > 0.99


def test_units_do_not_matter() -> None:
    points, classes = blobs(500, 1.0)
    far = (points * np.float32([1000, 0.01]) + np.float32([500, -3])).astype(np.float32)
    one, other = (fit_linear([x], classes, penalties=[1.0]) for x in (points, far))
    assert (one.predict([points]) == other.predict([far])).mean() > 0.99


def test_arrays_are_joined() -> None:
    points, classes = blobs(500, 1.0)
    apart = fit_linear([points[:, :1], points[:, 1:]], classes, penalties=[1.0])
    joined = fit_linear([points], classes, penalties=[1.0])
    np.testing.assert_allclose(apart.weight_DK.numpy(), joined.weight_DK.numpy(), atol=1e-5)
    assert apart.weight_DK.shape == (2, 3)


def test_a_constant_feature_is_harmless() -> None:
    points, classes = blobs(500, 0.3)
    constant = np.full((500, 1), 7.0, np.float32)
    found = fit_linear([points, constant], classes, penalties=[1.0])
    assert (found.predict([points, constant]) == classes).mean() > 0.98


def test_the_penalty_is_the_one_that_does_best_on_held_out_rows() -> None:
    """Much noise asks for a large one; classes that only a long weight tells apart for a small."""
    source = np.random.default_rng(0)
    noise = source.standard_normal((2000, 300)).astype(np.float32)
    signal = source.standard_normal(2000)
    noisy = (signal + 0.5 * source.standard_normal(2000) > 0).astype(np.int64)
    features = np.hstack([noise, signal[:, None].astype(np.float32)])
    assert fit_linear([features], noisy, penalties=[1e-3, 1e3]).penalty == 1e3
    rare = (signal > 1.5).astype(np.int64)
    assert fit_linear([features[:, -1:]], rare, penalties=[1e-3, 1e4]).penalty == 1e-3


def test_the_same_twice() -> None:
    points, classes = blobs(600, 1.0)
    one, two, other = (
        fit_linear([points], classes, penalties=[1.0], seed=seed) for seed in (0, 0, 1)
    )
    assert one.weight_DK.equal(two.weight_DK) and one.bias_K.equal(two.bias_K)
    assert not one.weight_DK.equal(other.weight_DK)


def test_what_does_not_fit_is_refused() -> None:
    points, classes = blobs(600, 1.0)
    with pytest.raises(InputError, match="rows"):
        fit_linear([points[:-1]], classes)
    with pytest.raises(InputError, match="too few"):
        fit_linear([points[:90]], classes[:90])
    assert fit_linear([points[:90]], classes[:90], penalties=[1.0]).penalty == 1.0
