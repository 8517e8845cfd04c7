"""The `ElmoEmbedder` of AllenNLP up to 0.9: words to all layers, and files to HDF5."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.weights import FloatArray
from elmokit.compat.allennlp.bilm import _ElmoBiLm
from elmokit.compat.allennlp.elmo import batch_to_ids, without_marks
from elmokit.compat.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, Place
from elmokit.errors import InputError

logger = logging.getLogger(__name__)

DEFAULT_BATCH_SIZE = 64


class ElmoEmbedder:
    """The `ElmoEmbedder` of AllenNLP up to 0.9: words in, all layers out, as NumPy arrays."""

    def __init__(
        self,
        options_file: Place = DEFAULT_OPTIONS_FILE,
        weight_file: Place | None = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
    ) -> None:
        """AllenNLP's arguments. The biLM runs on the CPU, whatever `cuda_device` says."""
        if cuda_device >= 0:
            logger.warning("cuda_device=%d: elmokit's engine runs on the CPU", cuda_device)
        self.cuda_device = cuda_device
        self.elmo_bilm = _ElmoBiLm(options_file, weight_file)

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """All layers (B, L+1, T, D) and the mask (B, T)."""
        config = self.elmo_bilm._config
        output = self.elmo_bilm(batch_to_ids(batch, config.char_cnn.max_characters))
        mask = output["mask"]
        layers = [without_marks(layer, mask) for layer in output["activations"]]
        return torch.stack(layers, dim=1), mask[:, 2:]

    def embed_sentence(self, sentence: Sequence[str]) -> FloatArray:
        """All layers (L+1, T, D) of one sentence, which continues from the call before."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[FloatArray]:
        """All layers (L+1, T, D) of every sentence; row i continues from row i of the call before.

        As in AllenNLP, a single empty sentence is not read at all.
        """
        if len(batch) == 1 and not batch[0]:
            config = self.elmo_bilm._config
            return [np.zeros((config.layers, 0, config.dim), np.float32)]
        vectors, _ = self.batch_to_embeddings(batch)
        return [
            sentence[:, : len(words)].detach().cpu().numpy()
            for sentence, words in zip(vectors, batch, strict=True)
        ]

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[FloatArray]:
        """`embed_batch` over any number of sentences, one after another."""
        remaining = iter(sentences)
        while batch := list(islice(remaining, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: Place,
        output_format: str = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """A file of tokenized sentences, one a line, to an HDF5 file of a dataset each.

        The datasets are named by line number, or by the sentence with `use_sentence_keys`;
        `sentence_to_index` leads from a sentence to its number unless `forget_sentences`. The file
        appears when it is whole; `input_file` is closed.
        """
        if output_format not in ("all", "top", "average"):
            raise InputError(
                f"output_format is {output_format!r}; expected 'all', 'top', 'average'"
            )
        with input_file:
            lines = [line.strip() for line in input_file]
        blank = [i for i, line in enumerate(lines) if not line]
        if blank:
            raise InputError(
                f"the input has empty lines, the first is line {blank[0]}: remove them"
            )
        keys = lines if use_sentence_keys else [str(i) for i in range(len(lines))]
        if len(set(keys)) < len(keys):
            twice = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise InputError(f"{twice!r:.80} is there twice: do not use use_sentence_keys")
        index = (
            None if forget_sentences or use_sentence_keys else dict(zip(lines, keys, strict=True))
        )
        vectors = self.embed_sentences((line.split() for line in lines), batch_size)
        chosen = (_chosen(layers, output_format) for layers in vectors)
        _write(Path(output_file_path), zip(keys, chosen, strict=True), index)


def _chosen(layers: FloatArray, output_format: str) -> FloatArray:
    if output_format == "all":
        return layers
    chosen: FloatArray = layers[-1] if output_format == "top" else np.average(layers, axis=0)
    return chosen


def _write(path: Path, datasets: Iterable[tuple[str, FloatArray]], index: object) -> None:
    """The HDF5 layout of `allennlp elmo`; the file appears under its name when it is complete."""
    import h5py

    with tempfile.TemporaryDirectory(prefix=".writing-", dir=path.parent) as folder:
        stage = Path(folder) / path.name
        with h5py.File(stage, "w") as file:
            for key, array in datasets:
                try:
                    file.create_dataset(key, data=array, dtype="float32")
                except (ValueError, OSError) as error:
                    raise InputError(
                        f"HDF5 takes no dataset named {key!r:.80} ({error}); "
                        "do not use use_sentence_keys"
                    ) from None
            if index is not None:
                named = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
                named[0] = json.dumps(index)
        os.replace(stage, path)
