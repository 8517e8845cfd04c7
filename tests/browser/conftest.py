"""A browser and a running server for the tests of the page.

They need Playwright for Python, Chromium, and for two of the files packages of npm: axe-core and
onnxruntime-web, in the directory `node_modules` or the one that ELMO_NODE_MODULES names.
`.ci/parts/browser` installs all of it.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY

NODE_MODULES = Path(os.environ.get("ELMO_NODE_MODULES", REPOSITORY / "node_modules"))
READY = "body[data-ready]"
VIEWS = ("sentence", "uses", "guess", "neighbors", "tasks", "network")


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    with sync_playwright() as started:
        try:
            chromium = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Exception as error:
            pytest.skip(f"no Chromium can be started: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def ner_model(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A task model that has learned nothing; None without torch."""
    try:
        from elmokit.tasks import Settings, Trained
    except ImportError:
        return None
    directory = tmp_path_factory.mktemp("task") / "ner"
    settings = Settings(task="ner", elmo="none", vectors="none")
    Trained.assemble(settings, {"types": ["LOC", "PER"]}, ["in"], None).save(directory)
    return directory


@pytest.fixture(scope="session")
def address(ner_model: Path | None) -> Iterator[str]:
    """Address of `elmo serve`."""
    task = [] if ner_model is None else ["--task", f"ner={ner_model}"]
    command = [sys.executable, "-m", "elmokit", "serve", "--port", "0", *task]
    with subprocess.Popen(
        command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://[\w.]+:\d+", line):
                break
        else:
            pytest.fail("elmo serve did not start")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield found.group()
        process.terminate()


class OpenPage:
    """Opens views, and fails if a script or the content security policy complained."""

    def __init__(self, context: Any, address: str) -> None:
        self.context = context
        self.address = address
        self.problems: list[str] = []

    def __call__(self, hash: str = "") -> Any:
        page = self.context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._note)
        page.goto(f"{self.address}/#{hash}")
        page.wait_for_selector(READY)
        return page

    def _note(self, message: Any) -> None:
        # A 422 is an answer to what was typed, and shown to the user.
        if message.type == "error" and "status of 422" not in message.text:
            self.problems.append(message.text)


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[OpenPage]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True)
    opened = OpenPage(context, address)
    yield opened
    context.close()
    assert not opened.problems


def package_file(name: str) -> Path:
    """A file of an npm package, or a skip that says how to get it."""
    path = NODE_MODULES / name
    if not path.exists():
        pytest.skip(f"{name} is missing; see .ci/parts/browser")
    return path


@pytest.fixture(scope="session")
def static_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the page without a server, below a directory, as on most static hosts."""
    pytest.importorskip("onnx", reason="the page without a server needs onnx")
    pytest.importorskip("elmokit.formats.onnx", reason="elmokit cannot export to ONNX")
    runtime = package_file("onnxruntime-web")
    from elmokit.serve import build_static_page

    root = tmp_path_factory.mktemp("static")
    build_static_page(root / "play", runtime=runtime)
    handler = functools.partial(QuietHandler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/play"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass
