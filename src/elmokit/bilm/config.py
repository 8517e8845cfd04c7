"""The architecture of a biLM, as typed options that cannot contradict each other.

`BiLMConfig.from_options` and `.to_options` speak the `options.json` of bilm-tf and AllenNLP,
`.from_dict` and `.to_dict` the plainer form of our own `config.json`. Keys that say nothing about
the architecture (training settings of the authors, …) are kept in `extra` and written back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from elmokit.errors import ConfigError
from elmokit.text.characters import ALPHABET_MARKS, BYTE_CHARACTERS

Activation = Literal["relu", "tanh"]
Scheme = Literal["bytes", "code_points"]

LARGEST_SIZE = 1 << 20
"""No dimension of any sane model comes near this; a larger one is a damaged or hostile file."""
LARGEST_ALPHABET = 1 << 15
"""Character ids are 16 bits wide with a sign, in arrays and in the kernel."""
LONGEST_MARK = 7
"""`<bos>` and `<eos>` between the marks of a word, as ELMoForManyLangs counts them."""


@dataclass(frozen=True, kw_only=True)
class CharCNN:
    """From the characters of a word to its context-free vector."""

    filters: tuple[tuple[int, int], ...]
    """Pairs of (width in characters, how many filters of that width)."""
    embedding_dim: int = 16
    activation: Activation = "relu"
    highways: int = 0
    projection: bool = True
    """Whether a linear map to the LSTM's width follows the highways."""
    characters: int = BYTE_CHARACTERS
    """Rows of the table of characters."""
    max_characters: int = 50
    scheme: Scheme = "bytes"
    """What a character is: a UTF-8 byte, or a code point that the model's alphabet numbers."""

    @property
    def n_filters(self) -> int:
        """The width of the concatenated filters and of the highways."""
        return sum(count for _, count in self.filters)

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        object.__setattr__(self, "filters", _filters(self.filters))
        _size("char_cnn.embedding_dim", self.embedding_dim)
        _size("char_cnn.highways", self.highways, least=0)
        if self.scheme not in get_args(Scheme):
            raise ConfigError(
                f"char_cnn.scheme is {self.scheme!r}; expected 'bytes' or 'code_points'"
            )
        if self.scheme == "bytes":
            _size("char_cnn.characters", self.characters, least=BYTE_CHARACTERS)
            _size("char_cnn.max_characters", self.max_characters, least=3)
        else:
            _size("char_cnn.characters", self.characters, len(ALPHABET_MARKS), LARGEST_ALPHABET)
            _size("char_cnn.max_characters", self.max_characters, least=LONGEST_MARK)
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
class LSTM:
    """From word vectors to contextual ones, the same in both directions."""

    cells: int
    """H: the size of the memory."""
    width: int
    """P: the size of what a layer reads and says; `projection_dim` in options.json."""
    layers: int = 2
    projection: bool = True
    """Whether each layer maps its H cells to the width P; without it H equals P."""
    skip: bool = True
    """Whether every layer but the first adds its input to its output."""
    cell_clip: float | None = 3
    projection_clip: float | None = 3

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        _size("lstm.cells", self.cells)
        _size("lstm.width", self.width)
        _size("lstm.layers", self.layers)
        _flag("lstm.projection", self.projection)
        _flag("lstm.skip", self.skip)
        object.__setattr__(self, "cell_clip", _clip("lstm.cell_clip", self.cell_clip))
        object.__setattr__(self, "projection_clip", _clip("lstm.proj_clip", self.projection_clip))
        if not self.projection and self.cells != self.width:
            raise ConfigError(
                f"an LSTM without projection says as much as it remembers, but lstm.dim is "
                f"{self.cells} and lstm.projection_dim is {self.width}"
            )


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words that are known as a whole, beside their characters; of ELMoForManyLangs."""

    entries: int
    """Rows of the table of words."""
    dim: int
    """E: the size of a word's embedding, joined to the filters before the projection."""

    def __post_init__(self) -> None:
        """Refuse what cannot be built."""
        _size("words.entries", self.entries)
        _size("words.dim", self.dim)


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """The whole architecture."""

    char_cnn: CharCNN
    lstm: LSTM
    words: Words | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What else stood in options.json, in its place; kept and written back."""

    def __post_init__(self) -> None:
        """Refuse what cannot be joined."""
        if not self.char_cnn.projection and self.char_cnn.n_filters != self.lstm.width:
            raise ConfigError(
                f"without a projection after the highways the filters are the word vector, but "
                f"there are {self.char_cnn.n_filters} filters and lstm.projection_dim is "
                f"{self.lstm.width}"
            )
        if self.words is not None and not self.char_cnn.projection:
            raise ConfigError(
                "known words need a projection after the highways, to be joined by it"
            )
        if self.words is not None and self.char_cnn.scheme == "bytes":
            raise ConfigError("known words go with characters that are code points, not bytes")

    @property
    def dim(self) -> int:
        """D: the size of a contextual vector, both directions side by side."""
        return 2 * self.lstm.width

    @property
    def layers(self) -> int:
        """L + 1: the word vectors and the LSTM layers."""
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
        """Read options.json.

        The file does not say whether the two projections exist (bilm-tf leaves each out where the
        sizes already fit), nor whether it counts the mask as a character. A reader that has the
        weights at hand passes what it saw there; without, bilm-tf's rules decide.
        """
        rest = deepcopy(dict(options))
        if rest.get("bidirectional", True) is False:
            raise ConfigError(
                "options.json says bidirectional: false; an ELMo needs both directions"
            )
        cnn, lstm = _section(rest, "char_cnn"), _section(rest, "lstm")
        embedding = _section(cnn, "char_cnn.embedding")
        filters = _filters(_take(cnn, "char_cnn.filters"))
        width = _size("lstm.projection_dim", _take(lstm, "lstm.projection_dim"))
        cells = _size("lstm.dim", _take(lstm, "lstm.dim"))
        table_rows = _table_rows(cnn.pop("n_characters", BYTE_CHARACTERS))
        n_filters = sum(count for _, count in filters)
        cnn_part = CharCNN(
            filters=filters,
            embedding_dim=_take(embedding, "char_cnn.embedding.dim"),
            activation=cnn.pop("activation", "relu"),
            highways=cnn.pop("n_highway", None) or 0,
            projection=n_filters != width if cnn_projection is None else cnn_projection,
            characters=characters or table_rows,
            max_characters=cnn.pop("max_characters_per_token", 50),
        )
        lstm_part = LSTM(
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
        """Write options.json for inference, where n_characters also counts the mask."""
        if self.char_cnn.scheme != "bytes":
            raise ConfigError(
                "this model reads characters by an alphabet of its own"
                + (", and whole words beside them" if self.words is not None else "")
                + "; the format of AllenNLP and bilm-tf has no place for that. "
                "Save it in elmokit's own format: a directory"
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

    # -- config.json of our own format ---------------------------------------------------------

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BiLMConfig:
        """Read the native form; unknown keys raise, since they would be ignored."""
        _known("config", data, {"char_cnn", "lstm", "words", "extra"})
        parts: dict[str, Any] = {}
        for name, part in (("char_cnn", CharCNN), ("lstm", LSTM), ("words", Words)):
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
        """Write the native form."""
        data = {"char_cnn": asdict(self.char_cnn), "lstm": asdict(self.lstm)}
        data["char_cnn"]["filters"] = [list(pair) for pair in self.char_cnn.filters]
        # Said only where it is not the rule, so that files and fingerprints stay as they were.
        if self.char_cnn.scheme == "bytes":
            del data["char_cnn"]["scheme"]
        if self.words is not None:
            data["words"] = asdict(self.words)
        return data | ({"extra": deepcopy(dict(self.extra))} if self.extra else {})


# -- what an option may be -------------------------------------------------------------------------


def _section(options: dict[str, Any], name: str) -> dict[str, Any]:
    section = options.pop(name.rpartition(".")[2], None)
    if not isinstance(section, Mapping):
        found = "nothing" if section is None else repr(section)
        raise ConfigError(f"options.json: found {found} under {name}; expected an object")
    return dict(section)


def _take(section: dict[str, Any], name: str) -> Any:
    key = name.rpartition(".")[2]
    if key not in section:
        raise ConfigError(f"options.json: {name} is missing")
    return section.pop(key)


def _known(name: str, data: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(data) - known)
    if unknown:
        raise ConfigError(
            f"{name}: unknown {', '.join(map(repr, unknown))}; expected "
            f"{', '.join(sorted(known))}. Was it written by a newer elmokit?"
        )


def _size(name: str, value: Any, least: int = 1, most: int = LARGEST_SIZE) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        limit = "up" if most == LARGEST_SIZE else f"to {most}"
        raise ConfigError(f"{name} is {value!r}; expected a whole number from {least} {limit}")
    return value


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; expected true or false")


def _clip(name: str, value: Any) -> float | None:
    """A clip as a positive number; bilm-tf says "off" by null, AllenNLP also by 0."""
    if value is None or value == 0:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ConfigError(f"{name} is {value!r}; expected a positive number, or null for no clip")
    return value  # type: ignore[no-any-return]


def _filters(value: Any) -> tuple[tuple[int, int], ...]:
    expected = "expected a list of pairs [width, number of filters]"
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError(f"char_cnn.filters is {value!r}; {expected}")
    for pair in value:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ConfigError(f"char_cnn.filters holds {pair!r}; {expected}")
        _size("the width of a filter in char_cnn.filters", pair[0])
        _size("the number of filters in char_cnn.filters", pair[1])
    return tuple((width, count) for width, count in value)


def _table_rows(n_characters: Any) -> int:
    """261 in training files, 262 at inference: the same table of 261 characters."""
    rows = _size("char_cnn.n_characters", n_characters, least=BYTE_CHARACTERS)
    return BYTE_CHARACTERS if rows == BYTE_CHARACTERS else rows - 1
