"""Importing the package is cheap; without torch, using a name says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "statement",
    [
        "from elmokit.nn import LearnedMix",
        "import elmokit.nn as nn; nn.ElmoEmbedding",
        "from elmokit.compat.allennlp import Elmo",
    ],
)
def test_without_torch_it_names_the_pip_command(statement: str) -> None:
    code = f"""
import sys
sys.modules["torch"] = None      # importing it raises ImportError
from elmokit.errors import MissingExtra
try:
    {statement}
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'elmokit[train]'" in done.stdout, done.stderr


def test_importing_it_does_not_import_torch() -> None:
    code = """
import sys
import elmokit.nn
print(sorted({"torch", "numpy"} & set(sys.modules)), "ElmoEmbedding" in dir(elmokit.nn))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[] True\n", done.stderr


def test_every_exported_name_exists() -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    import elmokit.nn

    for name in elmokit.nn.__all__:
        assert getattr(elmokit.nn, name).__name__ == name
