"""Build the documentation site: collect the pages, generate the references, run Zensical, check.

    pip install -e . -r docs/site/requirements.txt
    python docs/site/build.py            # to build/site/html; open index.html, no server needed
    python docs/site/build.py --serve    # and look at it on http://localhost:8000

The pages of `docs/` are written for GitHub and for the site alike. This script copies them, with
the files of the repository that are pages too (`FILES`), to `build/site/pages`, turns links
between them into links of the site and links to other files into links to the repository, and
adds what is generated: the API reference (from docstrings), the command reference (from the
commands) and the examples (with their output). Every warning is an error: dead links and anchors,
unknown names, pages without a place in the navigation.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from api_pages import write_api_pages
from command_pages import write_command_pages
from example_pages import write_example_pages
from page_links import PageError, check_html, for_site

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "site"
PAGES = OUT / "pages"
HTML = OUT / "html"

FOREIGN_WORKER = "https://unpkg.com/iframe-worker/shim"
WORKER = "assets/offline-worker.js"
"""Zensical loads a script from another host that lets its search work without a server; ours does
the same, and is part of the site."""

STARS_COUNTER = ' data-md-component="source"'
"""What makes Zensical's script ask GitHub for the stars of the repository on every page."""
SHORT_CODE = re.compile(r"<code>([^<>]{1,18})</code>")
"""Code that is not broken at the end of a line: `--pool mean` and the like."""

FILES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "src/elmokit/builtin/README.md": "model-card.md",
    "benchmarks/peers/README.md": "benchmarks-peers.md",
    "benchmarks/training/README.md": "benchmarks-training.md",
    "benchmarks/alternatives/README.md": "benchmarks-alternatives.md",
    "examples/README.md": "examples/index.md",
}
"""Pages outside of `docs/`, with their names on the site."""


def main() -> None:
    """Build the site, or say what is wrong with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--serve", action="store_true", help="serve the site when it is built")
    arguments = parser.parse_args()
    try:
        build()
    except PageError as error:
        sys.exit(f"The site was not built: {error}")
    print(f"{HTML.relative_to(ROOT)}/index.html")
    if arguments.serve:
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(HTML))
        http.server.ThreadingHTTPServer(("localhost", 8000), handler).serve_forever()


def build() -> None:
    """Collect the pages, generate the rest, and run Zensical."""
    shutil.rmtree(OUT, ignore_errors=True)
    PAGES.mkdir(parents=True)
    copy_pages()
    shutil.copytree(HERE / "assets", PAGES / "assets")
    write_api_pages(PAGES / "api")
    write_command_pages(PAGES / "commands")
    write_example_pages(ROOT / "examples", PAGES / "examples")
    configuration = OUT / "zensical.toml"
    configuration.write_text(configure(), encoding="utf-8")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f"]
    done = subprocess.run([*command, str(configuration)], cwd=OUT, env=environment)
    if done.returncode:
        raise PageError(f"zensical ended with {done.returncode}; its messages are above")
    for path in HTML.rglob("*.html"):
        here = "../" * (len(path.relative_to(HTML).parts) - 1) + WORKER
        text = path.read_text(encoding="utf-8").replace(FOREIGN_WORKER, here)
        text = text.replace(STARS_COUNTER, "")
        text = SHORT_CODE.sub(r'<code class="short">\1</code>', text)
        path.write_text(text, encoding="utf-8")
    check_html(HTML)


def copy_pages() -> None:
    """Copy the pages and pictures of `docs/` and `FILES`, with links that are right on the site."""
    sources = {path.relative_to(ROOT).as_posix(): path.name for path in ROOT.glob("docs/*.md")}
    sources |= {name: page for name, page in FILES.items() if (ROOT / name).exists()}
    places = dict(sources)
    for path in sorted((ROOT / "examples").glob("[!_]*")):
        if path.suffix in {".py", ".ipynb"}:
            places[path.relative_to(ROOT).as_posix()] = f"examples/{path.stem}.md"
    for pattern in ("docs/*.svg", "docs/*/*.svg", "docs/*.png"):
        for path in sorted(ROOT.glob(pattern)):
            if HERE not in path.parents:
                places[path.relative_to(ROOT).as_posix()] = path.relative_to(
                    ROOT / "docs"
                ).as_posix()
    for source, page in places.items():
        target = PAGES / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if source in sources:
            text = (ROOT / source).read_text(encoding="utf-8")
            target.write_text(for_site(text, source, places, ROOT), encoding="utf-8")
        elif target.suffix != ".md":
            shutil.copyfile(ROOT / source, target)


def configure() -> str:
    """Return `zensical.toml` with the navigation: what has a place in it, as far as it exists."""
    text = (HERE / "zensical.toml").read_text(encoding="utf-8")
    nav = tomllib.loads((HERE / "navigation.toml").read_text(encoding="utf-8"))
    optional = set(nav.pop("optional"))
    used: set[str] = set()

    def entries(pages: dict[str, Any]) -> list[str]:
        listed = []
        for title, page in pages.items():
            if isinstance(page, dict):
                listed.append(f"{{ {title!r} = [{', '.join(entries(page))}] }}")
            elif page.endswith("/*"):
                overview = (PAGES / page[:-1] / "index.md").read_text(encoding="utf-8")
                names = sorted(
                    {path.name for path in PAGES.glob(page + ".md")} - {"index.md"},
                    key=lambda name: (f"({name})" not in overview, overview.find(f"({name})")),
                )  # in the order of the overview
                listed += [repr(page[:-1] + name) for name in names]
                used.update(page[:-1] + name for name in names)
            elif (PAGES / page).exists():
                used.add(page)
                listed.append(f"{{ {title!r} = {page!r} }}")
            elif page not in optional:
                raise PageError(f"navigation.toml names {page}, which does not exist")
        return listed

    sections = []
    for section in nav["section"]:
        listed = entries(section["pages"])
        alone = len(section["pages"]) == 1
        sections.append(
            listed[0] if alone else f"{{ {section['title']!r} = [{', '.join(listed)}] }}"
        )
    there = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")}
    if homeless := sorted(there - used):
        raise PageError(f"navigation.toml has no place for {', '.join(homeless)}")
    return text.replace("nav = []", "nav = [\n  " + ",\n  ".join(sections) + ",\n]")


if __name__ == "__main__":
    main()
