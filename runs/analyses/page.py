"""docs/analyses.md and its pictures: page.md, filled with measurements.

    python runs/analyses/page.py MEASURED_DIR --out docs/analyses.md

In page.md `$pos_tables` stands for the tables of MEASURED_DIR/pos.json, `$pos_pictures` for its
pictures, which are copied beside the page, and `$signatures` for what determined all of them.
Computes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from string import Template

from elmokit.errors import ElmoError
from elmokit.probe.measured import Json, pictures, read, tables, write
from elmokit.probe.tables import markdown

HERE = Path(__file__).parent


def main() -> None:
    """Read, write, done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("measured", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        found = {path.stem: read(path) for path in sorted(given.measured.glob("*.json"))}
        template = Template((HERE / "page.md").read_text(encoding="utf-8"))
        write(given.out, template.substitute(filled(found, given.out)))
    except ElmoError as error:
        sys.exit(f"page: {error}")
    except KeyError as error:
        sys.exit(f"page: page.md asks for {error}, which {given.measured} does not have")


def filled(found: dict[str, Json], page: Path) -> dict[str, str]:
    """What the names in page.md stand for; pictures are written on the way."""
    texts = {"signatures": signatures(found)}
    beside = page.with_suffix("")
    beside.mkdir(parents=True, exist_ok=True)
    for stem, one in found.items():
        name = stem.replace("-", "_")
        texts[f"{name}_tables"] = "\n\n".join(markdown(table) for table in tables(one))
        shown = []
        for picture in pictures(one):
            file = f"{'-'.join(filter(None, (stem, picture.name)))}.svg"
            write(beside / file, picture.svg)
            shown.append(f"![{_title(picture.svg)}]({beside.name}/{file})")
        texts[f"{name}_pictures"] = "\n\n".join(shown)
    return texts


def signatures(found: dict[str, Json]) -> str:
    """A line for each measurement: model, data, version."""
    lines = ["| measurement | model | data | elmokit |", "|---|---|---|---|"]
    for stem, one in found.items():
        signed = one["signature"]
        data = ", ".join(f"{name} {each[:8]}" for name, each in signed["data"].items())
        lines.append(f"| {stem} | {signed['model'][:12]} | {data} | {signed['elmokit']} |")
    return "\n".join(lines)


def _title(svg: str) -> str:
    return svg.partition("<title>")[2].partition("</title>")[0]


if __name__ == "__main__":
    main()
