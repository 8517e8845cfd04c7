"""Drop-in replacement for the `ElmoModel` of simple_elmo 0.9.2.

    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load("path/to/model")
    vectors = model.get_elmo_vectors([["She", "went"], ["Yes"]])     # (2, 2, D)

Arguments, shapes, types (float64) and values are the same, including the warm-up and the state that
is carried from batch to batch. These differences correct errors of the original:

- The padding after a sentence is all zeros. The original puts the vector of its mask character
  there in layer 0 and in the average of all layers, if the batch has a longer sentence.
- `get_elmo_vector_average` averages only the words of a sentence, not the padding. With
  `layers="all"` it averages over words, where the original averages over layers. A sentence without
  words is all zeros, not NaN.
- `get_elmo_substitutes` returns all sentences, in order; the original drops those that are
  unfinished when its data end, and orders the others by where they end. `nodelimiters` excludes the
  sentence marks; the original sets their score to 0, which may be the highest. Candidates are
  sorted, best first; the original does not sort them. The number of sentences is not limited.
- Problems raise `elmokit.ElmoError` instead of ending the interpreter.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX, FloatArray
from elmokit.compat.bilm import Batcher
from elmokit.compat.sentences import as_word_lists
from elmokit.elmo import Elmo
from elmokit.engine.batching import plan_batches
from elmokit.engine.networks import choose_network
from elmokit.engine.runner import Runner
from elmokit.errors import InputError, InputTypeError
from elmokit.formats import tf_checkpoint
from elmokit.formats.source import ModelSource
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import Vocabulary

_Layers = Literal["average", "top", "all"]
_Float64Array = npt.NDArray[np.float64]

SCORES_AT_ONCE = 1 << 24
"""Scores computed together: a bound on memory."""


class ElmoModel:
    """Embeddings from Language Models (ELMo)."""

    def __init__(self) -> None:
        """Create an empty object; `load` loads a model into it."""
        self.batcher: Batcher | None = None
        self.batch_size: int | None = None
        self.max_chars: int | None = None
        self.vector_size: int | None = None
        self.n_layers: int | None = None
        self.vocab: Vocabulary | None = None
        self._average: Literal["mix", "top"] = "mix"
        self._bilm: BiLM | None = None
        self._elmo: Elmo | None = None
        self._runner: Runner | None = None
        self._sessions: dict[int, tuple[object, State]] = {}

    def load(
        self,
        directory: str | Path,
        max_batch_size: int = 32,
        limit: int | None = 100,
        full: bool = False,
        *,
        top: bool = False,
    ) -> str:
        """Load a model.

        Args:
            directory: Directory or zip archive with options.json and an HDF5 file, or anything else
                that `Elmo.load` reads from disk.
            max_batch_size: Sentences per batch. It determines from which sentence's state a
                sentence continues, and so affects the vectors.
            limit: Has no effect; words are cached in another way.
            full: Read the TensorFlow checkpoint in the directory, which has the softmax that
                `get_elmo_substitutes` needs. Vectors can be computed as well.
            top: Return the top layer instead of the average of all, as its first versions did.
        """
        if isinstance(max_batch_size, bool) or not isinstance(max_batch_size, int):
            raise InputTypeError(f"max_batch_size is {max_batch_size!r}; expected an integer")
        if max_batch_size < 1:
            raise InputError(f"max_batch_size is {max_batch_size}; expected 1 or more")
        bilm = replace(_read(Path(directory).expanduser(), full), mix=None)
        self.batch_size = max_batch_size
        self.batcher = Batcher(None, bilm.config.char_cnn.max_characters)
        self.max_chars = bilm.config.char_cnn.max_characters
        self.vector_size = bilm.config.dim
        self.n_layers = bilm.config.layers
        self.vocab = bilm.vocabulary
        self._bilm = bilm
        self._average = "top" if top else "mix"
        self._elmo = self._runner = None
        self._sessions.clear()
        return "The model is now loaded."

    # -- vectors -------------------------------------------------------------------------------

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: _Layers = "average",
        session: object | None = None,
    ) -> _Float64Array:
        """Return the vectors of all words.

        Args:
            texts: Sentences, each a list of words. A string is a list of its characters, as in the
                original; a warning says so.
            warmup: Read the first batch once beforehand, so that it starts from the state after it.
            layers: `"average"` of all layers, the `"top"` layer, or `"all"` layers.
            session: Any object. Calls with the same object continue from each other's state, as in
                a TensorFlow session; without one, each call starts from zeros.

        Returns:
            (N, T, D), or (N, L+1, T, D) for all layers; T is the length of the longest sentence,
            and shorter ones are padded with zeros.
        """
        sentences = self._embed(texts, warmup, layers, session)
        longest = max(map(len, texts), default=0)
        shape = (len(texts), *self._some_layers(layers), longest, self._loaded.config.dim)
        vectors = np.zeros(shape)
        for row, sentence in zip(vectors, sentences, strict=True):
            row[..., : sentence.shape[-2], :] = sentence
        return vectors

    def get_elmo_vector_average(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: _Layers = "average",
        session: object | None = None,
    ) -> _Float64Array:
        """Return the average of the word vectors of each sentence, normalized to length 1.

        The shape is (N, D), or (N, L+1, D) for all layers, which are normalized together. See
        `get_elmo_vectors` for the arguments.
        """
        sentences = self._embed(texts, warmup, layers, session)
        shape = (len(texts), *self._some_layers(layers), self._loaded.config.dim)
        averages = np.zeros(shape)
        for row, sentence in zip(averages, sentences, strict=True):
            total = sentence.sum(axis=-2, dtype=np.float64)
            length = np.linalg.norm(total)
            row[...] = total / length if length else 0
        return averages

    def _embed(
        self, texts: Sequence[Sequence[str]], warmup: bool, layers: _Layers, session: object | None
    ) -> list[FloatArray]:
        """Return the vectors of each sentence without padding, (…, T, D)."""
        if layers not in get_args(_Layers):
            raise InputError(f"layers is {layers!r}; expected 'average', 'top' or 'all'")
        texts = as_word_lists(texts, "texts", callers=2)
        bilm = self._loaded
        if self._elmo is None:
            self._elmo = Elmo(bilm, state="carry")
        elmo, size = self._elmo, self.batch_size or 1
        elmo.reset()
        if session is not None and id(session) in self._sessions:
            _, elmo.carried = self._sessions[id(session)]
        choice: Any = self._average if layers == "average" else layers
        chunks = [texts[i : i + size] for i in range(0, len(texts), size)]
        if warmup and chunks:
            elmo.embed(chunks[0], "top")
        vectors = [sentence for chunk in chunks for sentence in elmo.embed(chunk, choice)]
        if session is not None:
            self._sessions[id(session)] = (session, elmo.carried)  # a reference keeps its id unique
        return vectors

    def _some_layers(self, layers: _Layers) -> tuple[int, ...]:
        return (self._loaded.config.layers,) if layers == "all" else ()

    # -- words ---------------------------------------------------------------------------------

    def get_elmo_substitutes(
        self,
        data: Sequence[str],
        topn: int = 3,
        nodelimiters: bool = True,
        *,
        context: bool = False,
    ) -> list[list[dict[str, Any]]]:
        """Return the words that both language models predict at each position of each sentence.

        Args:
            data: Sentences, with words separated by spaces.
            topn: Number of words per direction.
            nodelimiters: Exclude the sentence marks.
            context: simple_elmo resets the state after each word, so that a prediction depends on
                the one neighboring word only. True reads the whole sentence before the position, or
                after it, which was probably intended.

        Returns:
            For each sentence and word `{"word": …, "forward": {…}, "backward": {…}}`; for each
            direction `candidates` (indices in the vocabulary), `candidate_words`, and `logp`, their
            scores before the softmax, which simple_elmo calls so.
        """
        bilm, vocabulary = self._loaded, self._vocabulary_for_prediction
        if isinstance(data, str):
            raise InputTypeError("data is a string; expected a list of sentences")
        sentences = [s.split() if isinstance(s, str) else list(s) for s in data]
        candidates = len(vocabulary) - 2 * nodelimiters
        if not 1 <= topn <= candidates:
            raise InputError(f"topn is {topn}; expected a number from 1 to {candidates}")
        excluded = [vocabulary.index_of(mark) for mark in (BOS, EOS)] if nodelimiters else []

        read = self._whole_sentences if context else self._single_words
        outputs_2NP = read(sentences)
        best_2N = [_best(bilm, outputs_NP, topn, excluded) for outputs_NP in outputs_2NP]
        results, number = [], 0
        for sentence in sentences:
            positions: list[dict[str, Any]] = []
            for word in sentence:
                position: dict[str, Any] = {"word": vocabulary[vocabulary.index_of(word)]}
                for name, (ids_NK, scores_NK) in zip(("forward", "backward"), best_2N, strict=True):
                    ids = ids_NK[number].tolist()
                    position[name] = {
                        "candidates": ids,
                        "candidate_words": [vocabulary[i] for i in ids],
                        "logp": np.round(scores_NK[number].astype(float), 4).tolist(),
                    }
                positions.append(position)
                number += 1
            results.append(positions)
        return results

    def _single_words(self, sentences: list[list[str]]) -> list[FloatArray]:
        """Return the output after the previous word alone, and after the next, for all words."""
        number: dict[str, int] = {BOS: 0, EOS: 1}
        for sentence in sentences:
            for word in sentence:
                number.setdefault(word, len(number))
        top_UD = np.concatenate(self._top_layers([[word] for word in number]))
        before = [number[w] for s in sentences if s for w in (BOS, *s[:-1])]
        behind = [number[w] for s in sentences if s for w in (*s[1:], EOS)]
        width = self._loaded.config.lstm.width
        return [top_UD[before, :width], top_UD[behind, width:]]

    def _whole_sentences(self, sentences: list[list[str]]) -> list[FloatArray]:
        """Return the output after all words before, and after all words behind, for all words."""
        tops = self._top_layers([[BOS, *sentence, EOS] for sentence in sentences])
        config = self._loaded.config
        empty = np.empty((0, config.dim), np.float32)
        before = np.concatenate([empty, *(top_TD[:-2] for top_TD in tops)])
        behind = np.concatenate([empty, *(top_TD[2:] for top_TD in tops)])
        return [before[:, : config.lstm.width], behind[:, config.lstm.width :]]

    def _top_layers(self, sequences: list[list[str]]) -> list[FloatArray]:
        """Return the top layer (T, D) of each sequence of words, starting from zeros."""
        bilm = self._loaded
        if self._runner is None:
            self._runner = Runner(bilm, choose_network(bilm, "float32", None), cache_bytes=0)
        results: dict[int, FloatArray] = {}
        for batch in plan_batches([len(words) for words in sequences]):
            tops, _ = self._runner.run_unmarked(
                [sequences[i] for i in batch],
                State.zeros(bilm.config, len(batch)),
                lambda layers_LND: layers_LND[-1],
            )
            results.update(zip(batch, tops, strict=True))
        return [results[i] for i in range(len(sequences))]

    @property
    def _loaded(self) -> BiLM:
        if self._bilm is None:
            raise InputError("no model is loaded; call load(directory) first")
        return self._bilm

    @property
    def _vocabulary_for_prediction(self) -> Vocabulary:
        """The vocabulary of the model, or `InputError` if it cannot predict words."""
        bilm = self._loaded
        vocabulary = bilm.vocabulary
        if SOFTMAX[0] not in bilm.weights or vocabulary is None:
            lacking = "vocab.txt" if SOFTMAX[0] in bilm.weights else "softmax"
            raise InputError(
                f"this model has no {lacking}, which the prediction of words needs; load the "
                "directory of its TensorFlow checkpoint and vocab.txt: load(directory, full=True)"
            )
        if vocabulary.missing_marks():
            raise InputError(f"the vocabulary lacks {', '.join(vocabulary.missing_marks())}")
        return vocabulary


def _read(path: Path, full: bool) -> BiLM:
    if full and (path.is_dir() or zipfile.is_zipfile(path)):
        source = ModelSource(path)
        if any(name.endswith(".index") for name in source.names):
            return tf_checkpoint.read(source)
    if (path / "model.hdf5").is_file():
        return formats.read(path / "model.hdf5")  # preferred to other files in the directory
    return formats.read(path)


def _best(
    bilm: BiLM, outputs_NP: FloatArray, count: int, excluded: list[int]
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return indices and scores (N, K) of the words with the highest scores, best first."""
    weight_VP, bias_V = (np.asarray(bilm.weights[name], np.float32) for name in SOFTMAX)
    ids_NK = np.empty((len(outputs_NP), count), np.int64)
    scores_NK = np.empty((len(outputs_NP), count), np.float32)
    step = max(1, SCORES_AT_ONCE // len(bias_V))
    for start in range(0, len(outputs_NP), step):
        rows = slice(start, start + step)
        scores_NV = outputs_NP[rows] @ weight_VP.T + bias_V
        scores_NV[:, excluded] = -np.inf
        ids = np.argpartition(scores_NV, -count, axis=1)[:, -count:]
        order = np.argsort(-np.take_along_axis(scores_NV, ids, 1), axis=1, kind="stable")
        ids_NK[rows] = np.take_along_axis(ids, order, 1)
        scores_NK[rows] = np.take_along_axis(scores_NV, ids_NK[rows], 1)
    return ids_NK, scores_NK
