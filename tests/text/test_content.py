"""What a file is that is not text."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.text.content import describe_content
from elmokit.text.files import TextFile


def zipped(name: str = "a.txt") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, "Some text.")
    return data.getvalue()


def tarred() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped(), r"is a zip archive, .* unzip -p \S*x > text\.txt"),
        (zipped("word/document.xml"), "is a Word document .* as plain text first"),
        (b'\x10\x02\0\0\0\0\0\0{"weight":{}}' + b" " * 600, "is a safetensors file"),
        (tarred(), "is a tar archive, .* tar -xf"),
        (gzip.compress(tarred()), "is a tar archive"),
        ("Some text.\n".encode("utf-16"), "is UTF-16 text, .* iconv -f utf-16 -t utf-8"),
        ("Some text.\n".encode("utf-16-le"), "is UTF-16 text, .* iconv -f utf-16-le"),
        ("Some text.\n".encode("utf-16-be"), "is UTF-16 text, .* iconv -f utf-16-be"),
        ("Some text.\n".encode("utf-32"), "is UTF-32 text, .* iconv -f utf-32"),
        (b"%PDF-1.7\n%\xe2\xe3", "is a PDF document, .* pdftotext"),
        (b"\x89HDF\r\n\x1a\n" + bytes(9), "is an HDF5 file"),
        (pickle.dumps([1, 2]), "is a pickle, which is never loaded"),
        (bytes(range(64)), "is a binary file that begins with"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_that_are_not_text(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(TextFile(str(path)).lines())


@pytest.mark.parametrize(
    "text",
    ["Plain text.", "PK is not always a zip.", "ID3 tags\n", "我去银行", "", "\x1b[1mbold", "GIF8"],
)
def test_text_is_text(text: str) -> None:
    assert describe_content(text.encode(), "x") is None


def test_stdin_is_called_a_file_in_the_advice() -> None:
    found = describe_content(zipped(), "stdin")
    assert found is not None and "unzip -p FILE" in found
