"""A corpus on disk, as `elmo corpus` makes it, opened for reading: sentences of word numbers.

    corpus.json              what it is and where it comes from, written last: there means complete
    vocab.txt                the words that a model of it predicts, `<S>`, `</S>`, `<UNK>` first
    words.txt                all words that it reads: the vocabulary, then the others by frequency
    counts.npy               int64, how often each of those occurs in `train`
    train-00000.npy          int32, the words of all sentences one after another, without marks
    train-00000.lengths.npy  int32, the words of each sentence
    valid-….npy              the same for held-out text, if there is any

A number is an index into words.txt; below the size of the vocabulary it is also what the model has
to predict, else that is `<UNK>`. Arrays are memory-mapped. Knows nothing about batches or torch.

Shape letters: N words, S sentences, U distinct words.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError, InputError
from elmokit.text.characters import BOS, EOS
from elmokit.text.files import checksum
from elmokit.text.vocabulary import UNKNOWN, Vocabulary

VERSION = 1
MANIFEST = "corpus.json"
VOCABULARY, WORDS, COUNTS = "vocab.txt", "words.txt", "counts.npy"
TRAIN, VALID = "train", "valid"

IntArray = npt.NDArray[np.integer[Any]]


class Corpus:
    """An open corpus."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        """Use `open`."""
        self.path = path
        self.about = about
        """What corpus.json says."""
        self.fingerprint: str = about["fingerprint"]
        """The same for the same content, whatever it was made from."""
        self.vocabulary = Vocabulary.read(path / VOCABULARY)
        self.words: Sequence[str] = Words(path / WORDS)
        self.counts: npt.NDArray[np.int64] = _load(path / COUNTS, np.int64)
        self.train = Split(path, TRAIN, about[TRAIN])
        self.valid = Split(path, VALID, about[VALID]) if about[VALID] else None
        self._check()

    @classmethod
    def open(cls, path: str | Path) -> Corpus:
        """Open the corpus in a directory."""
        path = Path(path).expanduser()
        about = _manifest(path)
        _check_files(path, about["files"])
        try:
            return cls(path, about)
        except (KeyError, TypeError) as error:
            raise FormatError(f"{path / MANIFEST} is damaged: {error!r}; make it again") from None

    @cached_property
    def marks(self) -> tuple[int, int, int]:
        """The numbers of `<S>`, `</S>` and `<UNK>`: 0, 1, 2 unless a given vocabulary differs."""
        bos, eos, unknown = map(self.vocabulary.index_of, (BOS, EOS, UNKNOWN))
        return bos, eos, unknown

    def verify(self) -> None:
        """Read every file and compare it with its checksum, which `open` does not."""
        for name, entry in self.about["files"].items():
            if checksum(self.path / name) != entry["sha256"]:
                raise FormatError(f"{self.path / name} is damaged: its checksum differs")

    def _check(self) -> None:
        vocabulary, words = len(self.vocabulary), len(self.words)
        if words < vocabulary or len(self.counts) != words:
            raise FormatError(
                f"{self.path} is damaged: {vocabulary:,} words in {VOCABULARY}, {words:,} in "
                f"{WORDS}, {len(self.counts):,} in {COUNTS}; expected the last two to be equal and "
                "the first no larger"
            )
        if missing := self.vocabulary.missing_marks():
            raise FormatError(f"{self.path / VOCABULARY} lacks {', '.join(missing)}")

    def held_out(self, words: int | None = None) -> Iterator[list[str]]:
        """Held-out sentences as words: all, or about so many words, from all over them."""
        if self.valid is None:
            raise InputError(f"{self.path} is a corpus without held-out text; give a file of text")
        every = 1 if words is None else max(1, self.valid.tokens // words)
        for i in range(0, self.valid.sentences, every):
            ids, _ = self.valid.gather([i])
            yield [self.words[j] for j in ids.tolist()]

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, {self.train.tokens:,} words)"


class Split:
    """The sentences of one part of a corpus."""

    def __init__(self, path: Path, name: str, about: Mapping[str, Any]) -> None:
        shards = about["shards"]
        self.sentences: int = sum(shard["sentences"] for shard in shards)
        self.tokens: int = sum(shard["tokens"] for shard in shards)
        """Words, without marks."""
        ids, lengths = [], []
        for i, shard in enumerate(shards):
            base = path / f"{name}-{i:05d}"
            ids.append(_load(base.with_suffix(".npy"), np.int32))
            lengths.append(_load(base.with_suffix(".lengths.npy"), np.int32))
            if len(ids[-1]) != shard["tokens"] or len(lengths[-1]) != shard["sentences"]:
                raise FormatError(
                    f"{base}.npy has {len(ids[-1]):,} words in {len(lengths[-1]):,} sentences; "
                    f"{MANIFEST} says {shard['tokens']:,} in {shard['sentences']:,}"
                )
        self._ids = ids
        self.lengths: npt.NDArray[np.int32] = (
            lengths[0] if len(lengths) == 1 else np.concatenate([np.empty(0, np.int32), *lengths])
        )
        """The words of each sentence."""
        # Where each sentence begins in its shard, and with which sentence each shard begins.
        self._starts = np.concatenate(
            [np.empty(0, np.int32)]
            + [(np.cumsum(own, dtype=np.int64) - own).astype(np.int32) for own in lengths]
        )
        self._first = list(itertools.accumulate(map(len, lengths), initial=0))
        for i, own in enumerate(lengths):
            if int(own.sum(dtype=np.int64)) != len(ids[i]) or (len(own) and own.min() < 1):
                raise FormatError(
                    f"{path}, shard {i} of {name}: the lengths of its sentences do not make up its "
                    "words; make it again with `elmo corpus`"
                )

    def gather(
        self, indices: IntArray | Sequence[int]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Ids of these sentences one after another, and their lengths."""
        indices_B = np.asarray(indices, np.int64)
        if len(indices_B) and not 0 <= indices_B.min() <= indices_B.max() < self.sentences:
            raise IndexError(
                f"sentences {indices_B.min()} to {indices_B.max()} of {self.sentences:,}"
            )
        lengths_B = self.lengths[indices_B]
        ends_B = np.cumsum(lengths_B, dtype=np.int64)
        total = int(ends_B[-1]) if len(ends_B) else 0
        # A word's place in its shard: its sentence's beginning and how far it is from there.
        shift_B = self._starts[indices_B] - (ends_B - lengths_B)
        places_N = np.arange(total) + np.repeat(shift_B, lengths_B)
        if len(self._ids) == 1:
            return self._ids[0][places_N], lengths_B
        out_N = np.empty(total, np.int32)
        shard_B = np.searchsorted(self._first, indices_B, side="right") - 1
        shard_N = np.repeat(shard_B, lengths_B)
        for shard in np.unique(shard_B).tolist():
            here_N = shard_N == shard
            out_N[here_N] = self._ids[shard][places_N[here_N]]
        return out_N, lengths_B

    def __len__(self) -> int:
        return self.sentences


class Words(Sequence[str]):
    """The lines of words.txt, decoded when they are asked for."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            try:
                self._data: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:  # an empty file cannot be mapped
                self._data = b""
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == ord("\n"))
        if len(self._data) and (not len(ends) or ends[-1] != len(self._data) - 1):
            raise FormatError(f"{path} is damaged: its last line has no end")
        self._starts = np.concatenate([[0], ends + 1])

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._lines(start, max(start, stop))
            return [self[i] for i in range(start, stop, step)]
        place = range(len(self))[index]
        return self._data[self._starts[place] : self._starts[place + 1] - 1].decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 1 << 16):
            yield from self._lines(start, min(len(self), start + (1 << 16)))

    def _lines(self, start: int, stop: int) -> list[str]:
        if start == stop:
            return []
        text = self._data[self._starts[start] : self._starts[stop] - 1].decode("utf-8")
        return text.split("\n")


def fingerprint_of(files: Mapping[str, Mapping[str, Any]]) -> str:
    """One checksum for all files."""
    lines = (f"{files[name]['sha256']}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def _manifest(path: Path) -> dict[str, Any]:
    manifest = path / MANIFEST
    try:
        data = manifest.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        what = "has no " + MANIFEST if path.is_dir() else "is no directory"
        if not path.exists():
            what = "does not exist"
        raise FormatError(
            f"{path} {what}; expected a corpus: elmo corpus TEXT… --out {path}"
        ) from None
    try:
        about = json.loads(data)
        version = int(about["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{manifest} is damaged: {error!r}; make the corpus again") from None
    if version > VERSION:
        raise FormatError(
            f"{path} is a corpus of version {version}, this elmokit reads up to {VERSION}: "
            "pip install -U elmokit"
        )
    if not isinstance(about.get("files"), dict) or COUNTS not in about["files"]:
        raise FormatError(f"{manifest} lists no files; expected a corpus, made by elmo corpus")
    return dict(about)


def _check_files(path: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, entry in files.items():
        try:
            size = (path / name).stat().st_size
        except FileNotFoundError:
            raise FormatError(f"{path} lacks {name}, which {MANIFEST} lists") from None
        if size != entry["bytes"]:
            raise FormatError(
                f"{path / name} has {size:,} bytes, {MANIFEST} says {entry['bytes']:,}: "
                "it is damaged or from another corpus"
            )


def _load(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A file's array, mapped into memory."""
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError as error:
        raise FormatError(f"{path} is damaged: {error}") from None
    if array.dtype != dtype or array.ndim != 1:
        raise FormatError(
            f"{path} is {array.dtype} of {array.ndim} dimensions; expected {dtype}, 1"
        )
    return np.asarray(array)  # the map without its class, which makes every look-up slower
