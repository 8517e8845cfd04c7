"""Write docs/analyses.md and its figures: the template page.md, filled with measurements.

    python runs/analyses/page.py MEASURED_DIR… --out docs/analyses.md

In page.md, `$pos_tables` stands for all tables of MEASURED_DIR/pos.json and `$pos_table_2` for the
second one; `$pos_pictures` and `$pos_picture_1` stand for its figures, which are written to a
directory beside the page; `$signatures` stands for what determined the measurements. Of two
measurements of one name, the one in the later directory counts. Computes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from string import Template

from elmokit.errors import ElmoError
from elmokit.probe.results import Measurement, load_measurement, render_figures, render_tables
from elmokit.probe.tables import table_to_markdown
from elmokit.storage import write_text

HERE = Path(__file__).parent
MOST_DATA = 3
"""Data sets per measurement that the table of signatures shows; its JSON file has all."""


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("measured", type=Path, nargs="+", help="Directories of the measurements.")
    parser.add_argument("--out", type=Path, required=True, help="Markdown file to write.")
    options = parser.parse_args()
    try:
        files = {
            path.stem: path for directory in options.measured for path in directory.glob("*.json")
        }
        measured = {name: load_measurement(files[name]) for name in sorted(files)}
        template = Template((HERE / "page.md").read_text(encoding="utf-8"))
        fields, figures = template_fields(measured, options.out.stem)
        used = "".join(fields.get(name, "") for name in template.get_identifiers())
        write_figures(figures, options.out.with_suffix(""), used)
        write_text(options.out, template.substitute(fields))
    except ElmoError as error:
        sys.exit(f"page: {error}")
    except KeyError as error:
        places = " ".join(map(str, options.measured))
        sys.exit(f"page: page.md has the field {error}, but {places} has no such result")


def template_fields(
    measured: dict[str, Measurement], figure_directory: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text of each field of the template, and the figures by file name.

    Args:
        measured: Measurements by the names of their files.
        figure_directory: Directory of the figures, as links in the page name it.
    """
    fields, figures = {"signatures": signature_table(measured)}, {}
    for stem, measurement in measured.items():
        table_texts = [table_to_markdown(table) for table in render_tables(measurement)]
        links = []
        for figure in render_figures(measurement):
            file = f"{'-'.join(filter(None, (stem, figure.name)))}.svg"
            figures[file] = figure.svg
            links.append(f"![{_svg_title(figure.svg)}]({figure_directory}/{file})")
        prefix = stem.replace("-", "_")
        for kind, texts in (("table", table_texts), ("picture", links)):
            fields[f"{prefix}_{kind}s"] = "\n\n".join(texts)
            fields |= {f"{prefix}_{kind}_{k}": text for k, text in enumerate(texts, start=1)}
    return fields, figures


def write_figures(figures: dict[str, str], directory: Path, page: str) -> None:
    """Write the figures that a page links to, and delete those that it no longer does."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.svg"):
        old.unlink()
    for file, svg in figures.items():
        if f"({directory.name}/{file})" in page:
            write_text(directory / file, svg)


def signature_table(measured: dict[str, Measurement]) -> str:
    """Return a Markdown table of the model, data and version of each measurement."""
    lines = ["| measurement | model | data | elmokit |", "|---|---|---|---|"]
    for stem, measurement in measured.items():
        signed = measurement["signature"]
        names = [
            f"{len(each)} {name}" if isinstance(each, list) else f"{name} {each[:8]}"
            for name, each in signed["data"].items()
        ]
        more = [f"{len(names) - MOST_DATA} more"] if len(names) > MOST_DATA else []
        data = ", ".join([*names[:MOST_DATA], *more])
        lines.append(f"| {stem} | {signed['model'][:12]} | {data} | {signed['elmokit']} |")
    return "\n".join(lines)


def _svg_title(svg: str) -> str:
    return svg.partition("<title>")[2].partition("</title>")[0]


if __name__ == "__main__":
    main()
