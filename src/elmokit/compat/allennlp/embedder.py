"""AllenNLP's `ElmoEmbedder` (up to version 0.9), which also embeds files to HDF5."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from elmokit.bilm.weights import FloatArray
from elmokit.compat.allennlp.bilm import _ElmoBiLm
from elmokit.compat.allennlp.boundaries import remove_sentence_boundaries
from elmokit.compat.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, PathOrURL
from elmokit.compat.allennlp.indexer import ELMoTokenCharactersIndexer, batch_to_ids
from elmokit.compat.vector_file import write_vectors
from elmokit.errors import InputError

logger = logging.getLogger(__name__)

DEFAULT_BATCH_SIZE = 64


class ElmoEmbedder:
    """AllenNLP's `ElmoEmbedder` (up to version 0.9): all layers of sentences, as NumPy arrays."""

    def __init__(
        self,
        options_file: PathOrURL = DEFAULT_OPTIONS_FILE,
        weight_file: PathOrURL | None = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
    ) -> None:
        """Load a biLM; the arguments are those of AllenNLP. It always runs on the CPU."""
        if cuda_device >= 0:
            logger.warning("cuda_device=%d is ignored: the engine runs on the CPU", cuda_device)
        self.cuda_device = cuda_device
        self.indexer = ELMoTokenCharactersIndexer()
        self.elmo_bilm = _ElmoBiLm(options_file, weight_file)

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return all layers (B, L+1, T, D) and the mask (B, T)."""
        config = self.elmo_bilm._config
        output = self.elmo_bilm(batch_to_ids(batch, config.char_cnn.max_characters))
        mask = output["mask"]
        layers = [remove_sentence_boundaries(layer, mask)[0] for layer in output["activations"]]
        return torch.stack(layers, dim=1), mask[:, 2:]

    def embed_sentence(self, sentence: Sequence[str]) -> FloatArray:
        """Return all layers (L+1, T, D) of one sentence, which continues from the last call."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return all layers (L+1, T, D) of every sentence.

        Sentence i continues from sentence i of the last call. As in AllenNLP, a single empty
        sentence is not read at all.
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
        """Yield all layers of any number of sentences, computed in batches."""
        remaining = iter(sentences)
        while batch := list(islice(remaining, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: PathOrURL,
        output_format: str = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed a file of tokenized sentences, one per line, into an HDF5 file.

        There is one dataset per sentence, named by its line number, or by the sentence itself with
        `use_sentence_keys`; `sentence_to_index` maps sentences to line numbers unless
        `forget_sentences`. The file appears when it is complete; `input_file` is closed.
        """
        if output_format not in ("all", "top", "average"):
            raise InputError(
                f"output_format is {output_format!r}; expected 'all', 'top' or 'average'"
            )
        with input_file:
            lines = [line.strip() for line in input_file]
        blank = [i for i, line in enumerate(lines) if not line]
        if blank:
            raise InputError(
                f"line {blank[0]} of the input, counted from 0, is empty; remove empty lines"
            )
        keys = lines if use_sentence_keys else [str(i) for i in range(len(lines))]
        if len(set(keys)) < len(keys):
            twice = next(key for i, key in enumerate(keys) if key in keys[:i])
            raise InputError(
                f"the sentence {twice!r:.80} occurs twice, so sentences cannot be keys; "
                "set use_sentence_keys=False"
            )
        index = (
            None if forget_sentences or use_sentence_keys else dict(zip(lines, keys, strict=True))
        )
        vectors = self.embed_sentences((line.split() for line in lines), batch_size)
        selected = (_select(layers, output_format) for layers in vectors)
        write_vectors(Path(output_file_path), zip(keys, selected, strict=True), index)


def _select(layers: FloatArray, output_format: str) -> FloatArray:
    if output_format == "all":
        return layers
    selected: FloatArray = layers[-1] if output_format == "top" else np.average(layers, axis=0)
    return selected
