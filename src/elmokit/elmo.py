"""The class `Elmo`: load a model, tokenize, embed. The first file to read.

    elmo = Elmo.load()                                      # the built-in English model
    vectors = elmo.embed("She went to the bank .")          # (6, D)

The steps in between are in `text/` (strings to words and characters), `engine/` (the network) and
`formats/` (model files).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, overload

import numpy as np

from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import BATCH_WORDS, plan_batches, windows
from elmokit.engine.networks import choose_network
from elmokit.engine.runner import LayerSelector, Runner, StoredWordVectors
from elmokit.engine.state import check_policy
from elmokit.errors import ElmoError, InputError, InputTypeError, WeightsError
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import Token, split_words, tokenize

Sentence = str | Sequence[str]
"""A string, which is tokenized, or a list of words, which are used as they are."""
LayerChoice = Literal["mix", "all", "top"] | int
"""Which layers to return: their weighted sum, all of them, the top one, or one by its number."""
Pooling = Literal["mean", "max"]
"""How the vectors of the words become one vector per sentence."""

BUILTIN = "builtin"
"""Name of the English model in the package, and of its directory."""
WORD_CACHE_BYTES = 64 << 20
"""Upper bound on the memory of a model's word cache, in bytes."""
WINDOW_WORDS = 4 * BATCH_WORDS
"""Words that `stream` reads ahead; the sentences of a window are batched by length."""


@dataclass(frozen=True)
class EmbeddedSentence:
    """A sentence of a running text, with its words, their positions and their vectors.

    Positions are character offsets in the text: `text[word.start:word.end] == word.text`.
    """

    text: str
    """The sentence as it is in the text."""
    start: int
    """Offset of the first character of the sentence."""
    end: int
    """Offset after the last character of the sentence."""
    words: list[Token]
    """The words, each with `text`, `start` and `end`."""
    vectors: FloatArray
    """One vector per word, (T, D), or (L+1, T, D) with `layers="all"`."""


class Elmo:
    """A frozen biLM that computes contextual word vectors.

    The vectors of a sentence depend on that sentence alone, not on its batch, unless the model
    carries its state from call to call as the original code did (`state="carry"`).

    An `Elmo` can be copied, pickled and used in other processes.
    """

    def __init__(
        self,
        bilm: BiLM,
        *,
        state: str = "settled",
        dtype: str = "float32",
        threads: int | None = None,
    ) -> None:
        """Prepare a model to run; see `Elmo.load` for the arguments."""
        if isinstance(bilm, (str, os.PathLike)):
            raise InputTypeError(
                f"Elmo() takes a BiLM; found {_describe(bilm)}. To load a model by its path or "
                f"name: Elmo.load({os.fspath(bilm)!r})"
            )
        self.bilm = bilm
        self.state = check_policy(state)
        self.dtype = dtype
        self.threads = _check_threads(threads)
        self._runner = Runner(bilm, choose_network(bilm, dtype, threads), WORD_CACHE_BYTES)
        self._settled = bilm.settled
        self._settled_by_user = False
        self._mix = bilm.mix or Mix.uniform(bilm.config.layers)
        self._origin: _Origin | None = None
        self.carried = State.zeros(bilm.config, rows=0)
        """State that the next call continues from with `state="carry"`, row by row."""

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
            model: Path of a directory, of one file of a model, or of a zip archive, in any format
                that `elmo inspect` knows. Or a name, which is downloaded once: a published model
                (`"small"`, `"original"`, …; see `elmo models`), `"owner/name"` on the Hugging Face
                Hub, or a URL. `"builtin"` is the English model in the package.
            state: Initial LSTM state of each sentence. `"settled"`: the state that the model has
                after a fixed warm-up text, so that vectors depend on the sentence alone. `"zero"`:
                all zeros. `"carry"`: row i of each call continues from row i of the previous call,
                as in bilm-tf and AllenNLP; `reset()` starts over.
            dtype: `"float32"`, or `"int8"`, which is faster and less exact and needs the compiled
                kernel.
            threads: Number of threads; by default as many as the process may use.
            token_cache: Path of word vectors that `save_token_cache` or bilm-tf stored. The vectors
                of these words are looked up, those of other words are computed as usual.
            local_files_only: Never access the network.
        """
        path = locate_model(model, local_files_only=local_files_only)
        elmo = cls(formats.read(path), state=state, dtype=dtype, threads=threads)
        elmo._origin = _Origin.record(model, path)
        if token_cache is not None:
            from elmokit.formats.token_cache import read

            elmo._runner.use_stored_word_vectors(read(token_cache))
        return elmo

    from_pretrained = load

    def save(self, path: str | Path, format: str | None = None) -> list[Path]:
        """Save the model with its settled state and mix, and return the files written.

        Args:
            path: Directory or file to write.
            format: `"native"` (a directory, the default) or `"allennlp"` (options.json and
                weights.hdf5, the default if the path ends with .hdf5, .h5 or .zip).
        """
        return formats.write(replace(self.bilm, settled=self.settled), path, format)

    save_pretrained = save

    def save_token_cache(self, path: str | Path, words: Iterable[str]) -> list[Path]:
        """Save the context-free vectors of words as bilm-tf does, and return the files written."""
        from elmokit.formats.token_cache import add_marks, write

        vocabulary = add_marks(list(words))
        return write(path, vocabulary, self._runner.word_vectors(vocabulary))

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool = False,
        token: str | None = None,
        commit_message: str | None = None,
        language: str | Sequence[str] | None = None,
        license: str | None = None,
        card: str | None = None,
    ) -> str:
        """Upload the model to the Hugging Face Hub, and return the URL of its page.

        Args:
            repo_id: Repository `owner/name`; created if it does not exist.
            private: Whether a repository that is created now is private.
            token: Access token; by default the one of `hf auth login` or `HF_TOKEN`.
            commit_message: Message of the commit.
            language: ISO 639 code of the model's language, or several, for the model card.
            license: License identifier for the model card, such as `"apache-2.0"`.
            card: Text of the model card; by default one is written unless the repository has one.
        """
        import tempfile

        from elmokit.fetch import push_to_hub

        with tempfile.TemporaryDirectory() as directory:
            return push_to_hub(
                self.save(Path(directory) / "model"),
                repo_id,
                private=private,
                token=token,
                commit_message=commit_message,
                language=language,
                license=license,
                card=card,
            )

    # -- properties ----------------------------------------------------------------------------

    @property
    def config(self) -> BiLMConfig:
        """Architecture of the model."""
        return self.bilm.config

    @property
    def dim(self) -> int:
        """Size D of a vector."""
        return self.config.dim

    @property
    def layers(self) -> int:
        """Number of layers that `layers="all"` returns: the word vectors and the LSTM layers."""
        return self.config.layers

    @property
    def mix(self) -> Mix:
        """Weights of the layers for `layers="mix"`: the model's own, or else the plain average."""
        return self._mix

    @property
    def settled(self) -> State:
        """Initial state of every sentence with `state="settled"`; computed at first use."""
        if self._settled is None:
            self._settled = self._runner.settle()
        return self._settled

    @property
    def engine(self) -> str:
        """Name of what runs the network: the compiled kernel, or the reference in NumPy."""
        return self._runner.engine

    def __repr__(self) -> str:
        return (
            f"Elmo({self.layers} layers of {self.dim}, {self.bilm.parameters:,} parameters, "
            f"state={self.state!r}, dtype={self.dtype!r}, engine={self.engine!r})"
        )

    # -- text to vectors -----------------------------------------------------------------------

    def tokenize(self, text: str) -> list[str]:
        """Split a string into words, as `embed` does."""
        if not isinstance(text, str):
            raise InputTypeError(f"tokenize takes a string; found {_describe(text)}")
        return split_words(text)

    def words(self, sentences: Iterable[Sentence]) -> Iterator[Sequence[str]]:
        """Yield the words of each sentence, for which `embed` returns one vector each."""
        _check_iterable(sentences)
        return (_words(sentence, i) for i, sentence in enumerate(sentences))

    @overload
    def embed(self, sentences: str, layers: LayerChoice = "mix") -> FloatArray: ...  # type: ignore[overload-overlap]
    @overload
    def embed(
        self, sentences: Iterable[Sentence], layers: LayerChoice = "mix"
    ) -> list[FloatArray]: ...

    def embed(
        self, sentences: str | Iterable[Sentence], layers: LayerChoice = "mix"
    ) -> FloatArray | list[FloatArray]:
        """Return one vector per word: an array for one sentence, a list of arrays for several.

        Args:
            sentences: A string (one sentence, which is tokenized), or a list whose items are
                strings (tokenized) or lists of words (used as they are).
            layers: `"mix"`: (T, D), the layers weighted by the model's mix. `"all"`: (L+1, T, D),
                the word vectors first. `"top"` or a number: (T, D), that layer alone.
        """
        if isinstance(sentences, str):
            return self.embed([sentences], layers)[0]
        select = self.layer_selector(layers)
        words = self.words(sentences)
        if self.state == "carry":
            return self._embed_carried(list(words), select)
        return [vectors for _, vectors in self._embed_windows(words, select)]

    def stream(
        self, sentences: Iterable[Sentence], layers: LayerChoice = "mix"
    ) -> Iterator[FloatArray]:
        """Yield the vectors of any number of sentences, in order and in bounded memory.

        With `state="carry"` every sentence continues from the previous one.
        """
        return (vectors for _, vectors in self.items(sentences, layers))

    def items(
        self, sentences: Iterable[Sentence], layers: LayerChoice = "mix"
    ) -> Iterator[tuple[Sequence[str], FloatArray]]:
        """Yield the words and the vectors of each sentence; otherwise like `stream`."""
        select = self.layer_selector(layers)
        words = self.words(sentences)
        if self.state == "carry":
            return ((sentence, self._embed_carried([sentence], select)[0]) for sentence in words)
        return self._embed_windows(words, select)

    def embed_text(self, text: str, layers: LayerChoice = "mix") -> list[EmbeddedSentence]:
        """Split a running text into sentences and words, and embed every sentence.

        The vectors are those that `embed` returns for the words of the sentence. Parts of the text
        without words, such as empty lines, are left out.

        Args:
            text: Text of any length.
            layers: Which layers to return; see `embed`.
        """
        if not isinstance(text, str):
            raise InputTypeError(f"embed_text takes a string; found {_describe(text)}")
        self.layer_selector(layers)  # raises for a wrong choice, even if the text is empty
        sentences = []
        for span in split_sentences(text):
            words = [
                Token(token.text, span.start + token.start, span.start + token.end)
                for token in tokenize(span.text)
            ]
            if words:
                sentences.append((span, words))
        vectors = self.stream(([word.text for word in words] for _, words in sentences), layers)
        return [
            EmbeddedSentence(span.text, span.start, span.end, words, array)
            for (span, words), array in zip(sentences, vectors, strict=True)
        ]

    def encode(
        self,
        sentences: str | Iterable[Sentence],
        pooling: Pooling = "mean",
        layers: LayerChoice = "mix",
    ) -> FloatArray:
        """Return one vector per sentence, (N, D), or (D,) for a single string.

        Args:
            sentences: A string or a list of sentences; see `embed`.
            pooling: `"mean"` or `"max"` over the words. A sentence without words is all zeros.
            layers: Which layer to pool; see `embed`. `"all"` is not possible.
        """
        if pooling not in get_args(Pooling):
            raise InputError(f"pooling is {pooling!r}; expected 'mean' or 'max'")
        if layers == "all":
            raise InputError(
                "layers is 'all'; encode returns one vector per sentence: expected 'mix', 'top' "
                "or a number"
            )
        if isinstance(sentences, str):
            vector: FloatArray = self.encode([sentences], pooling, layers)[0]
            return vector
        _check_iterable(sentences)
        zeros = np.zeros(self.dim, np.float32)
        vectors = self.embed(sentences, layers) if self.state == "carry" else None
        pooled = [
            (v.mean(axis=0) if pooling == "mean" else v.max(axis=0)) if len(v) else zeros
            for v in vectors or self.stream(sentences, layers)
        ]
        return np.array(pooled, np.float32).reshape(len(pooled), self.dim)

    def reset(self) -> None:
        """Forget the carried state, so that the next call starts from zeros."""
        self.carried = State.zeros(self.config, rows=0)

    def clear_word_cache(self) -> None:
        """Empty the cache of word vectors, for measurements; results do not depend on it."""
        self._runner.clear_word_cache()

    def settle(self, sentences: Iterable[Sentence]) -> None:
        """Replace the settled state by the state after reading these sentences in order.

        Use it for a language or a domain that is far from the default warm-up text; `save` stores
        the new state with the model.
        """
        warm_up = list(self.words(sentences))
        if not any(warm_up):
            raise InputError("the sentences have no words; settle needs at least one word")
        self._settled = self._runner.settle(warm_up)
        self._settled_by_user = True

    def layer_selector(self, layers: LayerChoice) -> LayerSelector:
        """Return the function that reduces all layers (L+1, …, D) to the chosen ones."""
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

    def initial_state(self) -> State:
        """Return the state, one row, that a sentence starts from unless it is carried."""
        return State.zeros(self.config) if self.state == "zero" else self.settled

    def _embed_windows(
        self, sentences: Iterable[Sequence[str]], select: LayerSelector
    ) -> Iterator[tuple[Sequence[str], FloatArray]]:
        """Read one window ahead, run it in batches of similar lengths, and yield it in order."""
        for window in windows(sentences, WINDOW_WORDS):
            start = self.initial_state()
            results: dict[int, FloatArray] = {}
            for batch in plan_batches([len(words) + 2 for words in window]):
                vectors, _ = self._runner.run(
                    [window[i] for i in batch], start.repeat(len(batch)), select
                )
                results.update(zip(batch, vectors, strict=True))
            for i, words in enumerate(window):
                yield words, results.pop(i)

    def _embed_carried(self, batch: list[Sequence[str]], select: LayerSelector) -> list[FloatArray]:
        """Run one batch; row i continues from row i of the previous call, further rows wait."""
        before = self.carried.extend(len(batch))
        rows = list(range(len(batch)))
        vectors, after = self._runner.run(batch, before.select(rows), select)
        self.carried = before.replace(rows, after)
        return vectors

    # -- copies and pickles --------------------------------------------------------------------

    def __copy__(self) -> Elmo:
        """Return a copy that shares the weights, but has a state of its own."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Elmo:
        """Return a copy that shares the weights, which never change, and nothing else."""
        twin = self.__copy__()
        twin._settled, twin.carried = deepcopy((self._settled, self.carried), memo)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the path that the model was loaded from, or else by its weights.

        The bytes are always the same for the same model in the same state, whatever was computed
        before: programs that cache results by the hash of a pickle rely on it.
        """
        source: _Source = self.bilm
        if self._origin is not None and self._origin.still_has(self.bilm):
            source = self._origin.model, self._origin.path, self.bilm.fingerprint
        keeps_settled = self.state == "settled" or self._settled_by_user
        return _unpickle, (
            type(self),
            source,
            self.state,
            self.dtype,
            self.threads,
            self._mix,
            self.settled if keeps_settled else None,
            self._settled_by_user,
            self.carried,
            self._runner.stored_word_vectors,
        )


_Source = tuple[str, str, str] | BiLM
"""What a pickle says about the weights: name, path and fingerprint of a model, or the model."""


def _unpickle(
    cls: type[Elmo],
    source: _Source,
    state: str,
    dtype: str,
    threads: int | None,
    mix: Mix,
    settled: State | None,
    settled_by_user: bool,
    carried: State,
    stored: StoredWordVectors | None,
) -> Elmo:
    """Restore an `Elmo` from what `Elmo.__reduce__` returns."""
    origin = None
    if isinstance(source, BiLM):
        bilm = source
    else:
        model, path, fingerprint = source
        if model != path and not os.path.exists(path):  # on another machine, for example
            path = os.fspath(locate_model(model))
        bilm, origin = formats.read(path), _Origin.record(model, path)
        if bilm.fingerprint != fingerprint:
            raise WeightsError(
                f"the model at {path} has changed since this Elmo was pickled: its fingerprint is "
                f"{bilm.fingerprint[:12]}, expected {fingerprint[:12]}"
            )
    elmo = cls(bilm, state=state, dtype=dtype, threads=threads)
    elmo._origin = origin
    elmo._mix = mix
    elmo._settled = settled or elmo._settled
    elmo._settled_by_user = settled_by_user
    elmo.carried = carried
    if stored is not None:
        elmo._runner.use_stored_word_vectors(stored, check=False)
    return elmo


@dataclass
class _Origin:
    """Where a model was loaded from, so that a pickle can refer to it."""

    model: str
    """The model as it was named; an absolute path, if it was a path."""
    path: str
    """Absolute path of its files."""
    files: object
    """Names, sizes and times of its files, to notice when they change."""

    @classmethod
    def record(cls, model: str | Path, path: str | Path) -> _Origin:
        """Return the origin of a model that was just read from `path`."""
        absolute = os.path.abspath(os.path.expanduser(path))
        named = model == BUILTIN or not (
            isinstance(model, Path) or os.path.exists(os.path.expanduser(model))
        )
        return cls(str(model) if named else absolute, absolute, _list_files(absolute))

    def still_has(self, bilm: BiLM) -> bool:
        """Return whether the files still contain this model; they are read only if they changed."""
        files = _list_files(self.path)
        if files != self.files:
            try:
                if formats.read(self.path).fingerprint != bilm.fingerprint:
                    return False
            except (ElmoError, OSError):
                return False
            self.files = files
        return True


def _list_files(path: str) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of the files in a directory, or beside a file."""
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    try:
        with os.scandir(directory) as entries:
            stats = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    except OSError:
        return []
    return sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def locate_model(model: str | Path, *, local_files_only: bool = False) -> str | Path:
    """Return the path of a model: an existing path is itself, any other string is a name."""
    if model == BUILTIN:
        return Path(__file__).parent / BUILTIN
    # os.path, because Path.exists raises for names that are too long for a file.
    if isinstance(model, Path) or os.path.exists(os.path.expanduser(model)):
        return model
    from elmokit.fetch import resolve_model

    return resolve_model(model, local_files_only=local_files_only)


def _words(sentence: Sentence, position: int) -> Sequence[str]:
    """Return the words of a sentence, or raise an error that names its position."""
    if isinstance(sentence, str):
        return split_words(sentence)
    if isinstance(sentence, (bytes, dict, set)) or not isinstance(sentence, Iterable):
        raise InputTypeError(
            f"sentence {position} is {_describe(sentence)}; expected a string or a list of words"
        )
    words = list(sentence)
    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise InputTypeError(
                f"sentence {position}, word {i} is {_describe(word)}; expected a string"
            )
    return words


def _check_iterable(sentences: object) -> None:
    if isinstance(sentences, (str, bytes, dict)) or not isinstance(sentences, Iterable):
        raise InputTypeError(
            f"expected a list of sentences (strings or lists of words); "
            f"found {_describe(sentences)}"
        )


def _check_threads(threads: int | None) -> int | None:
    integer = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and (not integer or threads < 1):
        raise InputError(f"threads is {threads!r}; expected 1 or more, or None for all")
    return threads


def _describe(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
