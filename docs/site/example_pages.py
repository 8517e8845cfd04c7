"""The examples as pages: each script with its output, each notebook with those of its cells."""

from __future__ import annotations

import ast
import base64
import json
import re
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/elmokit/elmokit/blob/main/examples"


def write_example_pages(examples: Path, directory: Path) -> None:
    """Write one page per script and notebook of a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in sorted(examples.glob("[!_]*.py")):
        if path.stem != "check":
            (directory / f"{path.stem}.md").write_text(script_page(path), encoding="utf-8")
    for path in sorted(examples.glob("*.ipynb")):
        (directory / f"{path.stem}.md").write_text(notebook_page(path, directory), encoding="utf-8")


def script_page(path: Path) -> str:
    """Return a page with the docstring of a script as its text, then its code and its output."""
    source = path.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    code = (
        source.split('"""', 2)[2].lstrip("\n").replace("from __future__ import annotations\n", "")
    )
    page = f"# {title.rstrip('.')}\n\n{_paragraphs(text)}\n\n```python\n{code.strip()}\n```\n"
    output = path.parent / "outputs" / f"{path.stem}.txt"
    if output.exists():
        page += f"\nIt prints\n\n```text\n{output.read_text(encoding='utf-8').rstrip()}\n```\n"
    return page + f"\n[{path.name} in the repository]({REPOSITORY}/{path.name})\n"


def _paragraphs(text: str) -> str:
    """Indented lines of a docstring are commands."""
    return re.sub(
        r"(?:^    .*\n?)+",
        lambda match: "```sh\n" + re.sub(r"^    ", "", match[0], flags=re.M).rstrip() + "\n```\n",
        text.strip() + "\n",
        flags=re.MULTILINE,
    )


def notebook_page(path: Path, directory: Path) -> str:
    """Return a page with the cells of a notebook and their outputs."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    parts = []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_output(output, directory / f"{path.stem}-{number}"))
    parts.append(f"[{path.name} in the repository]({REPOSITORY}/{path.name})")
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any], stem: Path) -> str:
    data = output.get("data", {})
    for kind, suffix in (("image/svg+xml", ".svg"), ("image/png", ".png")):
        if kind in data:
            content = "".join(data[kind])
            picture = stem.with_suffix(suffix)
            raw = content.encode() if suffix == ".svg" else base64.b64decode(content)
            picture.write_bytes(raw)
            return f"![Output of the cell]({picture.name})"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""
