"""Adam and Adagrad over parts of an array, and their state."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.train.optimizer import PartitionedOptimizer  # noqa: E402
from elmokit.train.recipe import RECIPES  # noqa: E402

KINDS = {recipe.optimizer: recipe for recipe in RECIPES.values()}
KINDS["muon"] = KINDS["adam"].replace(optimizer="muon")


def gradients(steps: int) -> list[torch.Tensor]:
    return list(torch.randn(steps, 20, generator=torch.Generator().manual_seed(1)))


def parts(array: torch.Tensor, count: int) -> list[torch.Tensor]:
    return list(torch.tensor_split(array, count))


def walk(
    kind: str, count: int, grads: list[torch.Tensor], pause: int | None = None
) -> torch.Tensor:
    """From ones, over gradients; with a pause the optimizer is written down and made anew."""
    array = torch.ones(20)
    optimizer = PartitionedOptimizer(KINDS[kind], parts(array, count))
    for step, gradient in enumerate(grads):
        if step == pause:
            state = {name: tensor.clone() for name, tensor in optimizer.state().items()}
            optimizer = PartitionedOptimizer(KINDS[kind], parts(array, count))
            optimizer.load(state)
        for i, own in enumerate(parts(gradient, count)):
            optimizer.step(i, own.clone(), 0.1 / (step + 1))
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_pauses_change_nothing(kind: str) -> None:
    grads = gradients(6)
    whole = walk(kind, 3, grads)
    assert torch.equal(walk(kind, 3, grads, pause=4), whole)
    assert torch.equal(walk(kind, 3, grads, pause=0), whole)
    assert torch.allclose(walk(kind, 1, grads), whole, atol=1e-6), "nor do parts, to the eye"
    assert not torch.allclose(walk(kind, 3, grads[:4]), whole)


def test_adam() -> None:
    (gradient,) = gradients(1)
    first = walk("adam", 2, [gradient])
    assert torch.allclose(first, 1 - 0.1 * gradient.sign(), atol=1e-4)
    array = torch.nn.Parameter(torch.ones(20))
    theirs = torch.optim.Adam([array])
    for step, array.grad in enumerate(gradients(5)):
        theirs.param_groups[0]["lr"] = 0.1 / (step + 1)
        theirs.step()
    assert torch.allclose(walk("adam", 2, gradients(5)), array.detach(), atol=1e-6)


def test_adagrad_begins_as_tensorflow_does() -> None:
    a, b = gradients(2)
    expected = 1 - 0.1 * a / (1 + a**2).sqrt() - 0.05 * b / (1 + a**2 + b**2).sqrt()
    assert torch.allclose(walk("adagrad", 2, [a, b]), expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_there_before_the_first_step(kind: str) -> None:
    state = PartitionedOptimizer(KINDS[kind], parts(torch.ones(20), 3)).state()
    assert state.pop("step").tolist() == [0]
    assert {len(array) for array in state.values()} == {20}


def test_what_muon_leaves_to_adam() -> None:
    """Without matrices it is Adam, and what has no gradient stays as it is."""
    assert torch.equal(walk("muon", 2, gradients(5)), walk("adam", 2, gradients(5)))
    assert torch.equal(walk("muon", 2, [torch.zeros(20)] * 3), torch.ones(20))
