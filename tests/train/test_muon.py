"""Muon: orthogonal updates of matrices, their size, and their state."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.engine import native  # noqa: E402
from elmokit.nn import products  # noqa: E402
from elmokit.nn.kernel import without_kernel  # noqa: E402
from elmokit.train import muon  # noqa: E402
from elmokit.train.muon import LearnedMatrix, Muon, orthogonalize  # noqa: E402

SHAPES = (4, 9), (9, 4), (6, 6)


def random_matrix(shape: tuple[int, int], seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_all_directions_become_equal(shape: tuple[int, int], scale: float) -> None:
    """Singular values that differ by a factor of a hundred; the singular vectors stay."""
    u, _, v = torch.linalg.svd(random_matrix(shape), full_matrices=False)
    values = torch.logspace(0, -2, min(shape))
    found = orthogonalize(u @ torch.diag(values * scale) @ v)
    core = u.t() @ found @ v.t()
    if scale > muon._TINY:
        assert ((core.diagonal() > 0.6) & (core.diagonal() < 1.3)).all()
    assert torch.allclose(core, torch.diag(core.diagonal()), atol=1e-4)
    assert found.shape == shape and found.isfinite().all()


@pytest.mark.parametrize("shape", [(40, 90), (90, 40)])
def test_bfloat16_is_nearly_the_same(shape: tuple[int, int]) -> None:
    """Eight significant bits, while the iteration itself leaves singular values at 0.7 to 1.2."""
    matrix = random_matrix(shape)
    exact, found = orthogonalize(matrix), orthogonalize(matrix, torch.bfloat16)
    assert found.dtype == torch.float32 and not torch.equal(found, exact)
    assert float((found - exact).norm() / exact.norm()) < 0.03
    values = torch.linalg.svdvals(found)
    assert ((values > 0.6) & (values < 1.3)).all()


@pytest.mark.skipif(not native.kernel_available(), reason=native.kernel_error())
@pytest.mark.parametrize("shape", [(40, 90), (90, 40)])
def test_the_kernel_computes_what_pytorch_does(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = random_matrix(shape)
    with without_kernel():
        expected = orthogonalize(matrix)
    multiplied = []

    def always(*matrices: torch.Tensor) -> bool:
        multiplied.append(matrices)
        return True

    for module in (products, muon):
        monkeypatch.setattr(module, "kernel_multiplies", always)
    assert torch.allclose(orthogonalize(matrix), expected, atol=1e-5)
    assert multiplied


def test_no_gradient_changes_nothing() -> None:
    values, gradient = random_matrix((3, 5)), torch.zeros(3, 5)
    before = values.clone()
    Muon([LearnedMatrix(values, gradient)]).step(0, 1.0, 0.1)
    assert torch.equal(values, before)


def test_the_first_step() -> None:
    values, gradient = torch.zeros(16, 64), random_matrix((16, 64), 1)
    expected = orthogonalize(gradient.clone())
    Muon([LearnedMatrix(values, gradient)]).step(0, 0.5, 0.1)
    assert torch.allclose(values, -0.1 * 0.2 * 8 * expected, atol=1e-5)
    assert float(values.square().mean().sqrt()) == pytest.approx(0.1 * 0.2, rel=0.2), "as Adam's"
    assert not gradient.any(), "Adam has nothing left to do"


def test_momentum_looks_ahead() -> None:
    """Nesterov's momentum by hand, over two steps, of which the second has another scale."""
    first, second = random_matrix((4, 6), 2), random_matrix((4, 6), 3)
    values, gradient = torch.zeros(4, 6), first.clone()
    ours = Muon([LearnedMatrix(values, gradient)])
    ours.step(0, 1.0, 0.1)
    before = values.clone()
    gradient.copy_(second)
    ours.step(0, 0.25, 0.1)
    momentum = 0.95 * (0.05 * first) + 0.05 * (0.25 * second)
    ahead = 0.05 * (0.25 * second) + 0.95 * momentum
    size = 0.1 * 0.2 * math.sqrt(6)
    assert torch.allclose(values, before - size * orthogonalize(ahead), atol=1e-5)


def walk(pause: int | None, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Learn two blocks of one array for five steps; at a pause the state is written and read."""
    whole, gradient = torch.ones(4, 10), torch.empty(4, 10)

    def begin() -> Muon:
        blocks = zip(whole.chunk(2, 1), gradient.chunk(2, 1), strict=True)
        return Muon([LearnedMatrix(*block) for block in blocks], dtype)

    ours = begin()
    for step in range(5):
        if step == pause:
            state = ours.state().clone()
            ours = begin()
            ours.load(state)
        gradient.copy_(random_matrix((4, 10), step))
        for index in reversed(range(len(ours))):
            ours.step(index, 1.0, 0.1 / (step + 1))
    return whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("pause", [0, 3])
def test_pauses_change_nothing(pause: int, dtype: torch.dtype) -> None:
    whole = walk(None, dtype)
    assert torch.equal(walk(pause, dtype), whole) and whole.dtype == torch.float32
    assert not torch.equal(whole, torch.ones(4, 10)), "it has learned"
    if dtype == torch.float32:
        assert whole.unique().numel() == 40, "all of both blocks has learned"
