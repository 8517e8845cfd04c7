"""Sentences as Parquet, one row each, for pandas, Polars, DuckDB and Spark.

    index        int64, the line number
    words        list<string>
    shape        list<int32>, (L+1, T, D) or (T, D)
    vectors      list<float> or list<halffloat>, the array flattened in C order
    words_json   string, null but where a word holds a lone surrogate, which UTF-8 cannot: there
                 the words as a JSON list in ASCII, and U+FFFD in `words`. Always there, so that all
                 files have one schema

The file's metadata has under `elmokit` the layout's version and the signature as JSON. Row groups
are bounded in bytes; the reader holds one at a time. pyarrow is an extra. Nothing here knows how
a write survives an interruption.
"""

import bisect
import itertools
import json
import math
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.vectors.spool import Array, Spool

LAYOUT = 1
ROW_GROUP_BYTES = 16 << 20
ROW_GROUP_ROWS = 16384  # short sentences cost more as Python objects than as bytes
SENTENCE_BYTES = (1 << 31) - 1  # a Parquet page, which cannot cut a row, counts its bytes in int32
_CACHED = 2  # row groups: one of vectors and one of words, which are read apart
_SURROGATE = re.compile("[\ud800-\udfff]")


def require() -> None:
    """Say how to get pyarrow where it is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"Parquet needs pyarrow, which cannot be imported ({error}): "
            "pip install 'elmokit[parquet]', or write .h5 or .npz"
        ) from None


def write(path: Path, spool: Spool) -> None:
    """Make the Parquet file of a complete spool."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    value = pa.from_numpy_dtype(spool.dtype)
    about = {"layout": LAYOUT, "signature": spool.header["signature"]}
    schema = pa.schema(
        {
            "index": pa.int64(),
            "words": pa.list_(pa.string()),
            "shape": pa.list_(pa.int32()),
            "vectors": pa.list_(value),
            "words_json": pa.string(),
        },
        metadata={"elmokit": json.dumps(about)},
    )
    # Vectors repeat no values: a dictionary or their minima would only cost time.
    options = {"use_dictionary": False, "write_statistics": ["index"]}
    with pq.ParquetWriter(path, schema, **options) as out:
        texts: list[bytes] = []
        arrays: list[Array] = []
        size = 0
        for position, (text, array) in enumerate(spool.records()):
            if array.nbytes > SENTENCE_BYTES:
                raise InputError(
                    f"sentence {position} takes {array.nbytes:,} bytes, a row of Parquet at most "
                    f"{SENTENCE_BYTES:,}: cut the sentence, or write .h5 or .npz"
                )
            if texts and (size + array.nbytes > ROW_GROUP_BYTES or len(texts) == ROW_GROUP_ROWS):
                out.write_table(_table(schema, position - len(texts), texts, arrays))
                texts, arrays, size = [], [], 0
            texts.append(text)
            arrays.append(array)
            size += array.nbytes + len(text)
        if texts:
            out.write_table(_table(schema, spool.count - len(texts), texts, arrays))


def _table(schema: Any, start: int, texts: list[bytes], arrays: list[Array]) -> Any:
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


class Reader:
    """An open Parquet file of vectors."""

    def __init__(self, path: Path) -> None:
        require()
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self._broken = (pa.ArrowException, OSError, ValueError, TypeError)
        try:
            self._file = pq.ParquetFile(path)
        except self._broken as error:
            raise FormatError(f"{path} is no readable Parquet file: {error}") from None
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

    def array(self, position: int) -> Array:
        """The vectors of one sentence."""
        index, shape, vectors = self._row(position, "index", "shape", "vectors")
        size = len(vectors) if vectors.is_valid else None
        if (
            index.as_py() != position
            or not _is_shape(shape.as_py())
            or math.prod(shape.as_py()) != size
        ):
            raise FormatError(
                f"{self.path}: row {position} has the index {index.as_py()}, the shape "
                f"{shape.as_py()} and {size} values: they do not fit together"
            )
        flat: Array = vectors.values.to_numpy(zero_copy_only=False)
        # A copy, or keeping one sentence would keep its whole row group in memory.
        return flat.reshape(shape.as_py()).copy()

    def words(self, position: int) -> list[str]:
        """The words of one sentence."""
        shape, words, exact = self._row(position, "shape", "words", "words_json")
        try:
            found = json.loads(exact.as_py()) if exact.is_valid else words.as_py()
        except ValueError as error:
            raise FormatError(f"{self.path}: row {position}, words_json: {error}") from None
        length = shape.as_py()[-2] if _is_shape(shape.as_py()) else None
        if not isinstance(found, list) or len(found) != length:
            raise FormatError(
                f"{self.path}: row {position} has the shape {shape.as_py()} and the words "
                f"{str(found)[:80]}: they do not fit together"
            )
        return found

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
            about = json.loads((schema.metadata or {})[b"elmokit"])
            self.signature: dict[str, Any] | None = about["signature"]
            layout = int(about["layout"])
        except (KeyError, ValueError, TypeError) as error:
            raise FormatError(
                f"{self.path}: its metadata has no readable entry `elmokit` ({error!r}); "
                "a copy made by another program may have lost it"
            ) from None
        if layout > LAYOUT:
            raise FormatError(
                f"{self.path} has layout {layout}, this version reads up to {LAYOUT}: "
                "pip install -U elmokit"
            )

    def _row(self, position: int, *names: str) -> list[Any]:
        group = bisect.bisect_right(self._starts, position) - 1
        key = (group, names)
        if key not in self._cache:
            try:
                table = self._file.read_row_group(group, columns=list(names))
            except self._broken as error:
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
