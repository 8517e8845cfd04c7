"""The user's class: load a model, tokenize, embed. The first file to read.

    elmo = Elmo.load()                                      # the built-in English model
    vectors = elmo.embed("She went to the bank .")          # (6, D)

What happens on the way is in `text/` (strings to words and characters), `engine/` (the network)
and `formats/` (files).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, overload

import numpy as np

from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import BATCH_WORDS, plan
from elmokit.engine.networks import choose_network
from elmokit.engine.runner import Choose, Runner
from elmokit.engine.state import check_policy
from elmokit.errors import InputError, InputTypeError
from elmokit.text.tokenize import words as split_words

Sentence = str | Sequence[str]
"""Raw text, or words that are taken as they are."""
Layers = Literal["mix", "all", "top"] | int
Pooling = Literal["mean", "max"]

BUILTIN = "builtin"
WORD_CACHE_BYTES = 64 << 20
WINDOW_WORDS = 4 * BATCH_WORDS
"""How far `stream` reads ahead: sentences of a window are sorted by length and batched."""


class Elmo:
    """A frozen biLM that turns sentences into contextual word vectors.

    Vectors depend on the sentence alone, whatever its batch and its neighbors, unless the model
    is asked to carry its state from call to call as the original code did (`state="carry"`).
    """

    def __init__(
        self,
        bilm: BiLM,
        *,
        state: str = "settled",
        dtype: str = "float32",
        threads: int | None = None,
    ) -> None:
        """See `Elmo.load` for the arguments."""
        self.bilm = bilm
        self.state = check_policy(state)
        self.dtype = dtype
        self.threads = _check_threads(threads)
        self._runner = Runner(bilm, choose_network(bilm, dtype, threads), WORD_CACHE_BYTES)
        self._settled = bilm.settled
        self._mix = bilm.mix or Mix.uniform(bilm.config.layers)
        self.carried = State.zeros(bilm.config, rows=0)
        """What `state="carry"` continues from, row by row."""

    @classmethod
    def load(
        cls,
        model: str | Path = BUILTIN,
        *,
        state: str = "settled",
        dtype: str = "float32",
        threads: int | None = None,
        token_cache: str | Path | None = None,
        local_files_only: bool = False,
    ) -> Elmo:
        """Load a model.

        Args:
            model: a directory, one file of a model, or a zip archive; any format that
                `elmo inspect` knows. Or a name, which is downloaded once: a published model
                (`"small"`, `"original"`, … see `elmo models`), `"owner/name"` on the Hugging Face
                hub, or an address. `"builtin"` is the English model in the package.
            state: where each sentence starts from. `"settled"`: from the state that the model has
                after a fixed text, so that vectors depend on the sentence alone. `"zero"`: from
                nothing. `"carry"`: row i of each call continues from row i of the call before, as
                in bilm-tf and AllenNLP; `reset()` starts over.
            dtype: `"float32"`, or `"int8"` (faster and less exact; needs the compiled kernel).
            threads: how many cores to use; all by default.
            token_cache: word vectors that `save_token_cache` or bilm-tf stored, so that those
                words are not computed; others are, as ever.
            local_files_only: never touch the network.
        """
        place = locate(model, local_files_only=local_files_only)
        elmo = cls(formats.read(place), state=state, dtype=dtype, threads=threads)
        if token_cache is not None:
            from elmokit.formats.token_cache import read

            elmo._runner.use_tokens(read(token_cache))
        return elmo

    from_pretrained = load

    def save(self, path: str | Path, format: str | None = None) -> list[Path]:
        """Save the model with its settled state and mix; returns the files.

        `format` is `"native"` (a directory, the default) or `"allennlp"` (options.json and
        weights.hdf5; also chosen by a path that ends with .hdf5 or .zip).
        """
        settles = formats.writes_as(path, format) == "native"
        bilm = replace(self.bilm, settled=self.settled) if settles else self.bilm
        return formats.write(bilm, path, format)

    save_pretrained = save

    def save_token_cache(self, path: str | Path, words: Iterable[str]) -> list[Path]:
        """Save the context-free vectors of these words as bilm-tf does; returns the files."""
        from elmokit.formats.token_cache import with_marks, write

        listed = with_marks(list(words))
        return write(path, listed, self._runner.word_vectors(listed))

    def push_to_hub(self, repo_id: str, **how: Any) -> str:
        """Save to the Hugging Face hub with a model card; returns the page's address.

        `how` is passed on to `elmokit.fetch.push_to_hub`: private, token, language, license, ….
        """
        import tempfile

        from elmokit.fetch import push_to_hub

        with tempfile.TemporaryDirectory() as stage:
            return push_to_hub(self.save(Path(stage) / "model"), repo_id, **how)

    # -- what it is ----------------------------------------------------------------------------

    @property
    def config(self) -> BiLMConfig:
        """The architecture."""
        return self.bilm.config

    @property
    def dim(self) -> int:
        """D: the size of a vector."""
        return self.config.dim

    @property
    def layers(self) -> int:
        """How many layers `embed(..., layers="all")` gives: the word vectors and each LSTM's."""
        return self.config.layers

    @property
    def mix(self) -> Mix:
        """How the layers become one vector: uniform, unless the model was saved with a mix."""
        return self._mix

    @property
    def settled(self) -> State:
        """The state every sentence starts from by default; computed when it is first needed."""
        if self._settled is None:
            self._settled = self._runner.settle()
        return self._settled

    @property
    def engine(self) -> str:
        """What runs the network: the compiled kernel, or the reference in NumPy."""
        return self._runner.engine

    def __repr__(self) -> str:
        """The model in a line."""
        return (
            f"Elmo({self.layers} layers of {self.dim}, {self.bilm.parameters:,} parameters, "
            f"state={self.state!r}, dtype={self.dtype!r}, engine={self.engine!r})"
        )

    # -- text to vectors -----------------------------------------------------------------------

    def tokenize(self, text: str) -> list[str]:
        """Raw text to words, as `embed` does with a string."""
        if not isinstance(text, str):
            raise InputTypeError(f"tokenize takes a string; found {_described(text)}")
        return split_words(text)

    def words(self, sentences: Iterable[Sentence]) -> Iterator[Sequence[str]]:
        """Each sentence as the words that `embed` gives vectors for, one after another."""
        _check_iterable(sentences)
        return (_words(sentence, i) for i, sentence in enumerate(sentences))

    @overload
    def embed(self, sentences: str, layers: Layers = "mix") -> FloatArray: ...  # type: ignore[overload-overlap]
    @overload
    def embed(self, sentences: Iterable[Sentence], layers: Layers = "mix") -> list[FloatArray]: ...

    def embed(
        self, sentences: str | Iterable[Sentence], layers: Layers = "mix"
    ) -> FloatArray | list[FloatArray]:
        """Vectors for one sentence, or a list of them for many.

        Args:
            sentences: a string (one sentence, tokenized), or a list whose items are strings
                (tokenized) or lists of words (taken as they are).
            layers: `"mix"`: (T, D), all layers weighted by the model's mix. `"all"`: (L+1, T, D),
                the word vectors first. `"top"` or a number: (T, D), that layer alone.
        """
        if isinstance(sentences, str):
            return self.embed([sentences], layers)[0]
        choose = self.choose(layers)
        words = self.words(sentences)
        if self.state == "carry":
            return self._carry_on(list(words), choose)
        return [vectors for _, vectors in self._in_windows(words, choose)]

    def stream(self, sentences: Iterable[Sentence], layers: Layers = "mix") -> Iterator[FloatArray]:
        """Vectors for any number of sentences, one after another, in order, in bounded memory.

        With `state="carry"` every sentence continues from the one before it.
        """
        return (vectors for _, vectors in self.items(sentences, layers))

    def items(
        self, sentences: Iterable[Sentence], layers: Layers = "mix"
    ) -> Iterator[tuple[Sequence[str], FloatArray]]:
        """Like `stream`, with the words beside their vectors."""
        choose = self.choose(layers)
        words = self.words(sentences)
        if self.state == "carry":
            return ((sentence, self._carry_on([sentence], choose)[0]) for sentence in words)
        return self._in_windows(words, choose)

    def encode(
        self,
        sentences: str | Iterable[Sentence],
        pooling: Pooling = "mean",
        layers: Layers = "mix",
    ) -> FloatArray:
        """One vector a sentence, (N, D), over its words; (D,) for a single string.

        `pooling` is `"mean"` or `"max"`. A sentence without words is a vector of zeros.
        """
        if pooling not in get_args(Pooling):
            raise InputError(f"pooling is {pooling!r}; expected 'mean' or 'max'")
        if layers == "all":
            raise InputError("encode gives one vector a sentence; layers='all' gives several")
        if isinstance(sentences, str):
            vector: FloatArray = self.encode([sentences], pooling, layers)[0]
            return vector
        _check_iterable(sentences)
        nothing = np.zeros(self.dim, np.float32)
        vectors = self.embed(sentences, layers) if self.state == "carry" else None
        pooled = [
            (v.mean(axis=0) if pooling == "mean" else v.max(axis=0)) if len(v) else nothing
            for v in vectors or self.stream(sentences, layers)
        ]
        return np.array(pooled, np.float32).reshape(len(pooled), self.dim)

    def reset(self) -> None:
        """Forget the carried state: the next call starts over."""
        self.carried = State.zeros(self.config, rows=0)

    def forget_words(self) -> None:
        """Empty the cache of word vectors: for measurements; the results are the same."""
        self._runner.forget_words()

    def settle(self, sentences: Iterable[Sentence]) -> None:
        """Let sentences start from the state after these ones, read one after another.

        For a language or a domain that the default text is far from; `save` keeps it.
        """
        read = list(self.words(sentences))
        if not any(read):
            raise InputError("settle needs at least one sentence with a word")
        self._settled = self._runner.settle(read)

    # -- inside --------------------------------------------------------------------------------

    def _in_windows(
        self, sentences: Iterable[Sequence[str]], choose: Choose
    ) -> Iterator[tuple[Sequence[str], FloatArray]]:
        """Read a window ahead, run it in batches of similar lengths, give it back in order."""
        for window in _windows(sentences, WINDOW_WORDS):
            start = State.zeros(self.config) if self.state == "zero" else self.settled
            results: dict[int, FloatArray] = {}
            for batch in plan([len(words) + 2 for words in window]):
                vectors, _ = self._runner.run(
                    [window[i] for i in batch], start.repeat(len(batch)), choose
                )
                results.update(zip(batch, vectors, strict=True))
            for i, words in enumerate(window):
                yield words, results.pop(i)

    def _carry_on(self, batch: list[Sequence[str]], choose: Choose) -> list[FloatArray]:
        """One batch, each row from where the row of the last call stopped; other rows wait."""
        before = self.carried.extend(len(batch))
        rows = list(range(len(batch)))
        vectors, after = self._runner.run(batch, before.select(rows), choose)
        self.carried = before.replace(rows, after)
        return vectors

    def choose(self, layers: Layers) -> Choose:
        """What `layers` asks for, as a function of all layers (L+1, …, D)."""
        if layers == "mix":
            return self.mix.apply
        if layers == "all":
            return lambda layers_LND: layers_LND
        if layers == "top":
            layers = self.layers - 1
        if isinstance(layers, bool) or not isinstance(layers, (int, np.integer)):
            raise InputError(
                f"layers is {layers!r}; expected 'mix', 'all', 'top' or a number "
                f"from 0 to {self.layers - 1}"
            )
        if not -self.layers <= layers < self.layers:
            raise InputError(
                f"layers is {layers}; this model has {self.layers}: 0 (word vectors) "
                f"to {self.layers - 1} (top)"
            )
        number = int(layers)
        return lambda layers_LND: layers_LND[number]


def locate(model: str | Path, *, local_files_only: bool = False) -> str | Path:
    """Where a model lies: a path that exists is itself, any other string is a name."""
    if model == BUILTIN:
        return Path(__file__).parent / BUILTIN
    # os.path, because Path.exists raises for names that are too long for a file.
    if isinstance(model, Path) or os.path.exists(os.path.expanduser(model)):
        return model
    from elmokit.fetch import resolve

    return resolve(model, local_files_only=local_files_only)


def _words(sentence: Sentence, position: int) -> Sequence[str]:
    """A sentence as words, or an error that names its position."""
    if isinstance(sentence, str):
        return split_words(sentence)
    if isinstance(sentence, (bytes, dict, set)) or not isinstance(sentence, Iterable):
        raise InputTypeError(
            f"sentence {position} is {_described(sentence)}; expected a string or a list of words"
        )
    words = list(sentence)
    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise InputTypeError(
                f"sentence {position}, word {i} is {_described(word)}; expected a string"
            )
    return words


def _windows(sentences: Iterable[Sequence[str]], size: int) -> Iterator[list[Sequence[str]]]:
    """Sentences in runs of about so many words."""
    window: list[Sequence[str]] = []
    room = size
    for sentence in sentences:
        window.append(sentence)
        room -= len(sentence) + 2
        if room <= 0:
            yield window
            window, room = [], size
    if window:
        yield window


def _check_iterable(sentences: object) -> None:
    if isinstance(sentences, (str, bytes, dict)) or not isinstance(sentences, Iterable):
        raise InputTypeError(
            f"expected a list of sentences (strings or lists of words); "
            f"found {_described(sentences)}"
        )


def _check_threads(threads: int | None) -> int | None:
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and (not whole or threads < 1):
        raise InputError(f"threads is {threads!r}; expected a whole number from 1 up, or None")
    return threads


def _described(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
