"""A run that starts from another model: the same predictions at first, exact resume, or refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.toy import SENTENCES, TINY, toy_corpus, toy_text  # noqa: E402

from elmokit import Elmo, formats  # noqa: E402
from elmokit.bilm.config import BiLMConfig  # noqa: E402
from elmokit.bilm.weights import SOFTMAX  # noqa: E402
from elmokit.errors import ConfigError, InputError, TrainingError  # noqa: E402
from elmokit.lm import perplexity  # noqa: E402
from elmokit.train import Budget, Corpus, pretrain, resume  # noqa: E402
from elmokit.train.initialization import initial_weights  # noqa: E402
from elmokit.train.pretraining import target_counts  # noqa: E402
from elmokit.train.widening import check_start, widen  # noqa: E402

WIDER = replace(TINY, lstm=replace(TINY.lstm, cells=48, width=11))
RECIPE = SENTENCES.replace(warm_up=0)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return toy_corpus(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def small(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model of the toy language."""
    out = tmp_path_factory.mktemp("small") / "model"
    pretrain(corpus.path, out, config=TINY, recipe=SENTENCES, budget=Budget(tokens=20_000))
    return out


def toy_sentences(count: int, seed: int) -> list[list[str]]:
    return [line.split() for line in toy_text(count, seed).splitlines()]


def widened(small: Path, config: BiLMConfig, corpus: Corpus) -> Elmo:
    old = formats.read(small)
    random = initial_weights(config, target_counts(corpus), 0)
    return Elmo(replace(old, config=config, weights=widen(old.weights, random), settled=None))


@pytest.mark.parametrize(("cells", "width"), [(48, 11), (16, 9), (32, 8), (16, 8)])
def test_a_wider_model_computes_what_the_old_one_does(
    cells: int, width: int, small: Path, corpus: Corpus
) -> None:
    wider = replace(TINY, lstm=replace(TINY.lstm, cells=cells, width=width))
    old = Elmo(replace(formats.read(small), settled=None))
    new = widened(small, wider, corpus)
    sentences = toy_sentences(20, seed=2)
    for before, after in zip(
        old.embed(sentences, layers="all"), new.embed(sentences, layers="all"), strict=True
    ):
        for side in range(2):
            old_side = before[..., side * 8 : side * 8 + 8]
            new_side = after[..., side * width : side * width + width]
            np.testing.assert_allclose(new_side[..., :8], old_side, atol=1e-5)
            if width > 8:
                assert np.abs(new_side[..., 8:]).max() > 1e-3  # there is something to learn with
    text = toy_sentences(50, seed=3)
    found, expected = (perplexity(m, text) for m in (new, old))
    assert found.forward == pytest.approx(expected.forward, rel=1e-5)
    assert found.backward == pytest.approx(expected.backward, rel=1e-5)


def test_training_goes_on_from_there(corpus: Corpus, small: Path, tmp_path: Path) -> None:
    budget = Budget(tokens=3000)
    grown = pretrain(
        corpus.path, tmp_path / "grown", start=small, config=WIDER, recipe=RECIPE, budget=budget
    )
    random = pretrain(corpus.path, tmp_path / "random", config=WIDER, recipe=RECIPE, budget=budget)
    text = toy_sentences(50, seed=3)
    of_grown, of_random, of_old = (
        perplexity(m, text).mean for m in (grown, random, Elmo.load(small))
    )
    assert of_grown < of_old < of_random
    run = json.loads((tmp_path / "grown" / "training" / "run.json").read_text())
    assert run["start"] == formats.read(small).fingerprint
    # Without a configuration the new model is as wide as the old one.
    same = pretrain(corpus.path, tmp_path / "same", start=str(small), budget=Budget(tokens=300))
    assert same.bilm.config == TINY


def test_a_resumed_run_ends_in_the_same_weights(
    corpus: Corpus, small: Path, tmp_path: Path
) -> None:
    options = {"config": WIDER, "recipe": RECIPE, "budget": Budget(tokens=3000)}
    whole = pretrain(corpus.path, tmp_path / "whole", start=small, **options)  # type: ignore[arg-type]

    def stop(report: object) -> None:
        if report.progress.step == 9:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    out = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        pretrain(corpus.path, out, start=small, on_step=stop, **options)  # type: ignore[arg-type]
    parts = resume(corpus.path, out)
    assert parts.bilm.fingerprint == whole.bilm.fingerprint
    with pytest.raises(InputError, match="--start cannot change"):
        pretrain(corpus.path, out, auto_resume=True, **options)  # type: ignore[arg-type]


def test_without_a_checkpoint_the_start_is_unknown(
    corpus: Corpus, small: Path, tmp_path: Path
) -> None:
    out, budget = tmp_path / "run", Budget(tokens=1500)
    options = {"config": WIDER, "recipe": RECIPE, "budget": budget, "start": small}
    whole = pretrain(corpus.path, out, **options)  # type: ignore[arg-type]
    for name in ("checkpoints", "finished.json"):
        path = out / "training" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(TrainingError, match="has no checkpoint yet"):
        resume(corpus.path, out)
    again = pretrain(corpus.path, out, auto_resume=True, **options)  # type: ignore[arg-type]
    assert again.bilm.fingerprint == whole.bilm.fingerprint


@pytest.mark.parametrize(
    "config",
    [
        replace(TINY, lstm=replace(TINY.lstm, cells=8)),
        replace(TINY, lstm=replace(TINY.lstm, width=7, cells=32)),
        replace(TINY, lstm=replace(TINY.lstm, layers=1)),
        replace(TINY, lstm=replace(TINY.lstm, skip=not TINY.lstm.skip)),
        replace(TINY, char_cnn=replace(TINY.char_cnn, filters=((1, 4), (2, 6)))),
    ],
)
def test_other_architectures_are_refused(config: BiLMConfig, corpus: Corpus, small: Path) -> None:
    with pytest.raises(ConfigError, match="16 cells, width 8, 9 filters"):
        check_start(formats.read(small), config, corpus.vocabulary)


def test_other_vocabularies_and_models_without_softmax_are_refused(
    corpus: Corpus, small: Path, tmp_path: Path
) -> None:
    other = toy_corpus(tmp_path / "other", size=9)
    with pytest.raises(InputError, match="which are not the 9 of the corpus; build"):
        pretrain(other.path, tmp_path / "out", start=small, budget=Budget(tokens=300))
    assert not (tmp_path / "out").exists()
    bilm = formats.read(small)
    weights = {name: array for name, array in bilm.weights.items() if name not in SOFTMAX}
    with pytest.raises(InputError, match="no softmax"):
        check_start(replace(bilm, weights=weights), TINY, corpus.vocabulary)
