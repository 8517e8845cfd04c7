"""Detecting the format of a model, and which files belong to it.

Only looks at names; the readers look inside. A path may be a directory, one file of a model, or a
zip archive. Where a directory holds several formats, elmokit's own comes first, then AllenNLP's.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats.source import ModelSource, list_names
from elmokit.formats.tar_archive import is_tar

FormatKind = Literal["native", "allennlp", "tf_checkpoint", "tf_hub", "many_langs", "onnx"]
"""The formats that are recognized. A model can be read from all of them but ONNX."""

FORMAT_TITLES: dict[FormatKind, str] = {
    "native": "elmokit directory (config.json + model.safetensors)",
    "allennlp": "AllenNLP / bilm-tf pair (options.json + HDF5 weights)",
    "tf_checkpoint": "TensorFlow checkpoint of bilm-tf",
    "tf_hub": "TensorFlow Hub module (saved_model.pb + variables/)",
    "many_langs": "ELMoForManyLangs directory",
    "onnx": "ONNX export of elmokit, for onnxruntime",
}
"""Each format in words."""
NATIVE_NAMES = (
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "settled.safetensors",
    "characters.json",
    "words.json",
    "manifest.json",
)
"""The files of elmokit's own format; not every model has all of them."""
PLAIN_NAMES = ("weights.hdf5", "model.hdf5", "lm_weights.hdf5")
"""HDF5 files that belong to a plain `options.json`; `X.hdf5` belongs to `X_options.json`."""
MANY_LANGS_NAMES = ("config.json", "char.dic", "word.dic", "token_embedder.pkl", "encoder.pkl")
"""The files of ELMoForManyLangs, apart from cnn_*.json, which config.json names."""
HUB_NAMES = ("saved_model.pb", "tfhub_module.pb")
"""The files of a TensorFlow Hub module, beside its folder of variables."""
VARIABLES = "variables"
"""Name of the checkpoint in that folder."""
EXPECTED_FILES = (
    "expected a directory or archive (zip, tar.gz) with config.json + model.safetensors (elmokit), "
    "options.json + an .hdf5 file (AllenNLP, bilm-tf), options.json + model.ckpt-N.index (a "
    "TensorFlow checkpoint), saved_model.pb + variables/ (TensorFlow Hub) or encoder.pkl + "
    "token_embedder.pkl (ELMoForManyLangs), or the path of one of these files"
)
"""What a path can be, for error messages."""


@dataclass(frozen=True)
class DetectedModel:
    """The format of a model, and where its files are."""

    kind: FormatKind
    """The format."""
    source: ModelSource
    """The directory or archive that holds the files."""
    options: str = ""
    """Name of the options file of a pair."""
    weights: str = ""
    """Name of the weights file of a pair, or of a file of the chosen checkpoint."""
    vocabulary: str | None = None
    """Name of the vocabulary file of a pair, if there is one."""

    @property
    def files(self) -> list[str]:
        """The names of the files that belong to the model; there may be others beside them."""
        names = self.source.names
        if self.kind == "tf_hub":
            return [name for name in names if _is_checkpoint(name)]
        if self.kind == "tf_checkpoint":
            return [n for n in names if _is_checkpoint(n) or n in ("options.json", "vocab.txt")]
        if self.kind == "many_langs":
            return [n for n in names if n in MANY_LANGS_NAMES or _is_cnn(n)]
        if self.kind == "onnx":
            own = {self.weights + ending for ending in ("", ".json", ".data")}
            return [name for name in names if name in own]
        return [
            name
            for name in names
            if name in (self.options, self.weights, self.vocabulary, *NATIVE_NAMES)
        ]

    @property
    def title(self) -> str:
        """The format in words."""
        return FORMAT_TITLES[self.kind]


def detect_format(path: str | Path) -> DetectedModel:
    """Return the format of a model, and where its files are.

    Args:
        path: A directory, one file of a model, or an archive (zip, tar.gz).

    Raises:
        ModelNotFound: There is no such file or directory.
        FormatError: There is no model in a known format.
    """
    target = Path(path).expanduser()
    if not target.exists():
        raise ModelNotFound(f"no model at {path}: no such file or directory; {EXPECTED_FILES}")
    if target.is_dir():
        return _look_inside(ModelSource(target), chosen="")
    exported = target.with_suffix("") if target.name.endswith(".onnx.json") else target
    if exported.suffix.lower() == ".onnx" and exported.is_file():
        source = ModelSource(exported.resolve().parent)
        return DetectedModel("onnx", source, weights=exported.resolve().name)
    # By name first: a .pkl file of PyTorch is a zip archive as well.
    if (
        target.suffix.lower() in (".json", ".hdf5", ".h5", ".safetensors")
        or _is_checkpoint(target.name)
        or target.name in (*MANY_LANGS_NAMES, *HUB_NAMES)
    ):
        return _look_inside(ModelSource(target.resolve().parent), chosen=target.resolve().name)
    if zipfile.is_zipfile(target) or is_tar(target):
        return _look_inside(ModelSource(target), chosen="")
    with target.open("rb") as file:
        start = file.read(16)
    raise FormatError(f"{path} is not a model: it begins with {start!r}; {EXPECTED_FILES}")


def _look_inside(source: ModelSource, chosen: str) -> DetectedModel:
    names = source.names
    if advice := _other_directory(source.path, names):
        raise FormatError(advice)
    if (not chosen and {*HUB_NAMES} & {*names}) or chosen in HUB_NAMES:
        variables = source.folder("variables")
        if f"{VARIABLES}.index" not in variables.names:
            raise FormatError(
                f"{source.path} has no variables/{VARIABLES}.index, which belongs to "
                f"{' and '.join(HUB_NAMES)} of a TensorFlow Hub module; copy the whole module"
            )
        return DetectedModel("tf_hub", variables)
    if f"{VARIABLES}.index" in names and "options.json" not in names:
        return DetectedModel("tf_hub", source)
    if _is_checkpoint(chosen):
        return DetectedModel("tf_checkpoint", source, weights=chosen)
    if {"encoder.pkl", "token_embedder.pkl"} <= set(names) and (
        chosen in MANY_LANGS_NAMES or _is_cnn(chosen)
    ):
        return DetectedModel("many_langs", source)
    if "model.safetensors" in names and (not chosen or chosen in NATIVE_NAMES):
        return DetectedModel("native", source)
    if any(n.endswith("options.json") for n in names) and any(map(_is_hdf5, names)):
        options, weights = _pair(source, chosen)
        return DetectedModel("allennlp", source, options, weights, _vocabulary(names, options))
    if any(name.endswith(".index") for name in names):
        return DetectedModel("tf_checkpoint", source)
    if {"encoder.pkl", "token_embedder.pkl"} <= set(names):
        return DetectedModel("many_langs", source)
    exports = [name for name in names if name.lower().endswith(".onnx")]
    if len(exports) == 1 and chosen in ("", exports[0]):
        return DetectedModel("onnx", source, weights=exports[0])
    if advice := _unfinished_training(source.path):
        raise FormatError(advice)
    raise FormatError(f"no model in {source.path}: found {list_names(names)}; {EXPECTED_FILES}")


def _other_directory(path: Path, names: list[str]) -> str | None:
    """Return what to do with a directory of elmokit that is no model; None if it is none."""
    if "task.json" in names and "manifest.json" not in names:
        return (
            f"{path} is a task model, not a biLM; use it with: elmo task predict {path}. The biLM "
            "that it was trained with is named in its task.json"
        )
    if "corpus.json" in names and "model.safetensors" not in names:
        return (
            f"{path} is a corpus, not a model; train a model on it: elmo pretrain {path} "
            "--out MODEL --minutes 60"
        )
    return None


def _unfinished_training(path: Path) -> str | None:
    """Return how to continue the training run of a directory; None if there is no such run."""
    training = path / "training"  # the names are those of train/run.py and train/finetuning.py
    if (training / "finetune.json").is_file():
        command = f"elmo finetune MODEL TEXT --out {path} --resume"
    elif (training / "run.json").is_file():
        command = f"elmo pretrain CORPUS --out {path} --resume"
    else:
        return None
    return (
        f"{path} holds an unfinished training run and no model yet, since the model is saved when "
        f"training ends; continue it with: {command}"
    )


def _is_checkpoint(name: str) -> bool:
    return (
        name == "checkpoint" or re.search(r"\.(index|meta|data-\d{5}-of-\d{5})$", name) is not None
    )


def _is_cnn(name: str) -> bool:
    return re.fullmatch(r"cnn_.*\.json", name) is not None


def _is_hdf5(name: str) -> bool:
    return name.lower().endswith((".hdf5", ".h5"))


def _pair(source: ModelSource, chosen: str) -> tuple[str, str]:
    """Return the options and the weights that belong together; a folder may hold several pairs.

    Published pairs are named X_options.json and X_weights.hdf5, or options.json and weights.hdf5 or
    model.hdf5. There may be other HDF5 files beside them, such as token caches.
    """
    all_options = [name for name in source.names if name.endswith("options.json")]
    all_weights = [name for name in source.names if _is_hdf5(name)]
    options = [chosen] if chosen in all_options else all_options
    weights = [chosen] if _is_hdf5(chosen) else all_weights
    if chosen and chosen not in options + weights:
        raise FormatError(
            f"{source.path / chosen} is not part of a model; the files beside it are "
            f"{list_names(source.names)}"
        )
    pairs = [(o, w) for o in options for w in weights if _belong_together(o, w)]
    if not pairs:
        plain = [w for w in weights if w in PLAIN_NAMES]
        plain_options = [o for o in options if not _prefix(o)] or options
        pairs = [(o, w) for o in plain_options for w in (plain or weights)]
    if len(pairs) != 1:
        raise FormatError(
            f"{source.path} holds several models or parts of them "
            f"({list_names(options + weights)}); give the path of the .hdf5 file, or of the "
            "options file, of the one you want"
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
