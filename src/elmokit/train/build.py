"""Building a corpus from text files, as `elmo corpus` does.

There are two passes. The first splits the text into words, in parallel, and counts them
(`chunks.py`, `word_counts.py`); the second replaces the word ids of each chunk by those of the
corpus (`split_writer.py`). In between, the vocabulary and the held-out lines are chosen. Memory use
does not grow with the text, except for the word list, whose size is an option.

An interrupted build leaves nothing behind (`corpus_directory.py`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from elmokit.engine.native import usable_processors
from elmokit.errors import FormatError, InputError
from elmokit.staging import staging_directory
from elmokit.storage import explain_write_errors
from elmokit.text.files import STDIN, TextBlock, TextFile, display_name, find_files
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.train.advice import advise_on_corpus
from elmokit.train.chunks import Chunk, ChunkJob, TextForm, read_chunks
from elmokit.train.corpus import COUNTS, TRAIN, VALID, VOCABULARY, WORDS, Corpus
from elmokit.train.corpus_directory import (
    check_target,
    replace_corpus,
    write_manifest,
)
from elmokit.train.held_out import HeldOutSelector
from elmokit.train.split_writer import SHARD_TOKENS, SplitWriter
from elmokit.train.word_counts import WordCounts, by_frequency, make_vocabulary, make_word_list

CHUNK_BYTES = 2 << 20
"""Bytes of text per chunk."""
VOCABULARY_SIZE = 30_000
"""Words in a vocabulary by default."""

MIN_COUNTED_WORDS = 1_000_000
"""Fewest distinct words to count, however short the word list, so that counts stay exact enough."""

CorpusCallback = Callable[[int, int | None, int], None]
"""Called with the bytes read so far, the bytes in all (None if unknown), and the words read."""


@dataclass(frozen=True)
class CorpusOptions:
    """How `build_corpus` turns text into a corpus."""

    form: TextForm = "running"
    """What a line of the input is."""
    size: int | None = None
    """Words in the vocabulary, with the three marks; 30,000 unless `min_count` is set."""
    min_count: int | None = None
    """Fewest occurrences of a word in the vocabulary."""
    words: int = 4_000_000
    """Largest number of distinct words in the word list; rarer ones become `<UNK>`."""
    held_out: float = 0.5
    """Percent of the lines to hold out; ignored where separate held-out text is given."""
    column: str | None = None
    """Name of the text column in Parquet files."""

    def __post_init__(self) -> None:
        if self.form not in get_args(TextForm):
            raise InputError(
                f"form is {self.form!r}; expected one of {', '.join(get_args(TextForm))}"
            )
        for name in ("size", "min_count", "words"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; expected a number from 1 up")
        if self.size is not None and self.words < self.size:
            raise InputError(
                f"words is {self.words:,}; expected at least the size of the vocabulary, "
                f"{self.size:,}"
            )
        if not 0 <= self.held_out <= 50:
            raise InputError(f"held_out is {self.held_out}; expected a percentage from 0 to 50")


def build_corpus(
    texts: Sequence[str],
    out: str | Path,
    options: CorpusOptions = CorpusOptions(),  # frozen
    *,
    valid: Sequence[str] = (),
    vocabulary: Vocabulary | str | Path | None = None,
    processes: int | None = None,
    force: bool = False,
    on_chunk: CorpusCallback | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    shard_tokens: int = SHARD_TOKENS,
) -> Corpus:
    """Build a training corpus from text files and open it. The command `elmo corpus` does this.

    Args:
        texts: Files, directories or patterns; `-` is stdin.
        out: Directory to create.
        options: How lines are split, and the sizes of vocabulary and held-out text.
        valid: Files with held-out text; if empty, some lines of `texts` are held out.
        vocabulary: Vocabulary to use unchanged, or the path of a vocab.txt; made from the text
            if None.
        processes: Number of worker processes, one per processor by default; the corpus does not
            depend on it.
        force: Replace the corpus in `out` if there is one.
        on_chunk: Called after each chunk of text; see `CorpusCallback`.
        chunk_bytes: Bytes of text per chunk.
        shard_tokens: Words per file of the corpus, about.
    """
    target = Path(out).expanduser()
    check_target(target, force)
    held_out_files = find_files(valid, leave_out=[target])
    files = {TRAIN: find_files(texts, leave_out=[target, *held_out_files]), VALID: held_out_files}
    if not files[TRAIN]:
        raise InputError(
            "there is no text to train on; expected at least one file that is not held-out text"
        )
    if vocabulary is not None:
        vocabulary = _load_vocabulary(vocabulary, options)
    if valid:
        options = replace(options, held_out=0.0)
    with explain_write_errors(target), staging_directory(target) as directory:
        builder = _CorpusBuilder(directory, options, processes or usable_processors(), chunk_bytes)
        if on_chunk is not None:
            total = _total_bytes([*files[TRAIN], *files[VALID]])
            builder.on_chunk = lambda position, words: on_chunk(position, total, words)
        for split, names in files.items():
            builder.read(split, names)
        builder.hold_out()
        builder.assign_ids(vocabulary)
        metadata = builder.write(shard_tokens)
        metadata["options"]["vocabulary"] = "given" if vocabulary is not None else "made"
        write_manifest(directory, metadata)
        replace_corpus(directory, target, force)
    corpus = Corpus.open(target)
    for advice in advise_on_corpus(corpus):
        warnings.warn(advice, stacklevel=2)
    return corpus


class _CorpusBuilder:
    """The steps of building a corpus; its methods are called in the order of their definition."""

    def __init__(
        self,
        directory: Path,
        options: CorpusOptions,
        processes: int,
        chunk_bytes: int,
    ) -> None:
        self.directory = directory
        self.options = options
        self.processes = processes
        self.on_chunk: Callable[[int, int], None] | None = None
        self.chunk_bytes = chunk_bytes
        self.chunks: dict[str, list[Path]] = {TRAIN: [], VALID: []}
        limit = max(options.words, MIN_COUNTED_WORDS)
        self.counts = {TRAIN: WordCounts(limit), VALID: WordCounts(limit)}
        self.sources: list[dict[str, Any]] = []
        self.held_out = HeldOutSelector(options.held_out / 100)
        self.cut = self.lines = self.broken = 0
        self.bytes_read = 0
        self.words_read = 0

    def read(self, split: str, files: Sequence[str]) -> None:
        """Do the first pass over a split: write chunks, and count words."""
        words_before = self.words_read
        chunks = closing(read_chunks(self._jobs(split, files), self.options.form, self.processes))
        with chunks as paths:
            for number, path in enumerate(paths):
                chunk = Chunk.load(path)
                self.chunks[split].append(path)
                self.counts[split].add(chunk.words, chunk.counts())
                if split == TRAIN:
                    self.held_out.add(number, chunk.keys_S, chunk.lengths_S)
                self.cut += chunk.cut
                self.lines += chunk.lines
                self.broken += chunk.broken
                self.words_read += len(chunk.ids_N)
                if self.on_chunk:
                    self.on_chunk(self.bytes_read, self.words_read)
        if files and self.words_read == words_before:
            names = ", ".join(map(display_name, files[:3])) + (", …" if len(files) > 3 else "")
            raise InputError(f"there are no words in {names}; expected text")

    def _jobs(self, split: str, files: Sequence[str]) -> Iterator[ChunkJob]:
        """Yield the text in chunks of several blocks, whose ends depend on the text alone."""
        blocks: list[TextBlock] = []
        size = number = 0
        for name in files:
            file = TextFile(name, self.options.column)
            before = self.bytes_read
            for block in file.blocks(self.chunk_bytes, self.options.form == "wrapped"):
                self.bytes_read = before + file.position
                blocks.append(block)
                size += len(block.data)
                if size >= self.chunk_bytes:
                    yield self.directory / f"{split}-{number:06d}.chunk", blocks
                    blocks, size, number = [], 0, number + 1
            self.bytes_read = before + file.position
            self.sources.append(
                {
                    "name": display_name(name),
                    "split": split,
                    "bytes": file.position,
                    "sha256": file.sha256,
                }
            )
        if blocks:
            yield self.directory / f"{split}-{number:06d}.chunk", blocks

    def hold_out(self) -> None:
        """Choose the held-out lines of the training text, and move their counts."""
        if self.held_out.finalize() >= self.words_read:
            self.held_out.clear()  # nothing would be left, such as of one long line
        for number in self.held_out.chunks():
            chunk = Chunk.load(self.chunks[TRAIN][number])
            counts = chunk.counts(self.held_out.is_held_out(chunk.keys_S))
            self.counts[TRAIN].subtract(chunk.words, counts)
            self.counts[VALID].add(chunk.words, counts)

    def assign_ids(self, fixed_vocabulary: Vocabulary | None) -> None:
        """Choose the words of the corpus, write them, and give them their ids."""
        options, train = self.options, self.counts[TRAIN]
        size = options.size
        if size is None:
            size = options.words
            if options.min_count is None:
                size = min(size, VOCABULARY_SIZE)
        ordered = by_frequency(train)
        vocabulary = fixed_vocabulary or make_vocabulary(ordered, train, size, options.min_count)
        words = make_word_list(vocabulary, ordered, self.counts[VALID], options.words)
        self.counts.clear()  # frees memory
        (self.directory / VOCABULARY).write_bytes(vocabulary.dump())
        with (self.directory / WORDS).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in words)
        self.vocabulary = vocabulary
        self.unknown = vocabulary.index_of(UNKNOWN)
        self.size = len(words)
        self.index = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))

    def write(self, shard_tokens: int) -> dict[str, Any]:
        """Do the second pass: write the shards; return the metadata of the corpus."""
        counts = {split: np.zeros(self.size, np.int64) for split in (TRAIN, VALID)}
        unlisted = {TRAIN: 0, VALID: 0}
        with (
            SplitWriter(self.directory, TRAIN, shard_tokens) as train,
            SplitWriter(self.directory, VALID, shard_tokens) as valid,
        ):
            writers = {TRAIN: train, VALID: valid}
            for split, chunk in self._chunks_by_split():
                ids_U = self._word_ids(chunk.words)
                counts_U = chunk.counts()
                writers[split].add(ids_U[chunk.ids_N], chunk.lengths_S)
                np.add.at(counts[split], ids_U, counts_U)
                unlisted_U = ids_U == self.unknown
                if UNKNOWN in chunk.words:
                    unlisted_U[chunk.words.index(UNKNOWN)] = False  # the text itself has <UNK>
                unlisted[split] += int(counts_U[unlisted_U].sum())
        np.save(self.directory / COUNTS, counts[TRAIN])
        metadata: dict[str, Any] = {
            "vocabulary": len(self.vocabulary),
            "words": self.size,
            "cut_sentences": self.cut,
            "lines": self.lines,
            "broken_lines": self.broken,
        }
        for split, writer in writers.items():
            metadata[split] = self._split_metadata(writer, counts[split], unlisted[split])
        return metadata | {"sources": self.sources, "options": asdict(self.options)}

    def _chunks_by_split(self) -> Iterator[tuple[str, Chunk]]:
        """Yield all chunks in order with their split, those with held-out lines divided in two."""
        for split, paths in self.chunks.items():
            for path in paths:
                chunk = Chunk.load(path)
                path.unlink()
                if split == VALID:
                    yield VALID, chunk
                    continue
                held_out_S = self.held_out.is_held_out(chunk.keys_S)
                if held_out_S.any():
                    yield VALID, chunk.select(held_out_S)
                    chunk = chunk.select(~held_out_S)
                yield TRAIN, chunk

    def _word_ids(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        get, unknown = self.index.get, self.unknown
        return np.fromiter((get(word, unknown) for word in words), np.int32, len(words))

    def _split_metadata(
        self, writer: SplitWriter, counts: npt.NDArray[np.int64], unlisted: int
    ) -> dict[str, Any] | None:
        tokens = sum(shard["tokens"] for shard in writer.shards)
        if not tokens:
            return None
        oov = int(counts[len(self.vocabulary) :].sum() + counts[self.unknown])
        return {
            "sentences": sum(shard["sentences"] for shard in writer.shards),
            "tokens": tokens,
            "oov_rate": oov / tokens,
            "distinct": int(np.count_nonzero(counts)),
            "unlisted": unlisted,
            "shards": writer.shards,
        }


def _load_vocabulary(vocabulary: Vocabulary | str | Path, options: CorpusOptions) -> Vocabulary:
    if options.size is not None or options.min_count is not None:
        raise InputError(
            "the vocabulary is given, so size and min_count have no effect; leave them out"
        )
    if not isinstance(vocabulary, Vocabulary):
        return read_vocabulary(vocabulary)
    return _check_marks(vocabulary, "the vocabulary")


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocab.txt that a biLM can be trained with; raise if it lacks one of the marks."""
    return _check_marks(Vocabulary.read(Path(path).expanduser()), str(path))


def _check_marks(vocabulary: Vocabulary, source: str) -> Vocabulary:
    if missing := vocabulary.missing_marks():
        raise FormatError(
            f"{source} lacks {', '.join(missing)}; expected <S>, </S> and <UNK>, then the words by "
            "falling frequency, one per line"
        )
    return vocabulary


def _total_bytes(files: Sequence[str]) -> int | None:
    """Return the number of bytes to read, or None if that is unknown."""
    return None if STDIN in files else sum(map(os.path.getsize, files))
