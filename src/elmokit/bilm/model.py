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
from elmokit.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class BiLM:
    """Architecture and weights; and, where there are any, vocabulary, settled state and mix."""

    config: BiLMConfig
    weights: Weights
    vocabulary: Vocabulary | None = None
    settled: State | None = None
    """One row: the state every sentence starts from (see `engine/state.py`)."""
    mix: Mix | None = None
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """Arrays of the source file that mean nothing to us; kept and written back."""

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
        return digest.hexdigest()
