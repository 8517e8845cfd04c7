"""The six tasks of the ELMo paper, each with a model of its own: train, evaluate, predict, compare.

    from elmokit import tasks

    settings = tasks.Settings(task="ner")                  # with the built-in ELMo
    train, dev = (tasks.read("ner", name) for name in ("train.conll", "dev.conll"))
    trained = tasks.fit(settings, train, dev, "my-ner")
    trained.predict("Ada Lovelace lived in London .")      # a dictionary with the entities

    trained = tasks.load("my-ner")
    trained.evaluate(tasks.read("ner", "test.conll"))      # a dictionary of scores

Each task is a package here that defines one `Task` (see `task.py`), which `get_task` returns.
Names are imported at first use; all but `TASKS`, `get_task` and `Settings` need PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.tasks.comparison import Comparison, compare
    from elmokit.tasks.fitting import fit
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.task import TASKS, Examples, Task, get_task, read
    from elmokit.tasks.trained import Trained, load
    from elmokit.tasks.trials import TaskFiles

__all__ = [
    "TASKS",
    "Comparison",
    "Examples",
    "Settings",
    "Task",
    "TaskFiles",
    "Trained",
    "compare",
    "fit",
    "get_task",
    "load",
    "read",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "TASKS": "elmokit.tasks.task",
        "Comparison": "elmokit.tasks.comparison",
        "Examples": "elmokit.tasks.task",
        "Settings": "elmokit.tasks.settings",
        "Task": "elmokit.tasks.task",
        "TaskFiles": "elmokit.tasks.trials",
        "Trained": "elmokit.tasks.trained",
        "compare": "elmokit.tasks.comparison",
        "fit": "elmokit.tasks.fitting",
        "get_task": "elmokit.tasks.task",
        "load": "elmokit.tasks.trained",
        "read": "elmokit.tasks.task",
    },
    renamed={"sister_named": "get_task"},
)
