"""bilm-tf's functions outside of a graph: the files that it writes, and the ids that it feeds."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.compat.bilm import (
    Batcher,
    TokenBatcher,
    dump_bilm_embeddings,
    dump_token_embeddings,
)
from elmokit.errors import InputError, ModelNotFound

MODEL = GOLDEN / "models" / "plain"
FILES = MODEL / "options.json", MODEL / "weights.hdf5"


def vocabulary(tmp_path: Path, *words: str) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{w}\n" for w in ("<S>", "</S>", "<UNK>", *words)), encoding="utf-8")
    return path


def test_dump_bilm_embeddings(tmp_path: Path) -> None:
    """Each sentence continues from the one before, as in its session."""
    lines = ["She went to the bank .", "", "She went to the bank ."]
    text, out = tmp_path / "text.txt", tmp_path / "vectors.hdf5"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    dump_bilm_embeddings(vocabulary(tmp_path), text, *FILES, out)
    elmo = Elmo.load(MODEL, state="carry")
    with h5py.File(out) as file:
        assert sorted(file) == ["0", "1", "2"]
        for i, line in enumerate(lines):
            assert file[str(i)].dtype == np.float32
            assert np.array_equal(file[str(i)], elmo.embed([line.split()], "all")[0])
        assert file["1"].shape == (3, 0, 16)
        assert not np.allclose(file["0"], file["2"], atol=1e-3)


def test_dump_token_embeddings(tmp_path: Path) -> None:
    out = tmp_path / "tokens.hdf5"
    dump_token_embeddings(vocabulary(tmp_path, "She", "!!!MAXTERMID", "bank"), *FILES, out)
    with h5py.File(out) as file:
        found = file["embedding"][...]
    expected = Elmo.load(MODEL).embed([["<S>"], ["</S>"], ["<UNK>"], ["She"], ["bank"]], 0)
    assert found.shape == (5, 8)
    assert np.array_equal(found, np.concatenate(expected)[:, :8])


def test_batchers(tmp_path: Path) -> None:
    sentences = [["She", "went"], ["Yes"]]
    ids = Batcher(str(vocabulary(tmp_path)), 50).batch_sentences(sentences)
    assert ids.shape == (2, 4, 50) and not ids[1, 3].any() and ids[1, 2].any()
    numbers = TokenBatcher(vocabulary(tmp_path, "She")).batch_sentences(sentences)
    assert numbers.tolist() == [[1, 4, 3, 2], [1, 3, 2, 0]]
    path = tmp_path / "bad.txt"
    path.write_text("She\n")
    with pytest.raises(InputError, match="lacks <S>, </S>, <UNK>"):
        TokenBatcher(path)
    with pytest.raises(ModelNotFound, match="expected a vocabulary file"):
        TokenBatcher(tmp_path / "none.txt")


def test_a_file_that_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="expected a text file"):
        dump_bilm_embeddings(None, tmp_path / "none", *FILES, tmp_path / "out.hdf5")
    assert not list(tmp_path.iterdir())


def test_the_graph_is_explained() -> None:
    with pytest.raises(ImportError, match=r"TensorFlow.*Elmo\.load\("):
        from elmokit.compat.bilm import BidirectionalLanguageModel  # noqa: F401
    with pytest.raises(ImportError, match=r"ElmoEmbedding\("):
        from elmokit.compat.bilm import weight_layers  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name"):
        from elmokit.compat.bilm import nothing  # type: ignore[attr-defined] # noqa: F401
