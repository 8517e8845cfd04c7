"""The door to the compiled kernel: the network of `reference.py`, fast.

Same two methods, same numbers to 1e-5; and the same bits for a sentence whatever is computed beside
it and by how many threads. `dtype="int8"` trades exactness for speed and memory: weights and
activations are rounded to 255 steps, every column of weights and every row of activations on a
scale of its own.

The kernel lives in `src/native/` and is compiled into the wheel as `elmokit._native`. Where it is
missing, `available()` is false and `why_not()` says why; nothing here falls back by itself.

Shape letters: U distinct words, C characters, N words of a batch, P width, D = 2P, L layers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.state import State
from elmokit.bilm.weights import DIRECTIONS, FloatArray, Weights, release
from elmokit.engine.batching import IntArray, Packing
from elmokit.errors import InputError, MissingExtra

try:
    from elmokit import _native
except ImportError as error:
    _why_not = f"elmokit._native cannot be imported: {error}"
else:
    _why_not = ""

Dtype = Literal["float32", "int8"]

ISA_VARIABLE = "ELMOKIT_ISA"
"""The environment variable that forces an instruction set, for tests and comparisons."""
ISAS = ("avx512", "avx2", "portable")
CONTAINER_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def available() -> bool:
    """Whether the kernel was built and can be imported."""
    return not _why_not


def why_not() -> str:
    """Why the kernel is not available; empty if it is."""
    return _why_not


def instruction_sets(dtype: Dtype = "float32") -> list[str]:
    """Those of `ISAS` that this machine can run, the fastest first."""
    return _native.instruction_sets(int8=dtype == "int8")


def instruction_set() -> str:
    """The one that runs unless another is asked for: the fastest, or that of `ELMOKIT_ISA`."""
    return _choose_isa(None, "float32")


def usable_processors() -> int:
    """How many processors this process may use, which can be fewer than there are."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux knows
        allowed = os.cpu_count() or 1
    return max(1, math.floor(min(allowed, _container_limit())))


def _container_limit() -> float:
    """How many processors' worth of time a container was given."""
    try:
        quota, period = CONTAINER_LIMIT.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no container, or "max"
        return math.inf


class Native:
    """A frozen biLM that runs in the compiled kernel.

    May be called from several threads, which take turns, and in forked processes.
    """

    def __init__(
        self,
        config: BiLMConfig,
        weights: Weights,
        threads: int | None = None,
        *,
        dtype: Dtype = "float32",
        isa: str | None = None,
    ) -> None:
        """Pack the weights, which may be memory-mapped and of any float type.

        `threads` is by default as many as the process may use; `isa` the instruction set that
        `ELMOKIT_ISA` names, else the fastest there is.
        """
        if not available():
            raise MissingExtra(f"the compiled kernel is missing: {why_not()}")
        if dtype not in ("float32", "int8"):
            raise InputError(f"dtype is {dtype!r}; expected 'float32' or 'int8'")
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}; expected a number from 1 up, or None for all")
        self.config = config
        self.dtype = dtype
        self.isa = _choose_isa(isa, dtype)
        self.threads = threads or usable_processors()
        cnn, lstm = config.char_cnn, config.lstm
        self._network = _native.Network(
            filters=list(cnn.filters),
            characters=cnn.characters,
            embedding_dim=cnn.embedding_dim,
            max_characters=cnn.max_characters,
            tanh=cnn.activation == "tanh",
            highways=cnn.highways,
            character_projection=cnn.projection,
            cells=lstm.cells,
            width=lstm.width,
            layers=lstm.layers,
            projection=lstm.projection,
            skip=lstm.skip,
            cell_clip=lstm.cell_clip or math.inf,
            projection_clip=lstm.projection_clip or math.inf,
            int8=dtype == "int8",
            instruction_set=self.isa,
            threads=self.threads,
        )
        self._load(weights)

    @property
    def name(self) -> str:
        """For people."""
        return f"kernel ({self.isa}, {self.dtype})"

    def _load(self, weights: Weights) -> None:
        """Hand the arrays over one by one, so that conversions and mappings need little memory."""
        cnn, lstm, network = self.config.char_cnn, self.config.lstm, self._network

        def load(into: Callable[..., None], *names: str) -> None:
            into(*(np.ascontiguousarray(weights[name], dtype=np.float32) for name in names))
            for name in names:
                release(weights[name])

        load(network.load_embedding, "characters.embedding")
        for i in range(len(cnn.filters)):
            name = f"characters.convolution.{i}"
            load(partial(network.load_filters, i), f"{name}.weight", f"{name}.bias")
        for k in range(cnn.highways):
            gates = (f"characters.highway.{k}.{gate}" for gate in ("carry", "transform"))
            parts = (f"{gate}.{part}" for gate in gates for part in ("weight", "bias"))
            load(partial(network.load_highway, k), *parts)
        if cnn.projection:
            name = "characters.projection"
            load(network.load_projection, f"{name}.weight", f"{name}.bias")
        for layer in range(lstm.layers):
            for side, direction in enumerate(DIRECTIONS):
                names = ["input.weight", "recurrent.weight", "bias"]
                names += ["projection.weight"] if lstm.projection else []
                load(
                    partial(network.load_lstm, layer, side),
                    *(f"{direction}.{layer}.{name}" for name in names),
                )

    def word_vectors(self, ids_UC: npt.NDArray[np.int16], lengths_U: IntArray) -> FloatArray:
        """Layer 0: distinct words, as characters, to context-free vectors (U, P)."""
        out_UP = np.empty((len(ids_UC), self.config.lstm.width), np.float32)
        self._network.word_vectors(
            np.ascontiguousarray(ids_UC, np.int16),
            np.ascontiguousarray(lengths_U, np.int64),
            out_UP,
        )
        return out_UP

    def contextualize(
        self, words_NP: FloatArray, packing: Packing, state: State
    ) -> tuple[FloatArray, State]:
        """All layers (L+1, N, D) of a packed batch, and the state after it.

        Row b of the state belongs to the sentence of rank b. Layer 0 is the word vector twice.
        """
        layers_LND = np.empty((self.config.layers, len(words_NP), self.config.dim), np.float32)
        hidden = np.array(state.hidden, np.float32, order="C")  # copies, to be written over
        cell = np.array(state.cell, np.float32, order="C")
        self._network.contextualize(
            np.ascontiguousarray(words_NP, np.float32),
            np.ascontiguousarray(packing.alive, np.int64),
            np.ascontiguousarray(packing.mirror, np.int64),
            hidden,
            cell,
            layers_LND,
        )
        return layers_LND, State(hidden, cell)


def _choose_isa(isa: str | None, dtype: Dtype) -> str:
    """The instruction set asked for by argument or environment, else the fastest."""
    possible = instruction_sets(dtype)
    asked = isa or os.environ.get(ISA_VARIABLE)
    if not asked:
        return possible[0]
    said = f"isa={asked!r}" if isa else f"{ISA_VARIABLE}={asked}"
    if asked not in ISAS:
        raise InputError(f"{said} names no instruction set; expected {', '.join(ISAS)}")
    if asked not in possible:
        raise InputError(
            f"{said} asks for what this machine has not (for {dtype}); it has {', '.join(possible)}"
        )
    return asked
