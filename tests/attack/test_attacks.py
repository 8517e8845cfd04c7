"""A few cases of the attacks of benchmarks/attack, which run at any scale."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.conftest import REPOSITORY

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'elmokit[parquet]'")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("files.py", ["--cases", "40", "--only", "semcor", "--only", "srl-json", "--only", "npz"]),
        ("corruption.py", ["--cases", "10", "--only", "checkpoint", "--only", "corpus"]),
        ("parsers.py", ["--cases", "30", "--only", "trees", "--only", "sstable"]),
        ("resources.py", ["--cases", "2", "--only", "full", "--only", "handles", "--first", "0"]),
        ("kill.py", ["--cases", "2", "--only", "embed-npz", "--only", "convert"]),
        ("concurrency.py", ["--cases", "2", "--only", "fork", "--only", "threads"]),
        ("text.py", ["--cases", "50", "--only", "tokenize", "--only", "sentences"]),
        ("web.py", ["--cases", "20", "--only", "body", "--only", "request"]),
    ],
)
def test_an_attack_finds_nothing(script: str, options: list[str]) -> None:
    path = REPOSITORY / "benchmarks" / "attack" / script
    run = subprocess.run(
        [sys.executable, str(path), *options], capture_output=True, text=True, check=False
    )
    assert run.stdout, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert result["findings"] == [] and run.returncode == 0
    asked = int(options[options.index("--cases") + 1]) * options.count("--only")
    assert sum(result["cases"].values()) == asked
