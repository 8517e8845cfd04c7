"""AllenNLP's two arguments, options file and weight file, to a model: paths or addresses, anywhere.

What is in the files is the business of `formats`, downloading that of `fetch`.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO

from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import ModelNotFound
from elmokit.fetch import PUBLISHED, resolve
from elmokit.fetch.published import RemoteFile
from elmokit.fetch.store import Plan, keep
from elmokit.formats import allennlp
from elmokit.formats.detect import Found
from elmokit.formats.source import Source

Place = str | os.PathLike[str]
"""The path of a file, or its address."""

_ORIGINAL = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)
DEFAULT_OPTIONS_FILE = _ORIGINAL + "options.json"
DEFAULT_WEIGHT_FILE = _ORIGINAL + "weights.hdf5"

OPTIONS, WEIGHTS = "options.json", "weights.hdf5"


def read(options_file: Place, weight_file: Place | None) -> BiLM:
    """Read a pair; without a weight file, any model that `Elmo.load` takes."""
    if weight_file is None:
        return Elmo.load(os.fspath(options_file)).bilm
    options, weights = os.fspath(options_file), os.fspath(weight_file)
    for model in PUBLISHED:  # their checksums are known, and they are kept under their names
        known = [address for file in model.files for address in file.addresses]
        if options in known and weights in known:
            return Elmo.load(resolve(model.name)).bilm
    pair = _Pair(_local(options, OPTIONS), _local(weights, WEIGHTS))
    return allennlp.read(Found("allennlp", pair, OPTIONS, WEIGHTS))


def _local(place: str, name: str) -> Path:
    """A file on this disk."""
    if not re.match(r"https?://", place, re.IGNORECASE):
        path = Path(place).expanduser()
        if not path.is_file():
            raise ModelNotFound(f"no file {place}; expected the path of an {name}, or its address")
        return path
    file = RemoteFile(name, (place,))
    key = f"{name.partition('.')[0]}-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
    plan = Plan(key, place.partition("?")[0], lambda folder: iter((file,)), (file,), name)
    return keep(plan, local_files_only=False, progress="auto")


class _Pair(Source):
    """Two files, wherever each of them lies, as one place."""

    def __init__(self, options: Path, weights: Path) -> None:
        super().__init__(weights.resolve().parent)
        self._files = {OPTIONS: options, WEIGHTS: weights}
        self.names = [OPTIONS, WEIGHTS]

    def describe(self, name: str) -> str:
        """A file's name for messages."""
        return str(self._files[name])

    def size(self, name: str) -> int:
        """The bytes of a file."""
        return self._files[name].stat().st_size

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        self._check_size(name)
        return self._files[name].read_bytes()

    def open(self, name: str) -> BinaryIO:
        """A file that can be sought in."""
        return self._files[name].open("rb")
