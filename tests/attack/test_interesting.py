"""Inputs that reached something new in a parser while it was fuzzed are read in every test run.

`python benchmarks/attack/parsers.py --keep tests/attack/interesting` finds and keeps more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
INTERESTING = Path(__file__).parent / "interesting"


@pytest.mark.parametrize("name", sorted(path.stem for path in INTERESTING.glob("*.txt")))
def test_interesting_inputs_are_read_or_refused(
    import_attack: Callable[[str], ModuleType], name: str, tmp_path: Path
) -> None:
    parsers = import_attack("parsers")
    inputs = parsers.load_interesting(name)
    assert inputs
    target = parsers.prepare(name, tmp_path)
    problems = [parsers.find_problem(target, data) for data in inputs]
    assert problems == [None] * len(inputs)
