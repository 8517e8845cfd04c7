"""The strings of one column of a Parquet file. pyarrow is an optional package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from elmokit.errors import FormatError, InputError
from elmokit.extras import require
from elmokit.text.parquet_pages import ColumnChunk, longest_value, read_chunks

PARQUET_MAGIC = b"PAR1"
"""The bytes that a Parquet file begins and ends with."""
BATCH_ROWS = 256
"""Number of rows that are read at once."""
LONGEST_VALUE = 256 << 20
"""Size in bytes of a text at most, and about that of all texts that are read at once."""
BUFFER_BYTES = 1 << 16
"""Number of bytes that are read at once where only the first rows are needed."""


class RowGroup(NamedTuple):
    """One row group of a Parquet file, as far as its column of text is concerned."""

    rows: int
    """Number of rows."""
    size: int
    """Size of the column in the group, in bytes, before compression."""
    start: int
    """Where the bytes of the column begin in the file."""
    length: int
    """Number of bytes of the column in the file."""


def list_row_groups(name: str, column: str | None) -> list[RowGroup]:
    """Return the row groups of a Parquet file; see `read_text_column` for the arguments."""
    require("pyarrow", "Parquet files")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(name, buffer_size=BUFFER_BYTES) as file:
            chosen = _choose_column(name, file.schema_arrow, column)
            rows = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{name} cannot be read as a Parquet file: {error}") from None
    chunks = _column_chunks(name, chosen)
    if len(rows) != len(chunks) or min(rows, default=0) < 0:
        raise FormatError(f"{name} is damaged: its row groups have the rows {rows!s:.80}")
    return [
        RowGroup(count, chunk.size, chunk.start, chunk.length)
        for count, chunk in zip(rows, chunks, strict=True)
    ]


def _column_chunks(name: str, column: str) -> list[ColumnChunk]:
    chunks = []
    for group in read_chunks(name):
        found = [chunk for chunk in group if chunk.column == column]
        if len(found) != 1:
            raise FormatError(f"{name} is damaged: the column {column!r:.80} is not there")
        chunks += found
    return chunks


def hash_row_groups(name: str, groups: list[RowGroup]) -> str:
    """Return the SHA-256 of the text column in some row groups, as it is in the file."""
    digest = hashlib.sha256()
    with open(name, "rb") as file:
        for group in groups:
            file.seek(group.start)
            left = group.length
            while left and (data := file.read(min(left, 1 << 20))):
                digest.update(data)
                left -= len(data)
    return digest.hexdigest()


def read_text_column(
    name: str, column: str | None, row_groups: range | None = None
) -> Iterator[tuple[str | None, float]]:
    """Yield the rows of a column of strings, each with the fraction of the file read so far.

    Args:
        name: Path of the Parquet file.
        column: Name of the column; by default `text`, or the only column of strings.
        row_groups: Numbers of the row groups to read; all by default.
    """
    require("pyarrow", "Parquet files")
    import pyarrow as pa
    import pyarrow.parquet as pq

    done = 0
    try:
        with pq.ParquetFile(name) as file:
            chosen = _choose_column(name, file.schema_arrow, column)
            chunks = _column_chunks(name, chosen)
            for group in range(len(chunks)) if row_groups is None else row_groups:
                longest = longest_value(name, chunks[group])
                if longest > LONGEST_VALUE:
                    raise FormatError(
                        f"{name} has texts of up to {longest:,} bytes in one row; expected at "
                        f"most {LONGEST_VALUE:,}"
                    )
                count = max(1, min(BATCH_ROWS, LONGEST_VALUE // max(1, longest)))
                for batch in file.iter_batches(count, columns=[chosen], row_groups=[group]):
                    done += batch.num_rows
                    for row in batch.column(0):  # not all at once, since long ones may repeat
                        yield row.as_py(), done / max(done, file.metadata.num_rows)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}, before row {done}: the text is not UTF-8 ({error})") from None
    except (pa.ArrowException, OSError, IndexError) as error:
        raise FormatError(f"{name} cannot be read as a Parquet file: {error}") from None


def _choose_column(name: str, schema: Any, column: str | None) -> str:
    import pyarrow as pa

    def is_text(kind: Any) -> bool:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    text_columns = [field.name for field in schema if is_text(field.type)]
    available = f"its columns of strings are: {', '.join(text_columns)[:300] or 'none'}"
    if column is not None:
        if column not in schema.names:
            raise InputError(f"{name} has no column {column!r}; {available}")
        if column not in text_columns:
            raise InputError(f"{name}: the column {column!r} does not hold strings; {available}")
        return column
    if "text" in text_columns:
        return "text"
    if len(text_columns) != 1:
        raise InputError(
            f"{name} has no column 'text', and {available}. Choose one with --column NAME, or "
            "rename it to 'text'"
        )
    return str(text_columns[0])
