"""Every task is defined completely, and imported only when it is needed."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import tasks  # noqa: E402
from elmokit.errors import InputError  # noqa: E402
from elmokit.tasks.settings import PRESETS, Settings  # noqa: E402
from elmokit.tasks.task import TASKS, Examples, Task, get_task, keep_examples, read  # noqa: E402


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_complete(name: str) -> None:
    task = get_task(name)
    assert isinstance(task, Task) and task.name == name and task.title and task.paper
    assert tuple(task.presets) == PRESETS
    for preset in task.presets.values():
        assert task.Sizes(**dataclasses.asdict(preset.sizes)) == preset.sizes
        assert preset.training.patience <= preset.training.epochs


@pytest.mark.parametrize("name", TASKS)
def test_what_determines_a_run_is_json(name: str) -> None:
    content = Settings(task=name).to_full_dict()
    assert json.loads(json.dumps(content)) == content
    assert content != Settings(task=name, epochs=77).to_full_dict()


def test_most_tasks_do_not_change_their_examples() -> None:
    changing = [name for name in TASKS if get_task(name).prepare is not keep_examples]
    assert changing == ["sentiment"]
    examples: Examples = Examples([])
    assert keep_examples(examples, None, True) is examples


def test_unknown_tasks_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown task 'chess'; expected one of qa, nli"):
        get_task("chess")
    with pytest.raises(InputError, match="no such file"):
        read("ner", tmp_path / "missing")


def test_all_public_names_exist() -> None:
    assert all(getattr(tasks, name) is not None for name in tasks.__all__)


def test_importing_the_package_costs_nothing_and_a_missing_torch_is_explained() -> None:
    program = """
import sys
sys.modules["torch"] = None
from elmokit import tasks
from elmokit.errors import MissingExtra
print(tasks.TASKS)
for use in (lambda: tasks.fit, lambda: tasks.get_task("ner"), lambda: tasks.Settings(task="ner")):
    try:
        use()
    except MissingExtra as error:
        print("elmokit[train]" in str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(TASKS), "True", "True", "True"], done.stderr
