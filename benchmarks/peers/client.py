"""The driver's side of the conversation with a peer's worker process.

    with PeerProcess("allennlp") as peer:
        peer.ask("load", model="/tmp/small", threads=2)
        print(peer.ask("embed", sentences=[["She", "went"]], layers="all", out="v.npz")["seconds"])

`worker.py` lists the commands. The peer's environment is built by `venvs.py` when it is not there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import venvs

HERE = Path(__file__).parent


class PeerError(RuntimeError):
    """A peer could not do what was asked."""


class PeerProcess:
    """One peer, running in its own environment and process."""

    def __init__(self, name: str, directory: Path = venvs.CACHE, quiet: bool = True) -> None:
        """Start the worker; `started` keeps its greeting: import seconds, versions, memory.

        "elmokit float32" is elmokit in this very environment; the word behind is its argument.
        """
        self.name = name
        script, *arguments = name.split()
        python = sys.executable if script == "elmokit" else str(venvs.ensure(script, directory))
        self._process = subprocess.Popen(
            [python, str(HERE / f"peer_{script}.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
            encoding="utf-8",
        )
        self.started = self._read()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        assert self._process.stdin is not None
        # ASCII JSON: a lone surrogate travels as an escape.
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the worker."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise PeerError(f"{self.name}: the worker ended with code {code}; see quiet=False")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise PeerError(f"{self.name}: {answer['error']}")
        return answer

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
