"""Making an index of a corpus: embedding it, bit by bit, so that nothing is lost on the way.

Everything is written to a hidden directory beside the target, `.NAME.partial`. A checkpoint there
says how far the files are right; an interrupted run goes on from it, if model, layer and text are
the same, else from the beginning. The directory gets its name when it is complete.

Shape letters: L layers, T words of a sentence, D size of a vector, S sentences, V forms.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Layers, Sentence
from elmokit.errors import FormatError, InputError
from elmokit.fetch.cache import write_json
from elmokit.fetch.lock import locked
from elmokit.probe.neighbors import graph
from elmokit.probe.neighbors.index import (
    CHARACTERS,
    FIRST,
    FORMAT,
    FORMS,
    LENGTHS,
    MANIFEST,
    NUMBERS,
    ORDER,
    VECTORS,
    VERSION,
    Index,
)
from elmokit.probe.neighbors.nearest import unit_length

CHECKPOINT, LOCK = "checkpoint.json", ".lock"
CHECK_AFTER = 50_000
"""Words; about as much as an interruption costs."""


def layer_number(elmo: Elmo, layer: Layers) -> int | str:
    """One layer by its number, or `"mix"`."""
    if layer == "all":
        raise InputError("layer is 'all'; a use has one vector: 'mix', 'top' or a number")
    elmo.choose(layer)  # says what is wrong, if something is
    if layer == "mix":
        return "mix"
    return (elmo.layers - 1 if layer == "top" else int(layer)) % elmo.layers


def build(
    elmo: Elmo,
    sentences: Iterable[Sentence],
    directory: Path,
    *,
    layer: Layers,
    words_limit: int | None,
    source: dict[str, Any],
    graph_from: int,
    progress: graph.Progress,
) -> None:
    """See `Index.build`."""
    if elmo.state == "carry":
        raise InputError(
            "state is 'carry'; an index needs vectors that depend on their sentence alone: "
            "'settled' or 'zero'"
        )
    of = {
        "model": elmo.bilm.fingerprint,
        "state": elmo.state,
        "dtype": elmo.dtype,
        "layer": layer_number(elmo, layer),
        "words_limit": words_limit,
        "dim": elmo.dim,
    }
    if directory.exists():
        _check_free(directory)
    stage = directory.with_name(f".{directory.name}.partial")
    try:
        stage.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the directory {stage}: {error.strerror}") from None
    with ExitStack() as held:
        held.callback(_remove_if_empty, stage)
        held.enter_context(locked(stage / LOCK))
        if not stage.is_dir():
            return  # somebody else has just finished it
        if directory.exists():
            _check_free(directory)
        written = _Writing(stage, of)
        with written:
            text = written.embed(elmo, sentences, words_limit, progress)
        _write_order(stage, written)
        if written.uses >= graph_from and of["layer"] != 0 and graph.available():
            shape = (written.uses, elmo.dim)
            vectors_ND = np.memmap(stage / VECTORS, "<f2", "r", shape=shape)
            graph.build_graph(stage, vectors_ND, progress)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            **of,
            "text": text,
            "source": source,
            "words": written.uses,
            "sentences": written.sentences,
            "forms": len(written.forms),
            "graph_from": graph_from,
        }
        write_json(stage / MANIFEST, manifest)
        (stage / CHECKPOINT).unlink()
        (stage / LOCK).unlink()
        if directory.exists():
            directory.rmdir()
        os.replace(stage, directory)


def link(index: Index, progress: graph.Progress) -> Index:
    """Add the graph to an index that was made without usearch, if it is worth it."""
    large = len(index) >= index.manifest["graph_from"] and index.manifest["layer"] != 0
    if index.recall is not None or not large or not graph.available():
        return index
    graph.build_graph(index.directory, index.vectors_ND, progress)
    return Index.open(index.directory)


def _remove_if_empty(stage: Path) -> None:
    """What has no checkpoint yet is not worth keeping."""
    if stage.is_dir() and not (stage / CHECKPOINT).exists():
        shutil.rmtree(stage, ignore_errors=True)


def _check_free(directory: Path) -> None:
    if (directory / MANIFEST).exists():
        raise InputError(f"{directory} is an index already: open it, or delete it first")
    if not directory.is_dir() or any(directory.iterdir()):
        raise FormatError(
            f"{directory} is in the way: it is no index; give the name of a new directory"
        )


class _Writing:
    """The growing files of an unfinished index, and how far they are right."""

    def __init__(self, stage: Path, of: dict[str, Any]) -> None:
        self._stage, self._of = stage, of
        self.uses = self.sentences = 0
        self.forms: dict[str, int] = {}
        self._so_far = hashlib.sha256().hexdigest()
        self._files: dict[str, BinaryIO] = {}
        self._open = ExitStack()

    def __enter__(self) -> _Writing:
        self._resume()
        for name in (VECTORS, CHARACTERS, NUMBERS, LENGTHS, FORMS):
            self._files[name] = self._open.enter_context((self._stage / name).open("ab"))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def embed(
        self,
        elmo: Elmo,
        sentences: Iterable[Sentence],
        limit: int | None,
        progress: graph.Progress,
    ) -> str:
        """Write all uses; returns the SHA-256 of the text, a space between words, a line each."""
        choose = elmo.choose(self._of["layer"])
        digest = hashlib.sha256()
        text = _limited(elmo.words(sentences), limit)
        for words in islice(text, self.sentences):
            digest.update(f"{' '.join(words)}\n".encode("utf-8", "surrogatepass"))
        if digest.hexdigest() != self._so_far:  # another text, or a shorter one
            self._start_over()
            if isinstance(sentences, Iterator):
                raise InputError(
                    f"{self._stage} held an unfinished index of another text, which is deleted "
                    "now, but some of this text was read to find that out: start again"
                )
            text = _limited(elmo.words(sentences), limit)
            digest = hashlib.sha256()
        checked = self.uses
        for words, layers_LTD in elmo.items(text, "all"):
            digest.update(f"{' '.join(words)}\n".encode("utf-8", "surrogatepass"))
            self._append(words, choose(layers_LTD), layers_LTD[0])
            if self.uses - checked >= CHECK_AFTER:
                self._checkpoint(digest.hexdigest())
                checked = self.uses
                progress("embedding", self.uses, limit)
        if not self.uses:
            raise InputError("the corpus has no words; expected text to look for neighbors in")
        self._checkpoint(digest.hexdigest())
        progress("embedding", self.uses, self.uses)
        return digest.hexdigest()

    def _append(
        self, words: Sequence[str], vectors_TD: FloatArray, characters_TD: FloatArray
    ) -> None:
        numbers = []
        for word, alone_D in zip(words, characters_TD, strict=True):
            if (number := self.forms.get(word)) is None:
                if "\n" in word:
                    raise InputError(
                        f"sentence {self.sentences} has the word {word!r}, with a line break in "
                        "it: cut it into words first"
                    )
                number = self.forms[word] = len(self.forms)
                self._files[FORMS].write(f"{word}\n".encode("utf-8", "surrogatepass"))
                self._files[CHARACTERS].write(_half(alone_D[None]))
            numbers.append(number)
        self._files[VECTORS].write(_half(vectors_TD))
        self._files[NUMBERS].write(np.array(numbers, "<i4").tobytes())
        self._files[LENGTHS].write(np.array([len(words)], "<i4").tobytes())
        self.uses += len(words)
        self.sentences += 1

    def _checkpoint(self, so_far: str) -> None:
        sizes = {}
        for name, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            sizes[name] = file.tell()
        self._so_far = so_far
        counts = {"uses": self.uses, "sentences": self.sentences, "forms": len(self.forms)}
        state = {"of": self._of, "text": so_far, **counts, "bytes": sizes}
        write_json(self._stage / CHECKPOINT, state)

    def _resume(self) -> None:
        """Cut all files to what the checkpoint says, or to nothing."""
        try:
            state = json.loads((self._stage / CHECKPOINT).read_bytes())
            right = state["of"] == self._of and all(
                (self._stage / name).stat().st_size >= size for name, size in state["bytes"].items()
            )
        except (OSError, ValueError, KeyError):
            right = False
        if not right:
            self._start_over()
            return
        for name, size in state["bytes"].items():
            os.truncate(self._stage / name, size)
        forms = (self._stage / FORMS).read_bytes().decode("utf-8", "surrogatepass").split("\n")
        self.forms = {form: number for number, form in enumerate(forms[:-1])}
        self.uses, self.sentences = state["uses"], state["sentences"]
        self._so_far = state["text"]

    def _start_over(self) -> None:
        for file in self._files.values():
            file.truncate(0)
        for path in self._stage.iterdir():
            if path.name != LOCK and path.name not in self._files:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.uses = self.sentences = 0
        self.forms = {}
        self._so_far = hashlib.sha256().hexdigest()


def _limited(sentences: Iterable[Sequence[str]], limit: int | None) -> Iterator[Sequence[str]]:
    count = 0
    for words in sentences:
        if not words:
            continue
        yield words
        count += len(words)
        if limit is not None and count >= limit:
            return


def _half(vectors_ND: FloatArray) -> bytes:
    return unit_length(vectors_ND).astype("<f2").tobytes()


def _write_order(stage: Path, written: _Writing) -> None:
    """The uses by word, whatever its case, and which sentences are repetitions."""
    keys: dict[str, int] = {}
    key_V = np.array([keys.setdefault(f.casefold(), len(keys)) for f in written.forms], np.int64)
    form_N = np.fromfile(stage / NUMBERS, "<i4")
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
