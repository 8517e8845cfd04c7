"""Drop-in replacements for what bilm-tf offers outside of a TensorFlow graph.

    from elmokit.compat.bilm import Batcher, dump_bilm_embeddings   # was: bilm

`dump_bilm_embeddings` and `dump_token_embeddings` write the files that bilm-tf writes, and the
batchers return the ids that it feeds to a graph. The graph itself, `BidirectionalLanguageModel` and
`weight_layers`, needs TensorFlow: importing them from here raises an error that says what to write
instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.compat.allennlp.files import PathOrURL, read_model
from elmokit.compat.vector_file import write_vectors
from elmokit.elmo import Elmo
from elmokit.errors import InputError, ModelNotFound
from elmokit.formats.token_cache import DATASET, NO_WORD
from elmokit.text.characters import BOS, EOS, encode_sentences
from elmokit.text.vocabulary import Vocabulary

_INSTEAD = {
    "BidirectionalLanguageModel": (
        'vectors = elmokit.Elmo.load("weights.hdf5", state="carry").embed(sentences, "all")'
    ),
    "weight_layers": (
        'elmokit.nn.ElmoEmbedding("weights.hdf5", mixes=2), whose `penalty` is the l2_coef'
    ),
}


def __getattr__(name: str) -> Any:
    if name in _INSTEAD:
        raise ImportError(
            f"bilm-tf's {name} builds a graph of TensorFlow, which elmokit does not use. Write "
            f"instead: {_INSTEAD[name]}"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Batcher:
    """bilm-tf's and simple_elmo's `Batcher`: tokenized sentences to character ids."""

    def __init__(
        self, lm_vocab_file: object, max_token_length: int, limit: int | None = None
    ) -> None:
        """Create a batcher.

        Args:
            lm_vocab_file: Has no effect: the ids of a word depend on its characters alone.
            max_token_length: Characters per word, including its two marks.
            limit: Has no effect.
        """
        self._max_token_length = max_token_length

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
        """Return the character ids (N, T+2, C) of sentences with their marks; 0 is padding."""
        marked = [[BOS, *sentence, EOS] for sentence in sentences]
        return encode_sentences(marked, self._max_token_length)


class TokenBatcher:
    """bilm-tf's `TokenBatcher`: tokenized sentences to the lines of their words in a vocabulary."""

    def __init__(self, lm_vocab_file: str | Path) -> None:
        """Read a vocabulary file, one word per line, with `<S>`, `</S>` and `<UNK>`."""
        words = _read_vocabulary(lm_vocab_file)
        self._lm_vocab = Vocabulary(words)
        if self._lm_vocab.missing_marks():
            raise InputError(
                f"{os.fspath(lm_vocab_file)} lacks {', '.join(self._lm_vocab.missing_marks())}; "
                "expected a vocabulary file of bilm-tf"
            )

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
        """Return the numbers (N, T+2) of the words and marks, counted from 1; 0 is padding."""
        longest = max(map(len, sentences), default=0)
        ids_NT = np.zeros((len(sentences), longest + 2), np.int64)
        for row, sentence in zip(ids_NT, sentences, strict=True):
            marked = [BOS, *sentence, EOS]
            row[: len(marked)] = [self._lm_vocab.index_of(word) + 1 for word in marked]
        return ids_NT


def dump_bilm_embeddings(
    vocab_file: object,
    dataset_file: str | Path,
    options_file: PathOrURL,
    weight_file: PathOrURL | None,
    outfile: str | Path,
) -> None:
    """Write all layers (L+1, T, D) of every line of a file to HDF5, under the line's number.

    As in bilm-tf, each sentence continues from the state after the one before.

    Args:
        vocab_file: Has no effect: the vectors depend on the characters alone.
        dataset_file: Text file with one tokenized sentence per line.
        options_file: Path or address of the options.json of the model.
        weight_file: Path or address of its HDF5 file.
        outfile: HDF5 file to write. It appears when it is complete.
    """
    elmo = Elmo(read_model(options_file, weight_file), state="carry")

    def embed() -> Iterator[tuple[str, FloatArray]]:
        with _existing(dataset_file, "text file").open(encoding="utf-8") as lines:
            for i, line in enumerate(lines):
                yield str(i), elmo.embed([line.split()], "all")[0]

    write_vectors(Path(outfile), embed())


def dump_token_embeddings(
    vocab_file: str | Path,
    options_file: PathOrURL,
    weight_file: PathOrURL | None,
    outfile: str | Path,
) -> None:
    """Write the context-free vectors (V, P) of a vocabulary to HDF5, as the dataset `embedding`.

    Args:
        vocab_file: Text file with one word per line, `<S>`, `</S>` and `<UNK>` included.
        options_file: Path or address of the options.json of the model.
        weight_file: Path or address of its HDF5 file.
        outfile: HDF5 file to write. It appears when it is complete.
    """
    words = _read_vocabulary(vocab_file)
    elmo = Elmo(read_model(options_file, weight_file), state="zero")
    vectors_VP = np.empty((len(words), elmo.config.lstm.width), np.float32)
    for row, vectors_1D in zip(vectors_VP, elmo.stream(([word] for word in words), 0), strict=True):
        row[:] = vectors_1D[0, : len(row)]  # layer 0 is the vector twice
    write_vectors(Path(outfile), [(DATASET, vectors_VP)])


def _read_vocabulary(path: str | Path) -> list[str]:
    """Return the words of a vocabulary file, as bilm-tf counts them."""
    words = (word.strip() for word in Vocabulary.read(_existing(path, "vocabulary file")))
    return [word for word in words if word != NO_WORD]


def _existing(path: str | Path, kind: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise ModelNotFound(f"no file {path}; expected a {kind}")
    return file
