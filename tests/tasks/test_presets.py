"""Presets that train to the end: the epochs of the docs' tables on their data, more on less."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.tasks import Settings

TABLES = {
    "qa": (8683, 272),
    "nli": (4500, 423),
    "srl": (42_411, 1326),
    "coref": (80, 80),
    "ner": (14_041, 439),
    "sentiment": (41_278, 645),
}
"""Examples of the training set of docs/tasks.md, after the task has prepared them, and steps."""


@pytest.mark.parametrize("task", TABLES)
def test_the_epochs_of_the_preset_on_the_data_of_the_tables(task: str) -> None:
    examples, steps = TABLES[task]
    preset = Settings(task=task).effective_preset
    assert preset.training.steps_per_epoch(examples) == steps
    assert preset.max_epochs(examples) == preset.training.epochs
    assert preset.max_epochs(10 * examples) == preset.training.epochs
    assert Settings(task=task, preset="paper").effective_preset.total_steps == 0


@pytest.mark.parametrize(("task", "examples"), [("ner", 3400), ("srl", 4000), ("sentiment", 3000)])
def test_more_epochs_on_less_data(task: str, examples: int) -> None:
    preset = Settings(task=task).effective_preset
    epochs = preset.max_epochs(examples)
    assert epochs > 2 * preset.training.epochs
    steps = preset.training.steps_per_epoch(examples)
    assert (epochs - 1) * steps < preset.total_steps <= epochs * steps
    baseline = Settings(task=task, elmo="none").effective_preset
    assert baseline.max_epochs(examples) == epochs
    assert preset.max_epochs(1) * preset.training.steps >= preset.total_steps


def test_epochs_that_are_asked_for() -> None:
    preset = Settings(task="ner", epochs=3).effective_preset
    assert preset.max_epochs(100) == 3
