"""Pickles of an `Elmo`: they refer to its model file, or hold the weights if there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmokit import formats
from elmokit.bilm.model import PROTEINS, BiLM
from elmokit.errors import ElmoError, WeightsError

if TYPE_CHECKING:
    from elmokit.elmo import Elmo


@dataclass(frozen=True)
class ModelReference:
    """What a pickle says about a model that is in a file."""

    model: str
    """The model as it was named; an absolute path, if it was a path."""
    path: str
    """Absolute path of its files when it was pickled."""
    fingerprint: str
    """Fingerprint that the model must have."""
    proteins: bool | None
    """What the model says about being trained on proteins."""


PickledModel = ModelReference | BiLM
"""What a pickle has of the model: where it is, or the model itself."""


@dataclass
class Origin:
    """Where a model was loaded from, so that a pickle can refer to it."""

    model: str
    """The model as it was named; an absolute path, if it was a path."""
    path: str
    """Absolute path of its files."""
    files: list[tuple[str, int, int]]
    """Names, sizes and times of its files, to notice when they change."""

    @classmethod
    def record(cls, model: str | Path, path: str | Path) -> Origin:
        """Return the origin of a model that was just read from `path`.

        Args:
            model: The model as the user named it.
            path: The path that this name means.
        """
        absolute = os.path.abspath(os.path.expanduser(path))
        is_path = os.path.abspath(os.path.expanduser(model)) == absolute
        return cls(absolute if is_path else str(model), absolute, _list_files(absolute))

    def still_has(self, bilm: BiLM) -> bool:
        """Return whether the files still contain this model; they are read only if they changed."""
        files = _list_files(self.path)
        if files != self.files:
            try:
                if formats.read(self.path).fingerprint != bilm.fingerprint:
                    return False
            except (ElmoError, OSError):
                return False
            self.files = files
        return True

    def reference(self, bilm: BiLM) -> ModelReference:
        """Return what a pickle says about this model."""
        proteins = bilm.config.extra.get(PROTEINS)
        return ModelReference(self.model, self.path, bilm.fingerprint, proteins)


def unpickle(cls: type[Elmo], source: PickledModel, options: Mapping[str, Any], state: Any) -> Elmo:
    """Restore an `Elmo` from what `Elmo.__reduce__` returns.

    Args:
        cls: The class, with its methods `load` and `__setstate__`.
        source: Where its model is, or the model.
        options: Arguments of `load`.
        state: What differs from a model that was just loaded.
    """
    if isinstance(source, BiLM):
        elmo = cls(source, **options)
    else:
        elmo = _load(cls, source, options)
        if elmo.bilm.fingerprint != source.fingerprint:
            raise WeightsError(
                f"the model at {source.path} has changed since this Elmo was pickled: its "
                f"fingerprint is {elmo.bilm.fingerprint[:12]}, expected {source.fingerprint[:12]}"
            )
    elmo.__setstate__(state)
    return elmo


def _load(cls: type[Elmo], source: ModelReference, options: Mapping[str, Any]) -> Elmo:
    """Load a model from its path, or by its name if it is not there: on another machine."""
    if not os.path.exists(source.path):
        return cls.load(source.model, proteins=source.proteins, **options)
    elmo = cls.load(source.path, proteins=source.proteins, **options)
    elmo._origin = Origin.record(source.model, source.path)
    return elmo


def _list_files(path: str) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of the files in a directory, or beside a file."""
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    try:
        with os.scandir(directory) as entries:
            stats = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    except OSError:
        return []
    return sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
