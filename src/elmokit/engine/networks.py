"""Which network runs a model: the compiled kernel where it can, else the reference."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import IntArray, Packing
from elmokit.engine.reference import Reference
from elmokit.errors import InputError


class Network(Protocol):
    """What a network can do; `reference.py` says it in full."""

    @property
    def name(self) -> str:
        """For people."""

    def word_vectors(self, ids_UC: npt.NDArray[np.int16], lengths_U: IntArray) -> FloatArray:
        """Characters to context-free vectors."""

    def contextualize(
        self, words_NP: FloatArray, packing: Packing, state: State
    ) -> tuple[FloatArray, State]:
        """Context-free vectors to all layers, and the state after."""


def choose_network(bilm: BiLM, dtype: str, threads: int | None) -> Network:
    """The fastest network that gives what was asked for."""
    if dtype not in ("float32", "int8"):
        raise InputError(f"dtype is {dtype!r}; expected 'float32' or 'int8'")
    if dtype == "int8":
        raise InputError(
            "dtype='int8' needs the compiled kernel, which this installation has not; "
            "use dtype='float32'"
        )
    return Reference(bilm.config, bilm.weights, threads)
