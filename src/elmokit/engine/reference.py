"""The network in plain NumPy, written to be read side by side with the paper.

All other implementations are tested against this one. It runs whole batches and computes only what
is needed, with the same results as the original code:

- only the characters of a word are convolved; the padding after them is one constant window;
- the input products of an LSTM layer are one matrix product for many steps;
- a step multiplies only the sentences that still have words (see `batching.py`).

It knows nothing about strings and files, and keeps no state. Shape letters: U distinct words,
C characters, E character embedding, F filters, N words of a batch, P width, H cells,
D = 2P, L LSTM layers, B sentences.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from elmokit.bilm.arrays import check_room_for_products
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.state import State
from elmokit.bilm.weights import DIRECTIONS, FORGET_BIAS, FloatArray, Weights
from elmokit.engine.batching import BATCH_WORDS, IntArray, Packing, chunk_steps

WINDOWS_AT_ONCE = 4096
"""Character windows convolved together: a bound on temporary memory."""
GATES_AT_ONCE = 1 << 23
"""Gate pre-activations computed together: a bound on temporary memory."""


class ReferenceNetwork:
    """A frozen biLM that runs on NumPy."""

    name = "reference"
    batch_words = BATCH_WORDS
    batch_sentences: int | None = None

    def __init__(self, config: BiLMConfig, weights: Weights, threads: int | None = None) -> None:
        """Rearrange the weights for speed, with the gates in the order i, f, o, j.

        Args:
            config: Architecture of the model.
            weights: Named arrays; they may be read from a file at each use, and of any float type.
            threads: Limit on the threads of NumPy's BLAS; None for no limit.
        """
        self.config = config
        self._threads = threads
        self._blas: Any = None

        def get(name: str) -> FloatArray:
            return np.ascontiguousarray(weights[name], dtype=np.float32)

        cnn, lstm = config.char_cnn, config.lstm
        self._embedding_CE = get("characters.embedding")
        self._convolutions = [
            (get(f"characters.convolution.{i}.weight"), get(f"characters.convolution.{i}.bias"))
            for i in range(len(cnn.filters))
        ]
        self._highways = [
            tuple(
                get(f"characters.highway.{k}.{gate}.{part}")
                for gate in ("carry", "transform")
                for part in ("weight", "bias")
            )
            for k in range(cnn.highways)
        ]
        self._projection = (
            (get("characters.projection.weight"), get("characters.projection.bias"))
            if cnn.projection
            else None
        )
        self._layers = [
            [
                _Layer(
                    input=_reorder_gates(get(f"{direction}.{layer}.input.weight")),
                    recurrent=_reorder_gates(get(f"{direction}.{layer}.recurrent.weight")),
                    bias=_gate_bias(get(f"{direction}.{layer}.bias")),
                    projection=(
                        get(f"{direction}.{layer}.projection.weight") if lstm.projection else None
                    ),
                )
                for direction in DIRECTIONS
            ]
            for layer in range(lstm.layers)
        ]

    # -- characters to word vectors ------------------------------------------------------------

    def word_vectors(self, ids_UC: npt.NDArray[np.int16], lengths_U: IntArray) -> FloatArray:
        """Return layer 0 of distinct words, given as characters: context-free vectors (U, P)."""
        with self._limited_threads():
            x_UF = np.empty((len(ids_UC), self.config.char_cnn.n_filters), np.float32)
            for words, length in _groups_of_equal_length(lengths_U):
                x_UF[words] = self._convolve(ids_UC[words], length)
            for carry, carry_bias, transform, transform_bias in self._highways:
                gate_UF = _sigmoid(x_UF @ carry + carry_bias)
                new_UF = np.maximum(x_UF @ transform + transform_bias, 0)
                x_UF = gate_UF * new_UF + (1 - gate_UF) * x_UF
            if self._projection is not None:
                weight, bias = self._projection
                x_UF = x_UF @ weight + bias
            return x_UF

    def _convolve(self, ids_UC: npt.NDArray[np.int16], length: int) -> FloatArray:
        """Return the filters of words of one length: convolution, max-pooling, activation."""
        words, longest = ids_UC.shape
        pooled = []
        for weight_WEF, bias_F in self._convolutions:
            width, embedding, count = weight_WEF.shape
            # Windows that start after the word see only padding and are all equal: one is enough.
            windows = min(length + 1, longest - width + 1)
            seen_UC = ids_UC[:, : windows + width - 1]
            chars_UCE = self._embedding_CE[seen_UC]
            windows_UXEW = sliding_window_view(chars_UCE, width, axis=1)
            flat = windows_UXEW.transpose(0, 1, 3, 2).reshape(-1, width * embedding)
            scores_UXF = (flat @ weight_WEF.reshape(-1, count)).reshape(words, windows, count)
            pooled.append(scores_UXF.max(axis=1) + bias_F)
        x_UF: FloatArray = np.concatenate(pooled, axis=1)
        relu = self.config.char_cnn.activation == "relu"
        return np.maximum(x_UF, 0, out=x_UF) if relu else np.tanh(x_UF, out=x_UF)

    # -- word vectors to contextual vectors ----------------------------------------------------

    def contextualize(
        self, words_NP: FloatArray, packing: Packing, state: State
    ) -> tuple[FloatArray, State]:
        """Return all layers (L+1, N, D) of a packed batch, and the state after it.

        Row b of the state belongs to the sentence of rank b. Layer 0 is the word vector twice.
        """
        width = self.config.lstm.width
        layers_LND = np.empty((self.config.layers, len(words_NP), 2 * width), np.float32)
        layers_LND[0, :, :width] = layers_LND[0, :, width:] = words_NP
        hidden, cell = state.hidden.copy(), state.cell.copy()
        with self._limited_threads():
            for side in range(2):
                # The backward model is the same network reading every sentence from its end.
                x_NP = words_NP if side == 0 else words_NP[packing.mirror]
                for depth, layer in enumerate(self._layers):
                    out_NP = self._lstm(
                        layer[side], x_NP, packing.alive, hidden[depth, side], cell[depth, side]
                    )
                    if depth > 0 and self.config.lstm.skip:
                        out_NP += x_NP
                    x_NP = out_NP
                    half_NP = layers_LND[depth + 1, :, side * width : (side + 1) * width]
                    half_NP[:] = x_NP if side == 0 else x_NP[packing.mirror]
        return layers_LND, State(hidden, cell)

    def _lstm(
        self,
        layer: _Layer,
        x_NP: FloatArray,
        alive_T: IntArray,
        h_BP: FloatArray,
        c_BH: FloatArray,
    ) -> FloatArray:
        """Run one layer in one direction; h and c are updated in place to the final states."""
        lstm, cells = self.config.lstm, self.config.lstm.cells
        out_NP = np.empty((len(x_NP), lstm.width), np.float32)
        row = 0
        for steps in chunk_steps(alive_T, max(1, GATES_AT_ONCE // (4 * cells))):
            gates_chunk = x_NP[row : row + sum(steps)] @ layer.input
            gates_chunk += layer.bias
            start = row
            for live in steps:
                gates = gates_chunk[row - start : row - start + live]
                gates += h_BP[:live] @ layer.recurrent
                _sigmoid(gates[:, : 3 * cells], out=gates[:, : 3 * cells])
                i, f, o, j = np.split(gates, 4, axis=1)
                np.tanh(j, out=j)

                c = c_BH[:live]
                c *= f
                i *= j
                c += i
                if lstm.cell_clip is not None:
                    np.clip(c, -lstm.cell_clip, lstm.cell_clip, out=c)
                h = np.tanh(c)
                h *= o
                if layer.projection is not None:
                    h = h @ layer.projection
                    if lstm.projection_clip is not None:
                        np.clip(h, -lstm.projection_clip, lstm.projection_clip, out=h)
                h_BP[:live] = h
                out_NP[row : row + live] = h
                row += live
        return out_NP

    @contextlib.contextmanager
    def _limited_threads(self) -> Iterator[None]:
        """Limit the threads of NumPy's BLAS to the number that was given."""
        check_room_for_products(self._threads or 1)
        if self._threads is None:
            yield
            return
        if self._blas is None:
            from threadpoolctl import ThreadpoolController

            self._blas = ThreadpoolController()
        with self._blas.limit(limits=self._threads, user_api="blas"):
            yield


class _Layer(NamedTuple):
    """The weights of one LSTM layer in one direction, gates in the order i, f, o, j."""

    input: FloatArray
    recurrent: FloatArray
    bias: FloatArray
    projection: FloatArray | None


def _reorder_gates(weight: FloatArray) -> FloatArray:
    """Reorder the gates i, j, f, o to i, f, o, j, so that the three sigmoids are adjacent."""
    i, j, f, o = np.split(weight, 4, axis=-1)
    return np.concatenate([i, f, o, j], axis=-1)


def _gate_bias(bias: FloatArray) -> FloatArray:
    """Return the bias with reordered gates and `FORGET_BIAS` added."""
    i, j, f, o = np.split(bias, 4)
    return np.concatenate([i, f + np.float32(FORGET_BIAS), o, j])


def _sigmoid(x: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return σ(x) = (1 + tanh(x/2)) / 2: it cannot overflow, and NumPy's tanh is vectorized."""
    half = np.multiply(x, np.float32(0.5), out=out)
    np.tanh(half, out=half)
    half += np.float32(1)
    half *= np.float32(0.5)
    return half


def _groups_of_equal_length(lengths_U: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Yield word indices and their common length, at most `WINDOWS_AT_ONCE` windows at a time."""
    order = np.argsort(lengths_U, kind="stable")
    distinct, starts = np.unique(lengths_U[order], return_index=True)
    for length, words in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
        at_once = max(1, WINDOWS_AT_ONCE // (length + 1))
        for start in range(0, len(words), at_once):
            yield words[start : start + at_once], length
