"""Names of 0.1.0 still work: each warns once, with the name to use instead."""

from __future__ import annotations

import importlib
import warnings

import pytest

from elmokit import _deprecations

RENAMED = {
    "elmokit.lm": {
        "Place": "SubstitutePosition",
        "Ranking": "SubstituteRanking",
        "Scores": "SentenceScores",
        "score": "score_sentences",
    },
    "elmokit.nn": {
        "BatchMaker": "Batcher",
        "Embedded": "EmbeddingOutput",
        "Mix": "LearnedMix",
        "Projection": "LayerProjection",
    },
    "elmokit.tasks": {"sister_named": "get_task"},
    "elmokit.vectors": {"Writer": "VectorWriter", "load": "load_vectors", "save": "save_vectors"},
}


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_deprecations, "_warned", set())


@pytest.mark.parametrize("package", sorted(RENAMED))
def test_an_old_name_is_the_new_one_with_a_warning(package: str) -> None:
    if package in {"elmokit.nn", "elmokit.tasks"}:
        pytest.importorskip("torch", reason="needs the extra train")
    module = importlib.import_module(package)
    for old, new in RENAMED[package].items():
        with pytest.warns(DeprecationWarning, match=f"use {package}.{new}") as caught:
            assert getattr(module, old) is getattr(module, new)
        assert caught[0].filename == __file__
        assert old not in module.__all__ and old not in dir(module)


def test_a_warning_comes_once() -> None:
    from elmokit import lm

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            _ = lm.score  # type: ignore[attr-defined]
    assert len(caught) == 1


def test_methods() -> None:
    from elmokit.tasks import Settings
    from elmokit.train import RECIPES

    with pytest.warns(DeprecationWarning, match="Recipe.but was renamed .* use Recipe.replace"):
        assert RECIPES["recommended"].but(dropout=0.2).dropout == 0.2
    with pytest.warns(DeprecationWarning, match="use Settings.replace"):
        assert Settings(task="ner").but(seed=3).seed == 3


def test_a_task_model_can_still_be_asked() -> None:
    pytest.importorskip("torch", reason="needs the extra train")
    from elmokit.tasks import Settings, Trained

    settings = Settings(task="ner", elmo="none", vectors="none")
    trained = Trained.assemble(settings, {"types": ["LOC", "PER"]}, ["in"], None)
    with pytest.warns(DeprecationWarning, match="use Trained.predict") as caught:
        assert trained.ask("Ada lived in London .") == trained.predict("Ada lived in London .")
    assert caught[0].filename == __file__


def test_a_name_that_never_was_is_an_error() -> None:
    from elmokit import lm

    with pytest.raises(AttributeError, match="has no attribute 'scoer'"):
        _ = lm.scoer  # type: ignore[attr-defined]
