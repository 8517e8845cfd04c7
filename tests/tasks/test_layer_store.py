"""Layers on disk: the engine's numbers, computed once, complete or absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import ElmoError  # noqa: E402
from elmokit.tasks import layer_store as module  # noqa: E402
from elmokit.tasks.layer_store import LayerStore  # noqa: E402

TEXTS = [("the", "bank"), ("by", "the", "river", "bank"), ("Yes",), ("the", "bank")]


class Counting(Elmo):
    """Counts the texts that it embeds."""

    embedded = 0

    def stream(self, sentences, layers="mix"):
        sentences = list(sentences)
        self.embedded += len(sentences)
        return super().stream(sentences, layers)


@pytest.fixture
def elmo() -> Counting:
    return Counting(random_bilm(small_config()))


def test_they_are_the_engines(elmo: Counting, tmp_path: Path) -> None:
    source = LayerStore(elmo, tmp_path)
    source.add(TEXTS)
    found = source.layers(TEXTS)
    assert found.shape == (3, 4, 4, 12)
    for b, words in enumerate(TEXTS):
        expected = elmo.embed([words], layers="all")[0]
        assert np.allclose(found[:, b, : len(words)], expected, atol=2e-3)
        assert (found[:, b, len(words) :] == 0).all()


def test_once_for_all(elmo: Counting, tmp_path: Path) -> None:
    told = []
    LayerStore(elmo, tmp_path).add(TEXTS, lambda *report: told.append(report))
    assert elmo.embedded == 3 and told[-1] == (7, 7)  # equal texts are one
    source = LayerStore(elmo, tmp_path)
    source.add(TEXTS)
    source.layers(TEXTS)
    assert elmo.embedded == 3


def test_what_is_not_kept_is_the_same_to_the_bit(elmo: Counting, tmp_path: Path) -> None:
    kept, fresh = LayerStore(elmo, tmp_path / "a"), LayerStore(elmo, tmp_path / "b")
    kept.add(TEXTS)
    assert torch.equal(kept.layers(TEXTS), fresh.layers(TEXTS))
    assert not (tmp_path / "b").exists()


def test_an_interruption_costs_one_piece(
    elmo: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE_WORDS", 2)

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LayerStore(elmo, tmp_path).add(TEXTS, stop)
    assert elmo.embedded == 1
    LayerStore(elmo, tmp_path).add(TEXTS)
    assert elmo.embedded == 3


def test_a_damaged_piece_is_made_again(elmo: Counting, tmp_path: Path) -> None:
    LayerStore(elmo, tmp_path).add(TEXTS)
    (piece,) = tmp_path.rglob("*.npy")
    piece.write_bytes(piece.read_bytes()[:-7])
    source = LayerStore(elmo, tmp_path)
    source.add(TEXTS)
    assert elmo.embedded == 6
    assert torch.equal(source.layers(TEXTS), LayerStore(elmo, tmp_path / "b").layers(TEXTS))


def test_another_model_another_place(elmo: Counting, tmp_path: Path) -> None:
    LayerStore(elmo, tmp_path).add(TEXTS)
    other = Counting(random_bilm(small_config(), seed=1))
    source = LayerStore(other, tmp_path)
    source.add(TEXTS)
    assert other.embedded == 3
    zero = Counting(elmo.bilm, state="zero")
    LayerStore(zero, tmp_path).add(TEXTS)
    assert zero.embedded == 3


def test_a_place_that_cannot_be(elmo: Counting, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ElmoError, match="ELMOKIT_CACHE"):
        LayerStore(elmo, tmp_path / "file").add(TEXTS)
