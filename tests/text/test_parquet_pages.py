"""The headers of Parquet files, as they are written by pyarrow, and bombs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from elmokit import Elmo, embed_to_file
from elmokit.errors import FormatError
from elmokit.text import parquet, parquet_pages
from elmokit.vectors import load_vectors, open_writer, save_vectors

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'elmokit[parquet]'")
pq = pytest.importorskip("pyarrow.parquet")

OPTIONS = [
    {},
    {"compression": "zstd", "data_page_version": "2.0"},
    {"use_dictionary": False, "write_page_checksum": True, "data_page_size": 100},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
    {"dictionary_pagesize_limit": 50, "data_page_size": 100},
]


def write_text(path: Path, rows: list[str | None], **options: object) -> Path:
    pq.write_table(pa.table({"n": [[1, 2]] * len(rows), "text": rows}), path, **options)
    return path


@pytest.mark.parametrize("options", OPTIONS)
def test_equal_to_what_pyarrow_says(options: dict[str, object], tmp_path: Path) -> None:
    rows = [f"text {number} " * (number % 7) if number % 5 else None for number in range(300)]
    path = write_text(tmp_path / "t.parquet", rows, row_group_size=120, **options)
    metadata = pq.ParquetFile(path).metadata
    chunks = parquet_pages.read_chunks(str(path))
    assert len(chunks) == metadata.num_row_groups == 3
    for number, group in enumerate(chunks):
        for position, chunk in enumerate(group):
            expected = metadata.row_group(number).column(position)
            assert chunk.column == expected.path_in_schema
            assert chunk.length == expected.total_compressed_size
            assert chunk.size == expected.total_uncompressed_size
            pages = list(parquet_pages._read_pages(str(path), chunk))
            assert sum(page.values for page in pages if not page.is_dictionary) == (
                expected.num_values
            )
    parquet_pages.check_memory(str(path))
    assert [row for row, _ in parquet.read_text_column(str(path), None)] == rows
    groups = parquet.list_row_groups(str(path), None)
    assert [group.rows for group in groups] == [120, 120, 60]
    part = parquet.read_text_column(str(path), None, range(1, 2))
    assert [row for row, _ in part] == rows[120:240]


def test_one_long_string_that_repeats(tmp_path: Path) -> None:
    """Two kilobytes, of which 256 rows at once took 4 GB."""
    path = tmp_path / "bomb.parquet"
    long = "a b " * (1 << 22)
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array([long]))
    pq.write_table(pa.table({"text": repeated}), path, compression="zstd")
    assert path.stat().st_size < 5000
    if not Path("/proc/self/status").exists():
        pytest.skip("needs Linux's /proc to count memory")
    script = f"""
import itertools, re
from pathlib import Path
from elmokit.text.parquet import read_text_column
rows = itertools.islice(read_text_column({str(path)!r}, None), 3)
assert [len(row) for row, _ in rows] == [1 << 24] * 3
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert int(result.stdout) < 1 << 20, "more than 1 GB"


def test_a_page_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "LONGEST_VALUE", 1000)
    path = write_text(tmp_path / "t.parquet", ["short", "a" * 5000])
    with pytest.raises(FormatError, match=r"texts of up to 5,0\d\d bytes in one row"):
        list(parquet.read_text_column(str(path), None))


def test_vectors_that_were_written_again(tmp_path: Path) -> None:
    """By pyarrow, with a dictionary for every column."""
    words, array = [["é" * 50, "b"] * 20] * 9, np.ones((2, 40, 30), np.float32)
    ids = [f"id {number}" for number in range(9)]
    with open_writer(tmp_path / "v.parquet", ids=True) as out:
        for identifier, sentence in zip(ids, words, strict=True):
            out.write(sentence, array, id=identifier)
    pq.write_table(pq.read_table(tmp_path / "v.parquet"), tmp_path / "again.parquet")
    assert parquet_pages.check_memory(str(tmp_path / "again.parquet")) == [
        "id",
        "words.list.element",
        "words_json",
    ]
    with load_vectors(tmp_path / "again.parquet") as vectors:
        assert np.array_equal(vectors[8], array)
        assert vectors.words(8) == words[8]
        assert vectors.ids == ids


def test_words_that_repeat_take_no_memory(tmp_path: Path) -> None:
    """A sentence of a million times the same long word: 4 GB, if each were a string of its own."""
    count = 1 << 20
    save_vectors([(["a"], np.ones((1, 2), np.float32))], tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    indices = pa.array(np.zeros(count, np.int32))
    long = pa.DictionaryArray.from_arrays(indices, pa.array(["a" * 4096]))
    words = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), long)
    shape = pa.array([[count, 2]], pa.list_(pa.int32()))
    table = table.set_column(1, "words", words).set_column(2, "shape", shape)
    pq.write_table(table, tmp_path / "v.parquet")
    with load_vectors(tmp_path / "v.parquet") as vectors:
        found = vectors.words(0)
    assert len(found) == count and all(word is found[0] for word in found)


def test_numbers_that_repeat_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_vectors([(["a"] * 4000, np.ones((4000, 50), np.float32))], tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    pq.write_table(pa.concat_tables([table] * 9), tmp_path / "again.parquet")
    monkeypatch.setattr(parquet_pages, "ALWAYS_ALLOWED", 5 << 20)
    monkeypatch.setattr(parquet_pages, "MOST_GROWTH", 10)
    load_vectors(tmp_path / "v.parquet").close()
    with pytest.raises(FormatError, match="a row group may take"):
        load_vectors(tmp_path / "again.parquet")


def test_long_texts_in_tables(elmo: Elmo, tmp_path: Path) -> None:
    """The text stands in every row, by a reference."""
    texts = [["cat"] * 3, ["doghouse"] * 300]
    embed_to_file(elmo, texts, tmp_path / "v.parquet", rows="words")
    assert "text" in parquet_pages.check_memory(str(tmp_path / "v.parquet"))
    with load_vectors(tmp_path / "v.parquet") as vectors:
        assert [vectors.words(k) for k in range(2)] == texts


def test_tables_are_checked_too(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed_to_file(elmo, [["a", "cat"]], tmp_path / "v.parquet", rows="words")
    load_vectors(tmp_path / "v.parquet").close()
    monkeypatch.setattr(parquet_pages, "ALWAYS_ALLOWED", 0)
    monkeypatch.setattr(parquet_pages, "MOST_GROWTH", 0)
    with pytest.raises(FormatError, match="a row group may take"):
        load_vectors(tmp_path / "v.parquet")


def test_a_group_without_rows(tmp_path: Path) -> None:
    """pyarrow writes offsets that lead nowhere."""
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(tmp_path / "t.parquet", schema) as out:
        for rows in (["a"], [], ["b"]):
            out.write_table(pa.table({"text": pa.array(rows, pa.string())}))
    parquet_pages.check_memory(str(tmp_path / "t.parquet"))
    rows = parquet.read_text_column(str(tmp_path / "t.parquet"), None)
    assert [row for row, _ in rows] == ["a", "b"]


def test_long_statistics_are_skipped(tmp_path: Path) -> None:
    """The header of a page holds the smallest and the largest text, if they are wanted."""
    rows = ["a" * 200_000, "b" * 100_000]
    path = write_text(tmp_path / "t.parquet", rows, use_dictionary=False)
    assert [row for row, _ in parquet.read_text_column(str(path), None)] == rows


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", IndexError),  # nothing
        (b"\x15", IndexError),  # ends before the number
        (b"\x15" + b"\xff" * 11, ValueError),  # a number without an end
        (b"\x18\x7fabc", IndexError),  # bytes that are not there
        (b"\x1c" * 50, ValueError),  # too deep
        (b"\x19" + b"\x19" * 50, ValueError),  # lists in lists
        (b"\x19\xf5\xff\xff\xff\xff\x0f", IndexError),  # a list of four billion numbers
        (b"\x1b\x00", ValueError),  # a map
        (b"\x1e", ValueError),  # no such type
    ],
)
def test_structures_that_are_none(data: bytes, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        parquet_pages._parse_struct(data, 0)


def test_fields_of_a_structure() -> None:
    data = b"\x15\x03\x11\x12\x05\xc8\x01\x06\x18\x02ab\x17" + bytes(8) + b"\x00rest"
    fields, end = parquet_pages._parse_struct(data, 0)
    assert fields == {1: -2, 2: True, 3: False, 100: 3, 101: b"ab", 102: bytes(8)}
    assert data[end:] == b"rest"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 4, b"PAR1" + b"\xff" * 4 + b"PAR1"])
def test_no_footer(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(FormatError, match="cannot be read as a Parquet file"):
        parquet_pages.check_memory(str(tmp_path / "t.parquet"))
