"""Makes the screenshots of docs/page.md, of a running page.

    elmo serve
    python runs/screenshots.py http://127.0.0.1:8000 docs

Needs Playwright for Python, Pillow and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

READY = "body[data-ready]"


def take(address: str, out: Path) -> None:
    """Write page-sentence.png and page-uses.png to a directory."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def open_view(view: str, height: int) -> Any:
            page = chromium.new_page(viewport={"width": 1180, "height": height})
            page.goto(f"{address}/#{view}")
            page.wait_for_selector(READY)
            return page

        page = open_view("sentence", 1010)
        page.wait_for_timeout(3000)  # until nothing moves
        page.screenshot(path=out / "page-sentence.png")
        page = open_view("uses", 900)
        page.get_by_text("sat fishing on the opposite").first.click()
        page.wait_for_timeout(3000)
        page.screenshot(path=out / "page-uses.png")
        chromium.close()
    for path in out.glob("page-*.png"):
        Image.open(path).convert("RGB").quantize(128, dither=0).save(path, optimize=True)


def main() -> None:
    """Take the screenshots of the page at the address on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", help="address of the page")
    parser.add_argument("out", type=Path, help="directory to write to")
    arguments = parser.parse_args()
    take(arguments.address.rstrip("/"), arguments.out)


if __name__ == "__main__":
    main()
