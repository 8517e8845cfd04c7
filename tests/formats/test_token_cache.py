"""Token caches: those that bilm-tf's code writes, ours, and broken ones."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import formats
from elmokit.bilm.weights import FloatArray
from elmokit.engine.reference import ReferenceNetwork
from elmokit.engine.wordcache import WordCache
from elmokit.errors import FormatError, InputError, ModelNotFound
from elmokit.formats import token_cache
from elmokit.formats.stored_arrays import StoredArray
from elmokit.formats.token_cache import TokenCache
from elmokit.text.characters import encode_words

CACHE, WORDS = GOLDEN / "tf" / "tokens.hdf5", GOLDEN / "tf" / "tokens.txt"
MARKS = ["<S>", "</S>", "<UNK>"]


class Model:
    """The model that the golden cache was made with; remembers what it was asked."""

    def __init__(self, name: str = "plain") -> None:
        bilm = formats.read(GOLDEN / "models" / name)
        self.width = bilm.config.lstm.width
        self._network = ReferenceNetwork(bilm.config, bilm.weights)
        self._characters = bilm.config.char_cnn.max_characters
        self.asked: list[str] = []

    def compute(self, words: list[str]) -> FloatArray:
        self.asked += words
        return self._network.word_vectors(*encode_words(words, self._characters))


@pytest.fixture
def cache() -> TokenCache:
    return token_cache.read(CACHE, WORDS)


def test_a_cache_of_the_original(cache: TokenCache) -> None:
    words = WORDS.read_text().split("\n")[:-1]
    assert cache.width == 8 and list(cache) == words and len(cache) == 17
    np.testing.assert_allclose(cache.vectors, Model().compute(words), atol=1e-6)
    assert not np.allclose(cache["<S>"], cache["</S>"])
    assert "the" in cache and "outside" not in cache and cache.get("outside") is None
    assert repr(cache) == "TokenCache(17 words of 8)"


def test_it_stays_in_its_file(cache: TokenCache) -> None:
    assert isinstance(cache.vectors, StoredArray)


def test_words_outside_are_computed(cache: TokenCache) -> None:
    model = Model()
    words = ["the", "outside", "<S>", "naïve", "другой"]
    vectors = cache.look_up(words, model.compute)
    assert model.asked == ["outside", "другой"]
    np.testing.assert_allclose(vectors, Model().compute(words), atol=1e-6)
    cache.look_up(["the", "dog"], model.compute)
    assert model.asked == ["outside", "другой"]
    assert cache.look_up([], model.compute).shape == (0, 8)


def test_before_the_word_cache(cache: TokenCache) -> None:
    """How the two stand one behind the other."""
    model, words = Model(), ["the", "outside"]
    learned = WordCache(8, 1 << 20)
    for _ in range(2):
        cache.look_up(words, lambda others: learned.look_up(others, model.compute))
    assert model.asked == ["outside"]


def test_check(cache: TokenCache) -> None:
    cache.check(8, Model().compute)
    with pytest.raises(InputError, match="vectors of 8 numbers, the model has vectors of 6"):
        other = Model("tanh")
        cache.check(other.width, other.compute)
    with pytest.raises(InputError, match=r"differs by .* from what the model computes"):
        cache.check(8, Model("no_clips").compute)
    mixed_up = TokenCache(list(reversed(cache.words)), cache.vectors)
    with pytest.raises(InputError, match="another model or vocabulary"):
        mixed_up.check(8, Model().compute)
    TokenCache([], np.empty((0, 8), np.float32)).check(8, Model().compute)


def test_write_and_read(tmp_path: Path) -> None:
    words = token_cache.add_marks(["the", "Grüße", "the", "</S>"])
    assert words == ["<S>", "<UNK>", "the", "Grüße", "</S>"]
    vectors = Model().compute(words)
    files = token_cache.write(tmp_path / "new" / "my.hdf5", words, vectors)
    assert [f.name for f in files] == ["my.hdf5", "my.vocab.txt"]
    assert sorted(f.name for f in (tmp_path / "new").iterdir()) == ["my.hdf5", "my.vocab.txt"]
    again = token_cache.read(files[0])
    assert list(again) == words
    np.testing.assert_array_equal(again.vectors, vectors)
    with h5py.File(files[0]) as file:  # as bilm-tf will look for it
        assert list(file["embedding"].shape) == [5, 8] and file["embedding"].dtype == np.float32


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    words = token_cache.add_marks(["the", "cat"])
    files = token_cache.write(tmp_path / "my.hdf5", words, Model().compute(words))

    def content() -> object:
        cache = token_cache.read(files[0])
        return {word: cache[word].tolist() for word in cache}

    wanted = content()
    for file in files:
        whole, refused = file.read_bytes(), 0
        for place in range(0, len(whole), 1 + len(whole) // 100):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << place % 8
            file.write_bytes(damaged)
            try:
                assert content() == wanted, (file.name, place)
            except FormatError:
                refused += 1
        assert refused > 10
        file.write_bytes(whole)
    with pytest.raises(FormatError, match="other words"):
        token_cache.read(files[0], list(reversed(words)))


def test_a_cache_of_an_earlier_version_has_no_checksums(tmp_path: Path) -> None:
    words = token_cache.add_marks(["the"])
    vectors = Model().compute(words)
    files = token_cache.write(tmp_path / "my.hdf5", words, vectors)
    with h5py.File(files[0], "r+") as file:
        del file["elmokit"]
    np.testing.assert_array_equal(token_cache.read(files[0]).vectors, vectors)


def test_the_vocabulary_as_bilm_tf_counts_it(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("<S>\n</S>\n!!!MAXTERMID\n <UNK> \nthe\t\nthe\n")
    vectors = np.arange(10, dtype=np.float64).reshape(5, 2)
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file.create_dataset("embedding", data=vectors, chunks=(1, 2), compression="gzip")
    cache = token_cache.read(tmp_path / "x.hdf5", tmp_path / "v.txt")
    assert list(cache.words) == ["<S>", "</S>", "<UNK>", "the", "the"]
    assert cache.vectors.dtype == np.float32
    assert cache["the"].tolist() == [6, 7] and len(cache) == 4
    assert token_cache.read(tmp_path / "x.hdf5", list("abcde"))["e"].tolist() == [8, 9]


def test_words_that_cannot_be_written(tmp_path: Path) -> None:
    def write(words: list[str], rows: int) -> None:
        token_cache.write(tmp_path / "x.hdf5", words, np.zeros((rows, 2)))

    with pytest.raises(InputError, match="lack </S>"):
        write(["<S>", "<UNK>"], 2)
    for word in ("a\nb", " a", "a\r", "!!!MAXTERMID"):
        with pytest.raises(InputError, match="word 3 is"):
            write([*MARKS, word], 4)
    with pytest.raises(FormatError, match="expected one row per word"):
        write(MARKS, 2)
    with pytest.raises(InputError, match="is a directory"):
        token_cache.write(tmp_path, MARKS, np.zeros((3, 2)))
    assert list(tmp_path.iterdir()) == []


def make(path: Path, **datasets: object) -> Path:
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file[name] = data
    return path


def test_broken_caches(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no token cache"):
        token_cache.read(tmp_path / "x.hdf5", WORDS)
    with pytest.raises(ModelNotFound, match="no vocabulary at"):
        token_cache.read(CACHE)
    with pytest.raises(FormatError, match=r"\(17, 8\), but the vocabulary has 3 words"):
        token_cache.read(CACHE, MARKS)
    with pytest.raises(FormatError, match="it holds weights; expected a dataset"):
        token_cache.read(make(tmp_path / "a", weights=np.zeros(3)), MARKS)
    with pytest.raises(FormatError, match="expected floats"):
        token_cache.read(make(tmp_path / "b", embedding=np.zeros((3, 2), int)), MARKS)
    with pytest.raises(FormatError, match="expected floats"):
        token_cache.read(make(tmp_path / "c", embedding=np.zeros(3)), MARKS)
    data = CACHE.read_bytes()
    for kept in (0, 10, 600, len(data) - 1):
        (tmp_path / "d").write_bytes(data[:kept])
        with pytest.raises(FormatError, match="cannot be read as HDF5"):
            token_cache.read(tmp_path / "d", WORDS)


def test_hostile_caches(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "link", "w") as file:
        file["embedding"] = h5py.ExternalLink(str(CACHE), "embedding")
    with pytest.raises(FormatError, match="embedding is an external link to another file"):
        token_cache.read(tmp_path / "link", WORDS)
    with h5py.File(tmp_path / "outside", "w") as file:
        file.create_dataset(
            "embedding", (17, 8), "f4", external=[(str(CACHE), 0, h5py.h5f.UNLIMITED)]
        )
    with pytest.raises(FormatError, match="in another file"):
        token_cache.read(tmp_path / "outside", WORDS)
    with h5py.File(tmp_path / "huge", "w") as file:
        file.create_dataset("embedding", (1 << 40, 512), "f4", chunks=(1024, 512))
    with pytest.raises(FormatError, match="is truncated or damaged"):
        token_cache.read(tmp_path / "huge", WORDS)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    vectors = np.zeros((3, 2), np.float32)
    vectors[2, 1] = np.nan
    cache = token_cache.read(make(tmp_path / "x", embedding=vectors), MARKS)
    cache.look_up(MARKS[:2], Model().compute)
    with pytest.raises(FormatError, match="NaN or infinite"):
        cache.look_up(MARKS, Model().compute)
