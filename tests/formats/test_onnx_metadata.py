"""The metadata of ONNX files, read without the package onnx."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from elmokit import Elmo, convert_model, inspect_model
from elmokit.bilm.model import BiLM
from elmokit.errors import FormatError, MissingExtra
from elmokit.formats.onnx.metadata import make_metadata, read_metadata


def field(number: int, content: bytes) -> bytes:
    """One field of a message of Protocol Buffers, with a content of any length."""
    length, size = b"", len(content)
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def onnx_file(key: str, value: str) -> bytes:
    """The skeleton of an ONNX file: version, producer, a graph, one entry of metadata."""
    entry = field(1, key.encode()) + field(2, value.encode())
    return b"\x08\x08" + field(2, b"somebody") + field(7, b"\xff" * 5000) + field(14, entry)


def test_metadata_are_found_behind_the_graph(bilm: BiLM, tmp_path: Path) -> None:
    elmo = Elmo(bilm)
    metadata = make_metadata(elmo.bilm, "float32", "mit")
    (tmp_path / "m.onnx").write_bytes(onnx_file("elmokit", json.dumps(metadata)))
    with (tmp_path / "m.onnx").open("rb") as file:
        assert read_metadata(file, "m.onnx") == metadata
    info = inspect_model(tmp_path / "m.onnx")
    assert (info["format"], info["layers"], info["dim"]) == ("onnx", elmo.layers, elmo.dim)
    assert info["parameters"] == bilm.parameters


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello", "truncated, or not an ONNX file"),
        (b"\xff" * 30, "truncated, or not an ONNX file"),
        (b"", "was not written by elmokit"),
        (onnx_file("other", "x"), "was not written by elmokit"),
        (onnx_file("elmokit", "[")[:-1], "truncated"),
        (onnx_file("elmokit", "["), "not valid JSON"),
        (onnx_file("elmokit", "[]"), "not those of an export"),
        (onnx_file("elmokit", '{"format": "elmokit-onnx", "version": 2}'), "version 2"),
        (onnx_file("elmokit", '{"format": "elmokit-onnx", "version": 1}'), "have no config"),
        (field(14, b"\x08\x01"), "its metadata are not strings"),
    ],
)
def test_files_that_are_not_ours(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_metadata(io.BytesIO(data), "x.onnx")


def test_what_is_missing_is_said_before_the_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"ONNX files need onnx.*pip install 'elmokit\[onnx\]'"):
        convert_model("no such model", tmp_path / "m.onnx")
