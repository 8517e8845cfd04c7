"""Without torch, the door says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["elmokit.nn", "elmokit.nn.mix", "elmokit.compat.allennlp"])
def test_without_torch_it_names_the_pip_command(module: str) -> None:
    code = f"""
import sys
sys.modules["torch"] = None      # importing it raises ImportError
from elmokit.errors import MissingExtra
try:
    import {module}
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'elmokit[train]'" in done.stdout, done.stderr
