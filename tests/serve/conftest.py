"""An application over the built-in model, and real servers in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo


@pytest.fixture(scope="session")
def english() -> Elmo:
    return Elmo.load()


@pytest.fixture(scope="session")
def index_directory(tmp_path_factory: pytest.TempPathFactory, english: Elmo) -> Path:
    from elmokit.probe import Index

    directory = tmp_path_factory.mktemp("serve") / "index"
    words = "bank river money water".split()
    Index.build(english, [f"The {a} is near the {b} ." for a in words for b in words], directory)
    return directory


@pytest.fixture(scope="session")
def client(index_directory: Path) -> Iterator[Any]:
    pytest.importorskip("starlette", reason="needs the extra serve")
    from starlette.testclient import TestClient

    from elmokit.serve import ServeConfig, create_app

    config = ServeConfig(
        models={"builtin": "builtin", "plain": GOLDEN / "models" / "plain"},
        indexes={"small": index_directory},
    )
    with TestClient(create_app(config), raise_server_exceptions=False) as client:
        yield client


class RunningServer:
    """`elmo serve` in a process of its own."""

    def __init__(self, *options: str, **environment: str) -> None:
        model = GOLDEN / "models" / "plain"
        command = [sys.executable, "-m", "elmokit", "serve", "-m", f"plain={model}", "--port", "0"]
        # A pipe that nobody reads would fill up.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline()
        address = re.search(r"http://\S+", self.greeting)
        assert address, self.stop()
        self.address = address[0]
        self.port = int(self.address.rpartition(":")[2])

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> str:
        """End the process and return its log."""
        self.process.kill()
        self.process.communicate()
        return self._read_log()

    def wait(self) -> tuple[int, str]:
        self.process.communicate(timeout=60)
        return self.process.returncode, self._read_log()

    def _read_log(self) -> str:
        self._log.seek(0)
        return self._log.read()


@pytest.fixture
def start_server() -> Iterator[Callable[..., RunningServer]]:
    pytest.importorskip("uvicorn", reason="needs the extra serve")
    if sys.platform == "win32":
        pytest.skip("signals of POSIX")
    servers: list[RunningServer] = []

    def start(*options: str, **environment: str) -> RunningServer:
        servers.append(RunningServer(*options, **environment))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.communicate()
