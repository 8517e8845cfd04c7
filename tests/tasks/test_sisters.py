"""The six packages have the same names in them, which the types alone do not check."""

from __future__ import annotations

import dataclasses
import json

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.tasks.settings import PRESETS, TASKS, Settings, sister_named  # noqa: E402
from elmokit.tasks.task import Sister  # noqa: E402

NAMES = sorted(
    {name for name in (*vars(Sister), *Sister.__annotations__) if not name.startswith("_")}
)


@pytest.mark.parametrize("task", TASKS)
def test_the_contract(task: str) -> None:
    sister = sister_named(task)
    assert [name for name in NAMES if not hasattr(sister, name)] == []
    assert set(NAMES) <= set(sister.__all__)  # type: ignore[attr-defined]
    assert tuple(sister.PRESETS) == PRESETS
    for preset in sister.PRESETS.values():
        assert sister.Sizes(**dataclasses.asdict(preset.sizes)) == preset.sizes
        assert preset.schooling.patience <= preset.schooling.epochs


@pytest.mark.parametrize("task", TASKS)
def test_what_determines_a_run_is_json(task: str) -> None:
    found = Settings(task=task).determined()
    assert json.loads(json.dumps(found)) == found
    assert found != Settings(task=task, epochs=77).determined()
