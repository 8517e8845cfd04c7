"""Models that several components of other libraries share: loaded once per process.

A grid search clones its vectorizer for every fit, and a spaCy pipeline may have several components
with the same model. They are given as a name or a path and keep no model of their own, so that
they can be cloned, pickled and sent to other processes.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from elmokit.elmo import Elmo
from elmokit.errors import InputError, InputTypeError


def load_shared(
    model: str | Path | Elmo, dtype: str = "float32", threads: int | None = None
) -> Elmo:
    """Return a model from its name or path, or an `Elmo` as it is.

    The two models used last are kept. A path whose files have changed is loaded again.

    Args:
        model: What `Elmo.load` takes, or an `Elmo`, which keeps its own `dtype` and `threads`.
        dtype: See `Elmo.load`.
        threads: See `Elmo.load`.
    """
    if isinstance(model, Elmo):
        if model.state == "carry":
            raise InputError(
                "the model carries its state from call to call, so its vectors depend on what was "
                "embedded before; expected Elmo.load(..., state='settled') or state='zero'"
            )
        return model
    if not isinstance(model, (str, Path)):
        raise InputTypeError(
            f"model is {type(model).__name__} {model!r:.40}; expected a name, a path or an Elmo"
        )
    return _load(model, dtype, threads, _stamp(os.path.expanduser(model)))


@lru_cache(maxsize=2)
def _load(model: str | Path, dtype: str, threads: int | None, stamp: object) -> Elmo:
    return Elmo.load(model, dtype=dtype, threads=threads)


def _stamp(path: str) -> tuple[tuple[str, int], ...]:
    """Return the times of the files at a path, to notice when they change; empty for a name."""
    if os.path.isdir(path):
        return tuple(sorted((file.name, file.stat().st_mtime_ns) for file in os.scandir(path)))
    return ((path, os.stat(path).st_mtime_ns),) if os.path.exists(path) else ()
