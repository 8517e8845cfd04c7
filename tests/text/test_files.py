"""Text files: every kind gives the same lines, and what is wrong with one is said."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.errors import FormatError, InputError, MissingExtra
from elmokit.text import files
from elmokit.text.files import STDIN, TextBlock, TextFile, decode_lines, find_files, join_paragraphs

TEXT = "Über den Wolken.\n\nA second line, with a naïve word.\nThe last one has no end"
LINES = TEXT.split("\n")
ZSTD = (b"\x28\xb5\x2f\xfd", b"a frame")


def lines_of(name: str | Path, size: int = 1 << 20, **options: str) -> list[str]:
    file = TextFile(str(name), **options)
    return [line for block in file.blocks(size) for line in decode_lines(block)]


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


# -- kinds -----------------------------------------------------------------------------------------

KINDS = {"txt": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [True, False], ids=["suffix", "no suffix"])
def test_every_kind_gives_the_same_lines(make, kind: str, named: bool) -> None:
    data = KINDS[kind](TEXT.encode())
    path = make(f"text.{kind}" if named else "text", data)
    file = TextFile(str(path))
    blocks = list(file.blocks(7))
    assert [line for block in blocks for line in decode_lines(block)] == LINES
    assert len(blocks) > 1
    assert file.position == file.size == len(data)
    assert file.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2"])
def test_several_streams_in_one_file(make, kind: str) -> None:
    compress = KINDS[kind]
    assert lines_of(make("text", compress(b"one\n") + compress(b"two\n"))) == ["one", "two"]


def test_zstandard(make) -> None:
    zstandard = pytest.importorskip("zstandard", reason="needs the package zstandard")
    compress = zstandard.ZstdCompressor().compress
    path = make("text.zst", compress(TEXT[:20].encode()) + compress(TEXT[20:].encode()))
    assert lines_of(path, 5) == LINES
    with pytest.raises(FormatError, match=r"cut\.zst is damaged or truncated"):
        lines_of(make("cut.zst", ZSTD[0] + b"\xff" * 40))


def test_zstandard_missing(make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"text\.zst, .* pip install .elmokit\[zstd\]"):
        lines_of(make("text.zst", b"".join(ZSTD)))


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2"])
def test_a_file_that_is_cut_off(make, kind: str) -> None:
    data = KINDS[kind](TEXT.encode() * 50)
    with pytest.raises(FormatError, match=rf"text\.{kind} is damaged or truncated"):
        lines_of(make(f"text.{kind}", data[: len(data) // 2]))


def test_a_name_that_lies(make) -> None:
    with pytest.raises(
        FormatError, match=r"pointer\.xz is not compressed, although its name says so"
    ):
        lines_of(make("pointer.xz", b"version https://git-lfs"))


def test_stdin_may_be_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (TEXT.encode(), gzip.compress(TEXT.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert lines_of(STDIN) == LINES
    assert TextFile(STDIN).size is None


# -- Parquet ---------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    def write(**columns: list[object]) -> Path:
        path = tmp_path / "table.parquet"
        parquet.write_table(pa.table(columns), path, row_group_size=3)
        return path

    return write


def test_parquet_reads_its_text(table) -> None:
    rows = [f"Row {i}.\nIts second line, é." for i in range(10)] + [None]
    path = table(id=list(range(11)), url=["u"] * 11, text=rows)
    file = TextFile(str(path))
    blocks = list(file.blocks(40))
    lines = [line for block in blocks for line in decode_lines(block)]
    assert [line for line in lines if line] == [
        line for row in rows if row for line in row.split("\n")
    ]
    assert len(blocks) > 3
    assert file.position == file.size
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    # By its content too, and each row is a paragraph of its own.
    path = path.rename(path.with_suffix(""))
    (block,) = TextFile(str(path)).blocks(1 << 20)
    assert list(join_paragraphs(decode_lines(block))) == rows[:-1]


def test_parquet_column(table) -> None:
    assert lines_of(table(id=[1, 2], body=["a", "b"]))[::2] == ["a", "b"]
    import pyarrow as pa

    assert lines_of(table(body=pa.array(["a", "a"]).dictionary_encode()))[::2] == ["a", "a"]
    path = table(title=["t"], body=["b"], id=[1])
    assert lines_of(path, column="body")[0] == "b"
    with pytest.raises(
        InputError, match=r"columns of strings are: title, body. Choose one with --column"
    ):
        lines_of(path)
    with pytest.raises(InputError, match="'id' does not hold strings"):
        lines_of(path, column="id")
    with pytest.raises(InputError, match="no column 'text'"):
        lines_of(path, column="text")


def test_parquet_not_utf8(table) -> None:
    import pyarrow as pa

    bad = pa.array([b"fine", b"na\xefve"]).view(pa.string())
    with pytest.raises(InputError, match=r"table\.parquet, before row 2: the text is not UTF-8"):
        lines_of(table(text=bad))


def test_parquet_damaged_or_missing(make, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    path = make("x.parquet", b"PAR1 and no more")
    with pytest.raises(FormatError, match=r"x\.parquet cannot be read as a Parquet file"):
        lines_of(path)
    assert lines_of(make("x.txt", b"PAR1 is a word")) == ["PAR1 is a word"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"PAR1 PAR1")))
    with pytest.raises(InputError, match=r"stdin is a Parquet file.* give its path"):
        lines_of(STDIN)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"elmokit\[parquet\]"):
        lines_of(path)


# -- lines -----------------------------------------------------------------------------------------


def test_byte_order_mark_and_line_ends(make) -> None:
    data = "\ufeffone\r\ntwo\u2028still two\x0cand\x85\r\n\ufeffthree".encode()
    assert lines_of(make("x", data)) == ["one", "two\u2028still two\x0cand\x85", "\ufeffthree"]


@given(st.text(alphabet="ab é\n", max_size=60), st.integers(1, 20))
def test_blocks_hold_whole_lines_whatever_their_size(
    tmp_path_factory, text: str, size: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "x"
    path.write_text(text, encoding="utf-8", newline="\n")
    blocks = list(TextFile(str(path)).blocks(size))
    assert b"".join(block.data for block in blocks).decode() == text
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    number = 1
    for block in blocks:
        assert block.first_line == number
        number += block.data.count(b"\n")


@given(st.lists(st.sampled_from(["a b", "é", "", " ", "\r"]), max_size=40), st.integers(1, 20))
def test_blocks_hold_whole_paragraphs(tmp_path_factory, lines: list[str], size: int) -> None:
    path = tmp_path_factory.mktemp("blocks") / "x"
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    found = [
        paragraph
        for block in TextFile(str(path)).blocks(size, paragraphs=True)
        for paragraph in join_paragraphs(decode_lines(block))
    ]
    assert found == list(join_paragraphs(line.rstrip("\r") for line in lines))


def test_a_blank_line_far_from_the_end_of_a_block(make) -> None:
    data = b"first\n\n" + b"a line of the second\n" * 1000
    blocks = list(TextFile(str(make("x", data))).blocks(15_000, paragraphs=True))
    assert [len(block.data) for block in blocks] == [7, len(data) - 7]


def test_a_line_without_end_is_cut_between_words(make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 20)
    text = "some words and more " * 5 + "ü" * 60 + "\nend"
    lines = lines_of(make("x", text.encode()), 8)
    assert "".join(lines) == text.replace("\n", "")
    assert max(len(line.encode()) for line in lines) < 40
    assert all(
        word in "some words and more" for line in lines for word in line.strip("ü").split()[:-1]
    )
    # A paragraph without end is cut between its lines.
    blocks = TextFile(str(make("y", b"a line\n" * 9))).blocks(8, paragraphs=True)
    assert all(block.data.endswith(b"line\n") for block in blocks)


def test_not_utf8(make) -> None:
    path = make("latin.txt", "fine\nna\u00efve\n".encode("latin1"))
    with pytest.raises(
        InputError, match=r"latin\.txt, line 2 is not UTF-8 \(byte 0xef at 2\).*latin1"
    ):
        lines_of(path, 2)
    with pytest.raises(InputError, match=r"is UTF-16 text, .* iconv -f utf-16"):
        lines_of(make("x", "abc".encode("utf-16")))
    with pytest.raises(InputError, match=r"line 2 holds a NUL"):
        lines_of(make("x", b"abc\nd\0e"))
    with pytest.raises(InputError, match=r"^stdin, line 7 "):
        list(decode_lines(TextBlock(STDIN, 7, b"\xff")))


# -- which files -----------------------------------------------------------------------------------


def test_find_files(make, tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/10.txt", "b/c/x", "b/.hidden", "b/.git/x", "a.txt"):
        make(name, b"text")

    def found(*paths: str, leave_out: tuple[str, ...] = ()) -> list[str]:
        names = find_files(
            [path if path == STDIN else str(tmp_path / path) for path in paths],
            [tmp_path / path for path in leave_out],
        )
        return [name.removeprefix(f"{tmp_path}/") for name in names]

    assert found("b") == ["b/10.txt", "b/2.txt", "b/c/x"]
    assert found("a.txt", "-", "b/*.txt", "b/2.txt") == ["a.txt", "-", "b/10.txt", "b/2.txt"]
    assert found("b", leave_out=("b/c", "b/2.txt")) == ["b/10.txt"]
    make("what[1].txt", b"a pattern that is a name")
    assert found("what[1].txt") == ["what[1].txt"]
    with pytest.raises(InputError, match=r"no file matches .*none"):
        found("none*")
    with pytest.raises(InputError, match="none does not exist"):
        found("none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty is a directory without files"):
        found("empty")
