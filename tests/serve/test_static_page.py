"""Building the page without a server; `tests/browser` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import GOLDEN

pytest.importorskip("starlette", reason="the page needs pip install 'elmokit[serve]'")

from elmokit.errors import InputError
from elmokit.serve import build_static_page
from elmokit.serve.static_page import RUNTIME_FILES


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    directory = tmp_path / "onnxruntime-web" / "dist"
    directory.mkdir(parents=True)
    for name in RUNTIME_FILES:
        (directory / name).write_text("// stands for the real file\n")
    return directory.parent


def test_a_missing_runtime_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="npm install onnxruntime-web"):
        build_static_page(tmp_path / "out", runtime=tmp_path)
    assert not (tmp_path / "out").exists()


def test_other_directories_are_not_replaced(tmp_path: Path, runtime: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not a page"):
        build_static_page(out, runtime=runtime)
    assert (out / "thesis.txt").read_text() == "mine"


def test_a_model_that_reads_code_points_is_refused(tmp_path: Path, runtime: Path) -> None:
    model = GOLDEN / "many_langs" / "models" / "plain"
    with pytest.raises(InputError, match="elmo serve"):
        build_static_page(tmp_path / "out", model=model, runtime=runtime)


def test_a_page_is_complete_and_replaces_an_older_one(tmp_path: Path, runtime: Path) -> None:
    pytest.importorskip("onnx", reason="the page without a server needs onnx")
    pytest.importorskip("elmokit.formats.onnx", reason="elmokit cannot export to ONNX")
    out = tmp_path / "out"
    for _ in range(2):
        files = build_static_page(out, model=GOLDEN / "models" / "plain", runtime=runtime)
    names = {file.relative_to(out).as_posix() for file in files}
    assert {"index.html", "page/app.js", "page/model/model.onnx", "page/model/info.json"} <= names
    assert {f"page/runtime/{name}" for name in RUNTIME_FILES} <= names
    assert 'content="browser"' in (out / "index.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in (out / "page/model/info.json").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
