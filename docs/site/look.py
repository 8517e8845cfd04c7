"""Open every page of the built site in Chromium, as a reader without a network does.

    pip install playwright
    python docs/site/build.py && python docs/site/look.py
    python docs/site/look.py --pictures build/pictures index how    # pictures, light and dark

Each page is opened from its file at the width of a desk and of a phone. Pages wider than the
screen, pictures that do not load, errors of scripts, and requests to any host are findings. Then it
searches. Needs Chromium of the system.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, Playwright, Request, sync_playwright

HTML = Path(__file__).resolve().parents[2] / "build" / "site" / "html"
WIDTHS = {"desk": 1280, "phone": 390}
TALL = 3200
"""Height of a picture at most, in pixels."""
SEARCHES = {"perplexity": "commands/perplexity", "semantic change": "analyses", "SLURM": "scale"}
"""What a reader types, and a page that must be among the results."""
SEARCH_SECONDS = 30
"""Time after which a search has found nothing; far more than one takes."""


def main() -> None:
    """Look at the site, and say what is wrong with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", help="names of pages, without .html; all by default")
    parser.add_argument("--pictures", type=Path, help="directory for pictures of the pages")
    arguments = parser.parse_args()
    if not (HTML / "index.html").exists():
        sys.exit("There is no site: run docs/site/build.py first")
    names = arguments.pages or sorted(
        path.relative_to(HTML).with_suffix("").as_posix()
        for path in HTML.rglob("*.html")
        if path.name != "404.html"  # only a server shows it, from any place
    )
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with sync_playwright() as playwright:
        for width in WIDTHS:
            for scheme in ("light", "dark") if arguments.pictures else ("light",):
                wrong += look(playwright, width, scheme, names, arguments.pictures)
    for each in wrong:
        print(each)
    print(f"{len(names)} pages, {len(WIDTHS)} widths: {len(wrong)} findings")
    sys.exit(1 if wrong else 0)


def look(
    playwright: Playwright, width: str, scheme: str, names: list[str], pictures: Path | None
) -> list[str]:
    """Open the pages at one width and in one color scheme; return what is wrong."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as profile:
        context = launch(playwright, profile, WIDTHS[width], scheme)
        page = context.new_page()

        def report(what: str) -> None:
            wrong.append(f"{page.url.removeprefix(HTML.as_uri())} ({width}, {scheme}): {what}")

        def check_request(request: Request) -> None:
            if not request.url.startswith(("file:", "data:", "blob:")):
                report(f"asks for {request.url}")

        page.on("request", check_request)
        page.on("pageerror", lambda error: report(f"script: {error}"))
        page.on("console", lambda line: report(line.text) if line.type == "error" else None)
        for name in names:
            page.goto((HTML / f"{name}.html").as_uri())
            page.wait_for_timeout(20)
            too_wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            if too_wide > 0:
                report(f"{too_wide} pixels wider than the screen")
            for source in page.evaluate(
                "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
            ):
                report(f"{source} is no picture")
            if pictures:
                page.wait_for_timeout(500)  # the tabs fade in
                height = page.evaluate("document.documentElement.scrollHeight")
                box = {"x": 0, "y": 0, "width": WIDTHS[width], "height": min(height, TALL)}
                file = pictures / f"{name.replace('/', '-')}-{width}-{scheme}.png"
                page.screenshot(path=file, full_page=True, clip=box)
        for typed, wanted in SEARCHES.items():
            found = search(page, typed, wanted)
            if not any(f"/{wanted}.html" in link for link in found):
                report(f"a search for {typed!r} does not find {wanted}: {found}")
        context.close()
    return wrong


def launch(playwright: Playwright, profile: str, width: int, scheme: str) -> BrowserContext:
    """Start Chromium with an empty profile and without a network."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    return playwright.chromium.launch_persistent_context(
        profile,
        executable_path=path,
        args=[
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            "--disable-sync",
        ],
        viewport={"width": width, "height": 844},
        color_scheme="dark" if scheme == "dark" else "light",
        offline=True,
    )


def search(page: Page, typed: str, wanted: str) -> list[str]:
    """Return the links that a search on the first page finds, as soon as one is to `wanted`."""
    page.goto((HTML / "index.html").as_uri())
    page.locator(".md-search__button:visible, label[for=__search]:visible").first.click()
    # The search is a component with a document of its own, which a busy machine shows late.
    field = page.locator("input[type=text]:visible, input[type=search]:visible").first
    field.wait_for(timeout=SEARCH_SECONDS * 1000)
    links: list[str] = []
    end = time.monotonic() + SEARCH_SECONDS
    while time.monotonic() < end:
        # All at once, since the component loses letters that are typed while it renders; again,
        # since it does not answer while it loads its index.
        field.fill("")
        field.fill(typed)
        for _ in range(30):
            page.wait_for_timeout(100)
            links = page.locator("a").evaluate_all(
                "links => links.filter(a => a.getRootNode() instanceof ShadowRoot).map(a => a.href)"
            )
            if any(f"/{wanted}.html" in link for link in links):
                return links
    return links


if __name__ == "__main__":
    main()
