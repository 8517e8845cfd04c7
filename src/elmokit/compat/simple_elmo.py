"""simple_elmo's `ElmoModel` (0.9.2) over elmokit: one import changes, the rest of a script stays.

    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load("path/to/model")
    vectors = model.get_elmo_vectors([["She", "went"], ["Yes"]])     # (2, 2, D)

Same arguments, shapes, types (float64) and values, with its warm-up and the state that its batches
hand on. What is different, because the original is wrong there:

- Behind the end of a sentence there are zeros. The original puts the vector of its mask character
  there in layer 0 and in the average of all layers, wherever a longer sentence is in the batch.
- `get_elmo_vector_average` averages the words of a sentence, not the padding too; with
  `layers="all"` it averages words, where the original takes the axis of layers for that of words;
  a sentence without words is zeros, not NaN.
- `get_elmo_substitutes` answers for every sentence, in order; the original drops those that are
  unfinished when its data end, and orders the others by where they end. `nodelimiters` takes the
  sentence marks out; the original gives them the score 0, which may be the best. Candidates come
  best first, in the original in no order. Any number of sentences is fine.
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
from elmokit.elmo import Elmo
from elmokit.engine.batching import pack, plan
from elmokit.engine.networks import Network, choose_network
from elmokit.errors import InputError, InputTypeError
from elmokit.formats import tf_checkpoint
from elmokit.formats.source import Source
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import Vocabulary

Layers = Literal["average", "top", "all"]
Vectors = npt.NDArray[np.float64]

SCORES_AT_ONCE = 1 << 24
"""Scores of words computed together: a bound on memory."""


class ElmoModel:
    """Embeddings from Language Models (ELMo)."""

    def __init__(self) -> None:
        """An empty one; `load` fills it."""
        self.batch_size: int | None = None
        self.max_chars: int | None = None
        self.vector_size: int | None = None
        self.n_layers: int | None = None
        self.vocab: Vocabulary | None = None
        self._average: Literal["mix", "top"] = "mix"
        self._bilm: BiLM | None = None
        self._elmo: Elmo | None = None
        self._network: Network | None = None
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
            directory: a directory or zip archive with options.json and an HDF5 file (or anything
                else that `Elmo.load` reads from disk).
            max_batch_size: how many sentences are read side by side. It decides which sentence's
                state a sentence starts from, and so its vectors.
            limit: without effect; words are cached by another rule here.
            full: read the TensorFlow checkpoint in the directory, which has the softmax that
                `get_elmo_substitutes` needs. Vectors can be had as well.
            top: as in its first versions: the top layer instead of the average of all.
        """
        if isinstance(max_batch_size, bool) or not isinstance(max_batch_size, int):
            raise InputTypeError(f"max_batch_size is {max_batch_size!r}; expected a number")
        if max_batch_size < 1:
            raise InputError(f"max_batch_size is {max_batch_size}; expected a number from 1 up")
        bilm = replace(_read(Path(directory).expanduser(), full), mix=None)
        self.batch_size = max_batch_size
        self.max_chars = bilm.config.char_cnn.max_characters
        self.vector_size = bilm.config.dim
        self.n_layers = bilm.config.layers
        self.vocab = bilm.vocabulary
        self._bilm = bilm
        self._average = "top" if top else "mix"
        self._elmo = self._network = None
        self._sessions.clear()
        return "The model is now loaded."

    # -- vectors -------------------------------------------------------------------------------

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: Layers = "average",
        session: object | None = None,
    ) -> Vectors:
        """Vectors of all words.

        Args:
            texts: sentences, each a list of words.
            warmup: read the first batch once beforehand, so that it starts from the state after it.
            layers: `"average"` of all layers, the `"top"` one, or `"all"`.
            session: any object. Without, each call starts from nothing; calls with the same object
                continue from one another's state, as in a TensorFlow session.

        Returns:
            (N, T, D), or (N, L+1, T, D) for all layers; T is the longest sentence's length, and
            shorter ones end with zeros.
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
        layers: Layers = "average",
        session: object | None = None,
    ) -> Vectors:
        """One vector of length 1 for each sentence, the direction of its words' average.

        (N, D), or (N, L+1, D) for all layers, which have length 1 together. See `get_elmo_vectors`
        for the arguments.
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
        self, texts: Sequence[Sequence[str]], warmup: bool, layers: Layers, session: object | None
    ) -> list[FloatArray]:
        """The vectors of each sentence without padding, (…, T, D)."""
        if layers not in get_args(Layers):
            raise InputError(f"layers is {layers!r}; expected 'average', 'top' or 'all'")
        for i, text in enumerate(texts):
            if isinstance(text, str):
                raise InputTypeError(
                    f"text {i} is a string; expected a list of words, such as its .split()"
                )
        bilm = self._loaded
        if self._elmo is None:
            self._elmo = Elmo(bilm, state="carry")
        elmo, size = self._elmo, self.batch_size or 1
        elmo.reset()
        if session is not None and id(session) in self._sessions:
            _, elmo.carried = self._sessions[id(session)]
        wanted: Any = self._average if layers == "average" else layers
        chunks = [texts[i : i + size] for i in range(0, len(texts), size)]
        if warmup and chunks:
            elmo.embed(chunks[0], "top")
        vectors = [sentence for chunk in chunks for sentence in elmo.embed(chunk, wanted)]
        if session is not None:
            self._sessions[id(session)] = (session, elmo.carried)  # kept, so that its id stays
        return vectors

    def _some_layers(self, layers: Layers) -> tuple[int, ...]:
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
        """The words that the two language models expect at each place of each sentence.

        Args:
            data: sentences, words separated by spaces.
            topn: how many words of each direction.
            nodelimiters: leave out the sentence marks.
            context: simple_elmo forgets the state after each word, so that an expectation rests on
                the one neighboring word. True reads the whole sentence before, and behind, the
                place, as was surely meant.

        Returns:
            For each sentence and word `{"word": …, "forward": {…}, "backward": {…}}`; in each
            direction `candidates` (numbers in the vocabulary), `candidate_words`, and `logp`: their
            scores before the softmax, as simple_elmo has them under this name.
        """
        bilm, vocabulary = self._loaded, self._speaking
        if isinstance(data, str):
            raise InputTypeError("data is a string; expected a list of sentences")
        sentences = [s.split() if isinstance(s, str) else list(s) for s in data]
        offered = len(vocabulary) - 2 * nodelimiters
        if not 1 <= topn <= offered:
            raise InputError(f"topn is {topn}; expected a number from 1 to {offered}")
        forbidden = [vocabulary.index_of(mark) for mark in (BOS, EOS)] if nodelimiters else []

        read = self._whole_sentences if context else self._single_words
        outputs_2NP = read(sentences)
        best_2N = [_best(bilm, outputs_NP, topn, forbidden) for outputs_NP in outputs_2NP]
        results, number = [], 0
        for sentence in sentences:
            places: list[dict[str, Any]] = []
            for word in sentence:
                place: dict[str, Any] = {"word": vocabulary[vocabulary.index_of(word)]}
                for name, (ids_NK, scores_NK) in zip(("forward", "backward"), best_2N, strict=True):
                    ids = ids_NK[number].tolist()
                    place[name] = {
                        "candidates": ids,
                        "candidate_words": [vocabulary[i] for i in ids],
                        "logp": np.round(scores_NK[number].astype(float), 4).tolist(),
                    }
                places.append(place)
                number += 1
            results.append(places)
        return results

    def _single_words(self, sentences: list[list[str]]) -> list[FloatArray]:
        """For each word of all sentences, what is said after the one before it, and behind it."""
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
        """The same, after all words before it, and behind it."""
        tops = self._top_layers([[BOS, *sentence, EOS] for sentence in sentences])
        config = self._loaded.config
        nothing = np.empty((0, config.dim), np.float32)
        before = np.concatenate([nothing, *(top_TD[:-2] for top_TD in tops)])
        behind = np.concatenate([nothing, *(top_TD[2:] for top_TD in tops)])
        return [before[:, : config.lstm.width], behind[:, config.lstm.width :]]

    def _top_layers(self, sequences: list[list[str]]) -> list[FloatArray]:
        """The top layer of each sequence of words, read from nothing: (T, D)."""
        config = self._loaded.config
        if self._network is None:
            self._network = choose_network(self._loaded, "float32", None)
        results: dict[int, FloatArray] = {}
        for batch in plan([len(words) for words in sequences]):
            lengths = [len(sequences[i]) for i in batch]
            number: dict[str, int] = {}
            flat = [number.setdefault(w, len(number)) for i in batch for w in sequences[i]]
            ids, counts = self._loaded.characters.encode(list(number))
            vectors_UP = self._network.word_vectors(ids, counts)
            packing = pack(lengths)
            layers_LND, _ = self._network.contextualize(
                vectors_UP[np.array(flat)[packing.source]],
                packing,
                State.zeros(config, len(lengths)),
            )
            top_ND = packing.unpack(layers_LND[-1])
            results.update(zip(batch, np.split(top_ND, np.cumsum(lengths)[:-1]), strict=True))
        return [results[i] for i in range(len(sequences))]

    # -- inside --------------------------------------------------------------------------------

    @property
    def _loaded(self) -> BiLM:
        if self._bilm is None:
            raise InputError("no model yet: call load(directory) first")
        return self._bilm

    @property
    def _speaking(self) -> Vocabulary:
        """The vocabulary of a model that can predict words."""
        bilm = self._loaded
        vocabulary = bilm.vocabulary
        if SOFTMAX[0] not in bilm.weights or vocabulary is None:
            lacking = "vocab.txt" if SOFTMAX[0] in bilm.weights else "softmax"
            raise InputError(
                f"this model has no {lacking}, which predicting words takes; load the directory of "
                "its TensorFlow checkpoint with its vocab.txt: load(directory, full=True)"
            )
        if vocabulary.missing_marks():
            raise InputError(f"the vocabulary lacks {', '.join(vocabulary.missing_marks())}")
        return vocabulary


def _read(place: Path, full: bool) -> BiLM:
    if full and (place.is_dir() or zipfile.is_zipfile(place)):
        source = Source(place)
        if any(name.endswith(".index") for name in source.names):
            return tf_checkpoint.read(source)
    if (place / "model.hdf5").is_file():
        return formats.read(place / "model.hdf5")  # before others that may lie beside it
    return formats.read(place)


def _best(
    bilm: BiLM, outputs_NP: FloatArray, count: int, forbidden: list[int]
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The words with the highest scores, best first: numbers and scores (N, K)."""
    weight_VP, bias_V = (np.asarray(bilm.weights[name], np.float32) for name in SOFTMAX)
    ids_NK = np.empty((len(outputs_NP), count), np.int64)
    scores_NK = np.empty((len(outputs_NP), count), np.float32)
    step = max(1, SCORES_AT_ONCE // len(bias_V))
    for start in range(0, len(outputs_NP), step):
        rows = slice(start, start + step)
        scores_NV = outputs_NP[rows] @ weight_VP.T + bias_V
        scores_NV[:, forbidden] = -np.inf
        ids = np.argpartition(scores_NV, -count, axis=1)[:, -count:]
        order = np.argsort(-np.take_along_axis(scores_NV, ids, 1), axis=1, kind="stable")
        ids_NK[rows] = np.take_along_axis(ids, order, 1)
        scores_NK[rows] = np.take_along_axis(scores_NV, ids_NK[rows], 1)
    return ids_NK, scores_NK
