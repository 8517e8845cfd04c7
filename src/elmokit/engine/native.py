"""The network of `reference.py` in the compiled kernel.

It has the same two methods and agrees with the reference to 1e-5. A sentence gets the same bits
whatever its batch and the number of threads. Two dtypes trade precision for speed and memory:
`"bfloat16"` rounds the weights to 8 significant bits (see `bfloat16.py`), and `"int8"` quantizes
weights and activations to 255 levels, with one scale per column of the weights and per row of the
activations.

The kernel's source is in `src/native/`; it is compiled into the wheel as `elmokit._native`. Where
it is missing, `kernel_available()` is false and `kernel_error()` says why. There is no fallback
here: `networks.py` chooses.

Shape letters: U distinct words, C characters, N words of a batch, P width, D = 2P, L layers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from elmokit.bilm.arrays import empty_array
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.state import State
from elmokit.bilm.weights import DIRECTIONS, FloatArray, Weights
from elmokit.engine.batching import BATCH_WORDS, IntArray, Packing
from elmokit.engine.work import WEIGHT_BYTES, step_weights
from elmokit.errors import InputError, MissingExtra

try:
    from elmokit import _native
except ImportError as error:
    _import_error = f"elmokit._native cannot be imported: {error}"
else:
    _import_error = ""

Dtype = Literal["float32", "bfloat16", "int8"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
"""How weights may be stored and multiplied, the most exact first."""

Products = Literal["float32", "bfloat16"]
"""How the factors of matrix products are rounded in training."""

ISA_VARIABLE = "ELMOKIT_ISA"
"""Environment variable that selects an instruction set, for tests and comparisons."""
ISAS = (
    "amx",
    "avx512_bf16",
    "avx512",
    "avx2",
    "neon-i8mm",
    "neon-dotprod",
    "neon",
    "portable",
    "emulated_bf16",
)
"""Instruction sets that the kernel is compiled for: x86-64, AArch64, any; fastest first.

Those of `BFLOAT16_ISAS` exist for that dtype only; `emulated_bf16` computes what `avx512_bf16` does
on any machine, for tests.
"""
BFLOAT16_ISAS = ("amx", "avx512_bf16", "emulated_bf16")
"""Instruction sets that multiply bfloat16 by bfloat16; others widen the weights to float32."""
THREADS_PER_BATCH, MOST_BATCHES = 4, 8
"""For each so many threads a batch has `BATCH_WORDS` more words, up to so many times."""
CACHE_BYTES, SENTENCES_PER_READ = 32 << 20, 48
"""Weights of a step that do not fit into so much cache are worth reading for so many sentences.

As `src/native/plan.h` has them.
"""
CONTAINER_LIMIT = Path("/sys/fs/cgroup/cpu.max")
"""File in which Linux states the CPU quota of a container."""


def check_dtype(dtype: str) -> Dtype:
    """Return a dtype, or raise `InputError` if it is none of `DTYPES`."""
    for known in DTYPES:
        if dtype == known:
            return known
    raise InputError(f"dtype is {dtype!r}; expected 'float32', 'bfloat16' or 'int8'")


def kernel_available() -> bool:
    """Return whether the kernel was built and can be imported."""
    return not _import_error


def kernel_error() -> str:
    """Return why the kernel is not available; an empty string if it is."""
    return _import_error


def instruction_sets(dtype: Dtype = "float32") -> list[str]:
    """Return the members of `ISAS` that this CPU supports, fastest first."""
    return _native.instruction_sets(dtype=dtype)


def instruction_set(dtype: Dtype = "float32") -> str:
    """Return the default instruction set: `ELMOKIT_ISA` if it is set, else the fastest."""
    return _choose_isa(None, dtype)


def measure_products(isa: str, dtype: Dtype, threads: int, seconds: float) -> float:
    """Return how many products per second an instruction set multiplies and adds in registers."""
    return _native.measure_products(
        instruction_set=isa, dtype=dtype, threads=threads, seconds=seconds
    )


def measure_reads(isa: str, size: int, threads: int, seconds: float) -> float:
    """Return how many bytes per second threads read, which share an array of this size."""
    return _native.measure_reads(instruction_set=isa, bytes=size, threads=threads, seconds=seconds)


def words_per_batch(threads: int) -> int:
    """Return the number of words per batch: more for many threads, so that each gets sentences."""
    return BATCH_WORDS * min(max(threads // THREADS_PER_BATCH, 1), MOST_BATCHES)


class BatchPlan(NamedTuple):
    """How the kernel divides a batch among threads; see `src/native/plan.h`."""

    subteams: int
    """Groups of threads that run at the same time, each with a task of its own."""
    members: int
    """Threads of a subteam, which share every step of a task."""
    blocks: int
    """Blocks of sentences; a task is a block in one direction."""


def plan_batch(config: BiLMConfig, sentences: int, threads: int, dtype: Dtype) -> BatchPlan:
    """Return how the kernel divides a batch of this many sentences."""
    products = step_weights(config)
    return BatchPlan(
        *_native.plan(
            threads=threads,
            sentences=sentences,
            step_products=products,
            step_bytes=products * WEIGHT_BYTES[dtype],
        )
    )


def usable_processors() -> int:
    """Return the number of processors this process may use, which can be fewer than exist."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        allowed = os.cpu_count() or 1
    return max(1, math.floor(min(allowed, _container_limit())))


def _container_limit() -> float:
    """Return the CPU quota of the container, in processors; infinity if there is no limit."""
    try:
        quota, period = CONTAINER_LIMIT.read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no container, or "max"
        return math.inf


class NativeNetwork:
    """A frozen biLM that runs in the compiled kernel.

    It may be called from several threads, which take turns, and in forked processes.
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
        """Pack the weights for the kernel.

        Args:
            config: Architecture of the model.
            weights: Named arrays; they may be read from a file at each use, and of any float type.
            threads: Number of threads; None for as many as the process may use.
            dtype: How weights are stored and multiplied.
            isa: Instruction set; None for `ELMOKIT_ISA` if it is set, else the fastest.
        """
        if not kernel_available():
            raise MissingExtra(f"the compiled kernel is missing: {kernel_error()}")
        check_dtype(dtype)
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}; expected 1 or more, or None for all")
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
            dtype=dtype,
            instruction_set=self.isa,
            threads=self.threads,
        )
        self._load(weights)

    @property
    def batch_words(self) -> int:
        """Number of words per batch."""
        return words_per_batch(self.threads)

    @property
    def batch_sentences(self) -> int | None:
        """Number of sentences from which on a batch may be half as large; None for no number.

        The layers of a large model need much memory, and a thread that runs one direction alone
        gains nothing from more sentences. More threads need them, to divide them.
        """
        step_bytes = step_weights(self.config) * WEIGHT_BYTES[self.dtype]
        return SENTENCES_PER_READ if self.threads <= 2 and 2 * step_bytes > CACHE_BYTES else None

    @property
    def buffer_bytes(self) -> int:
        """Size in bytes of the kernel's buffers, which are reused from call to call."""
        return self._network.buffer_bytes()

    @property
    def name(self) -> str:
        """Name shown to users, with instruction set and arithmetic."""
        return f"kernel ({self.isa}, {self.dtype})"

    def _load(self, weights: Weights) -> None:
        """Copy the arrays into the kernel one by one, so that conversions need little memory."""
        cnn, lstm, network = self.config.char_cnn, self.config.lstm, self._network

        def load(into: Callable[..., None], *names: str) -> None:
            into(*(np.ascontiguousarray(weights[name], dtype=np.float32) for name in names))

        # The largest first: at the end, little memory is needed besides that of all weights.
        for layer in range(lstm.layers):
            for side, direction in enumerate(DIRECTIONS):
                names = ["input.weight", "recurrent.weight", "bias"]
                names += ["projection.weight"] if lstm.projection else []
                load(
                    partial(network.load_lstm, layer, side),
                    *(f"{direction}.{layer}.{name}" for name in names),
                )
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

    def word_vectors(self, ids_UC: npt.NDArray[np.int16], lengths_U: IntArray) -> FloatArray:
        """Return layer 0 of distinct words, given as characters: context-free vectors (U, P)."""
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
        """Return all layers (L+1, N, D) of a packed batch, and the state after it.

        Row b of the state belongs to the sentence of rank b. Layer 0 is the word vector twice.
        """
        layers_LND = empty_array((self.config.layers, len(words_NP), self.config.dim))
        hidden = np.array(state.hidden, np.float32, order="C")  # copies, which are overwritten
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
    """Return the instruction set of the argument or the environment, else the fastest."""
    supported = instruction_sets(dtype)
    requested = isa or os.environ.get(ISA_VARIABLE)
    if not requested:
        return supported[0]
    setting = f"isa={requested!r}" if isa else f"{ISA_VARIABLE}={requested}"
    if requested not in ISAS:
        raise InputError(f"{setting} is not an instruction set; expected {', '.join(ISAS)}")
    if requested not in supported:
        raise InputError(
            f"{setting}: this CPU does not support {requested} for {dtype}; "
            f"it supports {', '.join(supported)}"
        )
    return requested
