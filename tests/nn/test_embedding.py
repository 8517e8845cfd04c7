"""The layer for task models: frozen and trainable give the same, and the same as `Elmo`."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config
from tests.nn.known_words import known_words

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import InputError, InputTypeError  # noqa: E402
from elmokit.nn import ElmoEmbedding, LayerProjection, LearnedMix  # noqa: E402
from elmokit.text.characters import encode_sentences  # noqa: E402

SENTENCES = [["the", "bank", "of", "the", "river"], [], ["Yes", "!"]]
BILM = random_bilm(small_config())
BOTH = pytest.mark.parametrize("trainable", [False, True], ids=["frozen", "trainable"])


def ids() -> torch.Tensor:
    return torch.from_numpy(encode_sentences(SENTENCES, 20))


@BOTH
@pytest.mark.parametrize("start", ["settled", "zero"])
def test_it_is_what_elmo_embeds(trainable: bool, start: str) -> None:
    elmo = Elmo(BILM, state=start)
    layer = ElmoEmbedding(elmo, trainable=trainable, start=start)
    (vectors,), mask, _ = layer(SENTENCES)
    assert vectors.shape == (3, 5, 12) and mask.sum(dim=1).tolist() == [5, 0, 2]
    for row, expected in enumerate(elmo.embed(SENTENCES)):
        assert np.allclose(vectors[row, mask[row]].detach(), expected, atol=1e-5)
    assert (vectors[~mask] == 0).all()
    for row, expected in enumerate(elmo.embed(SENTENCES, layers="all")):
        assert np.allclose(layer.layers(SENTENCES)[:, row, mask[row]].detach(), expected, atol=1e-5)


@BOTH
def test_words_and_ids_give_the_same(trainable: bool) -> None:
    layer = ElmoEmbedding(BILM, trainable=trainable)
    by_words, by_ids = layer(SENTENCES), layer(ids())
    assert torch.equal(by_words.mask, by_ids.mask)
    assert torch.allclose(by_words.vectors[0], by_ids.vectors[0], atol=1e-6)


@BOTH
def test_known_words(trainable: bool) -> None:
    """Models that know whole words take words, not characters."""
    elmo = Elmo(known_words())
    layer = ElmoEmbedding(elmo, trainable=trainable)
    sentences = [["the", "bank", "then"], ["the"]]
    (vectors,), mask, _ = layer(sentences)
    assert np.allclose(vectors[mask].detach(), np.concatenate(elmo.embed(sentences)), atol=1e-5)
    assert torch.equal(layer(sentences).vectors[0], vectors)  # now from the cache
    with pytest.raises(InputError, match="give it words"):
        layer(ids())


def test_a_sentence_depends_on_itself_alone() -> None:
    layer = ElmoEmbedding(BILM)
    alone = layer(SENTENCES[2:]).vectors[0]
    assert torch.equal(layer(SENTENCES).vectors[0][2:, :2], alone)


@BOTH
def test_state_is_an_argument_and_a_result(trainable: bool) -> None:
    """Carried on by hand, it is what `state="carry"` does."""
    elmo = Elmo(BILM, state="carry")
    layer = ElmoEmbedding(BILM, trainable=trainable, start="zero")
    first = layer(SENTENCES)
    second = layer(SENTENCES, first.state)
    elmo.embed(SENTENCES)
    assert not second.state.hidden.requires_grad
    for row, expected in enumerate(elmo.embed(SENTENCES)):
        found = second.vectors[0][row, : len(expected)].detach()
        assert np.allclose(found, expected, atol=1e-5)


def test_mixes_are_independent() -> None:
    mixes = [
        LearnedMix(3, only=0),
        LearnedMix(3, scalars=[0.0, 1.0, 2.0]),
        LayerProjection(3, 12, 4),
    ]
    layer = ElmoEmbedding(BILM, mixes=mixes)
    vectors, _, _ = layer(SENTENCES)
    layers = layer.layers(SENTENCES)
    assert torch.allclose(vectors[0], layers[0]) and vectors[2].shape == (3, 5, 4)
    vectors[1].sum().backward()
    assert mixes[0].gamma.grad is None and mixes[1].gamma.grad is not None
    assert layer.penalty(0.5).item() == pytest.approx(0.5 * 5)


def test_which_parameters_are_trained() -> None:
    frozen, learning = ElmoEmbedding(BILM, mixes=2), ElmoEmbedding(BILM, mixes=2, trainable=True)
    names = {"mixes.0.scalars", "mixes.0.gamma", "mixes.1.scalars", "mixes.1.gamma"}
    assert {name for name, _ in frozen.named_parameters()} == set(frozen.state_dict()) == names
    learning(SENTENCES).vectors[0].sum().backward()
    gradient = learning.bilm.tensors()["characters.embedding"].grad
    assert gradient is not None and gradient.abs().sum() > 0
    assert {name for name, _ in learning.named_parameters()} > names


def test_a_trained_model_can_be_frozen(tmp_path: Path) -> None:
    """One step of learning, then the engine, from the module and from a file: the same vectors."""
    layer = ElmoEmbedding(BILM, trainable=True)
    layer(SENTENCES).vectors[0].square().mean().backward()
    torch.optim.SGD(layer.parameters(), lr=0.5).step()
    expected = layer(SENTENCES).vectors[0]
    assert not torch.allclose(expected, ElmoEmbedding(BILM)(SENTENCES).vectors[0], atol=1e-3)
    frozen = ElmoEmbedding(layer.to_bilm(BILM), mixes=layer.mixes)
    assert torch.allclose(frozen(SENTENCES).vectors[0], expected, atol=1e-5)
    Elmo(layer.to_bilm(BILM)).save(tmp_path / "model")
    again = ElmoEmbedding(tmp_path / "model", mixes=layer.mixes)
    assert torch.allclose(again(SENTENCES).vectors[0], expected, atol=1e-5)


@BOTH
def test_state_dicts_round_trip(trainable: bool) -> None:
    one = ElmoEmbedding(BILM, trainable=trainable)
    other = ElmoEmbedding(
        random_bilm(small_config(), seed=1) if trainable else BILM, trainable=trainable
    )
    with torch.no_grad():
        one.mixes[0].scalars += torch.tensor([0.0, 1.0, -1.0])
    assert not torch.allclose(one(SENTENCES).vectors[0], other(SENTENCES).vectors[0], atol=1e-4)
    other.load_state_dict(one.state_dict())
    assert torch.allclose(one(SENTENCES).vectors[0], other(SENTENCES).vectors[0], atol=1e-6)


@BOTH
def test_copies_give_the_same(trainable: bool) -> None:
    layer = ElmoEmbedding(BILM, trainable=trainable)
    expected = layer(SENTENCES).vectors[0]
    assert torch.equal(copy.deepcopy(layer)(SENTENCES).vectors[0], expected)
    assert torch.equal(pickle.loads(pickle.dumps(layer))(SENTENCES).vectors[0], expected)


def test_nothing_to_embed() -> None:
    layer = ElmoEmbedding(BILM)
    assert layer([]).vectors[0].shape == (0, 0, 12)
    assert layer([[], []]).vectors[0].shape == (2, 0, 12)


def test_invalid_arguments() -> None:
    with pytest.raises(InputError, match="'settled' or 'zero'"):
        ElmoEmbedding(BILM, start="carry")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="model is int"):
        ElmoEmbedding(3)  # type: ignore[arg-type]
