"""Directories of ELMoForManyLangs: config.json, cnn_*.json, char.dic, word.dic and two .pkl, read.

Its network is ELMo's with three differences, and each is undone or kept here, so that nobody else
has to know them:

- a character is a code point of char.dic, and words of word.dic have an embedding of their own
  beside their characters;
- its gates stand in the order i, f, j, o, and the 1.0 that we add to the forget gate at run time is
  part of its bias: taken off here, which is exact for a bias between ½ and 2 (training starts it
  at 1), and else moves it by 1e-7 or less;
- the gate of its highways says how much of the input stays, ours how much is new: the sign changes.

The .pkl files are read by torch with `weights_only`, which runs no code; nothing else needs torch,
and a converted model does not.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import LSTM, BiLMConfig, CharCNN, Words
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import DIRECTIONS, FloatArray
from elmokit.errors import ConfigError, FormatError, MissingExtra
from elmokit.formats.source import Source
from elmokit.text.characters import ALPHABET_MARKS, NAMED_UNKNOWN
from elmokit.text.dictionary import Dictionary

SETTINGS, ALPHABET, LEXICON = "config.json", "char.dic", "word.dic"
TOKEN_EMBEDDER, ENCODER = "token_embedder.pkl", "encoder.pkl"

PUBLISHED: Mapping[str, Any] = {
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
"""The architecture of all published models."""
PUBLISHED_NAMES = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
"""Files that most published models name and do not hold; the package has this content for both."""

UNNAMED = "\u3000"
"""What an entry means that is nothing but white space, which reading strips off."""


def read(source: Source) -> BiLM:
    """Read a directory, or the same files in a zip archive."""
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


def _architecture(source: Source, settings: dict[str, Any]) -> tuple[_Architecture, str]:
    """The second file, looked for in this place alone, and what to call it in messages."""
    path = settings.get("config_path")
    if not isinstance(path, str):
        raise ConfigError(
            f"{source.describe(SETTINGS)}: config_path is {path!r}; expected the name of the file "
            f"that describes the network, such as {PUBLISHED_NAMES[0]}"
        )
    name = re.split(r"[/\\]", path)[-1]  # a path of the machine that trained the model, often
    if name in source.names:
        where = source.describe(name)
        return _Architecture(source.read_json(name), where), where
    if name in PUBLISHED_NAMES:
        return _Architecture(PUBLISHED, name), name
    raise FormatError(
        f"{source.path} has no {name}, which its config.json names (config_path is {path!r}). "
        "Copy it there from where the model was trained"
    )


class _Architecture:
    """The content of cnn_*.json, its names checked."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._where = where
        self._data = data
        for section, known in (("token_embedder", "cnn"), ("encoder", "elmo")):
            name = self._get(section, "name")
            if not isinstance(name, str) or name.lower() != known:
                raise ConfigError(
                    f"{where}: {section}.name is {name!r}; only {known!r} makes an ELMo"
                )
        self.char_dim = self._dim("char_dim")
        self.word_dim = self._dim("word_dim")
        if not self.char_dim and not self.word_dim:
            raise ConfigError(f"{where}: char_dim and word_dim are both 0; expected one at least")

    def _get(self, section: str, key: str) -> Any:
        there = self._data.get(section)
        if not isinstance(there, Mapping) or key not in there:
            raise ConfigError(f"{self._where}: {section}.{key} is missing")
        return there[key]

    def _dim(self, key: str) -> int:
        value = self._get("token_embedder", key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(f"{self._where}: {key} is {value!r}; expected a whole number")
        return value

    def config(
        self, alphabet: _Table | None, lexicon: _Table | None, extra: Mapping[str, Any]
    ) -> BiLMConfig:
        """Our form of it."""
        longest = self._get("token_embedder", "max_characters_per_token")
        if alphabet is None:
            # A model of words alone: characters that say nothing, through one filter of zeros.
            cnn = CharCNN(
                filters=((1, 1),),
                embedding_dim=1,
                characters=len(ALPHABET_MARKS),
                max_characters=longest,
                scheme="code_points",
            )
        else:
            cnn = CharCNN(
                filters=self._get("token_embedder", "filters"),
                embedding_dim=self.char_dim,
                activation=self._get("token_embedder", "activation"),
                highways=self._get("token_embedder", "n_highway"),
                characters=len(alphabet.entries),
                max_characters=longest,
                scheme="code_points",
            )
        lstm = LSTM(
            cells=self._get("encoder", "dim"),
            width=self._get("encoder", "projection_dim"),
            layers=self._get("encoder", "n_layers"),
            cell_clip=self._get("encoder", "cell_clip"),
            projection_clip=self._get("encoder", "proj_clip"),
        )
        words = None
        if lexicon is not None:
            words = Words(entries=len(lexicon.entries), dim=self.word_dim)
        return BiLMConfig(char_cnn=cnn, lstm=lstm, words=words, extra=extra)


# -- char.dic and word.dic ------------------------------------------------------------------------


class _Table:
    """The entries of a .dic file with the rows of the embedding that they name."""

    def __init__(self, source: Source, name: str, needed: tuple[str, ...]) -> None:
        self.where = source.describe(name)
        numbers = _parse_dic(source.read(name), self.where)
        missing = [mark for mark in needed if mark not in numbers]
        if missing:
            raise FormatError(
                f"{self.where} lacks {', '.join(missing)}; expected all of {', '.join(needed)}"
            )
        self.entries = Dictionary(numbers)
        self._rows = list(numbers.values())

    def pick(self, tensors: _Tensors, name: str, dim: int) -> FloatArray:
        """The embedding, a row an entry."""
        found, last = tensors.shape(name), max(self._rows)
        rows = found[0] if found else 0
        # The original wants a row an entry. But where entries became equal by what reading strips
        # off, rows are left over, and the numbers still say that the files belong together.
        if last >= rows or rows not in (len(self.entries), last + 1):
            raise FormatError(
                f"{self.where} has {len(self.entries)} entries, the last of number {last}, but "
                f"{name} in {tensors.where} has the shape {found}; they do not belong together"
            )
        return tensors.take(name, rows, dim)[self._rows]


def _parse_dic(data: bytes, where: str) -> dict[str, int]:
    """Lines of entry, tab, number, read as the original reads them.

    A line may end with any line break of Unicode; white space around it is no part of the entry;
    of equal entries the last counts. The numbers are those of rows, not of lines.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        broken = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{where}, line {broken}: not UTF-8; expected UTF-8 text") from None
    numbers: dict[str, int] = {}
    for i, line in enumerate(text.splitlines(), 1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        entry, number = (UNNAMED, fields[0]) if len(fields) == 1 else (fields[0], fields[-1])
        if len(fields) > 2 or len(number) > 9 or not re.fullmatch(r"\s*[0-9]+\s*", number):
            raise FormatError(
                f"{where}, line {i}: found {line[:60]!r}; expected an entry, a tab and a number"
            )
        numbers[entry] = int(number)
    return numbers


# -- token_embedder.pkl and encoder.pkl -----------------------------------------------------------


def _word_weights(
    source: Source,
    config: BiLMConfig,
    architecture: _Architecture,
    alphabet: _Table | None,
    lexicon: _Table | None,
) -> dict[str, npt.NDArray[Any]]:
    """Everything below the LSTMs."""
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
    # One matrix for both, the word first.
    projection = tensors.take("projection.weight", width, words + filters).T
    if lexicon is not None:
        weights["words.projection"] = projection[:words]
    weights["characters.projection.weight"] = (
        projection[words:] if filters else np.zeros((1, width), np.float32)
    )
    weights["characters.projection.bias"] = tensors.take("projection.bias", width)
    tensors.finish()
    return weights


def _lstm_weights(source: Source, config: BiLMConfig) -> dict[str, npt.NDArray[Any]]:
    """The LSTMs."""
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
    """From i, f, j, o to i, j, f, o, one above the other; always a copy."""
    i, f, j, o = np.split(theirs, 4)
    return np.concatenate([i, j, f, o])


class _Tensors:
    """The tensors of a .pkl file, to be taken one by one."""

    def __init__(self, source: Source, name: str) -> None:
        self.where = source.describe(name)
        self._tensors = _load(source, name)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, or a `FormatError` if there is none of this name."""
        if name not in self._tensors:
            raise FormatError(
                f"{self.where} has no {name}, which the model's configuration asks for; "
                "do the files belong together?"
            )
        return tuple(self._tensors[name].shape)

    def take(self, name: str, *shape: int) -> FloatArray:
        """A tensor as an array of single precision, as the original computes."""
        found = self.shape(name)
        if found != shape:
            raise FormatError(
                f"{self.where}: {name} has the shape {found}; the configuration asks for {shape}"
            )
        import torch

        array: FloatArray = self._tensors.pop(name).detach().to(torch.float32).numpy()
        return array

    def finish(self) -> None:
        """Refuse tensors that nobody asked for: they would be part of another network."""
        if self._tensors:
            more = f" and {len(self._tensors) - 3} more" if len(self._tensors) > 3 else ""
            raise FormatError(
                f"{self.where} also holds {', '.join(map(str, list(self._tensors)[:3]))}{more}, "
                "which the model's configuration has no place for; do the files belong together?"
            )


def _load(source: Source, name: str) -> dict[str, Any]:
    """The tensors of a .pkl file, by name. No code in it runs."""
    where = source.describe(name)
    if name not in source.names:
        raise FormatError(f"{source.path} has no {name}; the model is incomplete")
    try:
        import torch
    except ImportError as error:
        raise MissingExtra(
            f"{where} is a file of PyTorch, and reading it needs torch ({error}): "
            "pip install 'elmokit[train]'. Once converted (elmo convert IN OUT) a model does not"
        ) from None
    with source.open(name) as file:
        try:
            _check_archive(file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of torch about its own old formats
                found = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # damage can raise anything in there
            raise FormatError(f"{where} {_reason(error)}") from None
        size = file.seek(0, 2)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise FormatError(f"{where} holds no tensors by name; expected the state of a network")
    for key, tensor in found.items():
        plain = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
        if not plain or tensor.device.type != "cpu" or not tensor.is_floating_point():
            raise FormatError(f"{where}: {key} is no plain tensor of floating-point numbers")
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in found.values())
    if claimed > size:  # the same number again and again, to fill the memory
        raise FormatError(f"{where} has {size:,} bytes, but its tensors claim {claimed:,}")
    return dict(found)


def _check_archive(file: BinaryIO) -> None:
    """Newer files are zip archives, never packed, and have checksums, which torch passes over."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("its parts are packed, which PyTorch never does")
            if archive.testzip() is not None:
                raise ValueError("a checksum is wrong")
    file.seek(0)


def _reason(error: Exception) -> str:
    """Why a file was not read, without torch's advice to read it unsafely."""
    said = str(error).strip()
    forbidden = re.search(r"GLOBAL (\S+)", said)
    if forbidden:
        return f"asks to run {forbidden[1]}; expected tensors only, and nothing in it was run"
    inner = re.search(r"WeightsUnpickler error:\s*(.+)", said)
    said = (inner[1] if inner else said).partition("\n")[0][:200]
    return f"is damaged, or no file of PyTorch: {type(error).__name__}: {said}"
