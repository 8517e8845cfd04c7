"""Reading TensorFlow checkpoints that the training of bilm-tf and simple_elmo writes.

A training directory has options.json, `checkpoint` (a text file that names the newest checkpoint),
`model.ckpt-N.index` with its data files for each checkpoint, and perhaps vocab.txt. Unlike the
published HDF5 files these have the softmax, so that training can continue. `checkpoint_layout` maps
their names to ours; the variables of the optimizer are not read. TensorFlow is not needed: see
`tf_bundle.py`.
"""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX, expected_shapes
from elmokit.errors import FormatError, ModelNotFound
from elmokit.formats import allennlp
from elmokit.formats.allennlp import DatasetMapping
from elmokit.formats.source import ModelSource, list_names
from elmokit.formats.stored_arrays import AnyArray, StoredArray, StoredArrays, divide
from elmokit.formats.tar_archive import LARGEST_RATIO
from elmokit.formats.tf_bundle import TensorBundle
from elmokit.text.vocabulary import Vocabulary

INDEX = ".index"
STATE_FILE = "checkpoint"
VOCABULARIES = ("vocab.txt", "vocab.txt.gz")
SMALL_VOCABULARY = 1 << 24
"""Size in bytes that an unpacked vocabulary may have in any case."""
CHARACTER_TABLE = "char_embed"
"""Name of the character embeddings, after the scope."""


class CellNaming(NamedTuple):
    """The names that a version of TensorFlow gives to the arrays of an LSTM cell."""

    many: str
    """Scope of layer `{layer}` of direction `{side}` in a model with several layers."""
    single: str
    """Scope in a model with one layer."""
    kernel: str
    bias: str
    projection: str

    def cell(self, side: int, layer: int, layers: int) -> str:
        """Return the scope of a cell."""
        return (self.many if layers > 1 else self.single).format(side=side, layer=layer)


NAMINGS = (
    CellNaming(
        "RNN_{side}/rnn/multi_rnn_cell/cell_{layer}/lstm_cell",
        "RNN_{side}/rnn/lstm_cell",
        "kernel",
        "bias",
        "projection/kernel",
    ),
    CellNaming(  # TensorFlow 1.0 and 1.1
        "RNN_{side}/rnn/multi_rnn_cell/cell_{layer}/lstm_cell",
        "RNN_{side}/rnn/lstm_cell",
        "weights",
        "biases",
        "projection/weights",
    ),
    CellNaming(  # the modules of TensorFlow Hub
        "RNN_{side}/RNN/MultiRNNCell/Cell{layer}/rnn/lstm_cell",
        "RNN_{side}/RNN/MultiRNNCell/Cell{layer}/rnn/lstm_cell",
        "kernel",
        "bias",
        "projection/kernel",
    ),
    CellNaming(  # before 1.0
        "RNN_{side}/RNN/MultiRNNCell/Cell{layer}/LSTMCell",
        "RNN_{side}/RNN/LSTMCell",
        "W_0",
        "B",
        "W_P_0",
    ),
)
PUBLISHED_NAMING = NAMINGS[-1]
"""The HDF5 files of bilm-tf use the oldest names, for any number of layers."""


def checkpoint_layout(
    config: BiLMConfig,
    naming: CellNaming = NAMINGS[0],
    scope: str = "lm/",
    words: int | None = None,
) -> list[DatasetMapping]:
    """Return the tensors of a checkpoint with the names of our arrays.

    Args:
        config: The architecture.
        naming: The names that the version of TensorFlow uses.
        scope: What all names begin with.
        words: Number of words of the softmax; None if there is no softmax.
    """
    layers = config.lstm.layers
    renamed = {}
    for side in range(2):
        for layer in range(layers):
            published = PUBLISHED_NAMING.many.format(side=side, layer=layer)
            cell = naming.cell(side, layer, layers)
            for old, new in zip(PUBLISHED_NAMING[2:], naming[2:], strict=True):
                renamed[f"{published}/{old}"] = f"{cell}/{new}"
    table = [
        entry._replace(name=scope + renamed.get(entry.name, entry.name))
        for entry in allennlp.hdf5_layout(config)
    ]
    if words is not None:
        table.append(DatasetMapping(f"{scope}softmax/W", SOFTMAX[:1], (words, config.lstm.width)))
        table.append(DatasetMapping(f"{scope}softmax/b", SOFTMAX[1:], (words,)))
    return table


def read(source: ModelSource, chosen: str = "") -> BiLM:
    """Read a training directory.

    Args:
        source: The directory or archive.
        chosen: Name of one file of the checkpoint to read; by default the newest checkpoint.
    """
    options = source.read_json(_options_name(source))
    bundle = TensorBundle(source, choose_checkpoint(source, chosen))
    scope = find_scope(bundle, options)
    naming = find_naming(bundle, scope)
    config = _config(options, bundle, scope, naming)
    words = _rows(bundle, f"{scope}softmax/W")
    table = checkpoint_layout(config, naming, scope, words)
    check_rest(bundle, scope, table)
    shapes = expected_shapes(config)
    weights: dict[str, AnyArray] = {}
    for entry in table:
        weights |= take_arrays(entry, shapes, bundle)
    return BiLM(config, StoredArrays(weights), _vocabulary(source, words))


# -- the checkpoint ----------------------------------------------------------------------------


def choose_checkpoint(source: ModelSource, chosen: str = "") -> str:
    """Return the name of the checkpoint to read, without its ending.

    That is the one that `chosen` belongs to, else the one that the file `checkpoint` names, else
    the one with the highest step.
    """
    prefixes = [name[: -len(INDEX)] for name in source.names if name.endswith(INDEX)]
    if not prefixes:
        raise ModelNotFound(
            f"{source.path} has no checkpoint: it holds {list_names(source.names)}; expected "
            "model.ckpt-N.index with its data files"
        )
    if chosen and chosen != STATE_FILE:
        prefix = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", chosen)
        if prefix in prefixes:
            return prefix
        if chosen not in source.names or prefix != chosen:
            raise ModelNotFound(
                f"{source.path} has no {prefix}{INDEX}; found {list_names(prefixes)}"
            )
    named = _named(source)
    if named in prefixes:
        return named
    if named and len(prefixes) > 1:
        raise ModelNotFound(
            f"{source.describe(STATE_FILE)} names {named!r}, which does not exist; found "
            f"{list_names(prefixes)}. Give the path of the .index file of the one you want"
        )
    return max(prefixes, key=_step)


def _named(source: ModelSource) -> str:
    """Return the checkpoint that the file `checkpoint` names, without its directory."""
    if STATE_FILE not in source.names:
        return ""
    text = source.read(STATE_FILE)[: 1 << 16].decode("utf-8", "replace")
    found = re.search(r'^\s*model_checkpoint_path\s*:\s*"((?:[^"\\\n]|\\.)*)"', text, re.MULTILINE)
    return re.split(r"[/\\]+", found[1])[-1] if found else ""


def _step(prefix: str) -> tuple[int, str]:
    found = re.search(r"-(\d{1,18})$", prefix)
    return (int(found[1]) if found else -1), prefix


def _options_name(source: ModelSource) -> str:
    names = [name for name in source.names if name.endswith("options.json")]
    if "options.json" in names or not names:
        return "options.json"
    if len(names) > 1:
        raise FormatError(f"{source.path} holds {list_names(names)}; expected one options.json")
    return names[0]


# -- the architecture --------------------------------------------------------------------------


def find_scope(bundle: TensorBundle, options: Mapping[str, Any]) -> str:
    """Return what all names of the model begin with; "lm/" in bilm-tf."""
    scopes = [
        name.removesuffix(CHARACTER_TABLE)
        for name in bundle.names
        if name == CHARACTER_TABLE or name.endswith("/" + CHARACTER_TABLE)
    ]
    if len(scopes) == 1:
        return scopes[0]
    if not scopes and "char_cnn" not in options and any("softmax" in n for n in bundle.names):
        raise FormatError(
            f"{bundle.where} is a language model that reads word ids (its options.json has no "
            "char_cnn); expected a model that reads characters"
        )
    raise FormatError(
        f"{bundle.where} is not a biLM: it has {len(scopes)} tensors named {CHARACTER_TABLE}, "
        f"expected one (lm/{CHARACTER_TABLE}); its tensors are {list_names(bundle.names)}"
    )


def find_naming(bundle: TensorBundle, scope: str) -> CellNaming:
    """Return the names that the version of TensorFlow gave to the cells."""
    for naming in NAMINGS:
        for layers in (1, 2):
            if f"{scope}{naming.cell(0, 0, layers)}/{naming.kernel}" in bundle:
                return naming
    raise FormatError(
        f"{bundle.where} is not a biLM: expected {scope}{NAMINGS[0].cell(0, 0, 2)}/kernel; its "
        f"tensors are {list_names(bundle.names)}"
    )


def _config(
    options: Mapping[str, Any], bundle: TensorBundle, scope: str, naming: CellNaming
) -> BiLMConfig:
    """Return the architecture, from options.json and from what only the tensors show."""
    rows = _rows(bundle, scope + CHARACTER_TABLE)
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


def _rows(bundle: TensorBundle, name: str) -> int | None:
    shape = bundle.shape(name) if name in bundle else ()
    return shape[0] if shape else None


def check_rest(bundle: TensorBundle, scope: str, table: list[DatasetMapping]) -> None:
    """Raise `FormatError` if a part of a network is not in the table; optimizer state is ignored.

    Optimizer state has the name of its variable as a prefix: lm/char_embed/Adagrad.
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
            f"{bundle.where} has {list_names(rest)}, which do not belong to the network in "
            "options.json; do the two files belong together?"
        )


def take_arrays(
    entry: DatasetMapping,
    shapes: Mapping[str, tuple[int, ...]],
    bundle: TensorBundle,
    skip: int = 0,
) -> dict[str, AnyArray]:
    """Return the arrays that a tensor consists of, by our names.

    Args:
        entry: The tensor, and what it becomes.
        shapes: The shapes of our arrays, of all but the softmax, which is never divided.
        bundle: The checkpoint.
        skip: Number of first rows to leave out.
    """
    if entry.name not in bundle:
        raise FormatError(
            f"{bundle.where} has no tensor {entry.name}, which options.json requires; do the two "
            "files belong together?"
        )
    shape = bundle.shape(entry.name)
    if skip and shape:
        shape = (shape[0] - skip, *shape[1:])
    if shape != entry.shape:
        raise FormatError(
            f"{bundle.where}: {entry.name} has the shape {shape}; options.json requires "
            f"{entry.shape}"
        )
    parts = {name: shapes.get(name, entry.shape) for name in entry.ours}
    tensor = bundle.tensor(entry.name)
    if skip:
        rows = entry.shape[0] + skip
        tensor = tensor.rows(skip, rows) if isinstance(tensor, StoredArray) else tensor[skip:rows]
    return divide(tensor, parts)


def _vocabulary(source: ModelSource, words: int | None) -> Vocabulary | None:
    """Return the content of vocab.txt, unless its length does not match the softmax."""
    name = next((name for name in VOCABULARIES if name in source.names), None)
    if name is None:
        return None
    where = source.describe(name)
    data = source.read(name)
    vocabulary = Vocabulary.parse(_unzipped(data, where) if name.endswith(".gz") else data, where)
    if words is None or words == len(vocabulary):
        return vocabulary
    warnings.warn(
        f"{where} is not used: it has {len(vocabulary)} words, the softmax has {words}. Replace it "
        "by the vocabulary that the model was trained with",
        RuntimeWarning,
        stacklevel=3,
    )
    return None


def _unzipped(data: bytes, where: str) -> bytes:
    limit = SMALL_VOCABULARY + LARGEST_RATIO * len(data)
    try:
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{where} cannot be unpacked: {error}") from None
    if len(text) > limit:
        raise FormatError(
            f"{where} unpacks from {len(data):,} bytes to more than {limit:,}; is it a vocabulary?"
        )
    return text
