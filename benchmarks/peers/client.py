"""The driver's side: starts worker processes, sends them requests, and waits for their answers.

    with PeerProcess("allennlp") as peer:
        peer.request("load", model="/tmp/small", threads=2)
        answer = peer.request("embed", sentences=[["She", "went"]], layers="all", out="v.npz")
        print(answer["seconds"])

`worker.py` lists the commands. `venvs.py` builds the environment of a peer if it does not exist.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import venvs

HERE = Path(__file__).parent


class PeerError(RuntimeError):
    """A worker answered with an error, or ended."""


class WorkerProcess:
    """A process that answers JSON requests (`worker.py`)."""

    def __init__(self, name: str, command: Sequence[str], quiet: bool = True) -> None:
        """Start the worker.

        Its first answer is kept as `started`: import seconds, versions and memory.

        Args:
            name: Name for error messages.
            command: Command line of the worker.
            quiet: Discard what the worker writes to stderr.
        """
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
            encoding="utf-8",
        )
        self.started = self._read()

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        # ASCII JSON, so that lone surrogates are sent as escapes.
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the worker and wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise PeerError(
                f"{self.name}: the worker ended with code {code}; use quiet=False to see why"
            )
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise PeerError(f"{self.name}: {answer['error']}")
        return answer

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PeerProcess(WorkerProcess):
    """An ELMo implementation, running in its own environment and process."""

    def __init__(self, name: str, directory: Path = venvs.CACHE, quiet: bool = True) -> None:
        """Start a peer by its name, such as "allennlp".

        "elmokit float32" is elmokit in the current environment; the second word is an argument of
        its script.
        """
        script, *arguments = name.split()
        python = sys.executable if script == "elmokit" else str(venvs.ensure(script, directory))
        super().__init__(name, [python, str(HERE / f"peer_{script}.py"), *arguments], quiet)
