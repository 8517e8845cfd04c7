"""Writing vectors: sentence by sentence to the spool, then all of them to the file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from elmokit.errors import InputError, InputTypeError
from elmokit.storage import atomic_write, explain_write_errors
from elmokit.vectors.file_formats import VectorFormat, VectorLayout, format_for, partial_path
from elmokit.vectors.spool import DTYPES, Spool, VectorArray, parse_text
from elmokit.vectors.tables import TABLES, TableFormat, describe_sentence


def open_writer(
    path: str | os.PathLike[str],
    *,
    signature: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    restart: bool = False,
    overwrite: bool = False,
    layout: VectorLayout = "arrays",
    ids: bool = False,
) -> VectorWriter:
    """Begin a file of vectors, or continue one whose writing was interrupted.

    Args:
        path: The file to write, which ends in `.h5`, `.npz` or `.parquet`.
        signature: What determines the vectors (model, layers, …), in types that JSON knows. It is
            stored, and an interrupted run continues only under the same signature.
        dtype: Precision in the file: `"float32"` or `"float16"`.
        restart: Discard what an interrupted run has stored.
        overwrite: Replace the file if it exists, in one step at the end.
        layout: `"arrays"`: an array per sentence. `"pooled"`: one vector per sentence. `"words"`: a
            Parquet table with a row per word.
        ids: Whether every sentence has an id, by which it can be found in the file.
    """
    target = Path(path)
    file_format = format_for(target, layout)
    file_format.check_installed()
    header = make_header(file_format, signature or {}, dtype, layout, ids)
    if not target.parent.is_dir():
        raise InputError(f"{target}: the directory {target.parent} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{target} is a directory; expected the name of a file to write")
    unfinished = partial_path(target)
    exists = InputError(
        f"{target} exists; write to another file, or replace it with overwrite=True (--force)"
    )
    if target.exists() and not overwrite and (restart or not unfinished.exists()):
        raise exists
    with explain_write_errors(target):
        spool = Spool(unfinished, header, restart)
    # A spool with an end mark belongs to a run that was killed between renaming the finished file
    # and removing the spool; the file may exist already, and is made again.
    if target.exists() and not overwrite and not spool.ended:
        spool.close(remove=spool.count == 0)
        raise exists
    return VectorWriter(target, file_format, spool, layout)


def make_header(
    file_format: VectorFormat,
    signature: Mapping[str, Any],
    dtype: str,
    layout: VectorLayout,
    ids: bool = False,
) -> dict[str, Any]:
    """Return all settings of a run; see `open_writer`."""
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}; expected one of {', '.join(map(repr, DTYPES))}")
    header: dict[str, Any] = {"dtype": dtype, "format": file_format.NAME}
    header["signature"] = _as_json(signature)
    if ids:
        header["ids"] = True
    if layout == "pooled" and not isinstance(file_format, TableFormat):  # tables say it themselves
        header["pooled"] = True
    return header


def record_sentence(
    words: Sequence[str],
    text: str | None,
    position: int,
    header: Mapping[str, Any],
    id: str | None = None,
    row: int | None = None,
) -> bytes:
    """Return what is stored about a sentence besides its vectors.

    Args:
        words: The words of the sentence.
        text: The sentence as it was before it was split into words.
        position: Number of the sentence, for error messages.
        header: Settings of the run, as `make_header` returns them.
        id: Id of the sentence, if the file has ids.
        row: Number of the input row that the sentence is from, for a table.
    """
    has_ids = bool(header.get("ids"))
    if isinstance(id, str) is not has_ids:
        expected = "an id for every sentence" if has_ids else "no ids"
        raise InputError(f"sentence {position} has the id {id!r}; expected {expected}")
    plain = _text_of(words, position)
    entry: dict[str, Any] = {} if id is None else {"id": id}
    if header["format"] in {table.NAME for table in TABLES.values()}:
        entry |= describe_sentence(words, text, offsets=id is None)
        if row is not None:
            entry["row"] = int(row)
    elif id is None:
        return plain
    else:
        entry["words"] = list(words)
    return json.dumps(entry).encode("ascii")


class VectorWriter:
    """A file of vectors that is being written; `open_writer` makes it, for use in a `with` block.

    Leaving the block finishes the file. Leaving it with an exception keeps what is stored, and the
    next `open_writer` continues from there.
    """

    def __init__(
        self,
        target: Path,
        file_format: VectorFormat,
        spool: Spool,
        layout: VectorLayout = "arrays",
    ) -> None:
        self.done = spool.count
        """Number of sentences that an interrupted earlier run has stored."""
        self._target, self._format, self._spool = target, file_format, spool
        self._dtype, self._layout = spool.dtype, layout
        self._stored = spool.texts()
        self._skipped = 0

    def skip(
        self,
        words: Sequence[str],
        text: str | None = None,
        id: str | None = None,
        row: int | None = None,
    ) -> None:
        """Pass over one of the first `done` sentences; raise `InputError` if it has changed."""
        position = self._skipped
        if position == self.done:
            raise InputError(f"sentence {position} is not stored yet; call write(), not skip()")
        stored = next(self._stored)
        if self._record(words, text, position, id, row) != stored:
            _, before = parse_text(stored)
            raise InputError(
                f"sentence {position} (counting from 0) differs from the one that the interrupted "
                f"run stored: found {_short(words)}, stored {_short(before)}; give the "
                "same input, or start again with restart=True (--restart)"
            )
        self._skipped += 1

    def write(
        self,
        words: Sequence[str],
        array: VectorArray,
        text: str | None = None,
        id: str | None = None,
        row: int | None = None,
    ) -> None:
        """Store the next sentence.

        Args:
            words: The T words of the sentence.
            array: Their vectors, (T, D) or (L+1, T, D); in the layout `"pooled"`, (D,) or (L+1, D).
            text: The sentence as it was before it was split into words, for a table; by default
                the words with spaces between them.
            id: The id of the sentence, in a file that was opened with `ids=True`.
            row: Number of the input row that the sentence is from, for a table whose signature has
                `row_numbers`.
        """
        position = self._spool.count
        if self._skipped < self.done:
            raise InputError(
                f"{self.done} sentences are stored already, but only {self._skipped} of them were "
                "skipped; call skip(words) for each of the first `done` sentences"
            )
        record = self._record(words, text, position, id, row)
        pooled = self._layout == "pooled"
        if pooled and isinstance(array, np.ndarray) and array.ndim in (1, 2):
            array = array[..., None, :]
        array = self._checked(array, position)
        if array.shape[-2] != (1 if pooled else len(words)):
            raise InputError(
                f"sentence {position} has {len(words)} words, but vectors for {array.shape[-2]} "
                f"(shape {array.shape}, expected (T, D) or (layers, T, D))"
            )
        with explain_write_errors(self._target, kept=self._kept):
            self._spool.append(record, array)

    def _record(
        self,
        words: Sequence[str],
        text: str | None,
        position: int,
        id: str | None,
        row: int | None,
    ) -> bytes:
        return record_sentence(words, text, position, self._spool.header, id, row)

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
                f"{self.done}; give the same input, or start again with restart=True (--restart)"
            )
        temporary = Path(f"{self._spool.path}.tmp")
        with explain_write_errors(self._target, kept=self._kept):
            self._spool.end()
            with atomic_write(self._target, temporary=temporary, sync=True):
                self._format.write(temporary, self._spool)

    def _kept(self) -> str:
        """Return what is stored and how to go on, for an error message."""
        if not self._spool.count:
            return "nothing was kept. Make room or choose another place, then run it again"
        return (
            f"{self._spool.count:,} sentences are kept in {self._spool.path.name}. Make room, then "
            "run the same again, and it will continue"
        )

    def _checked(self, array: VectorArray, position: int) -> VectorArray:
        """Return the array in the dtype of the file, after checking its type and shape."""
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise InputTypeError(f"sentence {position}: the vectors are {found}; expected floats")
        if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[0] == 0):
            raise InputError(
                f"sentence {position} has vectors of shape {array.shape}; expected (T, D) or "
                "(layers, T, D)"
            )
        shape = (array.shape[0] if array.ndim == 3 else 0, array.shape[-1])
        if self._spool.shape not in (None, shape):
            layers, dim = self._spool.shape or shape
            before = f"({layers}, T, {dim})" if layers else f"(T, {dim})"
            raise InputError(
                f"sentence {position} has vectors of shape {array.shape}, the sentences before it "
                f"{before}; all sentences of a file must agree"
            )
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(array, self._dtype)
        narrower = self._dtype.itemsize < array.dtype.itemsize or self._dtype.itemsize == 2
        if narrower and not np.isfinite(stored).all():
            value = array[~np.isfinite(stored)][0]
            advice = "; rescale the vectors"
            if self._dtype.itemsize == 2:
                advice = "; store float32, dtype='float32' (without --float16)"
            if not np.isfinite(value):
                advice = "; the vectors are invalid"
            raise InputError(
                f"sentence {position} has the value {value}, which {self._dtype} cannot represent "
                f"(its maximum is {np.finfo(self._dtype).max:g}){advice}"
            )
        return stored


def save_vectors(
    pairs: Iterable[tuple[Sequence[str], VectorArray]],
    path: str | os.PathLike[str],
    *,
    signature: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    restart: bool = False,
    overwrite: bool = False,
) -> int:
    """Write (words, array) pairs to a file, or the rest of them; return the number of pairs.

    Args:
        pairs: The words of each sentence with their vectors, (T, D) or (L+1, T, D).
        path: The file to write, which ends in `.h5`, `.npz` or `.parquet`.
        signature: What determines the vectors, in types that JSON knows.
        dtype: Precision in the file: `"float32"` or `"float16"`.
        restart: Discard what an interrupted run has stored.
        overwrite: Replace the file if it exists.
    """
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
    """Return the words as JSON in ASCII, which can represent lone surrogates as well.

    Two adjacent surrogates that form a pair come back as the character they encode.
    """
    is_list = isinstance(words, Iterable) and isinstance(words, Sized)
    if not is_list or isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise InputTypeError(
            f"sentence {position} is {_short(words)}; expected its words as a list of strings"
        )
    return json.dumps(list(words)).encode("ascii")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
