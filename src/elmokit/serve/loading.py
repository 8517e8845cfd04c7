"""Loading and unloading: what a server holds in memory, and how much of it.

Sizes are estimates: the weights twice (as they are in the file, and packed for the kernel) and the
cache of word vectors at its largest. Files that are mapped count as if they were in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from elmokit.elmo import WORD_CACHE_BYTES, Elmo
from elmokit.errors import InputError
from elmokit.inspect import ModelInfo
from elmokit.serve.settings import ServeConfig

if TYPE_CHECKING:
    from elmokit.tasks.trained import Trained

T = TypeVar("T")


@dataclass(eq=False)
class Slot(Generic[T]):
    """A place for something that is loaded at first use, and may be unloaded."""

    name: str
    load: Callable[[], T]
    """Loads it; in another thread."""
    measure: Callable[[T], int]
    """Returns the bytes that it takes."""
    value: T | None = None
    """What was loaded; None if it is not in memory."""
    size: int = 0
    """Bytes that it takes, as far as known from the last time it was loaded."""
    users: int = 0
    """Requests that need it now."""
    used: float = 0.0
    """When it was last used, on the monotonic clock."""
    loading: asyncio.Task[None] | None = None
    """The loading that is under way."""


@dataclass(frozen=True)
class MemoryBudget:
    """A bound on the memory of all slots; beyond it the least recently used are unloaded."""

    limit: int | None
    """Bytes; None for no bound."""
    on_unload: Callable[[Slot[Any]], None]
    """Called after a slot was unloaded."""

    def make_room(self, wanted: Slot[Any] | None, slots: Sequence[Slot[Any]]) -> None:
        """Unload what nobody uses, the least recently used first, until the bound holds.

        Args:
            wanted: A slot that will be loaded now, if its size is known from an earlier time.
            slots: All slots.
        """
        if self.limit is None:
            return
        total = sum(slot.size for slot in slots if slot.value is not None)
        if wanted is not None and wanted.value is None:
            total += wanted.size
        for slot in sorted(slots, key=lambda slot: slot.used):
            if total <= self.limit:
                return
            if slot.value is not None and not slot.users:
                slot.value = None
                total -= slot.size
                self.on_unload(slot)


def model_slot(name: str, path: str | Path, config: ServeConfig) -> Slot[Elmo]:
    """Return the slot of a model."""

    def load() -> Elmo:
        elmo = Elmo.load(path, dtype=config.dtype, state=config.state, threads=config.threads)
        elmo.initial_state()  # computed once, here instead of in the first request
        return elmo

    return Slot(name, load, _elmo_bytes)


class ServedTask(NamedTuple):
    """A trained task model and what it takes."""

    slot: Slot[Trained]
    task: str
    """One of `elmokit.tasks.TASKS`."""
    arguments: tuple[str, ...]
    """Names of the texts that one prediction takes."""

    @staticmethod
    def predict(trained: Trained, texts: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Return one prediction per example, given as its texts."""
        examples = [trained.parse(each) for each in texts]
        predictions = trained.predict_examples(examples)
        to_record = trained.settings.definition.to_record
        return [to_record(*pair) for pair in zip(examples, predictions, strict=True)]


def served_task(name: str, directory: str | Path) -> ServedTask:
    """Return a task model that is loaded later; raise an error unless there is one."""
    from elmokit.extras import require

    require("torch", "Task models")
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trained import TASK_FILE, Trained, read_task_file

    path = Path(directory).expanduser()
    content = read_task_file(path)
    settings = Settings.from_dict(content["settings"], str(path / TASK_FILE))

    def measure(trained: Trained) -> int:
        parameters: int = sum(a.numel() * a.element_size() for a in trained.state_dict().values())
        files: int = sum(each["bytes"] for each in content["files"].values())
        return parameters + files + (0 if trained.elmo is None else _elmo_bytes(trained.elmo))

    slot = Slot(f"task {name}", lambda: Trained.load(path), measure)
    return ServedTask(slot, settings.task, settings.definition.arguments)


class ServedIndex(NamedTuple):
    """An index of a corpus and the model that it was made with."""

    slot: Slot[Any]
    model: str
    """Name of the model."""


def served_index(name: str, directory: str | Path, models: Mapping[str, ModelInfo]) -> ServedIndex:
    """Return an index that is opened later; raise an error if no model is its own."""
    from elmokit.probe.neighbors.index import Index

    index = Index.open(directory)
    fingerprint = index.manifest["model"]
    own = [each for each, info in models.items() if info["fingerprint"] == fingerprint]
    if not own:
        raise InputError(
            f"the index {directory} was made with another model ({fingerprint[:12]}…) than those "
            f"that are served ({', '.join(models)}); serve that model too, with --model"
        )
    size = sum(file.stat().st_size for file in index.directory.iterdir() if file.is_file())
    slot = Slot(f"index {name}", lambda: Index.open(directory), lambda _: size)
    return ServedIndex(slot, own[0])


def _elmo_bytes(elmo: Elmo) -> int:
    weights = sum(np.asarray(array).nbytes for array in elmo.bilm.weights.values())
    return 2 * weights + WORD_CACHE_BYTES
