"""A few thousand damaged files in the test run; `fuzz.py` runs as many as one likes."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.conftest import GOLDEN, small_config
from tests.formats.fuzz import damage, fuzz
from tests.formats.test_formats import full_model

from elmokit import formats
from elmokit.bilm.random import random_bilm
from elmokit.errors import ElmoError

CASES = 400


def make_models(folder: Path) -> list[Path]:
    """One small valid model of every format that can be read."""
    shutil.copytree(GOLDEN / "models" / "plain", folder / "allennlp")
    (folder / "allennlp" / "vectors.npz").unlink()
    formats.write(full_model(), folder / "native")
    formats.write(random_bilm(small_config(layers=1)), folder / "native-small")
    formats.write(full_model(), folder / "allennlp.zip")
    formats.write(full_model(), folder / "native.zip", "native")
    shutil.copytree(GOLDEN / "tf" / "trained", folder / "tf")
    others = shutil.ignore_patterns("native", "vectors.npz")
    plain = GOLDEN / "many_langs" / "models" / "plain"
    shutil.copytree(plain, folder / "many_langs", ignore=others)
    return sorted(folder.iterdir())


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "findings").mkdir()
    models = make_models(tmp_path / "models")
    for model in models:
        formats.read(model)  # they are valid before they are damaged
    assert fuzz(models, CASES, seed=0, keep=tmp_path / "findings") == []


def test_the_fuzzer_does_damage(tmp_path: Path) -> None:
    """Most damaged copies are refused: else the test above would say nothing."""
    (tmp_path / "models").mkdir()
    refused = 0
    for model in make_models(tmp_path / "models"):
        for seed in range(10):
            target = tmp_path / f"{seed}-{model.name}"
            damage(model, target, random.Random(seed))
            try:
                formats.read(target)
            except ElmoError:
                refused += 1
    assert refused > 25
