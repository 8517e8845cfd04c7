"""All layers of a dataset's texts, computed once by the engine and stored on disk.

Texts are stored in pieces of some thousand words, one file per piece, named by model and texts: a
file is complete or absent, so that an interruption costs one piece. Numbers are float16, also for
texts that are not stored, so that a text has the same vectors wherever it is met. After them, a
file has a checksum of each word's numbers: a file that is damaged is computed again.

Shape letters: N words, B texts, T words of a text, L LSTM layers, P size of a component, D = 2P.
A component is the word vector, or the output of one direction of an LSTM layer: 2L+1 in all.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError
from elmokit.fetch.cache import models_root
from elmokit.formats.checked_rows import CheckedRows, row_checksums
from elmokit.progress import ProgressCallback, ignore_progress
from elmokit.storage import atomic_write, explain_write_errors

_Half = npt.NDArray[np.float16]
_Text = tuple[str, ...]

PIECE_WORDS = 32_768
"""Words after which a piece is complete."""
CHECKED_ROWS = 1024
"""Words whose numbers are compared with their checksums at once."""
_ADVICE = "make room, or set ELMOKIT_CACHE to a directory that can be written"
VERSION = b"2"
"""Version of the file format; part of the file names."""


def layers_root() -> Path:
    """Return the default directory of stored layers, beside the downloaded models."""
    return models_root().parent / "layers"


class LayerStore:
    """The layers of a frozen biLM for a task model, with a store on disk for texts that recur."""

    def __init__(self, elmo: Elmo, root: Path | None = None) -> None:
        """Open the store.

        Args:
            elmo: The model that computes the layers.
            root: Directory of the store; `layers_root()` by default.
        """
        self.elmo, self.config, self.dim = elmo, elmo.config, elmo.dim
        self._root = root or layers_root()
        self._stored: dict[_Text, tuple[CheckedRows, int]] = {}

    def __deepcopy__(self, memo: object) -> LayerStore:
        """Return itself: nothing in it is trained, so that copies of a task model share it."""
        return self

    def add(self, texts: Iterable[_Text], progress: ProgressCallback = ignore_progress) -> None:
        """Compute and store the layers of these texts, or find them on disk.

        Args:
            texts: The texts; those that are stored already are not computed again.
            progress: Called with the number of words that are done and their total.
        """
        new = [words for words in dict.fromkeys(texts) if words not in self._stored]
        total, done = sum(map(len, new)), 0
        for piece in _split_into_pieces(new):
            components = self._load_or_compute(piece)
            start = 0
            for words in piece:
                self._stored[words] = (components, start)
                start += len(words)
            done += start
            progress(done, total)

    def layers(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Return all layers of a batch of texts, (L+1, B, T, D), zero at padding."""
        keys = [tuple(words) for words in texts]
        missing = [words for words in dict.fromkeys(keys) if words not in self._stored]
        fresh = dict(zip(missing, self._compute(missing), strict=True))
        size = self.dim // 2
        layers_LBTD = np.zeros(
            (self.config.layers, len(keys), max(map(len, keys)), self.dim), np.float32
        )
        for b, words in enumerate(keys):
            array, start = self._stored.get(words) or (fresh[words], 0)
            count = len(words)
            components = array[start : start + count]
            layers_LBTD[0, b, :count, :size] = components[:, 0]
            layers_LBTD[0, b, :count, size:] = components[:, 0]
            for j in range(1, self.config.layers):
                both = components[:, 2 * j - 1 : 2 * j + 1]
                layers_LBTD[j, b, :count] = both.reshape(count, -1)
        return torch.from_numpy(layers_LBTD)

    def _load_or_compute(self, texts: Sequence[_Text]) -> CheckedRows:
        path = self._path(texts)
        shape = (sum(map(len, texts)), 2 * self.config.layers - 1, self.dim // 2)
        if (stored := _open(path, shape)) is not None:
            return stored
        with explain_write_errors(path, kept=_ADVICE):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary, temporary.open("wb") as file:
                components = np.concatenate(self._compute(texts))
                np.save(file, components)
                np.save(file, row_checksums(components))
        stored = _open(path, shape)
        if stored is None:
            raise ElmoError(f"{path} was written and cannot be read; is the disk full?")
        return stored

    def _compute(self, texts: Sequence[_Text]) -> list[_Half]:
        """Return the components of each text, (T, 2L+1, P)."""
        return [_components(layers_LTD) for layers_LTD in self.elmo.stream(texts, layers="all")]

    def _path(self, texts: Sequence[_Text]) -> Path:
        """Return the file of a piece, named by everything that its numbers depend on."""
        model = hashlib.sha256(VERSION + self.elmo.bilm.fingerprint.encode())
        model.update(f"{self.elmo.state} {self.elmo.dtype}".encode())
        model.update(self.elmo.settled.hidden.tobytes() + self.elmo.settled.cell.tobytes())
        digest = hashlib.sha256()
        for words in texts:
            digest.update("\0".join(words).encode("utf-8", "surrogatepass") + b"\0\0")
        return self._root / model.hexdigest()[:16] / f"{digest.hexdigest()[:32]}.npy"


def _components(layers_LTD: FloatArray) -> _Half:
    """Return the components as float16: layer 0 holds the word vector twice, and once is enough."""
    layers, count, dim = layers_LTD.shape
    parts = layers_LTD.reshape(layers, count, 2, dim // 2).transpose(1, 0, 2, 3)
    components: _Half = parts.reshape(count, 2 * layers, dim // 2)[:, 1:].astype(np.float16)
    return components


def _open(path: Path, shape: tuple[int, ...]) -> CheckedRows | None:
    """Open a stored piece and check all of it; return None if the file is missing or damaged."""
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            found, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            if found != shape or fortran or dtype != np.float16:
                return None
            start = file.tell()
            file.seek(math.prod(shape) * dtype.itemsize, os.SEEK_CUR)
            checksums = np.load(file, allow_pickle=False)
        if checksums.shape != shape[:1] or checksums.dtype != np.uint32:
            return None
        stored = CheckedRows(path, dtype, shape, checksums, start)
        for first in range(0, len(stored), CHECKED_ROWS):
            stored[first : first + CHECKED_ROWS]
        return stored
    except Exception:  # NumPy can raise nearly anything for a damaged header
        return None


def _split_into_pieces(texts: Iterable[_Text]) -> Iterator[list[_Text]]:
    piece: list[_Text] = []
    count = 0
    for words in texts:
        piece.append(words)
        count += len(words)
        if count >= PIECE_WORDS:
            yield piece
            piece, count = [], 0
    if piece:
        yield piece
