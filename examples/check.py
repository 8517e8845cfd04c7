"""Run all examples and compare what they print with what is kept, or keep it anew.

    python examples/check.py                    # all of them, as CI does
    python examples/check.py ner_100_sentences  # some of them
    python examples/check.py --update           # keep their output: outputs/*.txt, *.ipynb

Text must be the same; numbers may differ a little, since processors and versions of torch round
differently. An example whose packages are not installed is skipped with a line that names them;
with `--all`, that is a failure.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUTPUTS = HERE / "outputs"
SECONDS = 1200
"""An example is stopped after this time. On two free cores each takes less than two minutes."""
TOLERANCE = 0.25
"""Relative difference between numbers that is accepted, with 0.05 for small ones."""
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def main() -> None:
    """Run the examples that were named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="examples to run; all by default")
    parser.add_argument("--update", action="store_true", help="keep what they print")
    parser.add_argument("--all", action="store_true", help="fail where a package is missing")
    arguments = parser.parse_args()
    paths = sorted([*HERE.glob("[!_]*.py"), *HERE.glob("*.ipynb")])
    paths = [path for path in paths if path.name != Path(__file__).name]
    if unknown := set(arguments.names) - {path.stem for path in paths}:
        sys.exit(f"no example {', '.join(sorted(unknown))}; there are {[p.stem for p in paths]}")
    failures = 0
    for path in paths:
        if arguments.names and path.stem not in arguments.names:
            continue
        missing = missing_packages(source_of(path))
        if missing:
            print(f"{path.name:28} skipped: needs {', '.join(missing)}", flush=True)
            failures += arguments.all
            continue
        started, busy = time.monotonic(), processor_seconds()
        run = run_script if path.suffix == ".py" else run_notebook
        problem = run(path, arguments.update)
        took = f"{time.monotonic() - started:4.0f} s"
        if busy is not None:
            took += f" ({(processor_seconds() or 0) - busy:3.0f} s of processor time)"
        print(f"{path.name:28} {took}  {problem or 'as kept'}", flush=True)
        failures += bool(problem) and not arguments.update
    sys.exit(1 if failures else 0)


def processor_seconds() -> float | None:
    """Return the processor time of the examples that have ended; None where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def source_of(path: Path) -> str:
    """Return the Python code of a script or of the cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def missing_packages(code: str) -> list[str]:
    """Return the modules that code imports and that are not installed."""
    modules = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    if modules & {"elmokit.nn", "elmokit.train", "elmokit.tasks"} or "import tasks" in code:
        modules.add("torch")
    if ".parquet" in code:
        modules.add("pyarrow")
    return sorted(module for module in modules if not is_there(module))


def is_there(module: str) -> bool:
    """Whether a module can be found."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def run_script(path: Path, update: bool) -> str:
    """Return what is wrong with the output of a script; nothing if it is as kept."""
    environment = dict(os.environ, PYTHONIOENCODING="utf-8", COLUMNS="100")
    try:
        done = subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=environment,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {SECONDS} s"
    if done.returncode:
        return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    kept = OUTPUTS / f"{path.stem}.txt"
    before = kept.read_text(encoding="utf-8") if kept.exists() else ""
    if update:
        OUTPUTS.mkdir(exist_ok=True)
        kept.write_text(done.stdout, encoding="utf-8")
    return difference(before, done.stdout)


def run_notebook(path: Path, update: bool) -> str:
    """Return what is wrong with the outputs of a notebook; nothing if they are as kept."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    before = [outputs_of(cell) for cell in notebook.cells]
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(HERE)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        return str(error)
    after = [outputs_of(cell) for cell in notebook.cells]
    if update:
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        notebook.metadata = {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
        nbformat.write(notebook, path)
    return "; ".join(x for x in map(difference, before, after) if x)


def outputs_of(cell: Any) -> str:
    """Return the text that a cell of a notebook has put out; a picture counts as one word."""
    parts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if output.get("name") == "stderr":
            continue
        kinds = [kind for kind in data if kind.startswith("image/")]
        parts.append(kinds[0] if kinds else output.get("text", data.get("text/plain", "")))
    return "\n".join(parts)


def difference(kept: str, printed: str) -> str:
    """Return where two texts differ, apart from numbers that nearly agree."""
    old, new = kept.split(), printed.split()
    for number, (one, two) in enumerate(zip(old, new, strict=False)):
        if one == two:
            continue
        digits = [[float(n.replace(",", "")) for n in NUMBER.findall(x)] for x in (one, two)]
        same_text = NUMBER.sub("", one) == NUMBER.sub("", two)
        near = len(digits[0]) == len(digits[1]) and all(
            abs(a - b) <= 0.05 + TOLERANCE * max(abs(a), abs(b))
            for a, b in zip(*digits, strict=True)
        )
        if not (same_text and near):
            return f"word {number}: kept {one!r}, printed {two!r}"
    return "" if len(old) == len(new) else f"kept {len(old)} words, printed {len(new)}"


if __name__ == "__main__":
    main()
