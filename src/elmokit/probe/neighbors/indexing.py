"""Building an index of a corpus so that an interruption costs little.

Everything is written to a hidden directory beside the target, `.NAME.partial`. A checkpoint in it
says how much of the files is complete. An interrupted run continues from there if model, layer and
text are the same, and starts again if not. The directory is renamed when the index is complete.

Shape letters: L layers, T words of a sentence, D size of a vector, S sentences, V word forms.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.errors import FormatError, InputError
from elmokit.fetch.cache import models_root
from elmokit.formats.checked_rows import CheckedRows, row_checksums
from elmokit.json_text import check_seal, parse_json, seal
from elmokit.probe.context import ContextChoice, check_context, pool_context
from elmokit.probe.corpus_files import limit_words, list_corpus_files
from elmokit.probe.neighbors import graph
from elmokit.probe.neighbors.index import (
    CHARACTER_CHECKSUMS,
    CHARACTERS,
    FIRST,
    FORM_NUMBERS,
    FORMAT,
    FORMS,
    LENGTHS,
    MANIFEST,
    ORDER,
    VECTOR_CHECKSUMS,
    VECTORS,
    VERSION,
    Index,
)
from elmokit.probe.neighbors.stored_corpus import StoredCorpus
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.probe.results import make_signature
from elmokit.progress import StageCallback
from elmokit.storage import can_write_to, explain_write_errors, wait_for_lock, write_json
from elmokit.train.chunks import TextForm
from elmokit.train.text_reader import TextReader
from elmokit.vectors.shards import PLAN_FILE, is_sharded_job

CHECKPOINT, LOCK = "checkpoint.json", ".lock"
CHECKED_FILES = (
    *(FORM_NUMBERS, LENGTHS, FORMS, VECTOR_CHECKSUMS, CHARACTER_CHECKSUMS),
    *(FIRST, ORDER),
)
"""Files that are compared with their checksums when an index is opened; the last two are made at
the end. Vectors are compared row by row when they are read."""
CHECKPOINT_WORDS = 50_000
"""Words between two checkpoints; an interruption costs about as many."""
EMBEDDING = "embedding"
"""Stage that callbacks receive while the corpus is embedded."""


def resolve_layer(elmo: Elmo, layer: LayerChoice) -> int | str:
    """Return the number of a layer, or `"mix"`."""
    if layer == "all":
        raise InputError(
            "layer is 'all', but a use has one vector; expected 'top', 'mix' or a number"
        )
    elmo.layer_selector(layer)  # raises if there is no such layer
    if layer == "mix":
        return "mix"
    return (elmo.layers - 1 if layer == "top" else int(layer)) % elmo.layers


def open_or_build(
    elmo: Elmo,
    paths: Sequence[str | Path],
    directory: str | Path | None,
    *,
    layer: LayerChoice,
    context: ContextChoice,
    max_words: int | None,
    form: TextForm,
    column: str | None,
    callback: StageCallback,
) -> Index:
    """Open the index of text files, or build it; see `Index.from_files`."""
    check_context(context)
    stored: StoredCorpus | None = None
    if len(paths) == 1 and is_sharded_job(paths[0]):
        stored = StoredCorpus(elmo, paths[0])
        if max_words is not None:
            raise InputError("max_words (--words) does not go with a sharded job, which is whole")
        if resolve_layer(elmo, stored.layer) != resolve_layer(elmo, layer):
            raise InputError(
                f"the job {paths[0]} keeps the layer {stored.layer!r}; give it: --layer "
                f"{stored.layer}"
            )
        paths = [Path(paths[0]).expanduser() / PLAN_FILE]  # its checksum stands for the text
    files = list_corpus_files(paths, "corpus")
    signed = make_signature(elmo, files)
    source: dict[str, Any] = {
        **{name: signed[name] for name in ("model", "state", "dtype", "data")},
        "layer": resolve_layer(elmo, layer),
        "words": max_words,
        "form": form,
        "column": column,
        **({} if context == "word" else {"context": context}),
    }
    if directory is None:
        key = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
        directory = models_root().parent / "indexes" / key[:24]
        if not (directory / MANIFEST).is_file() and not can_write_to(directory.parent):
            directory = _temporary_directory(directory)
    directory = Path(directory).expanduser()
    if (directory / MANIFEST).is_file():
        index = Index.open(directory)
        _check_source(
            index, source if files else {name: source[name] for name in ("model", "layer")}
        )
        if index.context != context:
            raise InputError(
                f"the index {directory} was made with context {index.context!r} (--context "
                f"{index.context}), not {context!r}; give another directory (--index)"
            )
        return add_graph(index, callback)
    if not files:
        raise InputError(f"there is no index in {directory}; give --corpus FILE to make it")
    text = TextReader([str(path) for path in paths], form, column)

    def report(stage: str, done: int, total: int | None) -> None:
        if stage == EMBEDDING and done:
            stage = f"{stage}, {done:,} words"
        if total is None and text.size is not None and stage.startswith(EMBEDDING):
            done, total = text.position, text.size
        callback(stage, done, total)

    return Index.build(
        elmo,
        text if stored is None else stored,
        directory,
        layer=layer,
        context=context,
        max_words=max_words,
        source=source,
        callback=report,
    )


def _temporary_directory(wanted: Path) -> Path:
    """Return a directory for an index that is deleted when the process ends."""
    root = tempfile.mkdtemp(prefix="elmokit-index-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    warnings.warn(
        f"{wanted.parent} cannot be written, so the index is deleted at the end; to keep it, set "
        "ELMOKIT_CACHE to a directory that can be written, or name one for the index: --index",
        stacklevel=2,
    )
    return Path(root) / wanted.name


def _check_source(index: Index, source: dict[str, Any]) -> None:
    for name, value in source.items():
        if index.manifest["source"].get(name, index.manifest.get(name)) != value:
            raise InputError(
                f"the index {index.directory} was made with another {name}; give another directory "
                "(--index), or delete it"
            )


def build_index(
    elmo: Elmo,
    sentences: Iterable[Sentence],
    directory: Path,
    *,
    layer: LayerChoice,
    context: ContextChoice,
    max_words: int | None,
    source: dict[str, Any],
    graph_from: int,
    callback: StageCallback,
) -> None:
    """Build an index in a directory; see `Index.build`."""
    check_context(context)
    if elmo.state == "carry":
        raise InputError(
            "state is 'carry', but an index needs vectors that depend on their sentence alone; "
            "expected 'settled' or 'zero'"
        )
    settings: dict[str, Any] = {
        "model": elmo.bilm.fingerprint,
        "state": elmo.state,
        "dtype": elmo.dtype,
        "layer": resolve_layer(elmo, layer),
        "words_limit": max_words,
        "dim": elmo.dim if context == "word" else 2 * elmo.dim,
        **({} if context == "word" else {"context": context}),
    }
    if directory.exists():
        _check_free(directory)
    stage = directory.with_name(f".{directory.name}.partial")
    with ExitStack() as stack:
        stack.enter_context(explain_write_errors(directory, kept=lambda: _describe_kept(stage)))
        stage.mkdir(parents=True, exist_ok=True)
        stack.callback(_remove_if_empty, stage)
        stack.enter_context(wait_for_lock(stage / LOCK))
        if not stage.is_dir():
            return  # another process has just finished it
        if directory.exists():
            _check_free(directory)
        writer = _IndexWriter(stage, settings)
        with writer:
            text = writer.embed(elmo, sentences, max_words, callback)
        _write_order(stage, writer)
        if writer.uses >= graph_from and settings["layer"] != 0 and graph.is_available():
            shape = (writer.uses, settings["dim"])
            checksums_N = np.fromfile(stage / VECTOR_CHECKSUMS, "<u4")
            vectors_ND = CheckedRows(stage / VECTORS, "<f2", shape, checksums_N)
            graph.build_graph(stage, vectors_ND, callback)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **settings,
            "text": text,
            "source": source,
            "words": writer.uses,
            "sentences": writer.sentences,
            "forms": len(writer.forms),
            "graph_from": graph_from,
            "crc32": {name: zlib.crc32((stage / name).read_bytes()) for name in CHECKED_FILES},
        }
        write_json(stage / MANIFEST, seal(manifest))
        (stage / CHECKPOINT).unlink()
        (stage / LOCK).unlink()
        if directory.exists():
            directory.rmdir()
        os.replace(stage, directory)


def _describe_kept(stage: Path) -> str:
    """Return how much of an unfinished index is kept, and how to go on, for an error message."""
    if not (stage / CHECKPOINT).is_file():
        return "nothing was kept. Make room, or name another directory for the index: --index"
    uses = parse_json((stage / CHECKPOINT).read_bytes())["uses"]
    return f"{uses:,} words are kept. Make room, then run the same again, and it will continue"


def add_graph(index: Index, callback: StageCallback) -> Index:
    """Add the search graph to a large index that was made without usearch."""
    is_large = len(index) >= index.manifest["graph_from"] and index.manifest["layer"] != 0
    if index.recall is not None or not is_large or not graph.is_available():
        return index
    graph.build_graph(index.directory, index.vectors_ND, callback)
    return Index.open(index.directory)


def _remove_if_empty(stage: Path) -> None:
    """Remove an unfinished index that has no checkpoint yet."""
    if stage.is_dir() and not (stage / CHECKPOINT).exists():
        shutil.rmtree(stage, ignore_errors=True)


def _check_free(directory: Path) -> None:
    if (directory / MANIFEST).exists():
        raise InputError(f"{directory} is an index already; open it, or delete it first")
    if not directory.is_dir() or any(directory.iterdir()):
        raise FormatError(
            f"{directory} is in the way: it is not an index; expected the name of a new directory"
        )


class _IndexWriter:
    """The files of an unfinished index, and how much of them is complete."""

    def __init__(self, stage: Path, settings: dict[str, Any]) -> None:
        self._stage, self._settings = stage, settings
        self.uses = self.sentences = 0
        self.forms: dict[str, int] = {}
        self._checksums: dict[str, int] = {}
        self._text_hash = hashlib.sha256().hexdigest()
        self._files: dict[str, BinaryIO] = {}
        self._open_files = ExitStack()

    def __enter__(self) -> _IndexWriter:
        self._resume()
        for name in (*CHECKED_FILES[:-2], VECTORS, CHARACTERS):
            self._files[name] = self._open_files.enter_context((self._stage / name).open("ab"))
        return self

    def __exit__(self, *_: object) -> None:
        self._open_files.close()

    def embed(
        self,
        elmo: Elmo,
        sentences: Iterable[Sentence],
        max_words: int | None,
        callback: StageCallback,
    ) -> str:
        """Write all uses, and return the SHA-256 of the text, one line per sentence."""
        choose = elmo.layer_selector(self._settings["layer"])
        context = self._settings.get("context", "word")
        digest = hashlib.sha256()
        text = _nonempty(elmo.words(sentences), max_words)
        for words in islice(text, self.sentences):
            digest.update(f"{' '.join(words)}\n".encode("utf-8", "surrogatepass"))
        if digest.hexdigest() != self._text_hash:  # another text, or a shorter one
            self._start_over()
            if isinstance(sentences, Iterator):
                raise InputError(
                    f"{self._stage} held an unfinished index of another text, which is deleted "
                    "now; some of this text was read to find that out, so start again"
                )
            text = _nonempty(elmo.words(sentences), max_words)
            digest = hashlib.sha256()
        at_checkpoint = self.uses
        callback(EMBEDDING, self.uses, max_words)
        items: Iterable[tuple[Sequence[str], FloatArray, FloatArray]]
        if isinstance(sentences, StoredCorpus):
            items = sentences.items(elmo, self.sentences)
        else:
            embedded = elmo.items(text, "all")
            items = ((words, choose(all_LTD), all_LTD[0]) for words, all_LTD in embedded)
        for words, vectors_TD, characters_TD in items:
            digest.update(f"{' '.join(words)}\n".encode("utf-8", "surrogatepass"))
            vectors_TD = pool_context(vectors_TD, vectors_TD, context)
            self._append(words, vectors_TD, characters_TD)
            if self.uses - at_checkpoint >= CHECKPOINT_WORDS:
                self._checkpoint(digest.hexdigest())
                at_checkpoint = self.uses
                callback(EMBEDDING, self.uses, max_words)
        if not self.uses:
            raise InputError("the corpus has no words; expected text to search")
        self._checkpoint(digest.hexdigest())
        callback(EMBEDDING, self.uses, self.uses)
        return digest.hexdigest()

    def _append(
        self, words: Sequence[str], vectors_TD: FloatArray, characters_TD: FloatArray
    ) -> None:
        numbers = []
        for word, character_D in zip(words, characters_TD, strict=True):
            if (number := self.forms.get(word)) is None:
                if "\n" in word:
                    raise InputError(
                        f"sentence {self.sentences} has the word {word!r}, which contains a line "
                        "break; tokenize it first"
                    )
                number = self.forms[word] = len(self.forms)
                self._write(FORMS, f"{word}\n".encode("utf-8", "surrogatepass"))
                self._write_rows(CHARACTERS, CHARACTER_CHECKSUMS, character_D[None])
            numbers.append(number)
        self._write_rows(VECTORS, VECTOR_CHECKSUMS, vectors_TD)
        self._write(FORM_NUMBERS, np.array(numbers, "<i4").tobytes())
        self._write(LENGTHS, np.array([len(words)], "<i4").tobytes())
        self.uses += len(words)
        self.sentences += 1

    def _write_rows(self, name: str, checksums: str, vectors_ND: FloatArray) -> None:
        rows_ND = unit_length(vectors_ND).astype("<f2")
        self._write(name, rows_ND.tobytes())
        self._write(checksums, row_checksums(rows_ND).astype("<u4").tobytes())

    def _write(self, name: str, data: bytes) -> None:
        self._files[name].write(data)
        self._checksums[name] = zlib.crc32(data, self._checksums.get(name, 0))

    def _checkpoint(self, text_hash: str) -> None:
        sizes = {}
        for name, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            sizes[name] = file.tell()
        self._text_hash = text_hash
        counts = {"uses": self.uses, "sentences": self.sentences, "forms": len(self.forms)}
        state = {"of": self._settings, "text": text_hash, **counts, "bytes": sizes}
        state["crc32"] = self._checksums
        write_json(self._stage / CHECKPOINT, seal(state))

    def _resume(self) -> None:
        """Cut all files to what the checkpoint says, or to nothing if it cannot be used."""
        try:
            state = parse_json((self._stage / CHECKPOINT).read_bytes())
            check_seal(state)
            is_usable = state["of"] == self._settings and all(
                _file_checksum(self._stage / name, size) == state["crc32"].get(name, 0)
                for name, size in state["bytes"].items()
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            is_usable = False
        if not is_usable:
            self._start_over()
            return
        for name, size in state["bytes"].items():
            os.truncate(self._stage / name, size)
        forms = (self._stage / FORMS).read_bytes().decode("utf-8", "surrogatepass").split("\n")
        self.forms = {form: number for number, form in enumerate(forms[:-1])}
        self.uses, self.sentences = state["uses"], state["sentences"]
        self._text_hash = state["text"]
        self._checksums = state["crc32"]

    def _start_over(self) -> None:
        for file in self._files.values():
            file.truncate(0)
        for path in self._stage.iterdir():
            if path.name != LOCK and path.name not in self._files:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.uses = self.sentences = 0
        self.forms = {}
        self._checksums = {}
        self._text_hash = hashlib.sha256().hexdigest()


def _nonempty(sentences: Iterable[Sequence[str]], max_words: int | None) -> Iterator[Sequence[str]]:
    """Return the sentences that have words, up to a number of words."""
    return limit_words((words for words in sentences if words), max_words)


def _file_checksum(path: Path, size: int) -> int | None:
    """Return the CRC-32 of the first bytes of a file; None if it has fewer."""
    checksum = 0
    with path.open("rb") as file:
        while size > 0:
            data = file.read(min(size, 1 << 20))
            if not data:
                return None
            checksum = zlib.crc32(data, checksum)
            size -= len(data)
    return checksum


def _write_order(stage: Path, writer: _IndexWriter) -> None:
    """Write the uses grouped by word, ignoring case, and which sentences are repeated."""
    keys: dict[str, int] = {}
    key_V = np.array([keys.setdefault(f.casefold(), len(keys)) for f in writer.forms], np.int64)
    form_N = np.fromfile(stage / FORM_NUMBERS, "<i4")
    order_N = np.argsort(key_V[form_N], kind="stable")
    order_N.astype("<i8").tofile(stage / ORDER)
    ends_S = np.cumsum(np.fromfile(stage / LENGTHS, "<i4"), dtype=np.int64)
    first: dict[bytes, int] = {}
    first_S = np.empty(len(ends_S), "<i4")
    start = 0
    for number, end in enumerate(ends_S.tolist()):
        digest = hashlib.blake2b(form_N[start:end].tobytes(), digest_size=16).digest()
        first_S[number] = first.setdefault(digest, number)
        start = end
    first_S.tofile(stage / FIRST)
