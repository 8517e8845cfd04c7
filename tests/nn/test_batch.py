"""Sentences to batches: words and ids agree, padding is where it should be, nonsense is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import small_config

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.errors import InputError, InputTypeError  # noqa: E402
from elmokit.nn import Batcher  # noqa: E402
from elmokit.text.characters import encode_sentences  # noqa: E402

SENTENCES = [["the", "bank", "the"], [], ["ü" * 30]]
BATCHER = Batcher(random_bilm(small_config()))  # words of 20 characters


def ids() -> torch.Tensor:
    return torch.from_numpy(encode_sentences(SENTENCES, 20))


def test_words_and_ids_give_the_same_batch() -> None:
    one, other = BATCHER.from_words(SENTENCES), BATCHER.from_character_ids(ids())
    assert np.array_equal(one.ids_UC[one.index_N], other.ids_UC[other.index_N])
    assert one.lengths == other.lengths == (3, 0, 1)
    assert len(one.ids_UC) == len(other.ids_UC) == 5  # the, bank, ü…, and the two marks


def test_masks() -> None:
    batch = BATCHER.from_words(SENTENCES)
    assert batch.mask().tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    assert batch.mask(marks=True).sum(dim=1).tolist() == [5, 2, 3]


def test_padding() -> None:
    """Ten words, marks included, numbered in the order of the sentences."""
    batch = BATCHER.from_words(SENTENCES)
    numbers = torch.arange(1.0, 11.0)[None, :, None]
    assert batch.pad(numbers)[0, :, :, 0].tolist() == [[2, 3, 4], [0, 0, 0], [9, 0, 0]]
    with_marks = batch.pad(numbers, marks=True)[0, :, :, 0].tolist()
    assert with_marks == [[1, 2, 3, 4, 5], [6, 7, 0, 0, 0], [8, 9, 10, 0, 0]]


def test_ids_may_be_padded_further() -> None:
    wide = torch.cat([ids(), torch.zeros(3, 4, 20, dtype=torch.long)], dim=1)
    batch = BATCHER.from_character_ids(wide)
    assert batch.lengths == (3, 0, 1) and batch.mask().shape == (3, 7)


def broken(change: str) -> torch.Tensor:
    tensor = ids()
    if change == "hole":
        tensor[0, 1] = 0
    elif change == "ragged":
        tensor[0, 1, 9] = 0
    elif change == "large":
        tensor[0, 1, 2] = 262
    elif change == "negative":
        tensor[0, 1, 2] = -1
    elif change == "short":
        tensor = tensor[:, :, :16]
    elif change == "float":
        tensor = tensor.float()
    return tensor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("hole", "sentence 0 .* has a word after an empty position"),
        ("ragged", "sentence 0, word 1 .* contains 0"),
        ("large", "go from 0 to 262; expected 1 to 261"),
        ("negative", "go from -1 to"),
        ("short", r"expected \(B, T, 20\)"),
        ("float", "float32; expected integers"),
    ],
)
def test_invalid_character_ids(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BATCHER.from_character_ids(broken(change))


@pytest.mark.parametrize("sentences", [["a string"], [["a", 1]], [3]])
def test_invalid_sentences(sentences: list[object]) -> None:
    with pytest.raises(InputTypeError, match="sentence 0"):
        BATCHER.from_words(sentences)  # type: ignore[arg-type]


def test_padding_inside_a_word_does_not_end_it() -> None:
    word = np.full((1, 1, 20), 261)
    word[0, 0, :6] = [259, 98, 261, 261, 99, 260]
    batch = BATCHER.from_character_ids(word)
    assert batch.characters_U[batch.index_N].tolist() == [3, 6, 3]  # between its marks
