"""The choice of the network that runs a model.

On the CPU it is the compiled kernel if possible, else NumPy; on other devices PyTorch.
"""

from __future__ import annotations

import os
import sys
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
from elmokit.engine.bfloat16 import RoundedWeights
from elmokit.engine.reference import ReferenceNetwork
from elmokit.errors import InputError, InputTypeError

ENGINE_VARIABLE = "ELMOKIT_ENGINE"
"""Environment variable that selects the network: `kernel` or `reference`."""


class Network(Protocol):
    """The methods that every network has; see `reference.py` for the details."""

    @property
    def name(self) -> str:
        """Name shown to users."""

    @property
    def batch_words(self) -> int:
        """Number of words per batch that suits the network."""

    @property
    def batch_sentences(self) -> int | None:
        """Number of sentences from which on a batch may be half as large; None for no number."""

    def word_vectors(self, ids_UC: npt.NDArray[np.int16], lengths_U: IntArray) -> FloatArray:
        """Return the context-free vectors of words given as characters."""

    def contextualize(
        self, words_NP: FloatArray, packing: Packing, state: State
    ) -> tuple[FloatArray, State]:
        """Return all layers for context-free vectors, and the state after them."""


def choose_network(bilm: BiLM, dtype: str, threads: int | None, device: str = "cpu") -> Network:
    """Return the fastest network for a model.

    The environment variable `ELMOKIT_ENGINE=reference` disables the kernel, to compare the two.

    Args:
        bilm: The model.
        dtype: `"float32"`, `"bfloat16"` or `"int8"`.
        threads: Number of threads; None for as many as the process may use.
        device: `"cpu"`, or a device of PyTorch (see `accelerated.py`).
    """
    if not isinstance(device, str):
        raise InputTypeError(f"device is {device!r}; expected a string such as 'cpu' or 'cuda'")
    precision = native.check_dtype(dtype)
    if device != "cpu":
        if dtype != "float32":
            raise InputError(
                f"dtype={dtype!r} needs the compiled kernel, which runs on the device 'cpu'; with "
                f"device={device!r} the dtype is 'float32'"
            )
        from elmokit.engine.accelerated import TorchNetwork

        return TorchNetwork(bilm.config, bilm.weights, device, threads)
    engine = os.environ.get(ENGINE_VARIABLE, "")
    if engine not in ("", "kernel", "reference"):
        raise InputError(f"{ENGINE_VARIABLE} is {engine!r}; expected 'kernel' or 'reference'")
    if engine != "reference" and native.kernel_available():
        return native.NativeNetwork(bilm.config, bilm.weights, threads, dtype=precision)
    disabled = engine == "reference"
    reason = f"{ENGINE_VARIABLE}=reference disables it" if disabled else native.kernel_error()
    if dtype == "int8" or engine == "kernel":
        setting = "dtype='int8'" if dtype == "int8" else f"{ENGINE_VARIABLE}=kernel"
        raise InputError(f"{setting} needs the compiled kernel, which is not available: {reason}")
    if not engine:
        remedy = "to build the kernel, reinstall elmokit with a C++17 compiler"
        if sys.platform == "win32":
            remedy = "there is no kernel for Windows; it runs in WSL (Windows Subsystem for Linux)"
        _warn_once(
            f"the compiled kernel is not available ({reason}), so elmokit runs on NumPy, which is "
            f"several times slower; {remedy}"
        )
    weights = RoundedWeights(bilm.weights) if dtype == "bfloat16" else bilm.weights
    return ReferenceNetwork(bilm.config, weights, threads)


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
