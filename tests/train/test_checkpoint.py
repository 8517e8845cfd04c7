"""Checkpoints: whole or not there at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.errors import FormatError  # noqa: E402
from elmokit.train import checkpoint  # noqa: E402

ARRAYS = {"a": torch.arange(6.0).view(2, 3).t(), "b": torch.tensor([1.5])}


def test_there_and_back(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "new", 12, ARRAYS, {"step": 12})
    path = checkpoint.find_newest(tmp_path / "new")
    assert path == tmp_path / "new" / "step-00000012"
    arrays, facts = checkpoint.load(path)
    assert facts == {"step": 12}
    assert arrays.keys() == ARRAYS.keys()
    assert all(torch.equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_old_ones_are_forgotten(tmp_path: Path) -> None:
    for step in (1, 2, 30, 123_456_789):
        (tmp_path / ".step-00000099").mkdir(exist_ok=True)  # of a process that died
        checkpoint.save(tmp_path, step, ARRAYS, {})
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000030", "step-123456789"}


def test_killed_while_old_ones_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run deletes what is left, also if it has nothing else to save."""

    def die(path: Path, **_: Any) -> None:
        for file in sorted(path.iterdir())[:1] if path.exists() else ():
            file.unlink()
            raise KeyboardInterrupt

    for step in (1, 2):
        checkpoint.save(tmp_path, step, ARRAYS, {"step": step})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint.shutil, "rmtree", die)
        checkpoint.save(tmp_path, 3, ARRAYS, {"step": 3})
    for path in tmp_path.glob("step-*"):
        checkpoint.load(path)  # none of them is damaged
    checkpoint.save(tmp_path, 3, ARRAYS, {"step": 3})
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000002", "step-00000003"}


def test_newest_knows_its_own(tmp_path: Path) -> None:
    assert checkpoint.find_newest(tmp_path / "none") is None
    for name in (".step-00000009", "step-9x", "other"):
        (tmp_path / name).mkdir()
    assert checkpoint.find_newest(tmp_path) is None


def test_interrupted_at_any_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far a second checkpoint came, the first is there and whole."""
    checkpoint.save(tmp_path, 1, ARRAYS, {"step": 1})

    class Died(BaseException):
        pass

    def dies(*_: Any) -> None:
        raise Died

    for name in ("fsync", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, dies)
            with pytest.raises(Died):
                checkpoint.save(tmp_path, 2, ARRAYS, {"step": 2})
        path = checkpoint.find_newest(tmp_path)
        assert path is not None
        assert checkpoint.load(path)[1] == {"step": 1}
    checkpoint.save(tmp_path, 2, ARRAYS, {"step": 2})
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000001", "step-00000002"}


def test_a_step_keeps_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the same; and for a moment there would be none."""
    checkpoint.save(tmp_path, 1, ARRAYS, {})
    before = (tmp_path / "step-00000001").stat().st_ino
    checkpoint.save(tmp_path, 1, ARRAYS, {})
    assert (tmp_path / "step-00000001").stat().st_ino == before


@pytest.mark.parametrize(
    ("name", "content"),
    [("state.json", b"{"), ("state.safetensors", b"no"), ("state.json", None)],
)
def test_damaged(name: str, content: bytes | None, tmp_path: Path) -> None:
    checkpoint.save(tmp_path, 1, ARRAYS, {})
    path = tmp_path / "step-00000001"
    if content is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content)
    with pytest.raises(FormatError, match=r"step-00000001 is damaged.*Delete it"):
        checkpoint.load(path)
