"""Vectors as tables in Parquet files, which DuckDB, Polars and pandas query without reshaping.

One row per word (layout "words"):

    sentence   int64, number of the sentence, counting from 0
    position   int32, number of the word in its sentence, counting from 0
    word       string
    start      int32, offset of the word's first character in `text`
    end        int32, offset after its last character
    text       string, the sentence
    vector     fixed_size_list<float or halffloat>[D]

One row per sentence, whose word vectors were pooled (layout "pooled"): `sentence`, `text`,
`word_count` and `vector`. Where sentences have ids, such as proteins, `id` comes first, and rows of
words have neither `text` nor `start` and `end`: a protein of 35,000 residues would be repeated as
often. Where texts were split into sentences, `row` (int64), after `sentence`, is the number of the
text, counting from 0. With all layers, `layer_0`, `layer_1`, … take the place of `vector`. A lone
surrogate, which Parquet cannot store, becomes U+FFFD.

The metadata of the file has, under `elmokit`, the version, the layout, the number of sentences (one
without words has no row) and the signature as JSON. A sentence is in one row group, and row groups
know their first and last sentence, so that a reader holds one at a time.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from elmokit.errors import FormatError, InputError
from elmokit.extras import require
from elmokit.json_text import SEAL, check_seal, is_list_of_text, parse_json, seal
from elmokit.text.parquet_pages import check_memory
from elmokit.vectors.spool import Spool, VectorArray

TableLayout = Literal["words", "pooled"]
"""What a row of a table is: a word, or a sentence whose vectors were pooled."""
VERSION = 2
"""Version of the layout; version 1 is that of `parquet.py`."""
TABLE_GROUP_BYTES = 32 << 20
"""Size of a row group in bytes, unless one sentence takes more."""
LARGEST_SENTENCE = (1 << 31) - 1
"""Size of a sentence at most, in bytes and in values: Arrow counts them in int32."""
_MOST_EMPTY = 1000
"""Sentences per row at most: only those without words have no row."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class TableFormat:
    """A layout of tables, offered like the other file formats of vectors."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self.NAME = f"parquet-{layout}"

    def check_installed(self) -> None:
        """Raise `MissingExtra` if pyarrow is not installed."""
        require("pyarrow", "Parquet files (unlike .h5 and .npz)")

    def open_file(self, path: Path) -> TableReader:
        """Open a table."""
        return TableReader(path)

    def write(self, path: Path, spool: Spool) -> None:
        """Write the sentences of a complete spool to a Parquet file."""
        import pyarrow.parquet as pq

        schema = _schema(self.layout, spool)
        options = {
            "use_dictionary": ["word", "text", "id"],
            "write_statistics": ["sentence", "id"],
            "write_page_checksum": True,
        }
        with pq.ParquetWriter(path, schema, **options) as out:
            group: list[tuple[int, dict[str, Any], VectorArray]] = []
            size = 0
            for number, (text, array) in enumerate(spool.records()):
                if array.nbytes > LARGEST_SENTENCE:
                    raise InputError(
                        f"sentence {number} takes {array.nbytes:,} bytes, but a row group of a "
                        f"table at most {LARGEST_SENTENCE:,}; split the sentence"
                    )
                if group and size + array.nbytes > TABLE_GROUP_BYTES:
                    out.write_table(_table(self.layout, schema, group))
                    group, size = [], 0
                group.append((number, parse_json(text), array))
                size += array.nbytes + len(text)
            if group:
                out.write_table(_table(self.layout, schema, group))


TABLES: dict[str, TableFormat] = {"words": TableFormat("words"), "pooled": TableFormat("pooled")}
"""The layouts by name."""


def describe_sentence(
    words: Sequence[str], text: str | None, offsets: bool = True
) -> dict[str, Any]:
    """Return what a table stores about a sentence besides its vectors.

    Args:
        words: The words of the sentence.
        text: The sentence as it was before it was split; by default the words with spaces between.
        offsets: Whether to find the words in the text.
    """
    whole = " ".join(words) if text is None else text
    if not offsets:
        return {"words": list(words), "text": whole}
    starts, ends, position = [], [], 0
    for word in words:
        start = whole.find(word, position)
        if start < 0:
            raise InputError(
                f"the word {word[:40]!r} is not in the text {whole[:60]!r} after character "
                f"{position}; expected the words of the text, in order"
            )
        position = start + len(word)
        starts.append(start)
        ends.append(position)
    return {"words": list(words), "text": whole, "starts": starts, "ends": ends}


def _schema(layout: TableLayout, spool: Spool) -> Any:
    import pyarrow as pa

    value = pa.from_numpy_dtype(spool.dtype)
    layers, dim = spool.shape or (0, 0)
    vector = pa.list_(value, dim) if dim else pa.list_(value)
    columns = {"id": pa.string()} if spool.has_ids else {}
    columns["sentence"] = pa.int64()
    if spool.header["signature"].get("row_numbers"):
        columns["row"] = pa.int64()
    if layout == "words":
        columns |= {"position": pa.int32(), "word": pa.string()}
        if not spool.has_ids:
            columns |= {"start": pa.int32(), "end": pa.int32(), "text": pa.string()}
    else:
        columns |= {"text": pa.string(), "word_count": pa.int32()}
    metadata = {
        "layout": VERSION,
        "rows": layout,
        "sentences": spool.count,
        "signature": spool.header["signature"],
        "job": spool.job(),
    }
    return pa.schema(
        columns | {name: vector for name in _vector_names(layers)},
        metadata={"elmokit": json.dumps(seal(metadata))},
    )


def _vector_names(layers: int) -> list[str]:
    return [f"layer_{number}" for number in range(layers)] or ["vector"]


def _table(
    layout: TableLayout, schema: Any, group: list[tuple[int, dict[str, Any], VectorArray]]
) -> Any:
    import pyarrow as pa

    per_row = [array.shape[-2] for _, _, array in group]
    numbers = np.repeat(np.array([number for number, _, _ in group], np.int64), per_row)
    texts = pa.array([_SURROGATE.sub("\ufffd", entry["text"]) for _, entry, _ in group])
    columns: dict[str, Any] = {"sentence": pa.array(numbers)}
    rows_of = pa.array(np.repeat(np.arange(len(group)), per_row))
    if "id" in schema.names:
        ids = pa.array([_SURROGATE.sub("\ufffd", entry["id"]) for _, entry, _ in group])
        columns = {"id": ids.take(rows_of), **columns}
    if "row" in schema.names:
        columns["row"] = pa.array(np.repeat([entry["row"] for _, entry, _ in group], per_row))
    if layout == "words":
        columns["position"] = pa.array(
            np.concatenate([np.arange(count, dtype=np.int32) for count in per_row])
        )
        columns["word"] = pa.array(
            [_SURROGATE.sub("\ufffd", word) for _, entry, _ in group for word in entry["words"]],
            pa.string(),
        )
        if "text" in schema.names:
            for name, key in (("start", "starts"), ("end", "ends")):
                offsets = [n for _, entry, _ in group for n in entry[key]]
                columns[name] = pa.array(offsets, pa.int32())
            columns["text"] = texts.take(rows_of)
    else:
        columns["text"] = texts
        columns["word_count"] = pa.array([len(entry["words"]) for _, entry, _ in group], pa.int32())
    stacked = np.concatenate([array for _, _, array in group], axis=-2)
    layers = stacked if stacked.ndim == 3 else stacked[None]
    count = stacked.shape[0] if stacked.ndim == 3 else 0
    for name, rows in zip(_vector_names(count), layers, strict=True):
        flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, stacked.shape[-1])
    return pa.table(columns, schema=schema)


def table_layout(path: Path) -> TableLayout | None:
    """Return the layout of a Parquet file that is a table of vectors; None if it is none."""
    import pyarrow.parquet as pq

    try:
        metadata = parse_json((pq.read_schema(path).metadata or {})[b"elmokit"])
        rows = metadata.get("rows")
    except Exception:  # whatever is wrong with the file is reported by the reader of arrays
        return None
    return cast("TableLayout", rows) if isinstance(rows, str) and rows in TABLES else None


def read_ids(file: Any, path: Path, sentences: int | None = None) -> list[str] | None:
    """Return the ids of the sentences of an open Parquet file; None if it has none.

    Args:
        file: The file, as pyarrow opens it.
        path: Its path, for messages.
        sentences: Number of sentences of a table; None if every sentence has exactly one row.
    """
    import pyarrow as pa

    if "id" not in file.schema_arrow.names:
        return None
    ids: list[str] = [""] * (sentences or 0)  # a sentence without words has no row in a table
    try:
        columns = ["id"] if sentences is None else ["id", "sentence"]
        for batch in file.iter_batches(1 << 16, columns=columns):
            if sentences is None:
                ids += list_texts(batch.column("id"))
                continue
            numbers, first = np.unique(batch.column("sentence").to_numpy(), return_index=True)
            found = list_texts(batch.column("id").take(pa.array(first)))
            for number, identifier in zip(numbers.tolist(), found, strict=True):
                if number < 0:
                    raise IndexError(f"there is a sentence {number}")
                ids[number] = identifier
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: its ids cannot be read: {error}") from None
    expected = file.metadata.num_rows if sentences is None else sentences
    if not is_list_of_text(ids) or len(ids) != expected:
        raise FormatError(
            f"{path} is damaged: its ids are {ids!s:.80}; expected text for {expected} sentences"
        )
    return ids


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is that of strings, or of references to strings."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def list_texts(array: Any) -> list[Any]:
    """Return the strings of an Arrow array; those that repeat in a dictionary are one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        listed: list[Any] = array.to_pylist()
        return listed
    texts = array.dictionary.to_pylist()
    return [None if number is None else texts[number] for number in array.indices.to_pylist()]


def _first_values(file: Any, column: str) -> list[Any]:
    """Return the first value of a column in each row group; None for groups without rows."""
    values: list[Any] = []
    for number in range(file.num_row_groups):
        batches = file.iter_batches(1, row_groups=[number], columns=[column])
        batch = next((batch for batch in batches if batch.num_rows), None)
        values.append(None if batch is None else batch.column(0)[0].as_py())
    return values


class TableReader:
    """An open table of vectors, read sentence by sentence."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        self._damage = (
            *(pa.ArrowException, OSError, ValueError, TypeError, KeyError),
            *(AttributeError, OverflowError, IndexError),
        )
        try:
            self._file = pq.ParquetFile(
                path, page_checksum_verification=True, read_dictionary=check_memory(str(path))
            )
        except LookupError as error:
            raise FormatError(f"{path} cannot be read as a Parquet file: {error}") from None
        try:
            self._open()
        except BaseException as error:
            self._file.close()
            if isinstance(error, self._damage):
                raise FormatError(
                    f"{path} is damaged or not a table of vectors ({error!r})"
                ) from None
            raise

    def _open(self) -> None:
        import pyarrow as pa

        schema = self._file.schema_arrow
        metadata = parse_json(schema.metadata[b"elmokit"])
        if int(metadata["layout"]) > VERSION:
            raise FormatError(
                f"{self.path} has layout {metadata['layout']}, but this version of elmokit reads "
                f"up to {VERSION}; update it with: pip install -U elmokit"
            )
        if SEAL in metadata:  # since version 0.2
            check_seal(metadata)
        self.signature: dict[str, Any] | None = metadata["signature"]
        self.job: str | None = metadata.get("job")
        self.count = int(metadata["sentences"])
        rows = self._file.metadata.num_rows
        # A sentence without words has no row.
        if not 0 <= self.count <= _MOST_EMPTY * (max(0, rows) + 10_000):
            raise FormatError(
                f"{self.path} is damaged: it has {rows:,} rows of {self.count:,} sentences"
            )
        if not isinstance(self.signature, dict) or not isinstance(self.job, str | None):
            raise FormatError(f"{self.path} is damaged: it does not say how it was made")
        self._pooled = metadata["rows"] == "pooled"
        names = [name for name in schema.names if re.fullmatch(r"vector|layer_\d+", name)]
        self._layers = [] if "vector" in names else names
        self._columns = names
        self._needed = ["sentence", *names]
        if not self._pooled and "word" in schema.names:
            self._needed.append("word")
        if not names or "sentence" not in schema.names:
            raise FormatError(
                f"{self.path} has the columns {', '.join(schema.names)[:300]}; expected sentence "
                "and vector, or sentence and layer_0, layer_1, …"
            )
        if not pa.types.is_integer(schema.field("sentence").type):
            raise FormatError(
                f"{self.path}: the column sentence has the type {schema.field('sentence').type}; "
                "expected integers"
            )
        kind = schema.field(names[0]).type
        self._dim = getattr(kind, "list_size", 0)
        if not pa.types.is_floating(kind.value_type):
            raise FormatError(
                f"{self.path}: the column {names[0]} has the type {kind!s:.80}; expected floats"
            )
        self._dtype = kind.value_type.to_pandas_dtype()
        # A group may have no rows: that of sentences without words.
        first = _first_values(self._file, "sentence")
        self._groups = [g for g, sentence in enumerate(first) if sentence is not None]
        self._starts = [int(first[g]) for g in self._groups]
        self._cached: tuple[int, Any, Any] | None = None  # number, rows, their sentences

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence: (T, D) or (L+1, T, D); pooled, (D,) or (L+1, D)."""
        table = self._rows(position)
        rows = len(table)
        if self._pooled and rows != 1:
            raise FormatError(f"{self.path} is damaged: sentence {position} has {rows} rows, not 1")
        try:
            flat = [table.column(name).combine_chunks().flatten() for name in self._columns]
            if any(numbers.null_count for numbers in flat):
                raise ValueError("there are rows without numbers")
            layers = [
                np.asarray(numbers.to_numpy(zero_copy_only=False), self._dtype).reshape(
                    rows, self._dim
                )
                for numbers in flat
            ]
        except self._damage as error:
            raise FormatError(
                f"{self.path} is damaged: the vectors of sentence {position} cannot be read: "
                f"{error}"
            ) from None
        array: VectorArray = np.stack(layers) if self._layers else layers[0].copy()
        return array[..., 0, :] if self._pooled else array

    def words(self, position: int) -> list[str] | None:
        """Return the words of a sentence; None if the sentences are pooled."""
        if self._pooled:
            return None
        try:
            words = list_texts(self._rows(position).column("word").combine_chunks())
        except self._damage as error:
            raise FormatError(
                f"{self.path}: the words of sentence {position} cannot be read: {error}"
            ) from None
        if not is_list_of_text(words):
            raise FormatError(
                f"{self.path} is damaged: sentence {position} has the words {words!s:.80}"
            )
        return words

    def ids(self) -> list[str] | None:
        """Return the ids of all sentences; None if they have none."""
        return read_ids(self._file, self.path, self.count)

    def close(self) -> None:
        """Close the file."""
        self._cached = None
        self._file.close()

    def _rows(self, position: int) -> Any:
        """Return the rows of a sentence, in order."""
        index = max(0, bisect.bisect_right(self._starts, position) - 1)
        if not self._groups:
            return self._file.schema_arrow.empty_table().select(self._needed)
        if self._cached is None or self._cached[0] != index:
            try:
                table = self._file.read_row_group(self._groups[index], columns=self._needed)
                self._cached = index, table, table.column("sentence").to_numpy()
            except self._damage as error:
                raise FormatError(
                    f"{self.path}: sentence {position} cannot be read: {error}"
                ) from None
        _, table, sentences = self._cached
        start, end = np.searchsorted(sentences, [position, position + 1]).tolist()
        return table.slice(start, end - start)
