"""The package as a whole: light to import, no torch, layered, and its README true."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import GOLDEN, REPOSITORY

import elmokit


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_embedding_needs_no_torch(tmp_path: Path) -> None:
    """`elmo embed` in a process where importing torch raises."""
    model, out = GOLDEN / "models" / "plain", tmp_path / "v.h5"
    code = f"""
import sys
sys.modules["torch"] = None      # importing it raises ImportError
from elmokit.cli import main
try:
    main(["embed", "-m", {str(model)!r}, "--out", {str(out)!r}, "She went to the bank."])
finally:
    print(sorted(name for name in sys.modules if name.startswith("torch")))
"""
    printed = python(code)
    assert "1 sentence," in printed and out.exists()
    assert printed.splitlines()[-1] == "['torch']"


def test_import_is_light() -> None:
    """What it does not load decides, not the clock of a machine that may be busy."""
    loaded = python("import elmokit, sys; print(*sorted(sys.modules))").split()
    heavy = {"numpy", "h5py", "safetensors", "click", "rich", "torch", "pyarrow"}
    assert not heavy & set(loaded)


REPEATED = {
    "Batcher": "also bilm-tf's, in compat",
    "Elmo": "also AllenNLP's, in compat",
    "Example": "one per task",
    "Model": "one per task",
    "Prediction": "one per task",
    "Reader": "one per format of vector files",
    "Sizes": "one per task",
}
"""Class names that are repeated on purpose, and why."""


def test_public_class_names_are_unique() -> None:
    package = REPOSITORY / "src" / "elmokit"
    places: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(package).as_posix())
    repeated = {
        name: files for name, files in places.items() if len(files) > 1 and name not in REPEATED
    }
    assert not repeated


def test_the_rooms_keep_their_order() -> None:
    """import-linter, as pyproject.toml has it."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_every_module_says_what_it_is() -> None:
    package = Path(elmokit.__file__).parent
    for path in package.rglob("*.py"):
        if path.name != "__main__.py":
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_the_tree_in_contributing_is_the_tree() -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = re.search(r"```text\n(src/elmokit/.*?)```", page, re.DOTALL)
    assert tree
    listed = {line.split()[0].rstrip("/") for line in tree[1].splitlines()[1:] if line.strip()}
    package = REPOSITORY / "src" / "elmokit"
    there = {
        path.name
        for path in package.iterdir()
        if (path.suffix == ".py" and not path.name.startswith("_"))
        or (path.is_dir() and path.name != "__pycache__")
    }
    assert listed == there


def test_no_path_of_a_machine_in_the_repository() -> None:
    done = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile("/" + r"(?:root|work)/\w")
    for name in done.stdout.splitlines():
        path = REPOSITORY / name
        if path.exists() and path.suffix in {
            ".py",
            ".md",
            ".toml",
            ".cpp",
            ".h",
            ".txt",
            ".json",
            "",
        }:
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not pattern.search(text), name
