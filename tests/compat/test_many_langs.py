"""ELMoForManyLangs' `Embedder`: its README's script, and its own vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import formats
from elmokit.bilm.mix import Mix
from elmokit.compat.many_langs import Embedder, OutputLayerError
from elmokit.errors import InputError

FOLDER = GOLDEN / "many_langs"
MODEL = FOLDER / "models" / "plain" / "native"
SENTENCES = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))
ALL = np.load(FOLDER / "models" / "plain" / "vectors.npz")["all"]


def test_the_script_of_its_readme() -> None:
    e = Embedder(str(MODEL))
    sents = [
        ["今", "天", "天氣", "真", "好", "阿"],
        ["潮水", "退", "了", "就", "知道", "誰", "沒", "穿", "褲子"],
    ]
    found = e.sents2elmo(sents)
    assert isinstance(found, list)
    assert [vectors.shape for vectors in found] == [(6, 16), (9, 16)]
    assert all(isinstance(v, np.ndarray) and v.dtype == np.float32 for v in found)


@pytest.mark.parametrize(
    ("output_layer", "expected"),
    [(-1, ALL.mean(axis=0)), (-2, ALL), (0, ALL[0]), (1, ALL[1]), (2, ALL[2]), (-3, ALL[0])],
)
def test_its_vectors(output_layer: int, expected: np.ndarray) -> None:
    """In the order of the input, and the same in every call."""
    embedder = Embedder(MODEL, batch_size=4)
    for _ in range(2):
        found = np.concatenate(embedder.sents2elmo(SENTENCES, output_layer), axis=-2)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < 1e-5


def test_empty_sentences_and_none() -> None:
    """The package cannot: it divides by the number of sentences, or of words."""
    embedder = Embedder(MODEL)
    assert embedder.sents2elmo([]) == []
    assert [v.shape for v in embedder.sents2elmo([[], ["a"]], -2)] == [(3, 0, 16), (3, 1, 16)]
    assert embedder.sents2elmo([[]])[0].shape == (0, 16)


def test_a_string_is_its_characters() -> None:
    embedder = Embedder(MODEL)
    with pytest.warns(UserWarning, match=r"sents contains strings") as warned:
        one, two = embedder.sents2elmo(["天氣 好", ["天", "氣", " ", "好"]])
    assert warned[0].filename == __file__
    assert (one == two).all()
    with pytest.warns(UserWarning, match=r"sents is a string.*text\.split"):
        assert [v.shape for v in embedder.sents2elmo("天氣")] == [(1, 16), (1, 16)]


@pytest.mark.parametrize(
    ("output_layer", "shape"),
    [
        (-1.0, (2, 16)),
        (np.int64(-1), (2, 16)),
        (-2.0, (3, 2, 16)),
        (np.int64(1), (2, 16)),
        ([0, 2], (2, 2, 16)),
        (np.array([1, 2]), (2, 2, 16)),
        (slice(1, None), (2, 2, 16)),
        (None, (1, 3, 2, 16)),
        (True, (1, 3, 2, 16)),
        (False, (0, 3, 2, 16)),
    ],
)
def test_odd_layers_index_the_array_as_in_the_original(
    output_layer: object, shape: tuple[int, ...]
) -> None:
    """It compares with -1 and -2, and indexes a NumPy array with everything else."""
    embedder = Embedder(MODEL)
    (found,) = embedder.sents2elmo([["天", "氣"]], output_layer)
    assert found.shape == shape
    (every,) = embedder.sents2elmo([["天", "氣"]], -2)
    if not isinstance(output_layer, float) and not np.isscalar(output_layer):
        assert np.array_equal(found, every[output_layer])


def test_sentences_can_come_from_a_generator() -> None:
    assert len(Embedder(MODEL).sents2elmo(words for words in [["天"], ["氣"]])) == 2


def test_the_average_is_plain(tmp_path: Path) -> None:
    mixed = replace(formats.read(MODEL), mix=Mix((0.0, 5.0, 1.0), 3.0))
    formats.write(mixed, tmp_path / "mixed")
    found = Embedder(tmp_path / "mixed").sents2elmo(SENTENCES)
    assert np.abs(np.concatenate(found) - ALL.mean(axis=0)).max() < 1e-5


def test_what_it_does_not_take() -> None:
    with pytest.raises(InputError, match="batch_size is 0"):
        Embedder(MODEL, 0)
    embedder = Embedder(MODEL)
    for layer in (3, -4, "top", 1.0):
        with pytest.raises(OutputLayerError, match="this model has 3 layers, so expected 0 to 2"):
            embedder.sents2elmo([["a"]], layer)
    assert issubclass(OutputLayerError, IndexError)  # as the original raises
    with pytest.raises(InputError, match="sentence 1, word 0 is int 5"):
        embedder.sents2elmo([["a"], [5]])  # type: ignore[list-item]


def test_its_own_directories() -> None:
    found = Embedder(FOLDER / "models" / "plain").sents2elmo(SENTENCES, -2)
    assert np.abs(np.concatenate(found, axis=1) - ALL).max() < 1e-5
