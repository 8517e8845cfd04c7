"""Lazy exports: public packages import nothing until a name is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PUBLIC = ("elmokit", "elmokit.lm", "elmokit.compat.allennlp")
"""Packages that export their names lazily."""
NEED_TORCH = ("elmokit.nn", "elmokit.train", "elmokit.tasks", "elmokit.compat.allennlp")

WITHOUT_TORCH = """
import importlib, sys
sys.modules["torch"] = None      # importing it raises ImportError
from elmokit.errors import MissingExtra
for package in sys.argv[1:]:
    try:
        module = importlib.import_module(package)
        names = getattr(module, "__all__", [])
    except MissingExtra as error:
        print(package, error)
        continue
    for name in names:
        try:
            getattr(module, name)
        except MissingExtra as error:
            print(f"{package}.{name}", error)
"""


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Bert'"):
        _ = module.Bert


def test_names_that_need_torch_say_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *NEED_TORCH], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("elmokit.compat.allennlp.Elmo ") for line in lines)
    assert any(line.startswith("elmokit.nn") for line in lines)
    assert any(line.startswith("elmokit.tasks") for line in lines)
    assert all("pip install 'elmokit[train]'" in line for line in lines)
