"""Without its library, an integration says how to install it; importing elmokit needs none."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import zipfile

import pytest

from elmokit.errors import MissingExtra
from elmokit.integrations import loaded_models, saved_model

LIBRARIES = {
    "flair": "flair",
    "ray": "ray",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "sklearn",
    "spacy": "spacy",
}


@pytest.mark.parametrize(("library", "extra"), LIBRARIES.items())
def test_the_message(library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # importing it raises ImportError
    monkeypatch.delitem(sys.modules, f"elmokit.integrations.{library}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'elmokit\[{extra}\]'"):
        importlib.import_module(f"elmokit.integrations.{library}")


def test_elmokit_imports_no_integration() -> None:
    code = "import elmokit.elmo, sys; print([n for n in sys.modules if 'integrations' in n])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_what_integrations_share_needs_no_library() -> None:
    saved = saved_model.SavedModel("builtin", "float32", 1)
    other = saved_model.SavedModel("something else", "float32", 1)
    other.from_bytes(saved.to_bytes())
    assert other.model == "builtin" and other.elmo is saved.elmo
    assert other.elmo is loaded_models.load_shared("builtin", "float32", 1)
    with pytest.raises(saved_model.FormatError, match="damaged"):
        other.from_bytes(b"not a zip file")


def archive(index: bytes, method: int = zipfile.ZIP_STORED, **files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in {saved_model.INDEX: index, **files}.items():
            made.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        archive(b"[]"),
        archive(b"{}"),
        archive(b'{"model": 3, "fingerprint": "x"}'),
        archive(b'{"model": "builtin", "fingerprint": 3}'),
        archive(b'{"model": "builtin"', zipfile.ZIP_LZMA)[:-1],
        archive(b'{"model": null, "fingerprint": "x"}', zipfile.ZIP_DEFLATED, x=bytes(1 << 27)),
    ],
)
def test_a_saved_model_that_lies_is_refused(data: bytes) -> None:
    with pytest.raises(saved_model.FormatError, match="damaged"):
        saved_model.SavedModel("builtin", "float32", 1).from_bytes(data)
