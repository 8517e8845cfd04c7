"""Reading ELMoForManyLangs directories: config.json, cnn_*.json, char.dic, word.dic and two .pkl.

The network differs from ELMo in three ways, which only this module has to know:

- A character is a code point of char.dic, and the words of word.dic have an embedding of their own
  in addition to their characters.
- The gates are in the order i, f, j, o, and the 1.0 that we add to the forget gate at run time is
  part of its bias. It is subtracted here, which is exact for a bias between ½ and 2 (training
  starts at 1), and otherwise changes it by 1e-7 or less.
- The gate of a highway says how much of the input is kept, ours how much is new: the sign changes.

The .pkl files are read without PyTorch and without running anything in them: see `torch_file.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LexiconConfig, LSTMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import DIRECTIONS, FloatArray
from elmokit.errors import ConfigError, FormatError
from elmokit.formats.source import ModelSource
from elmokit.formats.torch_file import read_tensors
from elmokit.text.characters import ALPHABET_MARKS, NAMED_UNKNOWN
from elmokit.text.dictionary import Dictionary

SETTINGS, ALPHABET, LEXICON = "config.json", "char.dic", "word.dic"
TOKEN_EMBEDDER, ENCODER = "token_embedder.pkl", "encoder.pkl"

PUBLISHED_ARCHITECTURE: Mapping[str, Any] = {
    "encoder": {
        "name": "elmo",
        "projection_dim": 512,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 4096,
        "n_layers": 2,
    },
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}
"""The architecture of all published models of ELMoForManyLangs."""
PUBLISHED_FILES = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
"""Files that most published models name but do not include; both have the content above."""

UNNAMED = "\u3000"
"""Replaces an entry of white space only, which is lost when a line is stripped."""


def read(source: ModelSource) -> BiLM:
    """Read an ELMoForManyLangs directory, or the same files in a zip archive."""
    settings = source.read_json(SETTINGS)
    architecture, where = _architecture(source, settings)
    alphabet = _Table(source, ALPHABET, ALPHABET_MARKS) if architecture.char_dim else None
    lexicon = _Table(source, LEXICON, (NAMED_UNKNOWN,)) if architecture.word_dim else None
    plain = {k: v for k, v in settings.items() if v is None or isinstance(v, (str, int, float))}
    try:
        config = architecture.config(alphabet, lexicon, {"many_langs": plain})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    weights = _word_weights(source, config, architecture, alphabet, lexicon)
    weights |= _lstm_weights(source, config)
    return BiLM(
        config,
        weights,
        alphabet=Dictionary(ALPHABET_MARKS) if alphabet is None else alphabet.entries,
        lexicon=None if lexicon is None else lexicon.entries,
    )


# -- config.json and the file it names ------------------------------------------------------------


def _architecture(source: ModelSource, settings: dict[str, Any]) -> tuple[_Architecture, str]:
    """Return the content of the file that config.json names, and its name for messages."""
    path = settings.get("config_path")
    if not isinstance(path, str):
        raise ConfigError(
            f"{source.describe(SETTINGS)}: config_path is {path!r}; expected the name of the file "
            f"that describes the network, such as {PUBLISHED_FILES[0]!r}"
        )
    name = re.split(r"[/\\]", path)[-1]  # often a path on the machine that trained the model
    if name in source.names:
        where = source.describe(name)
        return _Architecture(source.read_json(name), where), where
    if name in PUBLISHED_FILES:
        return _Architecture(PUBLISHED_ARCHITECTURE, name), name
    raise FormatError(
        f"{source.path} has no {name}, which its config.json names (config_path is {path!r}); "
        "copy it there from where the model was trained"
    )


class _Architecture:
    """The content of cnn_*.json, with checks."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._where = where
        self._data = data
        for section, known in (("token_embedder", "cnn"), ("encoder", "elmo")):
            name = self._get(section, "name")
            if not isinstance(name, str) or name.lower() != known:
                raise ConfigError(
                    f"{where}: {section}.name is {name!r}; expected {known!r}, as an ELMo has"
                )
        self.char_dim = self._dim("char_dim")
        self.word_dim = self._dim("word_dim")
        if not self.char_dim and not self.word_dim:
            raise ConfigError(
                f"{where}: char_dim and word_dim are both 0; at least one must be positive"
            )

    def _get(self, section: str, key: str) -> Any:
        settings = self._data.get(section)
        if not isinstance(settings, Mapping) or key not in settings:
            raise ConfigError(f"{self._where}: {section}.{key} is missing")
        return settings[key]

    def _dim(self, key: str) -> int:
        value = self._get("token_embedder", key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(f"{self._where}: {key} is {value!r}; expected a whole number")
        return value

    def config(
        self, alphabet: _Table | None, lexicon: _Table | None, extra: Mapping[str, Any]
    ) -> BiLMConfig:
        """Return the architecture as elmokit describes it."""
        longest = self._get("token_embedder", "max_characters_per_token")
        if alphabet is None:
            # A model of words only: characters without influence, through one filter of zeros.
            cnn = CharCNNConfig(
                filters=((1, 1),),
                embedding_dim=1,
                characters=len(ALPHABET_MARKS),
                max_characters=longest,
                scheme="code_points",
            )
        else:
            cnn = CharCNNConfig(
                filters=self._get("token_embedder", "filters"),
                embedding_dim=self.char_dim,
                activation=self._get("token_embedder", "activation"),
                highways=self._get("token_embedder", "n_highway"),
                characters=len(alphabet.entries),
                max_characters=longest,
                scheme="code_points",
            )
        lstm = LSTMConfig(
            cells=self._get("encoder", "dim"),
            width=self._get("encoder", "projection_dim"),
            layers=self._get("encoder", "n_layers"),
            cell_clip=self._get("encoder", "cell_clip"),
            projection_clip=self._get("encoder", "proj_clip"),
        )
        words = None
        if lexicon is not None:
            words = LexiconConfig(entries=len(lexicon.entries), dim=self.word_dim)
        return BiLMConfig(char_cnn=cnn, lstm=lstm, words=words, extra=extra)


# -- char.dic and word.dic ------------------------------------------------------------------------


class _Table:
    """The entries of a .dic file, and the rows of the embedding that they refer to."""

    def __init__(self, source: ModelSource, name: str, needed: tuple[str, ...]) -> None:
        self.where = source.describe(name)
        rows = _parse_dic(source.read(name), self.where)
        missing = [mark for mark in needed if mark not in rows]
        if missing:
            raise FormatError(
                f"{self.where} lacks {', '.join(missing)}; expected all of {', '.join(needed)}"
            )
        self.entries = Dictionary(rows)
        self._rows = list(rows.values())

    def pick(self, tensors: _Tensors, name: str, dim: int) -> FloatArray:
        """Return the embedding, with one row per entry."""
        shape, last = tensors.shape(name), max(self._rows)
        rows = shape[0] if shape else 0
        # The original expects one row per entry. But where entries became equal by stripping white
        # space, there are more rows, and the last number still shows that the files match.
        # More entries than rows would take more memory than the file has.
        if last >= rows or len(self.entries) > rows or rows not in (len(self.entries), last + 1):
            raise FormatError(
                f"{self.where} has {len(self.entries)} entries with numbers up to {last}, but "
                f"{name} in {tensors.where} has the shape {shape}; the files do not belong together"
            )
        return tensors.take(name, rows, dim)[self._rows]


def _parse_dic(data: bytes, where: str) -> dict[str, int]:
    """Parse lines of an entry, a tab and the number of a row, as the original reads them.

    A line may end with any Unicode line break; white space around it is not part of the entry; of
    equal entries the last counts.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line_number = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{where}, line {line_number}: not UTF-8; expected UTF-8 text") from None
    rows: dict[str, int] = {}
    for i, line in enumerate(text.splitlines(), 1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        entry, number = (UNNAMED, fields[0]) if len(fields) == 1 else (fields[0], fields[-1])
        if len(fields) > 2 or len(number) > 9 or not re.fullmatch(r"\s*[0-9]+\s*", number):
            raise FormatError(
                f"{where}, line {i}: found {line[:60]!r}; expected an entry, a tab and a number"
            )
        rows[entry] = int(number)
    return rows


# -- token_embedder.pkl and encoder.pkl -----------------------------------------------------------


def _word_weights(
    source: ModelSource,
    config: BiLMConfig,
    architecture: _Architecture,
    alphabet: _Table | None,
    lexicon: _Table | None,
) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of everything below the LSTMs."""
    tensors = _Tensors(source, TOKEN_EMBEDDER)
    cnn, width = config.char_cnn, config.lstm.width
    weights: dict[str, npt.NDArray[Any]] = {}
    if alphabet is None:
        weights["characters.embedding"] = np.zeros((cnn.characters, 1), np.float32)
        weights["characters.convolution.0.weight"] = np.zeros((1, 1, 1), np.float32)
        weights["characters.convolution.0.bias"] = np.zeros(1, np.float32)
        filters = 0
    else:
        name = "char_emb_layer.embedding.weight"
        weights["characters.embedding"] = alphabet.pick(tensors, name, cnn.embedding_dim)
        for i, (span, count) in enumerate(cnn.filters):
            ours = f"characters.convolution.{i}"
            kernel = tensors.take(f"convolutions.{i}.weight", count, cnn.embedding_dim, span)
            weights[f"{ours}.weight"] = kernel.transpose(2, 1, 0)
            weights[f"{ours}.bias"] = tensors.take(f"convolutions.{i}.bias", count)
        filters = cnn.n_filters
        for k in range(cnn.highways):
            matrix = tensors.take(f"highways._layers.{k}.weight", 2 * filters, filters).T
            bias = tensors.take(f"highways._layers.{k}.bias", 2 * filters)
            ours = f"characters.highway.{k}"
            weights[f"{ours}.transform.weight"] = matrix[:, :filters]
            weights[f"{ours}.transform.bias"] = bias[:filters]
            weights[f"{ours}.carry.weight"] = -matrix[:, filters:]
            weights[f"{ours}.carry.bias"] = -bias[filters:]
    words = architecture.word_dim
    if lexicon is not None:
        name = "word_emb_layer.embedding.weight"
        weights["words.embedding"] = lexicon.pick(tensors, name, words)
    # One matrix for both: the word first, then its characters.
    projection = tensors.take("projection.weight", width, words + filters).T
    if lexicon is not None:
        weights["words.projection"] = projection[:words]
    weights["characters.projection.weight"] = (
        projection[words:] if filters else np.zeros((1, width), np.float32)
    )
    weights["characters.projection.bias"] = tensors.take("projection.bias", width)
    tensors.finish()
    return weights


def _lstm_weights(source: ModelSource, config: BiLMConfig) -> dict[str, npt.NDArray[Any]]:
    """Return the weights of the LSTMs."""
    tensors = _Tensors(source, ENCODER)
    cells, width = config.lstm.cells, config.lstm.width
    weights: dict[str, npt.NDArray[Any]] = {}
    for direction in DIRECTIONS:
        for layer in range(config.lstm.layers):
            theirs, ours = f"{direction}_layer_{layer}", f"{direction}.{layer}"
            for name, part in (("input", "input_linearity"), ("recurrent", "state_linearity")):
                matrix = tensors.take(f"{theirs}.{part}.weight", 4 * cells, width)
                weights[f"{ours}.{name}.weight"] = _reorder_gates(matrix).T
            bias = _reorder_gates(tensors.take(f"{theirs}.state_linearity.bias", 4 * cells))
            bias[2 * cells : 3 * cells] -= np.float32(1)
            weights[f"{ours}.bias"] = bias
            projection = tensors.take(f"{theirs}.state_projection.weight", width, cells)
            weights[f"{ours}.projection.weight"] = projection.T
    tensors.finish()
    return weights


def _reorder_gates(theirs: FloatArray) -> FloatArray:
    """Return a copy with the gates in the order i, j, f, o instead of i, f, j, o."""
    i, f, j, o = np.split(theirs, 4)
    return np.concatenate([i, j, f, o])


class _Tensors:
    """The tensors of a .pkl file, which are taken out one by one."""

    def __init__(self, source: ModelSource, name: str) -> None:
        self.where = source.describe(name)
        self._tensors = _load(source, name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor; raise `FormatError` if there is none of this name."""
        if name not in self._tensors:
            raise FormatError(
                f"{self.where} has no tensor {name}, which the configuration of the model "
                "requires; do the files belong together?"
            )
        return tuple(self._tensors[name].shape)

    def take(self, name: str, *shape: int) -> FloatArray:
        """Return a tensor as a float32 array, after checking its shape."""
        actual = self.shape(name)
        if actual != shape:
            raise FormatError(
                f"{self.where}: {name} has the shape {actual}; the configuration requires {shape}"
            )
        with np.errstate(over="ignore"):  # what is too large is reported with all else
            array: FloatArray = self._tensors.pop(name).astype(np.float32, copy=False)
        return array

    def finish(self) -> None:
        """Raise `FormatError` if a tensor was not taken, since it belongs to another network."""
        if self._tensors:
            more = f" and {len(self._tensors) - 3} more" if len(self._tensors) > 3 else ""
            raise FormatError(
                f"{self.where} also holds {', '.join(map(str, list(self._tensors)[:3]))}{more}, "
                "which do not belong to the configuration of the model; do the files belong "
                "together?"
            )


def _load(source: ModelSource, name: str) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of a .pkl file by name."""
    where = source.describe(name)
    if name not in source.names:
        raise FormatError(f"{source.path} has no {name}, so the model is incomplete; copy it again")
    with source.open(name) as file:
        tensors = read_tensors(file, where)
    for key, tensor in tensors.items():
        if tensor.dtype.kind != "f":
            raise FormatError(f"{where}: {key} is not a dense tensor of floating-point numbers")
    return tensors
