"""`elmo embed --fasta`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import small_config

from elmokit import Elmo, formats, load_vectors
from elmokit.bilm.random import random_bilm


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that does not say that it is one of proteins, as SeqVec's files do not."""
    formats.write(random_bilm(small_config()), tmp_path / "model", "allennlp")
    return tmp_path / "model"


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    path = tmp_path / "proteins.fasta"
    path.write_text(">sp|P1|ONE first\nMKTAY\nIAKQR\n>sp|P2|TWO\nmkt*\n")
    return path


def test_proteins_in_a_file(elmo_command: Any, model: Path, fasta: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.h5"
    arguments = ("embed", "-m", model, "--fasta", fasta, "--id-field", 1, "--pool", "mean")
    result = elmo_command(*arguments, "--out", out)
    assert result.code == 0, result.err
    assert "2 proteins, 14 residues, one row per protein with a vector of 12" in result.out
    elmo = Elmo.load(model, proteins=True)
    expected = dict(elmo.embed_fasta(fasta, pooling="mean", id_field=1))
    with load_vectors(out) as vectors:
        assert vectors.ids == ["P1", "P2"]
        assert (vectors["P2"] == expected["P2"]).all()
        assert vectors.signature is not None and vectors.signature["layers"] == "sum"


def test_json_and_stdin(elmo_command: Any, model: Path, fasta: Path) -> None:
    arguments = ("embed", "-m", model, "--fasta", "-", "--json", "--layers", "0")
    result = elmo_command(*arguments, stdin=fasta.read_bytes())
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [(line["id"], line["shape"]) for line in lines] == [
        ("sp|P1|ONE", [10, 12]),
        ("sp|P2|TWO", [4, 12]),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--fasta requires --out FILE.h5, .npz or .parquet, or --json"),
        (("--json", "--split"), "--fasta cannot be combined with --split"),
        (("--json", "MKT", "--tokenized"), "cannot be combined with TEXT, --tokenized"),
        (("--json", "--file", "x"), "cannot be combined with --file"),
        (("--word", "M"), "cannot be combined with --word"),
        (("--out", "v.h5", "--rows", "words"), "a file named *.parquet"),
    ],
)
def test_options_that_do_not_fit(
    elmo_command: Any, model: Path, fasta: Path, options: tuple[str, ...], message: str
) -> None:
    result = elmo_command("embed", "-m", model, "--fasta", fasta, *options)
    assert result.code != 0 and message in result.err


def test_a_mistake_is_found_first(elmo_command: Any, fasta: Path, tmp_path: Path) -> None:
    """Before the model is loaded, which does not even exist here."""
    fasta.write_text(fasta.read_text() + ">sp|P2|TWO\nM\n")
    result = elmo_command("embed", "-m", "nowhere", "--fasta", fasta, "--out", tmp_path / "v.h5")
    assert result.code == 1 and "line 6: the id 'sp|P2|TWO' was given in line 4" in result.err
    assert not (tmp_path / "v.h5.partial").exists()
    assert "give --fasta FILE" in elmo_command("embed", "x", "--id-field", 1).err
