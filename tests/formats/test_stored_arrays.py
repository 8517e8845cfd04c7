"""Models whose files change after they were loaded, or are overwritten by killed processes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config
from tests.test_staging import die_before

from elmokit import Elmo
from elmokit.bilm.model import BiLM
from elmokit.bilm.random import random_bilm
from elmokit.errors import ElmoError, FormatError
from elmokit.formats.stored_arrays import StoredArray, WeightsFile, open_npy
from elmokit.text.vocabulary import Vocabulary

FORMATS = {"native": "m", "allennlp": "pair"}


def npy(kind: str, shape: str, size: int, order: str = "False") -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(size)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\3\4 not a zip archive",
        npy("<f4", "(2, 3)", 23),
        npy("<f4", "(2, 3)", 24, "True"),
        npy("<f4", "(1099511627776,)", 24),
        npy("|O", "(3,)", 24),
        npy("<f4", "(-1, -6)", 24),
        npy("<f4", "(0, 99999999999999999999)", 0),
    ],
)
def test_npy_files_that_lie_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(FormatError, match="is damaged"):
        open_npy(tmp_path / "x.npy").read()


def test_npy_files_are_read(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    np.testing.assert_array_equal(open_npy(tmp_path / "x.npy").read(), array)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_truncated_after_loading(elmo: Elmo, tmp_path: Path, format: str) -> None:
    """It used to kill the process with SIGBUS."""
    files = elmo.save(tmp_path / "m", format)
    loaded = Elmo.load(tmp_path / "m")
    before = loaded.embed(["a b"])
    for path in files:
        if path.suffix in (".safetensors", ".hdf5"):
            os.truncate(path, 100)
    with pytest.raises(FormatError, match="was changed after it was opened"):
        loaded.save(tmp_path / "copy")
    with pytest.raises(FormatError, match="rename"):
        _ = Elmo(loaded.bilm).bilm.fingerprint
    np.testing.assert_array_equal(loaded.embed(["a b"])[0], before[0])


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_replaced_by_renaming(
    elmo: Elmo, bilm: BiLM, tmp_path: Path, format: str
) -> None:
    """The loaded model still has its own weights."""
    elmo.save(tmp_path / "m", format)
    loaded = Elmo.load(tmp_path / "m")
    Elmo(random_bilm(small_config(), seed=5)).save(tmp_path / "m", format)
    assert loaded.bilm.fingerprint == bilm.fingerprint
    for name, array in bilm.weights.items():
        np.testing.assert_array_equal(loaded.bilm.weights[name], array)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="simulates kills with os.fork")
@pytest.mark.parametrize("format", FORMATS)
def test_overwriting_a_model_is_atomic(tmp_path: Path, format: str) -> None:
    """Killed at every step: the old model or the new one, never none, never a mixture."""
    config, vocabulary = small_config(), Vocabulary(["<S>", "</S>", "<UNK>"])
    old = Elmo(BiLM(config, random_bilm(config, seed=1).weights, vocabulary))
    new = Elmo(random_bilm(small_config(cells=7), seed=2))
    prints = {old.bilm.fingerprint: "old", new.bilm.fingerprint: "new"}
    path, step, seen = tmp_path / "m", 0, []
    while True:
        old.save(path, format)
        killed = die_before(step, lambda: new.save(path, format))
        loaded = Elmo.load(path).bilm
        found = prints[loaded.fingerprint]
        assert (loaded.vocabulary is not None) == (found == "old")
        seen.append(found)
        new.save(path, format)
        assert not [name for name in os.listdir(path) if name.startswith(".")]
        if not killed:
            break
        step += 1
    assert set(seen) == {"old", "new"} and seen == sorted(seen, reverse=True)


def test_a_replacement_on_a_read_only_disk_is_read_where_it_is(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elmo.save(tmp_path / "new")
    Elmo(random_bilm(small_config(), seed=5)).save(tmp_path / "m")
    os.rename(tmp_path / "new", tmp_path / "m" / ".model.safetensors.committed")

    def refuse(*names: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    assert Elmo.load(tmp_path / "m").bilm.fingerprint == elmo.bilm.fingerprint


def test_a_zip_archive_of_the_future(elmo: Elmo, tmp_path: Path) -> None:
    """Version 25.5 is needed to extract it: the standard library raises NotImplementedError."""
    elmo.save(tmp_path / "m.zip")
    data = bytearray((tmp_path / "m.zip").read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 255
    (tmp_path / "m.zip").write_bytes(data)
    with pytest.raises(FormatError, match=r"not a readable archive: zip file version 25.5"):
        Elmo.load(tmp_path / "m.zip")


def test_rows_of_a_stored_array(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(1, 4, 6)
    (tmp_path / "a").write_bytes(b"head" + array.tobytes())
    stored = StoredArray(WeightsFile(tmp_path / "a"), 4, array.dtype, array.shape)
    np.testing.assert_array_equal(stored.drop_first_axis().rows(1, 3).read(), array[0, 1:3])
    with pytest.raises(ValueError):
        stored.drop_first_axis().drop_first_axis()
    (tmp_path / "a").write_bytes(b"other content, as long".ljust(100))
    with pytest.raises(ElmoError, match="was changed"):
        stored.read()
