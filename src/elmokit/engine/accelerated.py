"""The network of `reference.py` in PyTorch, for graphics processors.

It has the same two methods and agrees with the reference to 1e-5. It runs large batches, without
padding, both directions in one product; only the character ids, the word vectors and the layers
travel between the processors. There is no cuDNN in it, whose LSTM has no clips and whose
convolutions round to TF32. torch is imported when a network is made, so that embedding on the CPU
never imports it.

Shape letters: U distinct words, C characters, E character embedding, X windows, F filters, N words
of a batch, P width, H cells, G = 4H gates, D = 2P, L LSTM layers, B sentences; 2 directions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.state import State
from elmokit.bilm.weights import DIRECTIONS, FORGET_BIAS, FloatArray, Weights
from elmokit.engine.batching import BATCH_WORDS, IntArray, Packing, chunk_steps
from elmokit.errors import ElmoError, InputError
from elmokit.extras import require

if TYPE_CHECKING:
    from torch import Tensor

CPU, TORCH_CPU = "cpu", "cpu-torch"
"""Devices of this computer's processor: without torch (the default), and with it."""
ACCELERATOR_BATCH_WORDS = 16384
"""Words per batch on a graphics processor, which needs many rows to be busy."""
SCORES_AT_ONCE = 1 << 25
"""Scores of character windows computed together: a bound on temporary memory."""
GATES_AT_ONCE = 1 << 25
"""Gate pre-activations computed together, in each direction: a bound on temporary memory."""


def available_devices() -> list[str]:
    """Return the devices that a model can run on here; `"cpu"` is always one of them."""
    try:
        import torch
    except ImportError:
        return [CPU]
    devices = [CPU, TORCH_CPU]
    devices += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    return devices


class TorchNetwork:
    """A frozen biLM that runs on a device of PyTorch.

    It may be called from several threads. A forked process can use it on the CPU only.
    """

    def __init__(
        self, config: BiLMConfig, weights: Weights, device: str, threads: int | None = None
    ) -> None:
        """Copy the weights to the device, with the gates in the order i, f, o, j.

        Args:
            config: Architecture of the model.
            weights: Named arrays; they may be memory-mapped and of any float type.
            device: `"cpu-torch"`, `"cuda"`, `"cuda:1"` (the second processor), or `"mps"`.
            threads: Threads of PyTorch on the CPU; None for its own number.
        """
        require("torch", f"Devices such as {device!r}")
        import torch

        self.config = config
        self.device = _check_device(device)
        self._torch = torch
        self._device = torch.device("cpu" if self.device == TORCH_CPU else self.device)
        self._on_cpu = self._device.type == "cpu"
        self._threads = threads
        self._process = os.getpid()
        self.batch_words = BATCH_WORDS if self._on_cpu else ACCELERATOR_BATCH_WORDS
        self.batch_sentences: int | None = None

        def get(name: str) -> Tensor:
            return self._send(np.array(weights[name], np.float32, order="C"))

        def both(name: str) -> Tensor:
            """Return the arrays of the two directions, one above the other."""
            return torch.stack([get(f"{direction}.{name}") for direction in DIRECTIONS])

        cnn, lstm = config.char_cnn, config.lstm
        self._embedding_CE = get("characters.embedding")
        self._convolutions = [
            (
                get(f"characters.convolution.{i}.weight").flatten(0, 1),
                get(f"characters.convolution.{i}.bias"),
            )
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
        self._layers = []
        for depth in range(lstm.layers):
            bias_2G = both(f"{depth}.bias")
            bias_2G[:, 2 * lstm.cells : 3 * lstm.cells] += FORGET_BIAS
            self._layers.append(
                _TorchLayer(
                    input=self._reorder_gates(both(f"{depth}.input.weight")),
                    recurrent=self._reorder_gates(both(f"{depth}.recurrent.weight")),
                    bias=self._reorder_gates(bias_2G)[:, None],
                    projection=both(f"{depth}.projection.weight") if lstm.projection else None,
                )
            )

    @property
    def name(self) -> str:
        """Name shown to users."""
        return f"torch ({self._device}, float32)"

    def _reorder_gates(self, weight: Tensor) -> Tensor:
        """Reorder the gates i, j, f, o to i, f, o, j, so that the three sigmoids are adjacent."""
        i, j, f, o = weight.chunk(4, dim=-1)
        return self._torch.cat([i, f, o, j], dim=-1)

    def _send(self, array: npt.NDArray[Any]) -> Tensor:
        return self._torch.from_numpy(array).to(self._device)

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Turn gradients off and set the number of threads, for the time of a call."""
        torch = self._torch
        threads = self._threads
        if os.getpid() != self._process:
            if not self._on_cpu:
                raise ElmoError(
                    f"a forked process cannot use {self.device}; load the model in that process, "
                    "or start it with multiprocessing.get_context('spawn')"
                )
            threads = 1  # the threads of OpenMP did not survive the fork, and would be waited for
        previous = torch.get_num_threads()
        if threads is not None and self._on_cpu and threads != previous:
            torch.set_num_threads(threads)
        else:
            threads = None
        try:
            with torch.inference_mode():
                yield
        finally:
            if threads is not None and os.getpid() == self._process:
                torch.set_num_threads(previous)

    # -- characters to word vectors ------------------------------------------------------------

    def word_vectors(self, ids_UC: npt.NDArray[np.int16], lengths_U: IntArray) -> FloatArray:
        """Return layer 0 of distinct words, given as characters: context-free vectors (U, P)."""
        order_U = np.argsort(lengths_U, kind="stable")
        widest = max(count for _, count in self.config.char_cnn.filters)
        out_UP = np.empty((len(ids_UC), self.config.lstm.width), np.float32)
        with self._prepared():
            start = 0
            while start < len(order_U):
                # Words of similar length; the longest decides, and it is the last.
                stop = start + max(1, SCORES_AT_ONCE // (widest * ids_UC.shape[1]))
                words = order_U[start:stop]
                longest = int(lengths_U[words[-1]])
                x_UF = self._convolve(self._send(ids_UC[words].astype(np.int64)), longest)
                out_UP[words] = self._project(x_UF).cpu().numpy()
                start = stop
        return out_UP

    def _convolve(self, ids_UC: Tensor, longest: int) -> Tensor:
        """Return the filters of words: convolution, max-pooling, activation."""
        pooled = []
        for (weight_YF, bias_F), (width, _) in zip(
            self._convolutions, self.config.char_cnn.filters, strict=True
        ):
            # Windows that start after the word see only padding and are all equal: one is enough.
            windows = min(longest + 1, ids_UC.shape[1] - width + 1)
            chars_UCE = self._embedding_CE[ids_UC[:, : windows + width - 1]]
            windows_UXEW = chars_UCE.unfold(1, width, 1)
            scores_UXF = windows_UXEW.transpose(2, 3).flatten(2) @ weight_YF
            pooled.append(scores_UXF.amax(dim=1) + bias_F)
        x_UF = self._torch.cat(pooled, dim=1)
        return x_UF.relu() if self.config.char_cnn.activation == "relu" else x_UF.tanh()

    def _project(self, x_UF: Tensor) -> Tensor:
        """Return the word vectors (U, P): highway layers and projection."""
        for carry, carry_bias, transform, transform_bias in self._highways:
            gate_UF = (x_UF @ carry + carry_bias).sigmoid()
            new_UF = (x_UF @ transform + transform_bias).relu()
            x_UF = gate_UF * new_UF + (1 - gate_UF) * x_UF
        if self._projection is not None:
            weight, bias = self._projection
            x_UF = x_UF @ weight + bias
        return x_UF

    # -- word vectors to contextual vectors ----------------------------------------------------

    def contextualize(
        self, words_NP: FloatArray, packing: Packing, state: State
    ) -> tuple[FloatArray, State]:
        """Return all layers (L+1, N, D) of a packed batch, and the state after it.

        Row b of the state belongs to the sentence of rank b. Layer 0 is the word vector twice.
        """
        torch = self._torch
        with self._prepared():
            forward_NP = self._send(np.ascontiguousarray(words_NP, np.float32))
            mirror_N = self._send(np.ascontiguousarray(packing.mirror, np.int64))
            hidden = self._send(np.array(state.hidden, np.float32, order="C"))
            cell = self._send(np.array(state.cell, np.float32, order="C"))
            # The backward model is the same network reading every sentence from its end.
            x_2NP = torch.stack([forward_NP, forward_NP[mirror_N]])
            layers = [torch.cat([forward_NP, forward_NP], dim=1)]
            for depth, layer in enumerate(self._layers):
                out_2NP = self._lstm(layer, x_2NP, packing.alive, hidden[depth], cell[depth])
                if depth > 0 and self.config.lstm.skip:
                    out_2NP += x_2NP
                x_2NP = out_2NP
                layers.append(torch.cat([x_2NP[0], x_2NP[1][mirror_N]], dim=1))
            layers_LND: FloatArray = torch.stack(layers).cpu().numpy()
            return layers_LND, State(hidden.cpu().numpy(), cell.cpu().numpy())

    def _lstm(
        self, layer: _TorchLayer, x_2NP: Tensor, alive_T: IntArray, h_2BP: Tensor, c_2BH: Tensor
    ) -> Tensor:
        """Run one layer in both directions; h and c are updated in place to the final states."""
        torch, lstm, cells = self._torch, self.config.lstm, self.config.lstm.cells
        out_2NP: Tensor = torch.empty_like(x_2NP)
        row = 0
        for steps in chunk_steps(alive_T, max(1, GATES_AT_ONCE // (4 * cells))):
            start = row
            gates_chunk = torch.baddbmm(layer.bias, x_2NP[:, row : row + sum(steps)], layer.input)
            for live in steps:
                gates_x = gates_chunk[:, row - start : row - start + live]
                h, c = h_2BP[:, :live], c_2BH[:, :live]
                gates = torch.baddbmm(gates_x, h, layer.recurrent)
                i, f, o = gates[..., : 3 * cells].sigmoid_().chunk(3, dim=2)
                c.mul_(f).addcmul_(i, gates[..., 3 * cells :].tanh_())
                if lstm.cell_clip is not None:
                    c.clamp_(-lstm.cell_clip, lstm.cell_clip)
                new = c.tanh().mul_(o)
                if layer.projection is not None:
                    new = torch.bmm(new, layer.projection)
                    if lstm.projection_clip is not None:
                        new.clamp_(-lstm.projection_clip, lstm.projection_clip)
                h.copy_(new)
                out_2NP[:, row : row + live] = new
                row += live
        return out_2NP


class _TorchLayer(NamedTuple):
    """The weights of one LSTM layer in both directions, gates in the order i, f, o, j."""

    input: Tensor
    recurrent: Tensor
    bias: Tensor
    projection: Tensor | None


def _check_device(device: str) -> str:
    """Return the device, or raise `InputError` if it is unknown or not there."""
    devices = available_devices()
    if device in devices or (device == "cuda" and "cuda:0" in devices):
        return device
    known = device in ("cuda", "mps") or (
        device.startswith("cuda:") and device.removeprefix("cuda:").isdecimal()
    )
    problem = "is not available here" if known else "is not a device that elmokit knows"
    raise InputError(f"device {device!r} {problem}; available: {', '.join(devices)}")
