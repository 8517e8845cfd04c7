"""The worker's side of the protocol: reads one JSON object per line and writes one per line.

The script of a peer wraps its implementation as a `Peer` and passes it to `serve`. The driver
(`client.py`) keeps one process per peer, so that their runs can be interleaved. This file knows
nothing about ELMo, and imports only the standard library before the peer is imported, so that the
import time of the peer is measured correctly.

    {"command": "load", "model": DIR, "threads": 2, "batch_size": 64}
    {"command": "embed", "sentences": [["She", "went"], ...], "batch_size": 32,
     "layers": "all" | "average", "state": "fresh" | "carry", "out": FILE.npz}
    {"command": "reset"}                                         set the state to zero
    {"command": "state", "out": FILE.npz}                        write the carried state
    {"command": "characters", "words": [...], "out": FILE.npy}   write the peer's character ids
    {"command": "quit"}

Every answer has "ok"; an invalid request is answered with {"ok": false, "error": ...}, and the
worker continues. `seconds` is the time of the peer's own call only: from strings to padded arrays.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

Sentences = Sequence[Sequence[str]]
Answer = dict[str, Any]

STATUS = Path("/proc/self/status")
"""File in which Linux states the memory of this process."""


class Peer(Protocol):
    """The interface that the script of a peer implements."""

    packages: tuple[str, ...]
    """Packages whose versions determine the result."""

    def load(self, model: Path, threads: int, batch_size: int) -> None:
        """Load a model; `batch_size` is the size of the largest batch that will be embedded."""

    def reset(self) -> None:
        """Set the LSTM state of every row to zero."""

    def embed(self, sentences: Sentences, batch_size: int, layers: str) -> list[Floats]:
        """Embed batches of consecutive sentences, carrying the state as the peer does.

        Each array contains the next sentences, padded: (B, L+1, T, D), or (B, T, D) if averaged.
        """

    def state(self) -> tuple[Floats, Floats]:
        """Return the carried hidden (L, 2, B, P) and cell (L, 2, B, H); axis 1: direction."""

    def characters(self, words: Sequence[str]) -> NDArray[np.integer[Any]]:
        """Return the character ids (words, C) that the peer feeds to its network."""


def serve(make_peer: Callable[[], Peer]) -> None:
    """Answer requests from stdin until it ends; `make_peer` imports the packages of the peer."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(sys.modules["__main__"].__doc__)
        return
    # Libraries print to stdout: reserve it for answers, and send everything else to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(content: Answer) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    start = time.perf_counter()
    peer = make_peer()
    import_seconds = time.perf_counter() - start
    versions = {name: _version(name) for name in peer.packages}
    write({"ok": True, "import_seconds": import_seconds, "versions": versions, **_memory()})

    for line in sys.stdin:
        try:
            request = json.loads(line)
            command = request.pop("command")
            if command == "quit":
                break
            write({"ok": True, **COMMANDS[command](peer, **request), **_memory()})
        except (Exception, SystemExit) as error:  # simple_elmo exits on an invalid model
            traceback.print_exc()
            write({"ok": False, "error": f"{type(error).__name__}: {error}"})


def _version(package: str) -> str:
    """Return the version of a package that is installed, or imported from its source."""
    try:
        return version(package)
    except PackageNotFoundError:
        return str(import_module(package).__version__)


def _load(peer: Peer, model: str, threads: int = 2, batch_size: int = 64) -> Answer:
    start = time.perf_counter()
    peer.load(Path(model), threads, batch_size)
    return {"seconds": time.perf_counter() - start}


def _embed(
    peer: Peer,
    sentences: Sentences,
    batch_size: int = 32,
    layers: str = "all",
    state: str = "carry",
    out: str | None = None,
) -> Answer:
    if state == "carry":
        start = time.perf_counter()
        padded = peer.embed(sentences, batch_size, layers)
        seconds = time.perf_counter() - start
    elif state == "fresh":
        padded, seconds = [], 0.0
        for first in range(0, len(sentences), batch_size):
            peer.reset()
            start = time.perf_counter()
            padded += peer.embed(sentences[first : first + batch_size], batch_size, layers)
            seconds += time.perf_counter() - start
    else:
        raise ValueError(f"state {state!r}: expected 'fresh' or 'carry'")
    if out is not None:
        _save_words(Path(out), padded, [len(sentence) for sentence in sentences])
    return {"seconds": seconds, "words": sum(map(len, sentences))}


def _save_words(path: Path, padded: list[Floats], lengths: list[int]) -> None:
    """Write the vectors of the words, without padding: (L+1, words, D) or (words, D)."""
    import numpy as np

    rows = [row for batch in padded for row in batch]
    words = [row[..., :length, :] for row, length in zip(rows, lengths, strict=True)]
    vectors = np.concatenate(words, axis=-2).astype(np.float32)
    np.savez(path, vectors=vectors, lengths=np.array(lengths))


def _reset(peer: Peer) -> Answer:
    peer.reset()
    return {}


def _state(peer: Peer, out: str) -> Answer:
    import numpy as np

    hidden, cell = peer.state()
    np.savez(out, hidden=hidden, cell=cell)
    return {"rows": hidden.shape[2]}


def _characters(peer: Peer, words: Sequence[str], out: str) -> Answer:
    import numpy as np

    ids = peer.characters(words)
    np.save(out, ids)
    return {"shape": list(ids.shape)}


def _memory() -> Answer:
    """Return the peak resident memory of this process, in MB.

    On Linux that of `getrusage` begins with the memory of the process that started this one.
    """
    if STATUS.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text())
        if found:
            return {"peak_mb": int(found[1]) * 1024 / 1e6}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6}


COMMANDS: dict[str, Callable[..., Answer]] = {
    "load": _load,
    "embed": _embed,
    "reset": _reset,
    "state": _state,
    "characters": _characters,
}
