"""AllenNLP's two arguments, options file and weight file, read as a model.

Both may be paths or URLs. `formats` reads the files, `fetch` downloads them.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import ModelNotFound
from elmokit.fetch import PUBLISHED, resolve_model
from elmokit.fetch.published import RemoteFile
from elmokit.fetch.store import DownloadPlan, ensure_downloaded
from elmokit.formats import allennlp
from elmokit.formats.detect import DetectedModel
from elmokit.formats.source import ModelSource

PathOrURL = str | os.PathLike[str]
"""Path or URL of a file."""

_ORIGINAL = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)
DEFAULT_OPTIONS_FILE = _ORIGINAL + "options.json"
DEFAULT_WEIGHT_FILE = _ORIGINAL + "weights.hdf5"

OPTIONS, WEIGHTS = "options.json", "weights.hdf5"


def read_model(options_file: PathOrURL, weight_file: PathOrURL | None) -> BiLM:
    """Read a model from its two files, or from all that `Elmo.load` takes if there is only one."""
    if weight_file is None:
        return Elmo.load(os.fspath(options_file)).bilm
    options, weights = os.fspath(options_file), os.fspath(weight_file)
    for model in PUBLISHED:  # whose checksums are known, and which are cached by name
        known = [address for file in model.files for address in file.addresses]
        if options in known and weights in known:
            return Elmo.load(resolve_model(model.name)).bilm
    pair = _Pair(local_file(options, OPTIONS), local_file(weights, WEIGHTS))
    return allennlp.read(DetectedModel("allennlp", pair, OPTIONS, WEIGHTS))


def local_file(file_or_url: PathOrURL, name: str) -> Path:
    """Return the path of a file, which is downloaded if it is a URL."""
    file_or_url = os.fspath(file_or_url)
    if not re.match(r"https?://", file_or_url, re.IGNORECASE):
        path = Path(file_or_url).expanduser()
        if not path.is_file():
            raise ModelNotFound(f"no file {file_or_url}; expected the path or URL of an {name}")
        return path
    file = RemoteFile(name, (file_or_url,))
    key = f"{name.partition('.')[0]}-{hashlib.sha256(file_or_url.encode()).hexdigest()[:16]}"
    title = file_or_url.partition("?")[0]
    plan = DownloadPlan(key, title, lambda directory: iter((file,)), (file,), name)
    return ensure_downloaded(plan, local_files_only=False, progress="auto")


class _Pair(ModelSource):
    """Two files in any directories, as one source."""

    def __init__(self, options: Path, weights: Path) -> None:
        super().__init__(weights.resolve().parent)
        self._files = {OPTIONS: options, WEIGHTS: weights}
        self.names = [OPTIONS, WEIGHTS]

    def describe(self, name: str) -> str:
        """Return the path of a file, for messages."""
        return str(self._files[name])

    def _path(self, name: str) -> Path:
        return self._files[name]
