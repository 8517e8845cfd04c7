"""docs/analyses.md and its pictures: page.md, filled with measurements.

    python runs/analyses/page.py MEASURED_DIR --out docs/analyses.md

In page.md `$pos_tables` stands for all tables of MEASURED_DIR/pos.json, `$pos_table_2` for the
second one, `$pos_pictures` and `$pos_picture_1` for its pictures, which are written beside the
page, and `$signatures` for what determined all of them. Computes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from string import Template

from elmokit.errors import ElmoError
from elmokit.probe.results import Json, pictures, read, tables
from elmokit.probe.tables import markdown
from elmokit.text.files import write_text

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
        texts, drawn = filled(found, given.out.stem)
        asked = template.get_identifiers()
        write_pictures(drawn, given.out.with_suffix(""), "".join(texts.get(n, "") for n in asked))
        write_text(given.out, template.substitute(texts))
    except ElmoError as error:
        sys.exit(f"page: {error}")
    except KeyError as error:
        sys.exit(f"page: page.md asks for {error}, which {given.measured} does not have")


def filled(found: dict[str, Json], beside: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the names in page.md stand for; and the pictures, by the names of their files."""
    texts, drawn = {"signatures": signatures(found)}, {}
    for stem, one in found.items():
        made = [markdown(table) for table in tables(one)]
        shown = []
        for picture in pictures(one):
            file = f"{'-'.join(filter(None, (stem, picture.name)))}.svg"
            drawn[file] = picture.svg
            shown.append(f"![{_title(picture.svg)}]({beside}/{file})")
        name = stem.replace("-", "_")
        for kind, each in (("table", made), ("picture", shown)):
            texts[f"{name}_{kind}s"] = "\n\n".join(each)
            texts |= {f"{name}_{kind}_{k}": text for k, text in enumerate(each, start=1)}
    return texts, drawn


def write_pictures(drawn: dict[str, str], place: Path, text: str) -> None:
    """Those that a text shows; a picture that it no longer shows is deleted."""
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.svg"):
        old.unlink()
    for file, svg in drawn.items():
        if f"({place.name}/{file})" in text:
            write_text(place / file, svg)


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
