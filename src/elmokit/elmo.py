"""The class `Elmo`: load a model, tokenize, embed. The first file to read.

    elmo = Elmo.load()                                      # the built-in English model
    vectors = elmo.embed("She went to the bank .")          # (6, D)

The steps in between are in `text/` (strings to words and characters), `engine/` (the network) and
`formats/` (model files).
"""

from __future__ import annotations

import os
import re
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np

from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import PROTEINS, BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import FloatArray
from elmokit.engine.batching import BATCH_WORDS, plan_batches, windows
from elmokit.engine.networks import choose_network
from elmokit.engine.runner import LayerSelector, Runner, StoredWordVectors, level_of_caller
from elmokit.engine.state import check_policy
from elmokit.errors import InputError, InputTypeError
from elmokit.pickling import Origin, PickledModel, unpickle
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import Token, split_words, tokenize

if TYPE_CHECKING:
    from elmokit.text.fasta import FastaRecord
    from elmokit.text.files import TextFile

Sentence = str | Sequence[str]
"""A string, which is tokenized, or a list of words, which are used as they are."""
LayerChoice = Literal["mix", "sum", "all", "top"] | int
"""Which layers to return: their weighted or plain sum, all, the top one, or one by its number."""
Pooling = Literal["mean", "max"]
"""How the vectors of the words become one vector per sentence."""

BUILTIN = "builtin"
"""Name of the English model in the package, and of its directory."""
MOST_THREADS = 4096
"""Number of threads at most, as in the compiled kernel."""
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
        device: str = "cpu",
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
        self.device = device
        network = choose_network(bilm, dtype, threads, device)
        self._runner = Runner(bilm, network, WORD_CACHE_BYTES)
        self._settled = bilm.settled
        self._settled_by_user = False
        self._mix = bilm.mix or Mix.uniform(bilm.config.layers)
        self._origin: Origin | None = None
        self._warned_of_one_word = False
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
        device: str = "cpu",
        token_cache: str | Path | None = None,
        proteins: bool | None = None,
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
            dtype: How the weights are stored and multiplied. `"float32"`; `"bfloat16"`, which
                takes half the memory, is faster where memory is the limit, and changes the vectors
                little; or `"int8"`, which is the fastest and least exact and needs the compiled
                kernel.
            threads: Number of threads; by default as many as the process may use.
            device: `"cpu"`: this computer's processor, with the compiled kernel. `"cuda"`,
                `"cuda:1"`, `"mps"`: a graphics processor, by PyTorch. `"cpu-torch"`: the same on
                the processor, to compare.
            token_cache: Path of word vectors that `save_token_cache` or bilm-tf stored. The vectors
                of these words are looked up, those of other words are computed as usual.
            proteins: Whether the model was trained on proteins, so that its words are residues and
                its settled state comes from proteins; None if the model says so itself, as
                `"seqvec"` does.
            local_files_only: Never access the network.
        """
        path = locate_model(model, local_files_only=local_files_only)
        bilm = formats.read(path)
        if proteins is None and _is_published_for_proteins(model):
            proteins = True
        if proteins is not None:
            bilm = mark_proteins(bilm, proteins)
        elmo = cls(bilm, state=state, dtype=dtype, threads=threads, device=device)
        elmo._origin = Origin.record(model, path)
        if token_cache is not None:
            from elmokit.formats.token_cache import read

            elmo._runner.use_stored_word_vectors(read(token_cache))
        return elmo

    from_pretrained = load

    def save(
        self, path: str | Path, format: str | None = None, *, dtype: str | None = None
    ) -> list[Path]:
        """Save the model with its settled state and mix, and return the files written.

        Args:
            path: Directory or file to write.
            format: `"native"` (a directory, the default), `"allennlp"` (options.json and
                weights.hdf5, the default if the path ends with .hdf5, .h5 or .zip) or `"onnx"` (for
                onnxruntime; the default if the path ends with .onnx).
            dtype: How an ONNX file stores the weights, `"float32"` or `"float16"`; by default as
                the model does. They are float32 when the network runs.
        """
        formats.check_target(path, format, overwrite=True, dtype=dtype)  # before the state is made
        complete = replace(self.bilm, settled=self.settled)
        return formats.write(complete, path, format, dtype=dtype, license=self._read_license())

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

    def _read_license(self) -> str | None:
        """Return the license that the card of the model's directory names, if there is one."""
        card = None if self._origin is None else Path(self._origin.path) / "README.md"
        if card is None or not card.is_file():
            return None
        text = card.read_text(encoding="utf-8", errors="replace")
        front_matter = text.split("\n---", 1)[0] if text.startswith("---") else ""
        found = re.search(r"^license:\s*[\"']?([\w.-]+)", front_matter, re.MULTILINE)
        return found[1] if found else None

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
            self._settled = self._settling_runner().settle()
        return self._settled

    def _settling_runner(self) -> Runner:
        """Return what computes a settled state: the CPU, so that it is the same on all devices."""
        if self.device == "cpu":
            return self._runner
        network = choose_network(self.bilm, self.dtype, self.threads)
        return Runner(self.bilm, network, WORD_CACHE_BYTES)

    @property
    def source(self) -> str:
        """What another process loads this model by: its name, or the absolute path of its files."""
        if self._origin is None or not self._origin.still_has(self.bilm):
            raise InputError(
                "this model was made in memory, so that no other process can load it; save it with "
                "elmo.save(path), and load it from there"
            )
        return self._origin.model

    @property
    def engine(self) -> str:
        """Name of what runs the network: the compiled kernel, NumPy, or torch and its device."""
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
        words = (_words(sentence, i) for i, sentence in enumerate(sentences))
        return self._check_residues(words) if self.bilm.reads_residues else words

    def _check_residues(self, sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield sentences; warn once if a protein is one word instead of a list of residues."""
        for words in sentences:
            if not self._warned_of_one_word and len(words) == 1 and words[0].isalpha():
                found = words[0]
                if len(found) > 1:
                    self._warned_of_one_word = True
                    shown = found if len(found) <= 20 else found[:20] + "…"
                    warnings.warn(
                        f"this is a model of proteins, whose words are residues, but it saw one "
                        f"word, {shown!r} ({len(found):,} letters), and returns one vector for it; "
                        "give the residues, embed([list(sequence)]), or a FASTA file, "
                        "embed_fasta(path)",
                        stacklevel=level_of_caller(),
                    )
            yield words

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
            layers: `"mix"`: (T, D), the layers weighted by the model's mix. `"sum"`: (T, D), their
                plain sum. `"all"`: (L+1, T, D), the word vectors first. `"top"` or a number:
                (T, D), that layer alone.
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

    def embed_fasta(
        self,
        path: str | Path | TextFile,
        layers: LayerChoice = "sum",
        *,
        pooling: Pooling | None = None,
        id_field: int | None = None,
    ) -> Iterator[tuple[str, FloatArray]]:
        """Yield the id and the vectors of each protein of a FASTA file, in bounded memory.

        A residue is a word. The defaults give SeqVec's vectors of residues, and `pooling="mean"`
        its vectors of proteins: the sum of the layers, averaged over the residues.

        Args:
            path: The FASTA file, compressed or not; `"-"` is stdin.
            layers: Which layers to return; see `embed`.
            pooling: None: (T, D), one vector per residue. `"mean"` or `"max"` over the residues:
                (D,), one vector per protein; all zeros for a protein without residues.
            id_field: Number of the field of the header, divided at `|` and counted from 0, that is
                the id; None for the first word. UniProt's accession is field 1.
        """
        from elmokit.text.fasta import read_fasta

        if pooling is not None:
            _check_pooling(pooling)
        self.layer_selector(layers)  # raises for a wrong choice, before the file is read
        self.warn_unless_proteins()
        return self._embed_records(read_fasta(path, id_field=id_field), layers, pooling)

    def _embed_records(
        self, records: Iterable[FastaRecord], layers: LayerChoice, pooling: Pooling | None
    ) -> Iterator[tuple[str, FloatArray]]:
        ids: deque[str] = deque()

        def residues() -> Iterator[list[str]]:
            for record in records:
                ids.append(record.id)
                yield list(record.sequence)

        for _, vectors in self.items(residues(), layers):
            yield ids.popleft(), pool_vectors(vectors, pooling)

    def warn_unless_proteins(self) -> None:
        """Warn if proteins are about to be embedded by a model that is not known to be of them."""
        if self.bilm.reads_residues:
            return
        if self.bilm.vocabulary is not None:
            reason = f"the {len(self.bilm.vocabulary):,} words of its vocabulary are not residues"
        elif self.bilm.settled is None and self.state == "settled":
            reason = (
                "so every sequence starts from the state after English text. If it is one, load it "
                "with Elmo.load(model, proteins=True)"
            )
        else:
            return
        warnings.warn(
            f"this model does not say that it is a model of proteins: {reason}",
            stacklevel=level_of_caller(),
        )

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
        _check_pooling(pooling)
        if layers == "all":
            raise InputError(
                "layers is 'all'; encode returns one vector per sentence: expected 'mix', 'sum', "
                "'top' or a number"
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

    def word_vectors(self, words: Sequence[str]) -> FloatArray:
        """Return the context-free vectors of words, (V, D): layer 0, without running the LSTMs."""
        vectors = self._runner.word_vectors(list(words))
        return np.concatenate([vectors, vectors], axis=-1)

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
        self._settled = self._settling_runner().settle(warm_up)
        self._settled_by_user = True

    def layer_selector(self, layers: LayerChoice) -> LayerSelector:
        """Return the function that reduces all layers (L+1, …, D) to the chosen ones."""
        if layers == "mix":
            return self.mix.apply
        if layers == "sum":
            return lambda layers_LND: layers_LND.sum(axis=0)
        if layers == "all":
            return lambda layers_LND: layers_LND
        if layers == "top":
            layers = self.layers - 1
        if isinstance(layers, bool) or not isinstance(layers, (int, np.integer)):
            raise InputError(
                f"layers is {layers!r}; expected 'mix', 'sum', 'all', 'top' or a number "
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

    def batches(self, sentences: Iterable[Sentence]) -> Iterator[list[Sequence[str]]]:
        """Yield the sentences as `embed` divides them into batches, for benchmarks."""
        for window in windows(self.words(sentences), self._window_words):
            for batch in self._plan_batches(window):
                yield [window[i] for i in batch]

    @property
    def marks(self) -> tuple[str, str]:
        """The words that mark the beginning and the end of a sentence."""
        return self._runner.marks

    @property
    def _window_words(self) -> int:
        """Number of words that are read ahead: those of about four batches."""
        words = WINDOW_WORDS * (self._runner.batch_words // BATCH_WORDS)
        return words if self._runner.batch_sentences is None else words // 2

    def _plan_batches(self, window: Sequence[Sequence[str]]) -> list[list[int]]:
        lengths = [len(words) + 2 for words in window]
        return plan_batches(lengths, self._runner.batch_words, self._runner.batch_sentences)

    def _embed_windows(
        self, sentences: Iterable[Sequence[str]], select: LayerSelector
    ) -> Iterator[tuple[Sequence[str], FloatArray]]:
        """Read one window ahead, run it in batches of similar lengths, and yield it in order."""
        for window in windows(sentences, self._window_words):
            start = self.initial_state()
            results: dict[int, FloatArray] = {}
            for batch in self._plan_batches(window):
                vectors = self._runner.embed(
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
        source: PickledModel = self.bilm
        if self._origin is not None and self._origin.still_has(self.bilm):
            source = self._origin.reference(self.bilm)
        keeps_settled = self.state == "settled" or self._settled_by_user
        values = {
            "_mix": self._mix,
            "_settled": self.settled if keeps_settled else None,
            "_settled_by_user": self._settled_by_user,
            "carried": self.carried,
        }
        options = {name: getattr(self, name) for name in ("state", "dtype", "threads", "device")}
        return unpickle, (
            type(self),
            source,
            options,
            (values, self._runner.stored_word_vectors),
        )

    def __setstate__(self, state: tuple[dict[str, Any], StoredWordVectors | None]) -> None:
        """Restore what differs from a model that was just loaded."""
        values, stored = state
        self.__dict__.update(values, _settled=values["_settled"] or self._settled)
        if stored is not None:
            self._runner.use_stored_word_vectors(stored, check=False)


def locate_model(model: str | Path, *, local_files_only: bool = False) -> str | Path:
    """Return the path of a model: an existing path is itself, any other string is a name."""
    if model == BUILTIN:
        return Path(__file__).parent / BUILTIN
    if not isinstance(model, (str, os.PathLike)):
        raise InputTypeError(
            f"the model is {_describe(model)}; expected a path or a name, such as {BUILTIN!r}"
        )
    # os.path, because Path.exists raises for names that are too long for a file.
    if isinstance(model, Path) or os.path.exists(os.path.expanduser(model)):
        return model
    from elmokit.fetch import resolve_model

    return resolve_model(model, local_files_only=local_files_only)


def _is_published_for_proteins(model: str | Path) -> bool:
    """Return whether a model is named by the name of a published model of proteins."""
    if not isinstance(model, str) or model == BUILTIN or os.path.exists(os.path.expanduser(model)):
        return False
    from elmokit.fetch.published import find_published

    published = find_published(model)
    return published is not None and published.proteins


def mark_proteins(bilm: BiLM, proteins: bool) -> BiLM:
    """Return a model whose configuration says whether it was trained on proteins."""
    if bilm.config.extra.get(PROTEINS) is proteins:
        return bilm
    extra = {**bilm.config.extra, PROTEINS: proteins}
    return replace(bilm, config=replace(bilm.config, extra=extra))


def pool_vectors(
    vectors: FloatArray, pooling: Pooling | None = None, normalize: bool = False
) -> FloatArray:
    """Return the vectors of a sentence (…, T, D), pooled to (…, D) and scaled as asked.

    Args:
        vectors: One vector per word.
        pooling: `"mean"` or `"max"` over the words; None keeps one vector per word. Without words
            the result is all zeros.
        normalize: Scale every vector to length 1; zeros stay zeros.
    """
    if pooling is not None:
        if not vectors.shape[-2]:
            return np.zeros((*vectors.shape[:-2], vectors.shape[-1]), vectors.dtype)
        vectors = vectors.mean(axis=-2) if pooling == "mean" else vectors.max(axis=-2)
    if normalize:
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors = vectors / np.maximum(length, np.float32(1e-30))
    return vectors


def _check_pooling(pooling: str) -> None:
    if pooling not in get_args(Pooling):
        raise InputError(f"pooling is {pooling!r}; expected 'mean' or 'max'")


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
    if threads is not None and (not integer or not 1 <= threads <= MOST_THREADS):
        raise InputError(
            f"threads is {threads!r:.60}; expected 1 to {MOST_THREADS}, or None for all"
        )
    return threads


def _describe(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
