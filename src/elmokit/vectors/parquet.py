"""Vectors in Parquet files, one row per sentence with all its words.

`tables.py` has the layouts with one vector per row, for queries.

    index        int64, the line number
    words        list<string>
    shape        list<int32>, (L+1, T, D) or (T, D)
    vectors      list<float> or list<halffloat>, the array flattened in C order
    words_json   string, null except where a word contains a lone surrogate, which UTF-8 cannot
                 encode: then the words as a JSON list in ASCII, with U+FFFD in `words`. The column
                 is always present, so that all files have one schema

The metadata of the file has, under `elmokit`, the version of the layout and the signature as JSON.
Row groups are bounded in bytes; the reader holds one at a time. pyarrow is an optional package. How
a write survives an interruption is the business of `spool.py`.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError, InputError
from elmokit.extras import require
from elmokit.vectors.spool import Spool, VectorArray
from elmokit.vectors.tables import TableReader, table_layout

NAME = "parquet"
LAYOUT = 1
ROW_GROUP_BYTES = 16 << 20
"""Size of a row group in bytes."""
ROW_GROUP_ROWS = 16384
"""Rows of a row group at most, since short sentences take more memory as Python objects."""
SENTENCE_BYTES = (1 << 31) - 1
"""Size of a sentence at most: a Parquet page cannot split a row and counts its bytes in int32."""
_CACHED = 2  # row groups: one of vectors and one of words, which are read separately
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_installed() -> None:
    """Raise `MissingExtra` if pyarrow is not installed."""
    require("pyarrow", "Parquet files (unlike .h5 and .npz)")


def write(path: Path, spool: Spool) -> None:
    """Write the sentences of a complete spool to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    value = pa.from_numpy_dtype(spool.dtype)
    metadata = {"layout": LAYOUT, "signature": spool.header["signature"]}
    schema = pa.schema(
        {
            "index": pa.int64(),
            "words": pa.list_(pa.string()),
            "shape": pa.list_(pa.int32()),
            "vectors": pa.list_(value),
            "words_json": pa.string(),
        },
        metadata={"elmokit": json.dumps(metadata)},
    )
    # Vectors do not repeat values: a dictionary or statistics would only cost time.
    options = {"use_dictionary": False, "write_statistics": ["index"]}
    with pq.ParquetWriter(path, schema, **options) as out:
        texts: list[bytes] = []
        arrays: list[VectorArray] = []
        size = 0
        for position, (text, array) in enumerate(spool.records()):
            if array.nbytes > SENTENCE_BYTES:
                raise InputError(
                    f"sentence {position} takes {array.nbytes:,} bytes, but a row of a Parquet "
                    f"file at most {SENTENCE_BYTES:,}; split the sentence, or write .h5 or .npz"
                )
            if texts and (size + array.nbytes > ROW_GROUP_BYTES or len(texts) == ROW_GROUP_ROWS):
                out.write_table(_table(schema, position - len(texts), texts, arrays))
                texts, arrays, size = [], [], 0
            texts.append(text)
            arrays.append(array)
            size += array.nbytes + len(text)
        if texts:
            out.write_table(_table(schema, spool.count - len(texts), texts, arrays))


def _table(schema: Any, start: int, texts: list[bytes], arrays: list[VectorArray]) -> Any:
    import pyarrow as pa

    sentences: list[list[str]] = [json.loads(text) for text in texts]
    exact: list[str | None] = [
        text.decode("ascii") if any(map(_SURROGATE.search, words)) else None
        for words, text in zip(sentences, texts, strict=True)
    ]
    sentences = [
        words if json_text is None else [_SURROGATE.sub("\ufffd", word) for word in words]
        for words, json_text in zip(sentences, exact, strict=True)
    ]
    offsets = np.cumsum([0, *(array.size for array in arrays)], dtype=np.int32)
    flat = pa.array(np.concatenate([array.reshape(-1) for array in arrays]))
    columns = [
        pa.array(np.arange(start, start + len(texts))),
        pa.array(sentences, schema.field("words").type),
        pa.array([array.shape for array in arrays], schema.field("shape").type),
        pa.ListArray.from_arrays(offsets, flat),
        pa.array(exact, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def open_file(path: Path) -> ParquetReader | TableReader:
    """Open a Parquet file of elmokit, in this layout or as a table of words or sentences."""
    check_installed()
    if table_layout(path) is not None:
        return TableReader(path)
    return ParquetReader(path)


class ParquetReader:
    """An open Parquet file of vectors."""

    def __init__(self, path: Path) -> None:
        check_installed()
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self._damage = (pa.ArrowException, OSError, ValueError, TypeError)
        try:
            self._file = pq.ParquetFile(path)
        except self._damage as error:
            raise FormatError(f"{path} cannot be read as a Parquet file: {error}") from None
        try:
            self._check()
        except BaseException:
            self._file.close()
            raise
        meta = self._file.metadata
        self.count: int = meta.num_rows
        rows = (meta.row_group(group).num_rows for group in range(meta.num_row_groups))
        self._starts = list(itertools.accumulate(rows, initial=0))
        self._cache: OrderedDict[tuple[int, tuple[str, ...]], Any] = OrderedDict()

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence."""
        index, shape, vectors = self._row(position, "index", "shape", "vectors")
        size = len(vectors) if vectors.is_valid else None
        if (
            index.as_py() != position
            or not _is_shape(shape.as_py())
            or math.prod(shape.as_py()) != size
        ):
            raise FormatError(
                f"{self.path} is damaged: row {position} has the index {index.as_py()}, the shape "
                f"{shape.as_py()} and {size} values, which do not match"
            )
        flat: VectorArray = vectors.values.to_numpy(zero_copy_only=False)
        # A copy, or keeping one sentence would keep its whole row group in memory.
        return flat.reshape(shape.as_py()).copy()

    def words(self, position: int) -> list[str]:
        """Return the words of a sentence."""
        shape, words, exact = self._row(position, "shape", "words", "words_json")
        try:
            sentence = json.loads(exact.as_py()) if exact.is_valid else words.as_py()
        except ValueError as error:
            raise FormatError(
                f"{self.path} is damaged: words_json of row {position} is not valid JSON: {error}"
            ) from None
        length = shape.as_py()[-2] if _is_shape(shape.as_py()) else None
        if not isinstance(sentence, list) or len(sentence) != length:
            raise FormatError(
                f"{self.path} is damaged: row {position} has the shape {shape.as_py()} and the "
                f"words {str(sentence)[:80]}, which do not match"
            )
        return sentence

    def close(self) -> None:
        """Close the file."""
        self._cache.clear()
        self._file.close()

    def _check(self) -> None:
        import pyarrow as pa

        schema = self._file.schema_arrow
        expected = {"index": "int64", "words": "list", "shape": "list", "vectors": "list"}
        expected["words_json"] = "string"
        kinds = {
            "int64": pa.types.is_int64,
            "list": pa.types.is_list,
            "string": pa.types.is_string,
        }
        for name, kind in expected.items():
            if name not in schema.names or not kinds[kind](schema.field(name).type):
                raise FormatError(
                    f"{self.path} has the columns {', '.join(schema.names)}; expected "
                    f"{', '.join(expected)} with {name} of the type {kind}"
                )
        try:
            metadata = json.loads((schema.metadata or {})[b"elmokit"])
            self.signature: dict[str, Any] | None = metadata["signature"]
            layout = int(metadata["layout"])
        except (KeyError, ValueError, TypeError) as error:
            raise FormatError(
                f"{self.path} has no valid entry `elmokit` in its metadata ({error!r}); another "
                "program may have dropped it. Use the original file"
            ) from None
        if layout > LAYOUT:
            raise FormatError(
                f"{self.path} has layout {layout}, but this version of elmokit reads up to "
                f"{LAYOUT}; update it with: pip install -U elmokit"
            )

    def _row(self, position: int, *names: str) -> list[Any]:
        group = bisect.bisect_right(self._starts, position) - 1
        key = (group, names)
        if key not in self._cache:
            try:
                table = self._file.read_row_group(group, columns=list(names))
            except self._damage as error:
                raise FormatError(
                    f"{self.path}: sentence {position} cannot be read: {error}"
                ) from None
            self._cache[key] = [table.column(name).combine_chunks() for name in names]
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return [column[position - self._starts[group]] for column in self._cache[key]]


def _is_shape(shape: list[int | None] | None) -> bool:
    return (
        shape is not None
        and len(shape) in (2, 3)
        and all(size is not None and size >= 0 for size in shape)
    )
