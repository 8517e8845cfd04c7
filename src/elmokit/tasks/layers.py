"""All layers of a data set's texts, computed once by the engine and kept on disk.

Texts are kept in pieces of some thousand words, a file each, named by model and texts: complete or
absent, so that an interruption costs one piece. Numbers are float16, also those of texts that are
not kept, so that a text has the same vectors wherever it is met.

Shape letters: N words, B texts, T words of a text, L LSTM layers, P size of a component, D = 2P.
A component is the word vector, or the output of one direction of an LSTM layer: 2L+1 in all.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError
from elmokit.fetch.cache import models_root

Half = npt.NDArray[np.float16]
Words = tuple[str, ...]

PIECE_WORDS = 32_768
VERSION = b"1"


def layers_root() -> Path:
    """Where layers are kept: beside the downloaded models."""
    return models_root().parent / "layers"


class Layers:
    """The frozen biLM of a task model; `keep` is for texts that will come again."""

    def __init__(self, elmo: Elmo, root: Path | None = None) -> None:
        """`root` is where layers are kept, `layers_root()` by default."""
        self.elmo, self.config, self.dim = elmo, elmo.config, elmo.dim
        self._root = root or layers_root()
        self._kept: dict[Words, tuple[Half, int]] = {}

    def __deepcopy__(self, memo: object) -> Layers:
        """Nothing in it learns: copies of a task model share it."""
        return self

    def keep(
        self, texts: Iterable[Words], tell: Callable[[int, int], None] = lambda done, of: None
    ) -> None:
        """Compute the layers of these texts, or find them on disk; `tell` hears of words done."""
        new = [words for words in dict.fromkeys(texts) if words not in self._kept]
        total, done = sum(map(len, new)), 0
        for piece in _pieces(new):
            components = self._piece(piece)
            place = 0
            for words in piece:
                self._kept[words] = (components, place)
                place += len(words)
            done += place
            tell(done, total)

    def layers(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """(L+1, B, T, D), zero at padding."""
        keys = [tuple(words) for words in texts]
        missing = [words for words in dict.fromkeys(keys) if words not in self._kept]
        fresh = dict(zip(missing, self._compute(missing), strict=True))
        size = self.dim // 2
        layers_LBTD = np.zeros(
            (self.config.layers, len(keys), max(map(len, keys)), self.dim), np.float32
        )
        for b, words in enumerate(keys):
            array, start = self._kept.get(words) or (fresh[words], 0)
            count = len(words)
            found = array[start : start + count]
            layers_LBTD[0, b, :count, :size] = found[:, 0]
            layers_LBTD[0, b, :count, size:] = found[:, 0]
            for j in range(1, self.config.layers):
                layers_LBTD[j, b, :count] = found[:, 2 * j - 1 : 2 * j + 1].reshape(count, -1)
        return torch.from_numpy(layers_LBTD)

    def _piece(self, texts: Sequence[Words]) -> Half:
        path = self._path(texts)
        shape = (sum(map(len, texts)), 2 * self.config.layers - 1, self.dim // 2)
        if (found := _open(path, shape)) is not None:
            return found
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ElmoError(
                f"cannot keep layers in {path.parent}: {error.strerror}; set ELMOKIT_CACHE to a "
                "directory that can be written"
            ) from None
        stage = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with stage.open("wb") as file:
                np.save(file, np.concatenate(self._compute(texts)))
            os.replace(stage, path)
        finally:
            stage.unlink(missing_ok=True)
        kept = _open(path, shape)
        if kept is None:
            raise ElmoError(f"{path} was written and cannot be read; is the disk full?")
        return kept

    def _compute(self, texts: Sequence[Words]) -> list[Half]:
        """Of each text (T, 2L+1, P)."""
        return [_components(layers_LTD) for layers_LTD in self.elmo.stream(texts, layers="all")]

    def _path(self, texts: Sequence[Words]) -> Path:
        """By all that the numbers depend on."""
        model = hashlib.sha256(VERSION + self.elmo.bilm.fingerprint.encode())
        model.update(f"{self.elmo.state} {self.elmo.dtype}".encode())
        model.update(self.elmo.settled.hidden.tobytes() + self.elmo.settled.cell.tobytes())
        digest = hashlib.sha256()
        for words in texts:
            digest.update("\0".join(words).encode("utf-8", "surrogatepass") + b"\0\0")
        return self._root / model.hexdigest()[:16] / f"{digest.hexdigest()[:32]}.npy"


def _components(layers_LTD: FloatArray) -> Half:
    """Layer 0 holds the word vector twice; one of them is enough."""
    layers, count, dim = layers_LTD.shape
    parts = layers_LTD.reshape(layers, count, 2, dim // 2).transpose(1, 0, 2, 3)
    joined: Half = parts.reshape(count, 2 * layers, dim // 2)[:, 1:].astype(np.float16)
    return joined


def _open(path: Path, shape: tuple[int, ...]) -> Half | None:
    """What was kept; nothing if it is not there, or not whole."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.shape == shape and found.dtype == np.float16 else None


def _pieces(texts: Iterable[Words]) -> Iterator[list[Words]]:
    piece: list[Words] = []
    count = 0
    for words in texts:
        piece.append(words)
        count += len(words)
        if count >= PIECE_WORDS:
            yield piece
            piece, count = [], 0
    if piece:
        yield piece
