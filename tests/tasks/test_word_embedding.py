"""The first layer of every task model: what it gives with and without ELMo, at each place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import small_config
from tests.tasks import toy

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import InputError  # noqa: E402
from elmokit.nn import ElmoEmbedding  # noqa: E402
from elmokit.tasks.layer_store import LayerStore  # noqa: E402
from elmokit.tasks.word_embedding import WordEmbedding, frequent_words  # noqa: E402

TEXTS = [("Ada", "saw", "Paris"), ("unknown",)]


@pytest.fixture
def source(tmp_path: Path) -> LayerStore:
    return LayerStore(Elmo(random_bilm(small_config())), tmp_path)


def test_the_baseline() -> None:
    words = WordEmbedding(toy.static())
    found = words(TEXTS)
    assert found.x_BTE.shape == (2, 3, 7) and (words.dim, words.output_dim) == (7, 0)
    assert found.mask_BT.tolist() == [[True] * 3, [True, False, False]]
    assert found.lengths_B.tolist() == [3, 1]
    assert (found.x_BTE[0] != 0).all() and (found.x_BTE[1] == 0).all()
    h = torch.ones(2, 3, 4)
    assert found.output_BTD is None and found.append_elmo(h) is h
    assert words.penalty(1.0) == 0 and words.layer_weights() == {}


@pytest.mark.parametrize(
    ("place", "dims"), [("input", (19, 0)), ("output", (7, 12)), ("both", (19, 12))]
)
def test_places(source: LayerStore, place: str, dims: tuple[int, int]) -> None:
    words = WordEmbedding(toy.static(), source, placement=place)
    found = words(TEXTS)
    assert (
        (words.dim, words.output_dim)
        == dims
        == (
            found.x_BTE.shape[2],
            0 if found.output_BTD is None else found.output_BTD.shape[2],
        )
    )
    assert found.append_elmo(torch.ones(2, 3, 4)).shape[2] == 4 + words.output_dim
    expected = source.layers(TEXTS).mean(dim=0)
    if place != "output":
        assert torch.allclose(found.x_BTE[..., 7:], expected, atol=1e-6)
    if place != "input":
        assert torch.allclose(found.output_BTD, expected, atol=1e-6)
    assert set(words.layer_weights()) == ({"input", "output"} if place == "both" else {place})


def test_every_place_learns_its_own_mix(source: LayerStore) -> None:
    words = WordEmbedding(toy.static(), source, placement="both")
    words(TEXTS).x_BTE.square().sum().backward()
    assert words.mixes["input"].scalars.grad.abs().sum() > 0
    assert words.mixes["output"].scalars.grad is None


def test_only_the_last_layer(source: LayerStore) -> None:
    words = WordEmbedding(toy.static(), source, mixing="last")
    assert torch.allclose(words(TEXTS).x_BTE[..., 7:], source.layers(TEXTS)[-1], atol=1e-6)
    assert words.layer_weights()["input"]["shares"] == [0, 0, 1]


def test_a_projection_of_all_components(source: LayerStore) -> None:
    words = WordEmbedding(toy.static(), source, mixing="projection", placement="both")
    assert (words.dim, words.output_dim) == (7 + 256, 256)
    assert words(TEXTS).output_BTD.shape == (2, 3, 256)


def test_the_penalty_is_of_all_mixes(source: LayerStore) -> None:
    words = WordEmbedding(toy.static(), source, placement="both")
    with torch.no_grad():
        for mix in words.mixes.values():
            mix.scalars.copy_(torch.tensor([1.0, 2.0, 0.0]))
    assert words.penalty(0.1).item() == pytest.approx(0.1 * 10)


def test_learned_vectors() -> None:
    words = WordEmbedding(frequent_words([("The", "bank"), ("the", "bank", "once")]))
    found = words([("THE", "once", "never")]).x_BTE[0]
    assert not torch.equal(found[0], found[1]) and torch.equal(found[1], found[2])
    found.sum().backward()
    assert words.learned.weight.grad.abs().sum() > 0


def test_a_bilm_that_learns() -> None:
    layer = ElmoEmbedding(random_bilm(small_config()), mixes=[], trainable=True)
    words = WordEmbedding(toy.static(), layer)
    words(TEXTS).x_BTE.square().sum().backward()
    assert all(p.grad is not None for name, p in words.named_parameters() if "elmo" in name)


def test_dropout_is_for_training(source: LayerStore) -> None:
    words = WordEmbedding(toy.static(), source, dropout=0.5, placement="both").eval()
    still = words(TEXTS)
    words.train()
    moved = words(TEXTS)
    for part in (slice(0, 7), slice(7, 19)):
        assert (moved.x_BTE[0, :, part] == 0).any() and (still.x_BTE[0, :, part] != 0).all()
    assert (moved.output_BTD[0] == 0).any()


@pytest.mark.parametrize("texts", [[], [()], [("a",), ()]])
def test_nothing_to_read(texts: list[tuple[str, ...]]) -> None:
    with pytest.raises(InputError, match="without words"):
        WordEmbedding(toy.static())(texts)


def test_wrong_choices(source: LayerStore) -> None:
    with pytest.raises(InputError, match="placement is 'top'"):
        WordEmbedding(toy.static(), source, placement="top")
    with pytest.raises(InputError, match="mixing is 'first'"):
        WordEmbedding(toy.static(), source, mixing="first")
