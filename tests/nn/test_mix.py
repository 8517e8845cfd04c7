"""Mixes: what they compute, what they learn, what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.mix import Mix  # noqa: E402
from elmokit.errors import InputError  # noqa: E402
from elmokit.nn import LayerProjection, LearnedMix  # noqa: E402


@pytest.fixture
def layers() -> torch.Tensor:
    """(L+1, B, T, D), the last word of the second sentence is padding."""
    found = torch.randn(3, 2, 4, 6, generator=torch.Generator().manual_seed(0))
    found[:, 1, 3] = 0
    return found


def test_a_new_mix_is_the_average(layers: torch.Tensor) -> None:
    assert torch.allclose(LearnedMix(3)(layers), layers.mean(dim=0), atol=1e-6)


def test_it_is_the_engines_mix(layers: torch.Tensor) -> None:
    numbers = Mix((0.3, -1.0, 2.0), 1.7)
    mix = LearnedMix.from_mix(numbers)
    assert np.allclose(mix(layers).detach(), numbers.apply(layers.numpy()), atol=1e-6)
    assert np.allclose(mix.shares.detach(), numbers.weights)
    back = mix.to_mix()
    assert np.allclose(back.scalars, numbers.scalars) and back.gamma == pytest.approx(1.7)


def test_gradients(layers: torch.Tensor) -> None:
    mix = LearnedMix(3, scalars=[0.1, 0.5, -0.2], gamma=1.3, layer_norm=True).double()

    def run(scalars: torch.Tensor, gamma: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(mix, {"scalars": scalars, "gamma": gamma}, (x,))

    start = [mix.scalars, mix.gamma, layers[:, 0].double().requires_grad_()]
    assert torch.autograd.gradcheck(run, [t.detach().requires_grad_() for t in start])


def test_layer_norm_knows_no_neighbors(layers: torch.Tensor) -> None:
    mix = LearnedMix(3, layer_norm=True)
    alone = mix(layers[:, :1, :1])
    assert torch.allclose(mix(layers)[:1, :1], alone, atol=1e-6)
    normalized = LearnedMix(3, layer_norm=True, only=1)(layers)[0]
    assert torch.allclose(normalized.mean(dim=-1), torch.zeros(4), atol=1e-5)
    assert torch.allclose(normalized.var(dim=-1, unbiased=False), torch.ones(4), atol=1e-3)


@pytest.mark.parametrize(
    "mix", [LearnedMix(3), LearnedMix(3, layer_norm=True), LayerProjection(3, 6, 5)]
)
def test_padding_stays_zero(mix: torch.nn.Module, layers: torch.Tensor) -> None:
    assert (mix(layers)[1, 3] == 0).all()
    assert (mix(layers)[1, 2] != 0).any()


def test_one_layer_only(layers: torch.Tensor) -> None:
    mix = LearnedMix(3, only=-1, gamma=2.0)
    assert torch.allclose(mix(layers), 2 * layers[2])
    assert mix.shares.tolist() == [0, 0, 1]
    assert set(mix.state_dict()) == {"gamma"}
    assert mix.penalty(0.1) == 0
    with pytest.raises(InputError, match="cannot be saved"):
        mix.to_mix()


def test_fixed_weights_are_not_learned(layers: torch.Tensor) -> None:
    mix = LearnedMix(3, scalars=[0.0, 1.0, 2.0], trainable=False)
    assert not any(parameter.requires_grad for parameter in mix.parameters())
    assert not mix(layers).requires_grad


def test_the_penalty_is_on_the_scalars_alone() -> None:
    mix = LearnedMix(3, scalars=[1.0, -2.0, 0.5], gamma=3.0)
    penalty = mix.penalty(0.1)
    assert penalty.item() == pytest.approx(0.1 * (1 + 4 + 0.25))
    penalty.backward()
    assert mix.scalars is not None and mix.scalars.grad is not None
    assert torch.allclose(mix.scalars.grad, torch.tensor([0.2, -0.4, 0.1]))
    assert mix.gamma.grad is None


def test_dropout_is_for_training(layers: torch.Tensor) -> None:
    mix = LearnedMix(3, dropout=0.5)
    torch.manual_seed(0)
    zeros = (mix(layers)[0] == 0).float().mean()
    assert 0.1 < zeros < 0.9
    assert torch.allclose(mix.eval()(layers), layers.mean(dim=0), atol=1e-6)


def test_state_dict_round_trip(layers: torch.Tensor) -> None:
    one, other = LearnedMix(3, scalars=[0.1, 2.0, -1.0], gamma=0.7), LearnedMix(3)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(layers), other(layers))


def test_projection_is_a_matrix_over_all_components(layers: torch.Tensor) -> None:
    """2L+1 = 5 components of P = 3 numbers; the word vector counts once."""
    projection = LayerProjection(3, 6, 4)
    assert projection.matrix.shape == (15, 4)
    word = layers[0, 0, 0]
    joined = torch.cat([word[:3], layers[1, 0, 0], layers[2, 0, 0]])
    assert torch.allclose(projection(layers)[0, 0], joined @ projection.matrix, atol=1e-6)


def test_what_does_not_fit_is_refused(layers: torch.Tensor) -> None:
    with pytest.raises(InputError, match="the input has 3 layers; this mix expects 4"):
        LearnedMix(4)(layers)
    with pytest.raises(InputError, match="scalars has 2 values"):
        LearnedMix(3, scalars=[1.0, 2.0])
    with pytest.raises(InputError, match="only=3"):
        LearnedMix(3, only=3)
    with pytest.raises(InputError, match="this projection expects"):
        LayerProjection(3, 8, 2)(layers)
    with pytest.raises(InputError, match="an even size"):
        LayerProjection(3, 7, 2)
