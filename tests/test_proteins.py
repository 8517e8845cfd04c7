"""Models of proteins: how they are recognized, where they start from, and SeqVec's vectors."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

from elmokit import inspect_model
from elmokit.bilm.model import BiLM
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo, mark_proteins
from elmokit.engine.state import PROTEIN_WARM_UP, WARM_UP
from elmokit.errors import InputError
from elmokit.text.vocabulary import Vocabulary

FASTA = ">one\nMKTAYIAKQRQISFVKSHFSRQ\n>two\nmktuzobxj*-w\n>none\n>three\nW\n"
SEQUENCES = {"one": "MKTAYIAKQRQISFVKSHFSRQ", "two": "MKTUZOBXJ*-W", "none": "", "three": "W"}


@pytest.fixture
def bilm() -> BiLM:
    return mark_proteins(random_bilm(small_config()), True)


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    path = tmp_path / "proteins.fasta"
    path.write_text(FASTA)
    return path


@pytest.mark.parametrize("state", ["zero", "carry"])
def test_vectors_are_those_of_seqvec(bilm: BiLM, fasta: Path, tmp_path: Path, state: str) -> None:
    """Its preprocessing, AllenNLP's embedder, and the sum over layers, mean over residues."""
    pytest.importorskip("torch", reason="AllenNLP's embedder needs torch")
    from elmokit.compat.allennlp import ElmoEmbedder

    Elmo(bilm).save(tmp_path / "model", "allennlp")
    files = tmp_path / "model" / "options.json", tmp_path / "model" / "weights.hdf5"
    embedder = ElmoEmbedder(*files)
    elmo = Elmo.load(tmp_path / "model", state=state)
    residues = dict(elmo.embed_fasta(fasta))
    elmo.reset()
    proteins = dict(elmo.embed_fasta(fasta, pooling="mean"))
    assert list(residues) == list(proteins) == list(SEQUENCES)
    for name, sequence in SEQUENCES.items():
        if state == "zero":
            embedder = ElmoEmbedder(*files)
        if not sequence:
            # AllenNLP skips a single empty sentence, in which we, like bilm-tf, read the marks.
            assert residues[name].shape == (0, elmo.dim) and not proteins[name].any()
            if state == "carry":
                break
            continue
        layers = embedder.embed_sentence(list(sequence))
        assert np.abs(residues[name] - layers.sum(axis=0)).max() < 1e-5
        assert np.abs(proteins[name] - layers.sum(axis=0).mean(axis=0)).max() < 1e-5


def test_other_layers_and_wrong_choices(bilm: BiLM, fasta: Path) -> None:
    elmo = Elmo(bilm)
    layers = dict(elmo.embed_fasta(fasta, "all"))
    for name, sequence in SEQUENCES.items():
        assert layers[name].shape == (3, len(sequence), elmo.dim)
        same = elmo.embed([list(sequence)], layers="all")[0]
        assert (layers[name] == same).all()
    pooled = dict(elmo.embed_fasta(fasta, "all", pooling="max"))
    assert (pooled["one"] == layers["one"].max(axis=1)).all()
    with pytest.raises(InputError, match="expected 'mix', 'sum', 'all', 'top' or a number"):
        elmo.embed_fasta(fasta, "bottom")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="pooling is 'sum'; expected 'mean' or 'max'"):
        elmo.embed_fasta(fasta, pooling="sum")  # type: ignore[arg-type]


def test_the_settled_state_comes_from_proteins(bilm: BiLM, tmp_path: Path) -> None:
    elmo, text = Elmo(bilm), Elmo(mark_proteins(bilm, False))
    assert not np.allclose(elmo.settled.cell, text.settled.cell)
    by_hand = Elmo(bilm, state="carry")
    for sequence in PROTEIN_WARM_UP:
        by_hand.embed([list(sequence)])
    assert np.allclose(by_hand.carried.cell, elmo.settled.cell, atol=1e-6)
    assert {len(word) for sequence in PROTEIN_WARM_UP for word in sequence} == {1}
    assert [len(sequence) for sequence in PROTEIN_WARM_UP] == [76, 129, 110, 58, 142]
    assert len(WARM_UP) == 5


def test_how_a_model_is_recognized(bilm: BiLM, tmp_path: Path) -> None:
    plain = random_bilm(small_config())
    assert bilm.reads_residues and not plain.reads_residues
    marks = ("<S>", "</S>", "<UNK>")
    for words, expected in (("ACDEFGHIKLMNPQRSTVWYX", True), ("ACGT", False)):
        model = replace(plain, vocabulary=Vocabulary((*marks, *words)))
        assert model.reads_residues is expected
    english = replace(plain, vocabulary=Vocabulary((*marks, "the", *"ACDEFGHIKLMNPQRSTVWY")))
    assert not english.reads_residues
    for format in ("native", "allennlp"):  # it says so itself, once it was saved
        Elmo(bilm).save(tmp_path / format, format)
        assert Elmo.load(tmp_path / format).bilm.reads_residues
        assert inspect_model(tmp_path / format)["proteins"]
        assert not Elmo.load(tmp_path / format, proteins=False).bilm.reads_residues
    Elmo(plain).save(tmp_path / "plain")
    elmo = Elmo.load(tmp_path / "plain", proteins=True)
    copy = pickle.loads(pickle.dumps(elmo))
    assert copy.bilm.reads_residues
    assert (copy.settled.cell == elmo.settled.cell).all()
    assert elmo.bilm.fingerprint == plain.fingerprint


def test_a_protein_that_is_one_word(bilm: BiLM) -> None:
    elmo = Elmo(bilm)
    with pytest.warns(UserWarning, match=r"it saw one word, 'MKTAYIAKQR' \(10 letters\)") as caught:
        assert elmo.embed("MKTAYIAKQR").shape == (1, elmo.dim)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elmo.embed("MKTAYIAKQR")  # once is enough
        fresh = Elmo(bilm)
        fresh.embed([list("MKTAYIAKQR"), ["W"], "M K T", []])


def test_a_model_of_text_is_warned_about(fasta: Path) -> None:
    plain = random_bilm(small_config())
    with pytest.warns(UserWarning, match=r"starts from the state after English.*proteins=True"):
        Elmo(plain).embed_fasta(fasta)
    english = replace(plain, vocabulary=Vocabulary(("<S>", "</S>", "<UNK>", "the")))
    with pytest.warns(UserWarning, match="the 4 words of its vocabulary are not residues"):
        Elmo(english).embed_fasta(fasta)
