"""Which network runs a model: the compiled kernel where it can, else the reference."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine import native
from elmokit.engine.batching import IntArray, Packing
from elmokit.engine.reference import Reference
from elmokit.errors import InputError

ENGINE_VARIABLE = "ELMOKIT_ENGINE"


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
    """The fastest network that gives what was asked for.

    `ELMOKIT_ENGINE=reference` keeps the kernel out, to compare the two.
    """
    if dtype not in ("float32", "int8"):
        raise InputError(f"dtype is {dtype!r}; expected 'float32' or 'int8'")
    wanted = os.environ.get(ENGINE_VARIABLE, "")
    if wanted not in ("", "kernel", "reference"):
        raise InputError(f"{ENGINE_VARIABLE}={wanted}: expected 'kernel' or 'reference'")
    if wanted != "reference" and native.available():
        precision: native.Dtype = "int8" if dtype == "int8" else "float32"
        return native.Native(bilm.config, bilm.weights, threads, dtype=precision)
    kept_out = wanted == "reference"
    why = f"{ENGINE_VARIABLE}=reference keeps it out" if kept_out else native.why_not()
    if dtype == "int8" or wanted == "kernel":
        asked = "dtype='int8'" if dtype == "int8" else f"{ENGINE_VARIABLE}=kernel"
        raise InputError(f"{asked} needs the compiled kernel, which is not there: {why}")
    if not wanted:
        _say_once(
            f"elmokit runs on NumPy alone, several times slower than its compiled kernel would: "
            f"{why}. To build the kernel, install elmokit where a C++17 compiler is found"
        )
    return Reference(bilm.config, bilm.weights, threads)


@cache
def _say_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
