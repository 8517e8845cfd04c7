"""Our network against vectors that the original implementations computed (tests/golden)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import formats
from elmokit.elmo import Elmo
from elmokit.engine.state import StatePolicy

MODELS = sorted(path.name for path in (GOLDEN / "models").iterdir() if path.is_dir())
BATCHES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-5


def differ(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference: absolute below 1, relative above."""
    assert ours.shape == theirs.shape
    return float((np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max())


def embed(elmo: Elmo, batch: list[list[str]]) -> np.ndarray:
    return np.concatenate(elmo.embed(batch, layers="all"), axis=1)


def load(name: str, state: StatePolicy) -> tuple[Elmo, dict[str, np.ndarray]]:
    folder = GOLDEN / "models" / name
    return Elmo.load(folder, state=state), dict(np.load(folder / "vectors.npz"))


def test_there_are_golden_models() -> None:
    assert {"plain", "no_skip", "no_projection", "no_cnn_projection", "tanh"} <= set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_a_fresh_batch_is_equal(name: str) -> None:
    elmo, golden = load(name, "zero")
    for i, batch in enumerate(BATCHES):
        assert differ(embed(elmo, batch), golden[f"fresh_{i}"]) < TOLERANCE


@pytest.mark.parametrize("name", MODELS)
def test_carried_batches_are_equal_and_so_is_the_state(name: str) -> None:
    elmo, golden = load(name, "carry")
    for i, batch in enumerate(BATCHES):
        assert differ(embed(elmo, batch), golden[f"carry_{i}"]) < TOLERANCE
    assert differ(elmo.carried.hidden, golden["hidden"]) < TOLERANCE
    assert differ(elmo.carried.cell, golden["cell"]) < TOLERANCE
    elmo.reset()
    assert differ(embed(elmo, BATCHES[0]), golden["fresh_0"]) < TOLERANCE


@pytest.mark.parametrize("name", MODELS)
def test_what_we_write_gives_the_same_vectors(name: str, tmp_path: Path) -> None:
    """HDF5 to our format to HDF5, and the vectors of the original code come out of the last."""
    elmo, golden = load(name, "zero")
    elmo.save(tmp_path / "native")
    Elmo.load(tmp_path / "native").save(tmp_path / "again", format="allennlp")
    again = Elmo.load(tmp_path / "again", state="zero")
    assert again.bilm.fingerprint == formats.read(GOLDEN / "models" / name).fingerprint
    assert differ(embed(again, BATCHES[0]), golden["fresh_0"]) < TOLERANCE


def test_the_fixture_of_allennlp(shared: Path) -> None:
    """`tests/modules/elmo_test.py` of AllenNLP: three lists of sentences, read side by side."""
    import h5py

    folder = shared / "fixtures" / "allennlp"
    lists = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    elmo = Elmo.load(folder, state="carry")
    expected = [h5py.File(folder / f"lm_embeddings_{k}.hdf5") for k in range(3)]
    worst = 0.0
    for i in range(10):
        batch = [sentences[i].split() for sentences in lists]
        for vectors, file in zip(elmo.embed(batch, layers="top"), expected, strict=True):
            worst = max(worst, differ(vectors, np.concatenate(list(file[str(i)]), axis=1)))
    assert worst < 1e-6
