"""What ELMo is for: the six tasks of the paper, each with a model of its own.

    from pathlib import Path
    from elmokit import tasks

    settings = tasks.Settings(task="ner")                       # with the built-in ELMo
    train, dev = (tasks.read("ner", Path(name)) for name in ("train.conll", "dev.conll"))
    trained = tasks.fit(settings, train, dev, Path("my-ner"))
    trained.ask("Ada Lovelace lived in London .")               # what it found, as a dictionary
    tasks.Trained.load("my-ner").evaluate(tasks.read("ner", Path("test.conll")))

Every task is a package here with the same names in it (`task.py` lists them).
"""

from __future__ import annotations

from elmokit.errors import MissingExtra

try:
    import torch as _torch  # noqa: F401  only whether it is there
except ImportError as error:
    raise MissingExtra(
        f"elmokit.tasks needs torch, which cannot be imported ({error}): "
        "pip install 'elmokit[train]'"
    ) from None

from elmokit.tasks.fitting import fit
from elmokit.tasks.settings import TASKS, Settings, read, sister_named
from elmokit.tasks.trained import Trained

__all__ = ["TASKS", "Settings", "Trained", "fit", "read", "sister_named"]
