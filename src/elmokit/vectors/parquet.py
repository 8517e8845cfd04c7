"""Vectors in Parquet files, one row per sentence with all its words.

`tables.py` has the layouts with one vector per row, for queries.

    index        int64, the line number
    words        list<string>
    shape        list<int32>, (L+1, T, D) or (T, D)
    vectors      list<fixed_size_list<float or halffloat>[D]>, one vector per word; with all layers,
                 `layer_0`, `layer_1`, … take its place
    words_json   string, null except where a word contains a lone surrogate, which UTF-8 cannot
                 encode: then the words as a JSON list in ASCII, with U+FFFD in `words`. The column
                 is always present, so that all files have one schema
    id           string, where sentences have ids, such as proteins

pyarrow, Polars, DuckDB, pandas and LanceDB read these types as they are. (In version 1 of the
layout `vectors` was the array flattened in C order; such files are still read.)

The metadata of the file has, under `elmokit`, the version of the layout, the signature and the job
as JSON.
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
from elmokit.json_text import SEAL, check_seal, is_list_of_text, parse_json, seal
from elmokit.text.parquet_pages import check_memory
from elmokit.vectors.spool import Spool, VectorArray, parse_text
from elmokit.vectors.tables import TableReader, is_text, list_texts, read_ids, table_layout

NAME = "parquet"
LAYOUT = 3
"""Version of the layout; version 2 are the tables of `tables.py`."""
ROW_GROUP_BYTES = 16 << 20
"""Size of a row group in bytes."""
ROW_GROUP_ROWS = 16384
"""Rows of a row group at most, since short sentences take more memory as Python objects."""
SENTENCE_BYTES = (1 << 31) - 1
"""Size of a sentence at most: a Parquet page cannot split a row and counts its bytes in int32."""
_CACHED = 2  # row groups: one of vectors and one of words, which are read separately
_VECTORS = re.compile(r"vectors|layer_\d+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_installed() -> None:
    """Raise `MissingExtra` if pyarrow is not installed."""
    require("pyarrow", "Parquet files (unlike .h5 and .npz)")


def write(path: Path, spool: Spool) -> None:
    """Write the sentences of a complete spool to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    layers, dim = spool.shape or (0, 0)
    value = pa.from_numpy_dtype(spool.dtype)
    vectors = pa.list_(pa.list_(value, dim) if dim else pa.list_(value))
    metadata = {"layout": LAYOUT, "signature": spool.header["signature"], "job": spool.job()}
    schema = pa.schema(
        {
            "index": pa.int64(),
            "words": pa.list_(pa.string()),
            "shape": pa.list_(pa.int32()),
            **{name: vectors for name in _vector_names(layers)},
            "words_json": pa.string(),
            **({"id": pa.string()} if spool.has_ids else {}),
        },
        metadata={"elmokit": json.dumps(seal(metadata))},
    )
    # Vectors do not repeat values: a dictionary or statistics would only cost time.
    options = {
        "use_dictionary": False,
        "write_statistics": ["index"],
        "write_page_checksum": True,
    }
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

    entries = [parse_text(text) for text in texts]
    sentences = [words for _, words in entries]
    exact: list[str | None] = [
        json.dumps(words) if any(map(_SURROGATE.search, words)) else None for words in sentences
    ]
    sentences = [
        words if json_text is None else [_SURROGATE.sub("\ufffd", word) for word in words]
        for words, json_text in zip(sentences, exact, strict=True)
    ]
    three = [array if array.ndim == 3 else array[None] for array in arrays]
    stacked = np.concatenate(three, axis=1)
    names = [name for name in schema.names if _VECTORS.fullmatch(name)]
    offsets = np.cumsum([0, *(array.shape[-2] for array in arrays)], dtype=np.int32)
    columns = [
        pa.array(np.arange(start, start + len(texts))),
        pa.array(sentences, schema.field("words").type),
        pa.array([array.shape for array in arrays], schema.field("shape").type),
        *(
            _lists(rows, offsets, schema.field(name).type)
            for name, rows in zip(names, stacked, strict=True)
        ),
        pa.array(exact, pa.string()),
    ]
    if "id" in schema.names:
        columns.append(pa.array([_SURROGATE.sub("\ufffd", id or "") for id, _ in entries]))
    return pa.Table.from_arrays(columns, schema=schema)


def _vector_names(layers: int) -> list[str]:
    return [f"layer_{number}" for number in range(layers)] or ["vectors"]


def _lists(rows: VectorArray, offsets: Any, kind: Any) -> Any:
    """Return the vectors (N, D) of some sentences as one list of vectors per sentence."""
    import pyarrow as pa

    if not rows.shape[1]:  # vectors without numbers, which Arrow's lists of fixed size cannot have
        return pa.array([rows[a:b].tolist() for a, b in itertools.pairwise(offsets)], kind)
    flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
    vectors = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    return pa.ListArray.from_arrays(pa.array(offsets), vectors)


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
        self._damage = (
            *(pa.ArrowException, OSError, ValueError, TypeError, OverflowError, LookupError),
        )
        try:
            self._file = pq.ParquetFile(
                path, page_checksum_verification=True, read_dictionary=check_memory(str(path))
            )
        except self._damage as error:
            raise FormatError(f"{path} cannot be read as a Parquet file: {error}") from None
        try:
            self._check()
        except BaseException:
            self._file.close()
            raise
        self._cache: OrderedDict[tuple[int, tuple[str, ...]], Any] = OrderedDict()

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence."""
        index, shape, *layers = self._row(position, "index", "shape", *self._vectors)
        valid = all(layer.is_valid for layer in layers)
        flat = [_flat(layer.values) for layer in layers] if valid else []
        size = sum(map(len, flat)) if valid else None
        if (
            index.as_py() != position
            or not _is_shape(shape.as_py())
            or math.prod(shape.as_py()) != size
        ):
            raise FormatError(
                f"{self.path} is damaged: row {position} has the index {index.as_py()}, the shape "
                f"{shape.as_py()} and {size} values, which do not match"
            )
        # A copy, or keeping one sentence would keep its whole row group in memory.
        try:
            array: VectorArray = np.concatenate(flat).reshape(shape.as_py())
        except ValueError as error:  # nothing, with a size that is not possible
            raise FormatError(f"{self.path} is damaged: row {position}: {error}") from None
        return array

    def words(self, position: int) -> list[str]:
        """Return the words of a sentence."""
        shape, words, exact = self._row(position, "shape", "words", "words_json")
        try:
            sentence: Any = None
            if exact.is_valid:
                sentence = parse_json(exact.as_py())
            elif words.is_valid:
                sentence = list_texts(words.values)
        except (ValueError, TypeError) as error:
            raise FormatError(
                f"{self.path} is damaged: words_json of row {position} is not valid JSON: {error}"
            ) from None
        length = shape.as_py()[-2] if _is_shape(shape.as_py()) else None
        if not is_list_of_text(sentence) or len(sentence) != length:
            raise FormatError(
                f"{self.path} is damaged: row {position} has the shape {shape.as_py()} and the "
                f"words {str(sentence)[:80]}, which do not match"
            )
        return sentence

    def ids(self) -> list[str] | None:
        """Return the ids of all sentences; None if they have none."""
        return read_ids(self._file, self.path)

    def close(self) -> None:
        """Close the file."""
        self._cache.clear()
        self._file.close()

    def _check(self) -> None:
        import pyarrow as pa

        schema = self._file.schema_arrow
        self._vectors = [name for name in schema.names if _VECTORS.fullmatch(name)] or ["vectors"]
        expected = {"index": "int64", "words": "list", "shape": "list"}
        expected |= {**dict.fromkeys(self._vectors, "list"), "words_json": "string"}
        kinds = {
            "int64": pa.types.is_int64,
            "list": pa.types.is_list,
            "string": is_text,
        }
        for name, kind in expected.items():
            if schema.names.count(name) != 1 or not kinds[kind](schema.field(name).type):
                raise FormatError(
                    f"{self.path} has the columns {', '.join(schema.names)[:300]}; expected "
                    f"{', '.join(expected)[:300]} with {name[:60]} of the type {kind}"
                )
        for name in self._vectors:
            kind_of_numbers = schema.field(name).type
            while hasattr(kind_of_numbers, "value_type"):
                kind_of_numbers = kind_of_numbers.value_type
            if not pa.types.is_floating(kind_of_numbers):
                raise FormatError(
                    f"{self.path}: the column {name} has the type {schema.field(name).type!s:.80}; "
                    "expected lists of floats"
                )
        meta = self._file.metadata
        self.count: int = meta.num_rows
        rows = [meta.row_group(group).num_rows for group in range(meta.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != self.count:
            raise FormatError(
                f"{self.path} is damaged: it has {self.count:,} rows, its groups {sum(rows):,}"
            )
        self._starts = list(itertools.accumulate(rows, initial=0))
        try:
            metadata = parse_json((schema.metadata or {})[b"elmokit"])
            if SEAL in metadata:  # since version 0.2
                check_seal(metadata)
            self.signature: dict[str, Any] | None = metadata["signature"]
            self.job: str | None = metadata.get("job")
            layout = int(metadata["layout"])
            if not isinstance(self.signature, dict) or not isinstance(self.job, str | None):
                raise TypeError("it does not say how it was made")
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
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
            expected = self._starts[group + 1] - self._starts[group]
            if table.num_rows != expected:
                raise FormatError(
                    f"{self.path} is damaged: a group has {table.num_rows:,} rows; expected "
                    f"{expected:,}"
                )
            self._cache[key] = [table.column(name).combine_chunks() for name in names]
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return [column[position - self._starts[group]] for column in self._cache[key]]


def _flat(values: Any) -> VectorArray:
    """Return the numbers of a list of vectors, or of the flat list of version 1."""
    import pyarrow as pa

    while pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        values = values.flatten()
    flat: VectorArray = values.to_numpy(zero_copy_only=False)
    return flat if values.null_count == 0 else flat[:0]  # which does not match the shape


def _is_shape(shape: list[Any] | None) -> bool:
    return (
        shape is not None
        and len(shape) in (2, 3)
        and all(isinstance(size, int) and size >= 0 for size in shape)
    )
