"""Writing vectors: sentence by sentence to the spool, then all of them to the file."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

import numpy as np

from elmokit.errors import InputError, InputTypeError
from elmokit.vectors.spool import DTYPES, Array, Spool, sync_directory
from elmokit.vectors.suffix import format_of, partial


def open_writer(
    path: str | os.PathLike[str],
    *,
    signature: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    restart: bool = False,
    overwrite: bool = False,
) -> "Writer":
    """Begin a file of vectors, or continue one whose writing was interrupted.

    `signature` is what determines the vectors (model, layers, …), as JSON: it is stored, and
    a run is only continued under an equal one. `restart` forgets an interrupted run; `overwrite`
    allows a finished file to be replaced, at the end and at once.
    """
    target = Path(path)
    format_ = format_of(target)
    format_.require()
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}, expected one of {', '.join(map(repr, DTYPES))}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the directory {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{target} is a directory, expected the name of a file to write")
    header = {
        "dtype": dtype,
        "format": format_.__name__.rpartition(".")[2],
        "signature": _as_json(signature or {}),
    }
    unfinished = partial(target)
    exists = InputError(f"{target} exists: write to another file, or allow it with overwrite=True")
    if target.exists() and not overwrite and (restart or not unfinished.exists()):
        raise exists
    spool = Spool(unfinished, header, restart)
    # A spool with an end mark belongs to a run that was killed between giving the finished file
    # its name and removing the spool; its file may be there, and is made again.
    if target.exists() and not overwrite and not spool.ended:
        spool.close(remove=spool.count == 0)
        raise exists
    return Writer(target, format_, spool)


class Writer:
    """A file of vectors in the making; comes from `open_writer`, used in a `with` block.

    Leaving the block finishes the file. Leaving it with an exception keeps what is there, and
    the next `open_writer` continues it.
    """

    def __init__(self, target: Path, format_: ModuleType, spool: Spool) -> None:
        self.done = spool.count
        self._target, self._format, self._spool = target, format_, spool
        self._dtype = spool.dtype
        self._stored = spool.texts()
        self._skipped = 0

    def skip(self, words: Sequence[str]) -> None:
        """Pass over one of the first `done` sentences; InputError if it is not the stored one."""
        position = self._skipped
        if position == self.done:
            raise InputError(f"sentence {position} is not stored yet: write it, do not skip it")
        stored = next(self._stored)
        if _text_of(words, position) != stored:
            raise InputError(
                f"sentence {position} (counting from 0) is not the one that the interrupted run "
                f"stored: found {_short(words)}, stored {_short(json.loads(stored))}; give the "
                "same input, or begin again with restart=True (--restart)"
            )
        self._skipped += 1

    def write(self, words: Sequence[str], array: Array) -> None:
        """Store the next sentence: T words and their vectors, (T, D) or (L+1, T, D)."""
        position = self._spool.count
        if self._skipped < self.done:
            raise InputError(
                f"{self.done} sentences are stored already and only {self._skipped} of them were "
                "skipped: call skip(words) for each of the first `done` sentences"
            )
        text = _text_of(words, position)
        array = self._checked(array, position)
        if array.shape[-2] != len(words):
            raise InputError(
                f"sentence {position} has {len(words)} words, but vectors for {array.shape[-2]} "
                f"(shape {array.shape}, expected (T, D) or (layers, T, D))"
            )
        self._spool.append(text, array)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        finished = False
        try:
            if kind is None:
                self._finish()
                finished = True
        finally:
            self._stored.close()
            self._spool.close(remove=finished or self._spool.count == 0)

    def _finish(self) -> None:
        if self._skipped < self.done:
            raise InputError(
                f"the input ended after {self._skipped} sentences, but the interrupted run stored "
                f"{self.done}: give the same input, or begin again with restart=True (--restart)"
            )
        self._spool.end()
        temporary = Path(f"{self._spool.path}.tmp")
        try:
            self._format.write(temporary, self._spool)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(self._target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(self._target.parent)

    def _checked(self, array: Array, position: int) -> Array:
        """The array in the file's dtype, its shape like that of the sentences before."""
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise InputTypeError(f"sentence {position}: vectors are {found}, expected floats")
        if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[0] == 0):
            raise InputError(
                f"sentence {position} has vectors of shape {array.shape}, expected (T, D) or "
                "(layers, T, D)"
            )
        shape = (array.shape[0] if array.ndim == 3 else 0, array.shape[-1])
        if self._spool.shape not in (None, shape):
            layers, dim = self._spool.shape or shape
            before = f"({layers}, T, {dim})" if layers else f"(T, {dim})"
            raise InputError(
                f"sentence {position} has vectors of shape {array.shape}, the sentences before it "
                f"{before}: all in one file must agree"
            )
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(array, self._dtype)
        narrower = self._dtype.itemsize < array.dtype.itemsize or self._dtype.itemsize == 2
        if narrower and not np.isfinite(stored).all():
            value = array[~np.isfinite(stored)][0]
            raise InputError(
                f"sentence {position} has the value {value}, which {self._dtype} cannot hold (it "
                f"ends at {np.finfo(self._dtype).max:g})"
                + ("; use dtype='float32'" if np.isfinite(value) else ": the vectors are broken")
            )
        return stored


def save(
    pairs: Iterable[tuple[Sequence[str], Array]],
    path: str | os.PathLike[str],
    *,
    signature: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    restart: bool = False,
    overwrite: bool = False,
) -> int:
    """Write all (words, array) pairs to a file, or the rest of them; return how many they are."""
    with open_writer(
        path, signature=signature, dtype=dtype, restart=restart, overwrite=overwrite
    ) as out:
        count = 0
        for words, array in pairs:
            if count < out.done:
                out.skip(words)
            else:
                out.write(words, array)
            count += 1
    return count


def _as_json(signature: Mapping[str, Any]) -> dict[str, Any]:
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(signature), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"the signature cannot be stored as JSON: {error}") from None
    return copy


def _text_of(words: Sequence[str], position: int) -> bytes:
    """The words as JSON in ASCII, which can say every Unicode string, lone surrogates too.

    Two surrogates side by side that make a pair come back as the character they spell.
    """
    is_list = isinstance(words, Iterable) and isinstance(words, Sized)
    if not is_list or isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InputTypeError(
            f"sentence {position} is {_short(words)}, expected its words as a list of strings"
        )
    return json.dumps(list(words)).encode("ascii")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
