"""Semantic change and neighbors from sharded jobs: the same as from the text."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe import Index, semantic_change
from elmokit.vectors import Reduction, merge_shards, plan_shards, run_shards

WORDS = "ant bee cat dog elk fox gnu hen ibex jay kite lynx".split()


@pytest.fixture(scope="module")
def model() -> Elmo:
    return Elmo.load(GOLDEN / "models" / "plain", threads=1)


def make_text(path: Path, seed: int) -> Path:
    source = random.Random(seed)
    lines = [" ".join(source.choices(WORDS, k=source.randint(0, 9))) for _ in range(150)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_change(model: Elmo, tmp_path: Path) -> None:
    texts = [make_text(tmp_path / f"{seed}.txt", seed) for seed in (1, 2)]
    reduction = Reduction("uses", targets=("cat", "dog=elk"), max_uses=500)
    jobs = []
    for text in texts:
        plan = plan_shards(
            model, text, tmp_path / f"job-{text.stem}", shards=5, reduction=reduction, layers="all"
        )
        run_shards(plan)
        merge_shards(plan)
        jobs.append(plan.directory)
    settings = {"targets": ["cat", "dog=elk"], "max_uses": 500, "permutations": 50}
    measured = semantic_change(model, *texts, form="lines", **settings)
    reduced = semantic_change(model, *jobs, **settings)
    assert reduced["words"] == measured["words"], "all uses are sampled, so nothing differs"
    assert reduced["texts"] == measured["texts"]
    with pytest.raises(InputError, match="no sample of 'bee'"):
        semantic_change(model, *jobs, ["bee"])
    with pytest.raises(InputError, match="one text is a sharded job"):
        semantic_change(model, texts[0], jobs[1], ["cat"])


def test_neighbors(model: Elmo, tmp_path: Path) -> None:
    text = make_text(tmp_path / "text.txt", 3)
    plan = plan_shards(model, text, tmp_path / "job", shards=4, layers="top")
    run_shards(plan)
    index = Index.from_files(model, plan.directory, tmp_path / "index")
    wanted = Index.from_files(model, text, tmp_path / "wanted", form="lines")
    assert index.forms == wanted.forms and len(index) == len(wanted)
    assert np.array_equal(index.vectors_ND, wanted.vectors_ND)
    assert np.array_equal(index.characters_VD, wanted.characters_VD)
    with pytest.raises(InputError, match="--layer top"):
        Index.from_files(model, plan.directory, tmp_path / "other", layer=1)
