"""The strings of one column of a Parquet file. pyarrow is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmokit.errors import FormatError, InputError, MissingExtra

MAGIC = b"PAR1"
"""How a Parquet file begins and ends."""
ROWS = 256


def rows_of(name: str, column: str | None) -> Iterator[tuple[str, float]]:
    """The strings of a column one by one, each with the share of the file that was read by then."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra(
            f"{name} is a Parquet file, which needs pyarrow ({error}): "
            "pip install 'elmokit[parquet]'"
        ) from None
    try:
        with pq.ParquetFile(name) as file:
            chosen = _text_column(name, file.schema_arrow, column)
            done = 0
            for batch in file.iter_batches(ROWS, columns=[chosen]):
                done += batch.num_rows
                for row in batch.column(0).to_pylist():
                    if row is not None:
                        yield row, done / file.metadata.num_rows
    except UnicodeDecodeError as error:
        raise InputError(f"{name}, before row {done}: not UTF-8 ({error})") from None
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{name} is no readable Parquet file: {error}") from None


def _text_column(name: str, schema: Any, column: str | None) -> str:
    import pyarrow as pa

    def is_text(kind: Any) -> bool:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    strings = [field.name for field in schema if is_text(field.type)]
    has = f"{name} has the columns {', '.join(schema.names)}"
    if column is not None:
        if column not in strings:
            what = "is not one of strings" if column in schema.names else "is none of them"
            raise InputError(
                f"{has}; {column!r} {what}. Of strings: {', '.join(strings) or 'none'}"
            )
        return column
    if "text" in strings:
        return "text"
    if len(strings) != 1:
        raise InputError(
            f"{has}, of strings {', '.join(strings) or 'none'}; say which one is the text: "
            "--column NAME"
        )
    return str(strings[0])
