"""Says what a path is: which format, and which files of it.

Looks at names only; the readers look inside. A path may be a directory, one file of a model, or a
zip archive. A directory that holds several formats is ours before AllenNLP's before the others'.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats.source import Source, listing

Kind = Literal["native", "allennlp", "tf_checkpoint", "many_langs"]

TITLES: dict[Kind, str] = {
    "native": "elmokit directory (config.json + model.safetensors)",
    "allennlp": "AllenNLP / bilm-tf pair (options.json + HDF5 weights)",
    "tf_checkpoint": "TensorFlow checkpoint of bilm-tf",
    "many_langs": "ELMoForManyLangs directory",
}
NATIVE_NAMES = (
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "settled.safetensors",
    "characters.json",
    "words.json",
    "manifest.json",
)
PLAIN_NAMES = ("weights.hdf5", "model.hdf5", "lm_weights.hdf5")
"""HDF5 files that stand beside a plain `options.json`; `X.hdf5` has `X_options.json`."""
MANY_LANGS_NAMES = ("config.json", "char.dic", "word.dic", "token_embedder.pkl", "encoder.pkl")
"""A sixth file, cnn_*.json, is named by the first."""
EXPECTED = (
    "expected a directory or zip archive with config.json + model.safetensors (elmokit), "
    "options.json + an .hdf5 file (AllenNLP, bilm-tf), options.json + model.ckpt-N.index (a "
    "TensorFlow checkpoint) or encoder.pkl + token_embedder.pkl (ELMoForManyLangs), or the path of "
    "one of these files"
)


@dataclass(frozen=True)
class Found:
    """A model's format and where its files are."""

    kind: Kind
    source: Source
    options: str = ""
    weights: str = ""
    vocabulary: str | None = None

    @property
    def files(self) -> list[str]:
        """The names of the model's own files, where other files may lie beside them."""
        names = self.source.names
        if self.kind == "tf_checkpoint":
            return [n for n in names if _is_checkpoint(n) or n in ("options.json", "vocab.txt")]
        if self.kind == "many_langs":
            return [n for n in names if n in MANY_LANGS_NAMES or _is_cnn(n)]
        own = {self.options, self.weights, self.vocabulary, *NATIVE_NAMES}
        return [name for name in names if name in own]

    @property
    def title(self) -> str:
        """The format in words."""
        return TITLES[self.kind]


def detect(path: str | Path) -> Found:
    """What this path is, or a `FormatError` that says what was found and what was expected."""
    place = Path(path).expanduser()
    if not place.exists():
        raise ModelNotFound(f"no model at {path}: no such file or directory; {EXPECTED}")
    if place.is_dir():
        return _look_inside(Source(place), chosen="")
    # By name first: a .pkl of torch is a zip archive too.
    if (
        place.suffix.lower() in (".json", ".hdf5", ".h5", ".safetensors")
        or _is_checkpoint(place.name)
        or place.name in MANY_LANGS_NAMES
    ):
        return _look_inside(Source(place.resolve().parent), chosen=place.resolve().name)
    if zipfile.is_zipfile(place):
        return _look_inside(Source(place), chosen="")
    with place.open("rb") as file:
        start = file.read(16)
    raise FormatError(f"{path} is no model: a file that starts with {start!r}; {EXPECTED}")


def _look_inside(source: Source, chosen: str) -> Found:
    names = source.names
    if _is_checkpoint(chosen):
        return Found("tf_checkpoint", source, weights=chosen)
    if {"encoder.pkl", "token_embedder.pkl"} <= set(names) and (
        chosen in MANY_LANGS_NAMES or _is_cnn(chosen)
    ):
        return Found("many_langs", source)
    if "model.safetensors" in names and (not chosen or chosen in NATIVE_NAMES):
        return Found("native", source)
    if any(n.endswith("options.json") for n in names) and any(map(_is_hdf5, names)):
        options, weights = _pair(source, chosen)
        return Found("allennlp", source, options, weights, _vocabulary(names, options))
    if any(name.endswith(".index") for name in names):
        return Found("tf_checkpoint", source)
    if {"encoder.pkl", "token_embedder.pkl"} <= set(names):
        return Found("many_langs", source)
    raise FormatError(f"no model in {source.path}: found {listing(names)}; {EXPECTED}")


def _is_checkpoint(name: str) -> bool:
    return (
        name == "checkpoint" or re.search(r"\.(index|meta|data-\d{5}-of-\d{5})$", name) is not None
    )


def _is_cnn(name: str) -> bool:
    return re.fullmatch(r"cnn_.*\.json", name) is not None


def _is_hdf5(name: str) -> bool:
    return name.lower().endswith((".hdf5", ".h5"))


def _pair(source: Source, chosen: str) -> tuple[str, str]:
    """The options and the weights that belong together, of a folder that may hold several pairs.

    Published pairs are called X_options.json and X_weights.hdf5, or plainly options.json beside
    weights.hdf5 or model.hdf5; beside them may lie other HDF5 files, such as token caches.
    """
    all_options = [name for name in source.names if name.endswith("options.json")]
    all_weights = [name for name in source.names if _is_hdf5(name)]
    options = [chosen] if chosen in all_options else all_options
    weights = [chosen] if _is_hdf5(chosen) else all_weights
    if chosen and chosen not in options + weights:
        raise FormatError(
            f"{source.path / chosen} is no part of a model; beside it are {listing(source.names)}"
        )
    pairs = [(o, w) for o in options for w in weights if _belong_together(o, w)]
    if not pairs:
        plain = [w for w in weights if w in PLAIN_NAMES]
        plain_options = [o for o in options if not _prefix(o)] or options
        pairs = [(o, w) for o in plain_options for w in (plain or weights)]
    if len(pairs) != 1:
        raise FormatError(
            f"{source.path} holds several models or parts ({listing(options + weights)}); "
            "give the path of the .hdf5 file, or of the options file, of the one you want"
        )
    return pairs[0]


def _belong_together(options: str, weights: str) -> bool:
    prefix = _prefix(options)
    return bool(prefix) and (weights.startswith(prefix) or Path(weights).stem + "_" == prefix)


def _prefix(options: str) -> str:
    return options[: -len("options.json")]


def _vocabulary(names: list[str], options: str) -> str | None:
    for name in (_prefix(options) + "vocab.txt", "vocab.txt"):
        if name in names:
            return name
    return None
