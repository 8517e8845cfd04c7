"""A biLM as data: everything that its files contain, and nothing that runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX, Weights, check_weights, parameter_count
from elmokit.errors import ConfigError, WeightsError
from elmokit.text.characters import (
    ALPHABET_MARKS,
    BOS,
    EOS,
    NAMED_UNKNOWN,
    ByteEncoder,
    CharacterEncoder,
    CodePointEncoder,
)
from elmokit.text.dictionary import Dictionary
from elmokit.text.vocabulary import UNKNOWN, Vocabulary

PROTEINS = "proteins"
"""Key of options.json and config.json that says that a model was trained on proteins."""
AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWY")
"""The 20 standard amino acids."""
RESIDUES = AMINO_ACIDS | set("BJOUXZ*-.")
"""Everything that can be a residue of a protein in a FASTA file."""


class ExportOrigin(NamedTuple):
    """The model that an export was made from, remembered where the export cannot hold all of it."""

    fingerprint: str
    """Fingerprint of the complete model."""
    content: str
    """Hash of what the export holds (`hash_content`); a changed export no longer has it."""


@dataclass(frozen=True)
class BiLM:
    """A bidirectional language model: its architecture, its weights, and all else in its files."""

    config: BiLMConfig
    """Architecture of the model."""
    weights: Weights
    """Arrays by name; see `bilm/weights.py`."""
    vocabulary: Vocabulary | None = None
    """Words that the softmax predicts."""
    settled: State | None = None
    """Initial state of every sentence, one row (see `engine/state.py`)."""
    mix: Mix | None = None
    """Weights of the layers; None for the plain average."""
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Arrays of the model's file that elmokit does not use; written back."""
    alphabet: Dictionary | None = None
    """Code points of the rows of the character embedding; None if characters are bytes."""
    lexicon: Dictionary | None = None
    """Words of the rows of the word embedding, if the model has one."""
    origin: ExportOrigin | None = None
    """The complete model, if this is an export that lacks some of it, such as the softmax."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` or `WeightsError` if the parts do not fit together."""
        check_weights(self.config, self.weights)
        if self.settled is not None:
            self.settled.check(self.config)
        if self.mix is not None and len(self.mix.scalars) != self.config.layers:
            raise ConfigError(
                f"the mix has {len(self.mix.scalars)} scalars, but the model has "
                f"{self.config.layers} layers; expected one per layer"
            )
        if self.vocabulary is not None and SOFTMAX[0] in self.weights:
            rows = self.weights[SOFTMAX[0]].shape[0]
            if rows != len(self.vocabulary):
                raise WeightsError(
                    f"the softmax has {rows} rows, but the vocabulary has "
                    f"{len(self.vocabulary)} words; expected one row per word"
                )
        cnn, words = self.config.char_cnn, self.config.words
        rows = cnn.characters if cnn.scheme == "code_points" else None
        _check_dictionary("alphabet", self.alphabet, rows, ALPHABET_MARKS)
        rows = None if words is None else words.entries
        _check_dictionary("lexicon", self.lexicon, rows, (NAMED_UNKNOWN,))

    @cached_property
    def characters(self) -> CharacterEncoder:
        """The conversion of words to character ids."""
        maximum = self.config.char_cnn.max_characters
        return (
            ByteEncoder(maximum)
            if self.alphabet is None
            else CodePointEncoder(self.alphabet, maximum)
        )

    @cached_property
    def reads_residues(self) -> bool:
        """Whether this is a model of proteins, whose words are single residues.

        It is if its configuration says so (`"proteins": true` among the keys that other programs do
        not know), or else if all words of its vocabulary are residues.
        """
        stated = self.config.extra.get(PROTEINS)
        if stated is not None or self.vocabulary is None or len(self.vocabulary) > 64:
            return stated is True
        words = set(self.vocabulary) - {BOS, EOS, UNKNOWN}
        return words <= RESIDUES and words >= AMINO_ACIDS

    @property
    def parameters(self) -> int:
        """Number of parameters of the network, without the softmax."""
        return parameter_count(self.config)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of architecture and weights; the same in all formats that elmokit writes."""
        content = hash_content(self.config, self.weights, self.alphabet, self.lexicon)
        if self.origin is not None and self.origin.content == content:
            return self.origin.fingerprint
        return content

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling, the same bytes whatever was computed from them."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        # Plain arrays: the file that they are read from may not exist where they are unpickled.
        for name in ("weights", "extra"):
            data[name] = {key: np.asarray(array) for key, array in data[name].items()}
        for name in ("vocabulary", "alphabet", "lexicon"):
            data[name] = None if data[name] is None else tuple(data[name])
        return data

    def __setstate__(self, data: dict[str, Any]) -> None:
        """Restore a pickled model."""
        for name, restore in (
            ("vocabulary", Vocabulary),
            ("alphabet", Dictionary),
            ("lexicon", Dictionary),
        ):
            data[name] = None if data[name] is None else restore(data[name])
        self.__dict__.update(data)


def hash_content(
    config: BiLMConfig,
    weights: Weights,
    alphabet: Dictionary | None = None,
    lexicon: Dictionary | None = None,
) -> str:
    """Return the SHA-256 of an architecture, its weights and its dictionaries."""
    plain = config.to_dict()
    plain.pop("extra", None)
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name in sorted(weights):
        array = np.ascontiguousarray(weights[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    for dictionary in (alphabet, lexicon):
        if dictionary is not None:
            digest.update(dictionary.dump())
    return digest.hexdigest()


def _check_dictionary(
    name: str, dictionary: Dictionary | None, rows: int | None, required: tuple[str, ...]
) -> None:
    """Raise `WeightsError` unless the dictionary has one entry per row, or both are None."""
    if rows is None or dictionary is None:
        if dictionary is None and rows is not None:
            raise WeightsError(f"the model has no {name}, which its architecture needs")
        if dictionary is not None and rows is None:
            raise WeightsError(f"the model has an unexpected {name}; its architecture has none")
        return
    if len(dictionary) != rows:
        raise WeightsError(
            f"the {name} has {len(dictionary)} entries, but its embedding has {rows} rows; "
            "expected one row per entry"
        )
    missing = [mark for mark in required if mark not in dictionary]
    if missing:
        raise WeightsError(f"the {name} lacks the required entries {', '.join(missing)}")
