"""The architecture of a biLM, as validated dataclasses.

`BiLMConfig.from_options` and `to_options` read and write the `options.json` of bilm-tf and
AllenNLP; `from_dict` and `to_dict` the simpler `config.json` of elmokit. Keys that are not part of
the architecture (the authors' training settings, for example) are kept in `extra` and written back.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from elmokit.errors import ConfigError
from elmokit.text.characters import ALPHABET_MARKS, BYTE_CHARACTERS

Activation = Literal["relu", "tanh"]
CharacterScheme = Literal["bytes", "code_points"]

MAX_SIZE = 1 << 20
"""Upper bound on every dimension; no real model comes near it, a larger one is a damaged file."""
MAX_LAYERS = 1000
"""Upper bound on the number of layers, highways and widths of filters: each has arrays."""
MAX_ALPHABET = 1 << 15
"""Upper bound on the number of characters; their ids are signed 16-bit integers."""
MIN_CODE_POINTS = 7
"""Characters of `<bos>` and `<eos>` with the marks of a word, as ELMoForManyLangs counts them."""


@dataclass(frozen=True, kw_only=True)
class CharCNNConfig:
    """Options of the character CNN, which computes the context-free vector of a word."""

    filters: tuple[tuple[int, int], ...]
    """Pairs of (width in characters, number of filters of that width)."""
    embedding_dim: int = 16
    """Size of a character embedding."""
    activation: Activation = "relu"
    """Activation function after max-pooling."""
    highways: int = 0
    """Number of highway layers."""
    projection: bool = True
    """Whether a linear projection to the LSTM's width follows the highway layers."""
    characters: int = BYTE_CHARACTERS
    """Number of rows of the character embedding."""
    max_characters: int = 50
    """Characters per word, including its two marks; longer words are truncated."""
    scheme: CharacterScheme = "bytes"
    """What a character is: a UTF-8 byte, or a code point of the model's alphabet."""

    @property
    def n_filters(self) -> int:
        """Total number of filters, which is also the width of the highway layers."""
        return sum(count for _, count in self.filters)

    def __post_init__(self) -> None:
        """Raise `ConfigError` for invalid options."""
        object.__setattr__(self, "filters", _filters(self.filters))
        _size("char_cnn.embedding_dim", self.embedding_dim)
        _size("char_cnn.highways", self.highways, 0, MAX_LAYERS)
        if self.scheme not in get_args(CharacterScheme):
            raise ConfigError(
                f"char_cnn.scheme is {self.scheme!r}; expected 'bytes' or 'code_points'"
            )
        if self.scheme == "bytes":
            _size("char_cnn.characters", self.characters, minimum=BYTE_CHARACTERS)
            _size("char_cnn.max_characters", self.max_characters, minimum=3)
        else:
            _size("char_cnn.characters", self.characters, len(ALPHABET_MARKS), MAX_ALPHABET)
            _size("char_cnn.max_characters", self.max_characters, minimum=MIN_CODE_POINTS)
        _flag("char_cnn.projection", self.projection)
        if self.activation not in get_args(Activation):
            raise ConfigError(
                f"char_cnn.activation is {self.activation!r}; expected 'relu' or 'tanh'"
            )
        widest = max(width for width, _ in self.filters)
        if widest > self.max_characters:
            raise ConfigError(
                f"char_cnn.filters has a filter {widest} characters wide, but a word has at most "
                f"{self.max_characters} (max_characters_per_token)"
            )


@dataclass(frozen=True, kw_only=True)
class LSTMConfig:
    """Options of the LSTM stacks; the forward and the backward stack have the same ones."""

    cells: int
    """Number of cells H of a layer; `dim` in options.json."""
    width: int
    """Size P of a layer's input and output; `projection_dim` in options.json."""
    layers: int = 2
    """Number of layers L."""
    projection: bool = True
    """Whether each layer projects its H cells to the width P; without it H equals P."""
    skip: bool = True
    """Whether every layer but the first adds its input to its output."""
    cell_clip: float | None = 3
    """Bound on the absolute value of the cells; None for no clipping."""
    projection_clip: float | None = 3
    """Bound on the absolute value of the projected output; None for no clipping."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for invalid options."""
        _size("lstm.cells", self.cells)
        _size("lstm.width", self.width)
        _size("lstm.layers", self.layers, maximum=MAX_LAYERS)
        _flag("lstm.projection", self.projection)
        _flag("lstm.skip", self.skip)
        object.__setattr__(self, "cell_clip", _clip("lstm.cell_clip", self.cell_clip))
        object.__setattr__(self, "projection_clip", _clip("lstm.proj_clip", self.projection_clip))
        if not self.projection and self.cells != self.width:
            raise ConfigError(
                f"an LSTM without projection needs lstm.dim equal to lstm.projection_dim, but they "
                f"are {self.cells} and {self.width}"
            )


@dataclass(frozen=True, kw_only=True)
class LexiconConfig:
    """Options of the embeddings of whole words that ELMoForManyLangs models have."""

    entries: int
    """Number of known words: rows of the word embedding."""
    dim: int
    """Size E of a word embedding, which is concatenated with the filters before the projection."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for invalid options."""
        _size("words.entries", self.entries)
        _size("words.dim", self.dim)


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """The architecture of a biLM: character CNN and LSTMs."""

    char_cnn: CharCNNConfig
    """Options of the character CNN."""
    lstm: LSTMConfig
    """Options of the LSTM stacks."""
    words: LexiconConfig | None = None
    """Options of the word embeddings; None for models that read characters only."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """All other keys of options.json, nested as they were; written back."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for contradictory options."""
        if not self.char_cnn.projection and self.char_cnn.n_filters != self.lstm.width:
            raise ConfigError(
                f"without a projection after the highway layers the filters are the word vector, "
                f"so their number must equal lstm.projection_dim; there are "
                f"{self.char_cnn.n_filters} filters, and lstm.projection_dim is {self.lstm.width}"
            )
        if self.words is not None and not self.char_cnn.projection:
            raise ConfigError(
                "a model with word embeddings needs a projection after the highway layers"
            )
        if self.words is not None and self.char_cnn.scheme == "bytes":
            raise ConfigError("a model with word embeddings reads code points, not bytes")
        _check_extra(self.extra)

    @property
    def dim(self) -> int:
        """Size D of a contextual vector: both directions concatenated."""
        return 2 * self.lstm.width

    @property
    def layers(self) -> int:
        """Number of layers L + 1: the word vectors and the LSTM layers."""
        return self.lstm.layers + 1

    # -- options.json of bilm-tf and AllenNLP --------------------------------------------------

    @classmethod
    def from_options(
        cls,
        options: Mapping[str, Any],
        *,
        cnn_projection: bool | None = None,
        lstm_projection: bool | None = None,
        characters: int | None = None,
    ) -> BiLMConfig:
        """Read the contents of an options.json.

        The file does not say whether the two projections exist (bilm-tf omits each where the sizes
        fit already), nor whether it counts the mask as a character. A caller that has the weights
        passes what it found there; otherwise the rules of bilm-tf decide.

        Args:
            options: The parsed file.
            cnn_projection: Whether there is a projection after the highway layers.
            lstm_projection: Whether the LSTM layers have a projection.
            characters: Number of rows of the character embedding.
        """
        rest = deepcopy(dict(options))
        if rest.get("bidirectional", True) is False:
            raise ConfigError(
                "bidirectional is false in options.json; ELMo needs a bidirectional model"
            )
        cnn, lstm = _section(rest, "char_cnn"), _section(rest, "lstm")
        embedding = _section(cnn, "char_cnn.embedding")
        filters = _filters(_take(cnn, "char_cnn.filters"))
        width = _size("lstm.projection_dim", _take(lstm, "lstm.projection_dim"))
        cells = _size("lstm.dim", _take(lstm, "lstm.dim"))
        table_rows = _table_rows(cnn.pop("n_characters", BYTE_CHARACTERS))
        n_filters = sum(count for _, count in filters)
        cnn_part = CharCNNConfig(
            filters=filters,
            embedding_dim=_take(embedding, "char_cnn.embedding.dim"),
            activation=cnn.pop("activation", "relu"),
            highways=cnn.pop("n_highway", None) or 0,
            projection=n_filters != width if cnn_projection is None else cnn_projection,
            characters=characters or table_rows,
            max_characters=cnn.pop("max_characters_per_token", 50),
        )
        lstm_part = LSTMConfig(
            cells=cells,
            width=width,
            layers=lstm.pop("n_layers", 1),
            projection=cells != width if lstm_projection is None else lstm_projection,
            skip=lstm.pop("use_skip_connections", None) or False,
            cell_clip=lstm.pop("cell_clip", None),
            projection_clip=lstm.pop("proj_clip", None),
        )
        if embedding:
            cnn["embedding"] = embedding
        rest |= {name: part for name, part in (("char_cnn", cnn), ("lstm", lstm)) if part}
        return cls(char_cnn=cnn_part, lstm=lstm_part, extra=rest)

    def to_options(self) -> dict[str, Any]:
        """Return an options.json for inference, where n_characters also counts the mask."""
        if self.char_cnn.scheme != "bytes":
            raise ConfigError(
                "the format of AllenNLP and bilm-tf cannot store this model, since it has its own "
                + ("alphabet and word embeddings" if self.words is not None else "alphabet")
                + "; save it in elmokit's own format, by giving a directory"
            )
        options = deepcopy(dict(self.extra))
        char_cnn = options.setdefault("char_cnn", {})
        char_cnn.setdefault("embedding", {})["dim"] = self.char_cnn.embedding_dim
        char_cnn |= {
            "activation": self.char_cnn.activation,
            "filters": [list(pair) for pair in self.char_cnn.filters],
            "max_characters_per_token": self.char_cnn.max_characters,
            "n_characters": self.char_cnn.characters + 1,
            "n_highway": self.char_cnn.highways,
        }
        options.setdefault("lstm", {}).update(
            {
                "cell_clip": self.lstm.cell_clip,
                "dim": self.lstm.cells,
                "n_layers": self.lstm.layers,
                "proj_clip": self.lstm.projection_clip,
                "projection_dim": self.lstm.width,
                "use_skip_connections": self.lstm.skip,
            }
        )
        return options

    # -- config.json of elmokit's format -------------------------------------------------------

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BiLMConfig:
        """Read the contents of a config.json; unknown keys raise `ConfigError`."""
        _known("config", data, {"char_cnn", "lstm", "words", "extra"})
        parts: dict[str, Any] = {}
        for name, part in (
            ("char_cnn", CharCNNConfig),
            ("lstm", LSTMConfig),
            ("words", LexiconConfig),
        ):
            section = data.get(name)
            if name == "words" and section is None:
                continue
            if not isinstance(section, Mapping):
                raise ConfigError(f"config: {name} is {section!r}; expected an object")
            _known(name, section, {f.name for f in fields(part)})
            try:
                parts[name] = part(**section)
            except TypeError as error:
                raise ConfigError(f"config: {name}: {error}") from None
        extra = data.get("extra", {})
        if not isinstance(extra, Mapping):
            raise ConfigError(f"config: extra is {extra!r}; expected an object")
        return cls(**parts, extra=dict(extra))

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of a config.json."""
        data = {"char_cnn": asdict(self.char_cnn), "lstm": asdict(self.lstm)}
        data["char_cnn"]["filters"] = [list(pair) for pair in self.char_cnn.filters]
        # Written only if it is not the default, so that files and fingerprints stay the same.
        if self.char_cnn.scheme == "bytes":
            del data["char_cnn"]["scheme"]
        if self.words is not None:
            data["words"] = asdict(self.words)
        return data | ({"extra": deepcopy(dict(self.extra))} if self.extra else {})


# -- validation ------------------------------------------------------------------------------------


def _section(options: dict[str, Any], name: str) -> dict[str, Any]:
    section = options.pop(name.rpartition(".")[2], None)
    if not isinstance(section, Mapping):
        state = "missing" if section is None else repr(section)
        raise ConfigError(f"options.json: {name} is {state}; expected an object")
    return dict(section)


def _take(section: dict[str, Any], name: str) -> Any:
    key = name.rpartition(".")[2]
    if key not in section:
        raise ConfigError(f"options.json: {name} is missing")
    return section.pop(key)


def _check_extra(extra: Mapping[str, Any]) -> None:
    """Raise `ConfigError` unless further keys are where `to_options` adds those that it knows."""
    for name, holder in (
        ("char_cnn", extra),
        ("lstm", extra),
        ("embedding", extra.get("char_cnn", {})),
    ):
        part = holder.get(name, {})
        if not isinstance(part, Mapping):
            raise ConfigError(f"config: extra.{name} is {part!r:.200}; expected an object")


def _known(name: str, data: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(data) - known)
    if unknown:
        raise ConfigError(
            f"{name}: unknown option {', '.join(map(repr, unknown))}; expected "
            f"{', '.join(sorted(known))}. Was the file written by a newer elmokit?"
        )


def _size(name: str, value: Any, minimum: int = 1, maximum: int = MAX_SIZE) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise ConfigError(
            f"{name} is {value!r:.200}; expected an integer from {minimum} to {maximum}"
        )
    return value


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; expected true or false")


def _clip(name: str, value: Any) -> float | None:
    """Return a clip as a positive number or None; bilm-tf writes null for none, AllenNLP also 0."""
    if value is None or value == 0:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # Not math.isfinite: JSON has integers that no float can hold.
    if not number or not 0 < value <= sys.float_info.max:
        raise ConfigError(f"{name} is {value!r:.80}; expected a positive number, or null for none")
    return value  # type: ignore[no-any-return]


def _filters(value: Any) -> tuple[tuple[int, int], ...]:
    expected = "expected a list of pairs [width, number of filters]"
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError(f"char_cnn.filters is {value!r:.200}; {expected}")
    if len(value) > MAX_LAYERS:
        raise ConfigError(f"char_cnn.filters has {len(value):,} pairs; {expected}")
    for pair in value:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ConfigError(f"char_cnn.filters contains {pair!r:.200}; {expected}")
        _size("the width of a filter in char_cnn.filters", pair[0])
        _size("the number of filters in char_cnn.filters", pair[1])
    return tuple((width, count) for width, count in value)


def _table_rows(n_characters: Any) -> int:
    """Return the rows of the character table: n_characters is 261 in training files, else 262."""
    rows = _size("char_cnn.n_characters", n_characters, minimum=BYTE_CHARACTERS)
    return BYTE_CHARACTERS if rows == BYTE_CHARACTERS else rows - 1
