"""Proteins in files of vectors: found by id, in every format, also after an interruption."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.conftest import small_config

from elmokit import embed_fasta_to_file, load_vectors
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo, mark_proteins
from elmokit.errors import InputError
from elmokit.vectors import open_writer

SEQUENCES = {"sp|P1|A": "MKTAYIAKQR", "b/2": "MKUZOBX*-", "none": "", "0": "WW"}


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(mark_proteins(random_bilm(small_config()), True))


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    path = tmp_path / "proteins.fasta"
    path.write_text("".join(f">{name} text\n{s}\n" for name, s in SEQUENCES.items()))
    return path


@pytest.mark.parametrize("layers", ["sum", "all"])
@pytest.mark.parametrize("pooling", [None, "mean"])
@pytest.mark.parametrize("ending", ["h5", "npz", "parquet"])
def test_found_by_id(
    elmo: Elmo, fasta: Path, tmp_path: Path, ending: str, pooling: str | None, layers: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    path = tmp_path / f"vectors.{ending}"
    summary = embed_fasta_to_file(elmo, fasta, path, pooling=pooling, layers=layers)  # type: ignore[arg-type]
    assert summary == (4, 21, 0)
    expected = dict(elmo.embed_fasta(fasta, layers, pooling=pooling))  # type: ignore[arg-type]
    with load_vectors(path) as vectors:
        assert vectors.ids == list(SEQUENCES)
        assert vectors[1:3].ids == ["b/2", "none"]
        for i, (name, sequence) in enumerate(SEQUENCES.items()):
            assert vectors[name].shape == expected[name].shape
            assert (vectors[name] == expected[name]).all()
            assert vectors.position_of(name) == i
            assert vectors.words(i) in (list(sequence), None)
        with pytest.raises(InputError, match="has no sentence with the id 'P9'"):
            vectors["P9"]


def test_rows_of_residues(elmo: Elmo, fasta: Path, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
    path = tmp_path / "residues.parquet"
    embed_fasta_to_file(elmo, fasta, path, rows="words")
    table = pq.read_table(path)
    assert table.column_names == ["id", "sentence", "position", "word", "vector"]
    assert table.column("id").to_pylist() == [i for i, s in SEQUENCES.items() for _ in s]
    assert "".join(table.column("word").to_pylist()) == "".join(SEQUENCES.values())
    with load_vectors(path) as vectors:
        assert vectors.ids == ["sp|P1|A", "b/2", "", "0"]  # nothing is stored of no residues
        assert (vectors["0"] == elmo.embed([["W", "W"]], "sum")[0]).all()
    embed_fasta_to_file(elmo, fasta, tmp_path / "pooled.parquet", pooling="mean")
    pooled = pq.read_table(tmp_path / "pooled.parquet")
    assert pooled.column_names == ["id", "sentence", "text", "word_count", "vector"]
    assert pooled.column("text").to_pylist() == list(SEQUENCES.values())


def test_other_programs_find_them(elmo: Elmo, fasta: Path, tmp_path: Path) -> None:
    embed_fasta_to_file(elmo, fasta, tmp_path / "v.h5", pooling="mean")
    with h5py.File(tmp_path / "v.h5") as file:
        assert file["ids/sp|P1|A"].shape == (elmo.dim,)
        assert set(file["ids"]) == set(SEQUENCES) - {"b/2"}
        assert file["elmokit/ids"].asstr()[:].tolist() == list(SEQUENCES)
    embed_fasta_to_file(elmo, fasta, tmp_path / "v.npz", pooling="mean")
    archive = np.load(tmp_path / "v.npz")
    assert archive["ids"].tolist() == list(SEQUENCES)
    assert archive["0"].shape == (elmo.dim,)


@pytest.mark.parametrize("ending", ["h5", "npz"])
def test_an_interrupted_run_continues(elmo: Elmo, fasta: Path, tmp_path: Path, ending: str) -> None:
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"parts.{ending}"
    embed_fasta_to_file(elmo, fasta, whole)

    def stop(words: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_fasta_to_file(elmo, fasta, path, on_sentence=stop)
    changed = tmp_path / "changed.fasta"
    changed.write_text(fasta.read_text().replace(">sp|P1|A", ">other"))
    with pytest.raises(InputError, match=r"sentence 0 .* differs"):
        embed_fasta_to_file(elmo, changed, path)
    assert embed_fasta_to_file(elmo, fasta, path) == (4, 21, 1)
    assert path.read_bytes() == whole.read_bytes()


def test_ids_of_ones_own(tmp_path: Path) -> None:
    array = np.ones((2, 3), np.float32)
    with open_writer(tmp_path / "a.h5", ids=True) as out:
        out.write(["x", "y"], array, id="first")
        with pytest.raises(InputError, match="sentence 1 has the id None; expected an id"):
            out.write(["x", "y"], array)
    with open_writer(tmp_path / "b.h5") as out:
        with pytest.raises(InputError, match="sentence 0 has the id 'a'; expected no ids"):
            out.write(["x", "y"], array, id="a")
        out.write(["x", "y"], array)
    with load_vectors(tmp_path / "b.h5") as vectors:
        assert vectors.ids is None
        with pytest.raises(InputError, match="has no ids"):
            vectors["a"]
