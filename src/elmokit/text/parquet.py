"""The strings of one column of a Parquet file. pyarrow is an optional package."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from elmokit.errors import FormatError, InputError
from elmokit.extras import require

PARQUET_MAGIC = b"PAR1"
"""The bytes that a Parquet file begins and ends with."""
BATCH_ROWS = 256
"""Number of rows that are read at once."""
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
            read_first_rows(file, chosen)
            number = next(
                (k for k in range(len(file.schema)) if file.schema.column(k).path == chosen), None
            )
            if number is None:
                raise FormatError(f"{name} is damaged: the column {chosen!r:.80} is not there")
            total = os.path.getsize(name)
            groups = []
            for k in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(k)
                chunk = group.column(number)
                first = chunk.data_page_offset
                if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                    first = min(first, chunk.dictionary_page_offset)
                size, length = chunk.total_uncompressed_size, chunk.total_compressed_size
                if min(group.num_rows, size, first, length) < 0 or first + length > total:
                    raise FormatError(
                        f"{name} is damaged: a column has {length:,} bytes at byte {first:,}"
                    )
                groups.append(RowGroup(group.num_rows, size, first, length))
            return groups
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{name} cannot be read as a Parquet file: {error}") from None


def read_first_rows(file: Any, column: str) -> list[Any]:
    """Return the first value of a column in each row group; None for groups without rows.

    Where the list of columns of a group is damaged, `RowGroupMetaData.column` of pyarrow ends the
    process; this raises `pyarrow.ArrowException`, so it has to come first.

    Args:
        file: The file, as pyarrow opens it.
        column: Name of the column.
    """
    values: list[Any] = []
    for number in range(file.metadata.num_row_groups):
        value = None
        for batch in file.iter_batches(1, row_groups=[number], columns=[column]):
            if batch.num_rows:
                value = batch.column(0)[0].as_py()
                break
        values.append(value)
    return values


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
            groups = None if row_groups is None else list(row_groups)
            for batch in file.iter_batches(BATCH_ROWS, columns=[chosen], row_groups=groups):
                done += batch.num_rows
                for row in batch.column(0).to_pylist():
                    yield row, done / max(done, file.metadata.num_rows)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}, before row {done}: the text is not UTF-8 ({error})") from None
    except (pa.ArrowException, OSError) as error:
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
