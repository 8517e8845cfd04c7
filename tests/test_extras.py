"""Optional packages: the messages when one is missing."""

from __future__ import annotations

import sys

import pytest

from elmokit.errors import MissingExtra
from elmokit.extras import EXTRAS, explain, install_command, require


def test_a_package_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert require("huggingface_hub", "Names on the hub").__name__ == "huggingface_hub"


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"^Parquet files need pyarrow.*'elmokit\[parquet\]'$"):
        require("pyarrow", "Parquet files")


def test_a_failed_import_is_explained() -> None:
    error = ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    missing = explain(error, "elmo pretrain")
    assert str(missing).startswith("elmo pretrain needs torch") and "elmokit[train]" in str(missing)
    assert explain(ModuleNotFoundError("x", name="nothing_of_ours"), "x") is None
    assert explain(ImportError("no name"), "x") is None


def test_every_extra_is_in_pyproject() -> None:
    import tomllib
    from pathlib import Path

    path = Path(__file__).parent.parent / "pyproject.toml"
    extras = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    assert install_command("torch") == "pip install 'elmokit[train]'"
