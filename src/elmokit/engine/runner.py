"""From sentences to layers: characters, word cache, packing and a network combined.

The network is `reference.py`, the compiled kernel through `native.py`, or PyTorch through
`accelerated.py`; all have the same two methods. The LSTM state is an argument and a result. Nothing
here deals with raw text or files.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import pack
from elmokit.engine.lexicon import Lexicon
from elmokit.engine.networks import Network
from elmokit.engine.state import PROTEIN_WARM_UP, WARM_UP
from elmokit.engine.wordcache import WordCache

ComputeWordVectors = Callable[[list[str]], FloatArray]
"""Computes the context-free vectors (U, P) of words."""
LayerSelector = Callable[[FloatArray], FloatArray]
"""Selects or combines the layers (L+1, N, D) of a batch to (…, N, D), before they are copied."""


class StoredWordVectors(Protocol):
    """Word vectors that were computed earlier, such as the files of `formats/token_cache.py`."""

    def check(self, width: int, compute: ComputeWordVectors) -> None:
        """Raise an error unless the vectors are those of this model."""

    def look_up(self, words: Sequence[str], compute: ComputeWordVectors) -> FloatArray:
        """Return the vectors of distinct words; `compute` is called for those not stored."""


class Runner:
    """Runs a biLM on batches of tokenized sentences."""

    def __init__(self, bilm: BiLM, network: Network, cache_bytes: int) -> None:
        """Prepare to run a model.

        Args:
            bilm: The model.
            network: What computes its layers.
            cache_bytes: Upper bound on the memory of the word cache.
        """
        self.config = bilm.config
        self._network = network
        self._characters = bilm.characters
        self._reads_residues = bilm.reads_residues
        self._lexicon = Lexicon.from_bilm(bilm)
        self._stored: StoredWordVectors | None = None
        self._warned_of_cut = False
        self._cache_bytes = cache_bytes
        self.clear_word_cache()

    @property
    def engine(self) -> str:
        """Name of the network."""
        return self._network.name

    @property
    def batch_words(self) -> int:
        """Number of words per batch that suits the network."""
        return self._network.batch_words

    @property
    def batch_sentences(self) -> int | None:
        """Number of sentences from which on a batch may be half as large; None for no number."""
        return self._network.batch_sentences

    @property
    def marks(self) -> tuple[str, str]:
        """The words that mark the beginning and the end of a sentence."""
        return self._characters.marks

    @property
    def stored_word_vectors(self) -> StoredWordVectors | None:
        """The word vectors that are looked up before any are computed."""
        return self._stored

    def use_stored_word_vectors(self, stored: StoredWordVectors, *, check: bool = True) -> None:
        """Look up these word vectors instead of computing them.

        Args:
            stored: The word vectors.
            check: Raise an error if they are not those of this model.
        """
        if check:
            stored.check(self.config.lstm.width, self._compute)
        self._stored = stored

    def clear_word_cache(self) -> None:
        """Forget all computed word vectors."""
        self._cache = WordCache(self.config.lstm.width, self._cache_bytes)

    def run(
        self, sentences: Sequence[Sequence[str]], state: State, select: LayerSelector
    ) -> tuple[list[FloatArray], State]:
        """Run one batch: the selected layers (…, T, D) of each sentence, and the state after it.

        Row i of the state belongs to sentence i. An empty sentence has no vectors, but its sentence
        marks are read, as in bilm-tf and AllenNLP.
        """
        return self._run(self._mark(sentences), state, select, trim=1)

    def embed(
        self, sentences: Sequence[Sequence[str]], state: State, select: LayerSelector
    ) -> list[FloatArray]:
        """Like `run`, but without the state after the batch, which takes memory."""
        return self._run(self._mark(sentences), state, select, trim=1, keep_state=False)[0]

    def _mark(self, sentences: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return sentences with the words that mark their beginning and their end."""
        begin, end = self.marks
        return [(begin, *sentence, end) for sentence in sentences]

    def run_unmarked(
        self, sequences: Sequence[Sequence[str]], state: State, select: LayerSelector
    ) -> tuple[list[FloatArray], State]:
        """Like `run`, but without adding sentence marks: sequences contain them where wanted.

        No sequence may be empty.
        """
        return self._run(sequences, state, select, trim=0)

    def _run(
        self,
        sequences: Sequence[Sequence[str]],
        state: State,
        select: LayerSelector,
        trim: int,
        keep_state: bool = True,
    ) -> tuple[list[FloatArray], State]:
        """Run a batch and drop `trim` words at both ends of every sequence.

        Without `keep_state`, the state that is returned is the one before the batch.
        """
        if not sequences:
            return [], state
        number: dict[str, int] = {}
        flat = [number.setdefault(word, len(number)) for sequence in sequences for word in sequence]
        vectors_UP = self.word_vectors(list(number))
        lengths = [len(sequence) for sequence in sequences]
        packing = pack(lengths)
        words_NP = vectors_UP[np.array(flat)[packing.source]]
        rows = packing.order.tolist()
        layers_LND, after = self._network.contextualize(words_NP, packing, state.select(rows))
        del words_NP
        if keep_state:
            state = state.replace(rows, after)
        del after
        selected = select(layers_LND)
        del layers_LND  # unless it is what was selected; the results need memory, too
        row = packing.rows_of_words
        results = [
            selected[..., row[stop - length + trim : stop - trim], :]
            for length, stop in zip(lengths, np.cumsum(lengths).tolist(), strict=True)
        ]
        return results, state

    def settle(self, sentences: Sequence[Sequence[str]] | None = None) -> State:
        """Return the state (one row) after reading sentences in order, starting from zeros.

        By default they are the warm-up text: proteins for a model of proteins, else English.
        """
        if sentences is None:
            sentences = PROTEIN_WARM_UP if self._reads_residues else WARM_UP
        state = State.zeros(self.config)
        for sentence in sentences:
            _, state = self.run([sentence], state, select=lambda layers: layers[0])
        return state

    def word_vectors(self, words: list[str]) -> FloatArray:
        """Return layer 0 of distinct words, (U, P): stored, cached or computed."""
        if self._stored is not None:
            return self._stored.look_up(words, self._cached)
        return self._cached(words)

    def _cached(self, words: list[str]) -> FloatArray:
        return self._cache.look_up(words, self._compute)

    def _compute(self, words: list[str]) -> FloatArray:
        if not self._warned_of_cut:
            self._warn_of_cut(words)
        vectors_UP = self._network.word_vectors(*self._characters.encode(words))
        if self._lexicon is not None:
            vectors_UP += self._lexicon.vectors(words)
        return vectors_UP

    def _warn_of_cut(self, words: list[str]) -> None:
        """Warn once per model that the end of a long word is not read."""
        characters = self._characters
        most = characters.longest_word
        for word in words:
            # A character takes at least one unit, and at most four.
            if 4 * len(word) > most and (length := characters.length(word)) > most:
                self._warned_of_cut = True
                shown = word if len(word) <= 20 else word[:20] + "…"
                warnings.warn(
                    f"the model reads the first {most} {characters.unit} of a word: the end of "
                    f"{shown!r} ({length:,} {characters.unit}) is cut off, and that of "
                    "any other word as long",
                    stacklevel=level_of_caller(),
                )
                return


def level_of_caller() -> int:
    """Return the `stacklevel` of the code that called elmokit, for a warning of our caller."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("elmokit."):
        level, frame = level + 1, frame.f_back
    return level
