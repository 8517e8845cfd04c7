"""A training corpus on disk: sentences of word ids, as `elmo corpus` writes them.

    corpus.json              metadata and checksums; written last, so it marks a complete corpus
    vocab.txt                words that a model predicts, `<S>`, `</S>`, `<UNK>` first
    words.txt                all words of the text: the vocabulary, then the others by frequency
    counts.npy               int64, occurrences of each of those words in `train`
    train-00000.npy          int32, word ids of all sentences one after another, without marks
    train-00000.lengths.npy  int32, words per sentence
    valid-….npy              the same for held-out text, if there is any

A word id is an index into words.txt. Ids below the size of the vocabulary are prediction targets;
words beyond it are predicted as `<UNK>`. All files are compared with their checksums when a corpus
is opened. The sentences stay in their files and are read when they are needed; they are not mapped
into memory, so that a file that is truncated meanwhile is an error and not the end of the process.
Knows nothing about batches or torch.

Shape letters: N words, S sentences, U distinct words.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.formats.stored_arrays import StoredArray, open_npy
from elmokit.json_text import check_seal, parse_json
from elmokit.staging import try_to_finish
from elmokit.storage import check_regular, checksum
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import UNKNOWN, Vocabulary

VERSION = 2
"""Version of corpus.json; version 1 has no checksum of itself."""
MANIFEST = "corpus.json"
VOCABULARY, WORDS, COUNTS = "vocab.txt", "words.txt", "counts.npy"
TRAIN, VALID = "train", "valid"

IntArray = npt.NDArray[np.integer[Any]]


class SpecialIds(NamedTuple):
    """Ids of the special words `<S>`, `</S>` and `<UNK>`: 0, 1 and 2 in most vocabularies."""

    begin: int
    end: int
    unknown: int


class Corpus:
    """A corpus that `build_corpus` or `elmo corpus` made, opened for reading."""

    def __init__(self, path: Path, metadata: dict[str, Any]) -> None:
        """Open the parts of a corpus; use `Corpus.open` instead."""
        self.path = path
        """Directory of the corpus."""
        self.metadata = metadata
        """Contents of corpus.json."""
        self.fingerprint: str = metadata["fingerprint"]
        """Checksum of the content: equal for equal corpora, wherever they come from."""
        self.vocabulary = Vocabulary.read(path / VOCABULARY)
        """Words that a model of this corpus predicts."""
        self.words: Sequence[str] = WordList(path / WORDS)
        """All words of the text, by their ids; the vocabulary comes first."""
        self.counts: npt.NDArray[np.int64] = _load(path / COUNTS, np.int64)
        """Occurrences of each word in the training text."""
        self.train = Split(path, TRAIN, metadata[TRAIN], len(self.words))
        """Sentences to train on."""
        self.valid = (
            Split(path, VALID, metadata[VALID], len(self.words)) if metadata[VALID] else None
        )
        """Held-out sentences, or None if there are none."""
        self._check()

    @classmethod
    def open(cls, path: str | Path) -> Corpus:
        """Open the corpus in a directory."""
        path = Path(path).expanduser()
        try_to_finish(path)
        metadata = _read_manifest(path)
        try:
            _check_files(path, metadata["files"])
            return cls(path, metadata)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            if isinstance(error, ElmoError):
                raise
            raise FormatError(
                f"{path / MANIFEST} is damaged: {error!r}; build the corpus again"
            ) from None

    @cached_property
    def special_ids(self) -> SpecialIds:
        """Ids of `<S>`, `</S>` and `<UNK>` in the vocabulary."""
        return SpecialIds(*map(self.vocabulary.index_of, (BOS, EOS, UNKNOWN)))

    def verify(self) -> None:
        """Compare every file with its checksum, as `open` does; raise if one differs."""
        _check_files(self.path, self.metadata["files"])

    def _check(self) -> None:
        vocabulary, words = len(self.vocabulary), len(self.words)
        if words < vocabulary or len(self.counts) != words:
            raise FormatError(
                f"{self.path} is damaged: it has {vocabulary:,} words in {VOCABULARY}, {words:,} "
                f"in {WORDS} and {len(self.counts):,} in {COUNTS}; expected the last two to be "
                "equal and the first no larger"
            )
        if missing := self.vocabulary.missing_marks():
            raise FormatError(f"{self.path / VOCABULARY} lacks {', '.join(missing)}")

    def held_out_sentences(self, words: int | None = None) -> Iterator[list[str]]:
        """Yield held-out sentences as lists of words.

        Args:
            words: About how many words to yield, spread evenly over the held-out text; all if None.
        """
        if self.valid is None:
            raise InputError(
                f"{self.path} is a corpus without held-out text; expected one with held-out text, "
                "or a text file"
            )
        stride = 1 if words is None else max(1, self.valid.tokens // words)
        for i in range(0, self.valid.sentences, stride):
            ids, _ = self.valid.gather([i])
            yield [self.words[j] for j in ids.tolist()]

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, {self.train.tokens:,} words)"


class Split:
    """The sentences of one split of a corpus, `train` or `valid`."""

    def __init__(self, path: Path, name: str, metadata: Mapping[str, Any], words: int) -> None:
        """Open a split of the corpus in a directory, as corpus.json describes it.

        Args:
            path: The directory.
            name: Name of the split.
            metadata: What corpus.json says about it.
            words: Number of different words of the corpus.
        """
        self._path, self._words = path, words
        shards = metadata["shards"]
        self.sentences: int = sum(shard["sentences"] for shard in shards)
        """Number of sentences."""
        self.tokens: int = sum(shard["tokens"] for shard in shards)
        """Number of words, without sentence marks."""
        ids, lengths = [], []
        for i, shard in enumerate(shards):
            base = path / f"{name}-{i:05d}"
            ids.append(_open(base.with_suffix(".npy"), np.int32))
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
        """Words per sentence."""
        # The start of each sentence in its shard, and the number of each shard's first sentence.
        self._starts = np.concatenate(
            [np.empty(0, np.int32)]
            + [(np.cumsum(own, dtype=np.int64) - own).astype(np.int32) for own in lengths]
        )
        self._first = list(itertools.accumulate(map(len, lengths), initial=0))
        for i, own in enumerate(lengths):
            if int(own.sum(dtype=np.int64)) != len(ids[i]) or (len(own) and own.min() < 1):
                raise FormatError(
                    f"{path} is damaged: the sentence lengths in shard {i} of {name} do not add up "
                    "to its words; build it again with `elmo corpus`"
                )

    def gather(
        self, indices: IntArray | Sequence[int]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the word ids of some sentences one after another, and the sentences' lengths."""
        indices_B = np.asarray(indices, np.int64)
        if len(indices_B) and not 0 <= indices_B.min() <= indices_B.max() < self.sentences:
            raise IndexError(
                f"sentences {indices_B.min()} to {indices_B.max()} asked for; the corpus has "
                f"{self.sentences:,}"
            )
        lengths_B = self.lengths[indices_B]
        ends_B = np.cumsum(lengths_B, dtype=np.int64)
        total = int(ends_B[-1]) if len(ends_B) else 0
        out_N = np.empty(total, np.int32)
        shard_B = np.searchsorted(self._first, indices_B, side="right") - 1
        starts_B = self._starts[indices_B]
        # Sentences that follow each other in a file are read at once.
        is_next_B = (shard_B[1:] == shard_B[:-1]) & (starts_B[1:] == starts_B[:-1] + lengths_B[:-1])
        firsts = [0, *(np.flatnonzero(~is_next_B) + 1).tolist()] if len(indices_B) else []
        ends = ends_B.tolist()
        for first, after in itertools.pairwise([*firsts, len(indices_B)]):
            begin = ends[first] - int(lengths_B[first])
            start = int(starts_B[first])
            array = self._ids[int(shard_B[first])].rows(start, start + ends[after - 1] - begin)
            out_N[begin : ends[after - 1]] = array.read()
        if total and not 0 <= out_N.min() <= out_N.max() < self._words:
            raise FormatError(
                f"{self._path} is damaged: it has the word ids {out_N.min()} to {out_N.max()}, but "
                f"{self._words:,} words; build it again with `elmo corpus`"
            )
        return out_N, lengths_B

    def __len__(self) -> int:
        return self.sentences


class WordList(Sequence[str]):
    """The words of words.txt by their ids, decoded on access."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._path, self._data = path, path.read_bytes()
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == ord("\n"))
        if len(self._data) and (not len(ends) or ends[-1] != len(self._data) - 1):
            raise FormatError(f"{path} is damaged: its last line is incomplete")
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
        line = range(len(self))[index]
        return self._decode(line, line + 1)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 1 << 16):
            yield from self._lines(start, min(len(self), start + (1 << 16)))

    def _lines(self, start: int, stop: int) -> list[str]:
        if start == stop:
            return []
        return self._decode(start, stop).split("\n")

    def _decode(self, start: int, stop: int) -> str:
        try:
            return self._data[self._starts[start] : self._starts[stop] - 1].decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"{self._path} is damaged: {error}") from None


def combine_checksums(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one checksum for all files of a corpus."""
    lines = (f"{files[name]['sha256']}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    manifest = path / MANIFEST
    check_regular(manifest)
    try:
        data = manifest.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        problem = "has no " + MANIFEST if path.is_dir() else "is not a directory"
        if not path.exists():
            problem = "does not exist"
        raise FormatError(
            f"{path} {problem}; expected a corpus, made by: elmo corpus TEXT… --out {path}"
        ) from None
    try:
        metadata = parse_json(data)
        version = int(metadata["version"])
        if 1 < version <= VERSION:
            check_seal(metadata)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FormatError(f"{manifest} is damaged: {error!r}; build the corpus again") from None
    if version > VERSION:
        raise FormatError(
            f"{path} is a corpus of version {version}; this elmokit reads up to version {VERSION}: "
            "pip install -U elmokit"
        )
    if not isinstance(metadata.get("files"), dict) or COUNTS not in metadata["files"]:
        raise FormatError(f"{manifest} lists no files; expected a corpus made by elmo corpus")
    return dict(metadata)


def _check_files(path: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, entry in files.items():
        if Path(name).name != name:
            raise FormatError(f"{path / MANIFEST} lists {name!r:.80}; expected plain file names")
        check_regular(path / name)
        try:
            size = (path / name).stat().st_size
        except FileNotFoundError:
            raise FormatError(f"{path} lacks {name}, which is listed in {MANIFEST}") from None
        if size != entry["bytes"]:
            raise FormatError(
                f"{path / name} has {size:,} bytes, but {MANIFEST} says {entry['bytes']:,}: "
                "it is damaged or belongs to another corpus"
            )
        if checksum(path / name) != entry["sha256"]:
            raise FormatError(
                f"{path / name} is damaged: its checksum differs; build the corpus again"
            )


def _load(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array of a file."""
    return np.asarray(_open(path, dtype).read())


def _open(path: Path, dtype: npt.DTypeLike) -> StoredArray:
    """Return the array of a file, to be read when it is needed."""
    array = open_npy(path)
    if array.dtype != dtype or len(array.shape) != 1:
        raise FormatError(
            f"{path} has {len(array.shape)} dimensions of {array.dtype}; expected 1 of "
            f"{np.dtype(dtype)}"
        )
    return array
