"""TensorFlow checkpoints of bilm-tf and simple_elmo, as their training leaves them, read.

A directory with options.json, `checkpoint` (a text that names the newest), for each checkpoint
`model.ckpt-N.index` and its data files, and perhaps vocab.txt. Other than the published HDF5 files
these have the softmax, so that a model can go on learning. `layout` is the whole correspondence of
names; the optimizer's variables are left alone. TensorFlow is not needed: see `tf_bundle.py`.
"""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX, expected_shapes
from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats import allennlp
from elmokit.formats.allennlp import Dataset
from elmokit.formats.source import Source, listing
from elmokit.formats.tf_bundle import Bundle
from elmokit.text.vocabulary import Vocabulary

INDEX = ".index"
STATE_FILE = "checkpoint"
VOCABULARIES = ("vocab.txt", "vocab.txt.gz")
LARGEST_VOCABULARY = 256 << 20
CHARACTERS = "char_embed"


class Naming(NamedTuple):
    """How a version of TensorFlow calls the arrays of an LSTM cell."""

    many: str
    """The scope of layer {layer} of direction {side} where there are several layers, …"""
    single: str
    """… and where there is one."""
    kernel: str
    bias: str
    projection: str

    def cell(self, side: int, layer: int, layers: int) -> str:
        """The scope of a cell."""
        return (self.many if layers > 1 else self.single).format(side=side, layer=layer)


NAMINGS = (
    Naming(
        "RNN_{side}/rnn/multi_rnn_cell/cell_{layer}/lstm_cell",
        "RNN_{side}/rnn/lstm_cell",
        "kernel",
        "bias",
        "projection/kernel",
    ),
    Naming(  # TensorFlow 1.0 and 1.1
        "RNN_{side}/rnn/multi_rnn_cell/cell_{layer}/lstm_cell",
        "RNN_{side}/rnn/lstm_cell",
        "weights",
        "biases",
        "projection/weights",
    ),
    Naming(  # before 1.0
        "RNN_{side}/RNN/MultiRNNCell/Cell{layer}/LSTMCell",
        "RNN_{side}/RNN/LSTMCell",
        "W_0",
        "B",
        "W_P_0",
    ),
)
PUBLISHED = NAMINGS[-1]
"""bilm-tf's HDF5 files keep the oldest names, for any number of layers."""


def layout(
    config: BiLMConfig, naming: Naming = NAMINGS[0], scope: str = "lm/", words: int | None = None
) -> list[Dataset]:
    """The table of names: the checkpoint's on the left, ours on the right.

    `words` is the size of the softmax, None where there is none.
    """
    layers = config.lstm.layers
    renamed = {}
    for side in range(2):
        for layer in range(layers):
            published = PUBLISHED.many.format(side=side, layer=layer)
            cell = naming.cell(side, layer, layers)
            for theirs, here in zip(PUBLISHED[2:], naming[2:], strict=True):
                renamed[f"{published}/{theirs}"] = f"{cell}/{here}"
    table = [
        entry._replace(name=scope + renamed.get(entry.name, entry.name))
        for entry in allennlp.layout(config)
    ]
    if words is not None:
        table.append(Dataset(f"{scope}softmax/W", SOFTMAX[:1], (words, config.lstm.width)))
        table.append(Dataset(f"{scope}softmax/b", SOFTMAX[1:], (words,)))
    return table


def read(source: Source, chosen: str = "") -> BiLM:
    """Read a training directory; `chosen` may name one file of the checkpoint that is wanted."""
    options = source.read_json(_options_name(source))
    bundle = Bundle(source, choose(source, chosen))
    scope = _scope(bundle, options)
    naming = _naming(bundle, scope)
    config = _config(options, bundle, scope, naming)
    words = _rows(bundle, f"{scope}softmax/W")
    table = layout(config, naming, scope, words)
    _check_rest(bundle, scope, table)
    weights: dict[str, npt.NDArray[Any]] = {}
    for entry in table:
        weights |= _take(entry, config, bundle)
    return BiLM(config, weights, _vocabulary(source, words))


# -- which one ---------------------------------------------------------------------------------


def choose(source: Source, chosen: str = "") -> str:
    """The name of a checkpoint, without ending: the chosen, else the named, else the highest."""
    prefixes = [name[: -len(INDEX)] for name in source.names if name.endswith(INDEX)]
    if not prefixes:
        raise ModelNotFound(
            f"{source.path} has no checkpoint: found {listing(source.names)}; expected "
            "model.ckpt-N.index with its data files"
        )
    if chosen and chosen != STATE_FILE:
        prefix = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", chosen)
        if prefix in prefixes:
            return prefix
        if chosen not in source.names or prefix != chosen:
            raise ModelNotFound(f"{source.path} has no {prefix}{INDEX}; found {listing(prefixes)}")
    named = _named(source)
    if named in prefixes:
        return named
    if named and len(prefixes) > 1:
        raise ModelNotFound(
            f"{source.describe(STATE_FILE)} names {named!r}, which is not here; found "
            f"{listing(prefixes)}. Give the path of the .index file of the one you want"
        )
    return max(prefixes, key=_step)


def _named(source: Source) -> str:
    """What the file `checkpoint` names: perhaps by its author's path, of which the end counts."""
    if STATE_FILE not in source.names:
        return ""
    text = source.read(STATE_FILE)[: 1 << 16].decode("utf-8", "replace")
    found = re.search(r'^\s*model_checkpoint_path\s*:\s*"((?:[^"\\\n]|\\.)*)"', text, re.MULTILINE)
    return re.split(r"[/\\]+", found[1])[-1] if found else ""


def _step(prefix: str) -> tuple[int, str]:
    found = re.search(r"-(\d{1,18})$", prefix)
    return (int(found[1]) if found else -1), prefix


def _options_name(source: Source) -> str:
    names = [name for name in source.names if name.endswith("options.json")]
    if "options.json" in names or not names:
        return "options.json"
    if len(names) > 1:
        raise FormatError(f"{source.path} holds {listing(names)}; expected one options.json")
    return names[0]


# -- what it is --------------------------------------------------------------------------------


def _scope(bundle: Bundle, options: Mapping[str, Any]) -> str:
    """What all names of the model begin with; bilm-tf says "lm/"."""
    scopes = [
        name.removesuffix(CHARACTERS)
        for name in bundle.names
        if name == CHARACTERS or name.endswith("/" + CHARACTERS)
    ]
    if len(scopes) == 1:
        return scopes[0]
    if not scopes and "char_cnn" not in options and any("softmax" in n for n in bundle.names):
        raise FormatError(
            f"{bundle.where} is a language model of word numbers (its options have no char_cnn); "
            "an ELMo reads characters"
        )
    raise FormatError(
        f"{bundle.where} is no biLM: it has {len(scopes)} tensors called {CHARACTERS}, expected "
        f"one (lm/{CHARACTERS}); its tensors are {listing(bundle.names)}"
    )


def _naming(bundle: Bundle, scope: str) -> Naming:
    for naming in NAMINGS:
        for layers in (1, 2):
            if f"{scope}{naming.cell(0, 0, layers)}/{naming.kernel}" in bundle:
                return naming
    raise FormatError(
        f"{bundle.where} has no LSTM of a biLM: expected {scope}{NAMINGS[0].cell(0, 0, 2)}/kernel; "
        f"its tensors are {listing(bundle.names)}"
    )


def _config(options: Mapping[str, Any], bundle: Bundle, scope: str, naming: Naming) -> BiLMConfig:
    """The architecture: what options.json says and what only the tensors show."""
    rows = _rows(bundle, scope + CHARACTERS)
    char_cnn, lstm = options.get("char_cnn"), options.get("lstm")
    stated = char_cnn.get("n_characters") if isinstance(char_cnn, dict) else None
    fits = isinstance(stated, int) and rows is not None and rows in (stated, stated - 1)
    layers = lstm.get("n_layers", 1) if isinstance(lstm, dict) else 1
    cell = naming.cell(0, 0, layers if isinstance(layers, int) else 1)
    return BiLMConfig.from_options(
        options,
        cnn_projection=f"{scope}CNN_proj/W_proj" in bundle,
        lstm_projection=f"{scope}{cell}/{naming.projection}" in bundle,
        characters=rows if fits else None,
    )


def _rows(bundle: Bundle, name: str) -> int | None:
    shape = bundle.shape(name) if name in bundle else ()
    return shape[0] if shape else None


def _check_rest(bundle: Bundle, scope: str, table: list[Dataset]) -> None:
    """No part of a network may be left over; what belongs to an optimizer may.

    A variable's slots are called like the variable and lie below it: lm/char_embed/Adagrad.
    """
    known = {entry.name for entry in table}
    rest = [
        name
        for name in bundle.names
        if name.startswith((f"{scope}CNN", f"{scope}RNN_"))
        and name not in known
        and name.rpartition("/")[0] not in bundle
    ]
    if rest:
        raise FormatError(
            f"{bundle.where} has {listing(rest)}, which the options do not ask for; "
            "do the two files belong together?"
        )


def _take(entry: Dataset, config: BiLMConfig, bundle: Bundle) -> dict[str, npt.NDArray[Any]]:
    if entry.name not in bundle:
        raise FormatError(
            f"{bundle.where} has no tensor {entry.name}, which the options ask for; "
            "do the two files belong together?"
        )
    shape = bundle.shape(entry.name)
    if shape != entry.shape:
        raise FormatError(
            f"{bundle.where}: {entry.name} has the shape {shape}; the options ask for {entry.shape}"
        )
    array = bundle.tensor(entry.name)
    if "W_cnn" in entry.name:
        array = array[0]  # its first dimension is an image's height, 1
    shapes = expected_shapes(config)
    ends = np.cumsum([shapes[name][0] for name in entry.ours[:-1]], dtype=np.int64)
    return dict(zip(entry.ours, np.split(array, ends), strict=True))


def _vocabulary(source: Source, words: int | None) -> Vocabulary | None:
    """vocab.txt, unless it is that of another softmax."""
    name = next((name for name in VOCABULARIES if name in source.names), None)
    if name is None:
        return None
    where = source.describe(name)
    data = source.read(name)
    vocabulary = Vocabulary.parse(_unzipped(data, where) if name.endswith(".gz") else data, where)
    if words is None or words == len(vocabulary):
        return vocabulary
    warnings.warn(
        f"{where} has {len(vocabulary)} words, the softmax {words}: it is not used. "
        "Put the vocabulary there that the model was trained with",
        RuntimeWarning,
        stacklevel=3,
    )
    return None


def _unzipped(data: bytes, where: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(LARGEST_VOCABULARY + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{where} cannot be unpacked: {error}") from None
    if len(text) > LARGEST_VOCABULARY:
        raise FormatError(f"{where} unpacks to more than any vocabulary has")
    return text
