"""A biLM as data: everything that a file of one holds, and nothing that runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX, Weights, check_weights, parameter_count
from elmokit.errors import ConfigError, WeightsError
from elmokit.text.characters import ALPHABET_MARKS, NAMED_UNKNOWN, Bytes, Characters, CodePoints
from elmokit.text.dictionary import Dictionary
from elmokit.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class BiLM:
    """Architecture and weights; and whatever else the model has."""

    config: BiLMConfig
    weights: Weights
    vocabulary: Vocabulary | None = None
    settled: State | None = None
    """One row: the state every sentence starts from (see `engine/state.py`)."""
    mix: Mix | None = None
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Arrays of the source file that mean nothing to us; kept and written back."""
    alphabet: Dictionary | None = None
    """The code points that the rows of the character table belong to; None where they are bytes."""
    lexicon: Dictionary | None = None
    """The words that the rows of the table of known words belong to, if the model has one."""

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together."""
        check_weights(self.config, self.weights)
        if self.settled is not None:
            self.settled.check(self.config)
        if self.mix is not None and len(self.mix.scalars) != self.config.layers:
            raise ConfigError(
                f"the mix has {len(self.mix.scalars)} numbers; "
                f"this model has {self.config.layers} layers"
            )
        if self.vocabulary is not None and SOFTMAX[0] in self.weights:
            rows = self.weights[SOFTMAX[0]].shape[0]
            if rows != len(self.vocabulary):
                raise WeightsError(
                    f"the softmax has {rows} rows, the vocabulary {len(self.vocabulary)} words"
                )
        cnn, words = self.config.char_cnn, self.config.words
        rows = cnn.characters if cnn.scheme == "code_points" else None
        _check_dictionary("alphabet", self.alphabet, rows, ALPHABET_MARKS)
        rows = None if words is None else words.entries
        _check_dictionary("lexicon", self.lexicon, rows, (NAMED_UNKNOWN,))

    @cached_property
    def characters(self) -> Characters:
        """How this model reads the characters of a word."""
        longest = self.config.char_cnn.max_characters
        return Bytes(longest) if self.alphabet is None else CodePoints(self.alphabet, longest)

    @property
    def parameters(self) -> int:
        """How many numbers the network has, without the softmax."""
        return parameter_count(self.config)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of architecture and weights: equal for the same model in any file format."""
        plain = self.config.to_dict()
        plain.pop("extra", None)
        digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
        for name in sorted(self.weights):
            array = np.ascontiguousarray(self.weights[name])
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(array.data)
        for dictionary in (self.alphabet, self.lexicon):
            if dictionary is not None:
                digest.update(dictionary.dump())
        return digest.hexdigest()


def _check_dictionary(
    name: str, found: Dictionary | None, rows: int | None, needed: tuple[str, ...]
) -> None:
    """Raise `WeightsError` unless the dictionary belongs to a table of so many rows, or to none."""
    if rows is None or found is None:
        if (rows is None) != (found is None):
            has, has_not = ("no", "asks for one") if found is None else ("an", "has no use for it")
            raise WeightsError(f"the model has {has} {name}; its architecture {has_not}")
        return
    if len(found) != rows:
        raise WeightsError(f"the {name} has {len(found)} entries, its table {rows} rows")
    missing = [mark for mark in needed if mark not in found]
    if missing:
        raise WeightsError(f"the {name} lacks {', '.join(missing)}, which no word can do without")
