"""Text to a corpus: what `elmo corpus` does.

Two passes. The first cuts the text into words, in parallel, and counts them (`chunks.py`,
`wordlist.py`); the second replaces the chunks' own numbers by those of the whole (`shards.py`).
Between the two it is decided which words the corpus knows and which lines are held out. Memory is
bounded whatever the size of the text, but for the list of words, whose size is an option.

Interrupted, it leaves nothing behind (`directory.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from elmokit.engine.native import usable_processors
from elmokit.errors import FormatError, InputError
from elmokit.text.files import STDIN, Block, TextFile, find_files, shown
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.train.chunks import Chunk, Form, Task, read_chunks
from elmokit.train.corpus import COUNTS, TRAIN, VALID, VOCABULARY, WORDS, Corpus
from elmokit.train.directory import beside, check_target, move, write_manifest
from elmokit.train.heldout import HeldOut
from elmokit.train.shards import SHARD_TOKENS, SplitWriter
from elmokit.train.wordlist import WordCounts, by_frequency, make_list, make_vocabulary

CHUNK_BYTES = 2 << 20
VOCABULARY_SIZE = 30_000

FEWEST_COUNTED = 1_000_000
"""Words that are counted at least, however few are listed, or the vocabulary would suffer."""

Report = Callable[[int, int | None, int], None]
"""Told how many bytes were read so far, of how many if that is known, and the words in them."""


@dataclass(frozen=True)
class Options:
    """How a text becomes a corpus."""

    form: Form = "running"
    size: int | None = None
    """Words of the vocabulary, the three marks among them; 30,000 unless `min_count` is given."""
    min_count: int | None = None
    """How often a word of the vocabulary has to occur."""
    words: int = 4_000_000
    """How many distinct words to tell apart; rarer ones are all `<UNK>`."""
    held_out: float = 0.5
    """Per cent of the lines that become `valid`, where no text is given for that."""
    column: str | None = None
    """The text's column in Parquet files."""

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise InputError(f"form is {self.form!r}; expected one of {', '.join(get_args(Form))}")
        for name in ("size", "min_count", "words"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}; expected a number from 1 up")
        if self.size is not None and self.words < self.size:
            raise InputError(
                f"words is {self.words:,}; expected at least as many as the vocabulary has, "
                f"{self.size:,}"
            )
        if not 0 <= self.held_out <= 50:
            raise InputError(f"held_out is {self.held_out}; expected per cent, from 0 to 50")


def build_corpus(
    texts: Sequence[str],
    out: str | Path,
    options: Options = Options(),  # noqa: B008  # frozen
    *,
    valid: Sequence[str] = (),
    vocabulary: Vocabulary | str | Path | None = None,
    processes: int | None = None,
    force: bool = False,
    report: Report | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    shard_tokens: int = SHARD_TOKENS,
) -> Corpus:
    """Make a corpus of text files and open it.

    `texts` and `valid` are files, directories or patterns; `-` is stdin. A `vocabulary`, or the
    path of a vocab.txt, is taken as it is. The result is the same for any number of `processes`.
    """
    target = Path(out).expanduser()
    check_target(target, force)
    held_out_files = find_files(valid, leave_out=[target])
    files = {TRAIN: find_files(texts, leave_out=[target, *held_out_files]), VALID: held_out_files}
    if not files[TRAIN]:
        raise InputError("no text to train on: there is no file, or all of them are held out")
    if vocabulary is not None:
        vocabulary = _given(vocabulary, options)
    if valid:
        options = replace(options, held_out=0.0)
    with beside(target) as place:
        building = _Building(place, options, processes or usable_processors(), chunk_bytes)
        if report is not None:
            total = _total([*files[TRAIN], *files[VALID]])
            building.report = lambda position, words: report(position, total, words)
        for split, names in files.items():
            building.read(split, names)
        building.hold_out()
        building.number(vocabulary)
        about = building.write(shard_tokens)
        about["options"]["vocabulary"] = "given" if vocabulary is not None else "made"
        write_manifest(place, about)
        move(place, target, force)
    return Corpus.open(target)


class _Building:
    """A corpus that is being made; its methods are called one after the other."""

    def __init__(
        self,
        place: Path,
        options: Options,
        processes: int,
        chunk_bytes: int,
    ) -> None:
        self.place = place
        self.options = options
        self.processes = processes
        self.report: Callable[[int, int], None] | None = None
        self.chunk_bytes = chunk_bytes
        self.chunks: dict[str, list[Path]] = {TRAIN: [], VALID: []}
        limit = max(options.words, FEWEST_COUNTED)
        self.counts = {TRAIN: WordCounts(limit), VALID: WordCounts(limit)}
        self.sources: list[dict[str, Any]] = []
        self.held_out = HeldOut(options.held_out / 100)
        self.cut = self.lines = self.broken = 0
        self.bytes_read = 0
        self.words_read = 0

    def read(self, split: str, files: Sequence[str]) -> None:
        """The first pass over a split: words to chunks and counts."""
        words_before = self.words_read
        paths = closing(read_chunks(self._tasks(split, files), self.options.form, self.processes))
        with paths as done:
            for number, path in enumerate(done):
                chunk = Chunk.load(path)
                self.chunks[split].append(path)
                self.counts[split].add(chunk.words, chunk.counts())
                if split == TRAIN:
                    self.held_out.add(number, chunk.keys_S, chunk.lengths_S)
                self.cut += chunk.cut
                self.lines += chunk.lines
                self.broken += chunk.broken
                self.words_read += len(chunk.ids_N)
                if self.report:
                    self.report(self.bytes_read, self.words_read)
        if files and self.words_read == words_before:
            names = ", ".join(map(shown, files[:3])) + (", …" if len(files) > 3 else "")
            raise InputError(f"there are no words in {names}: expected text")

    def _tasks(self, split: str, files: Sequence[str]) -> Iterator[Task]:
        """The text in chunks of several blocks; where they end depends on the text alone."""
        blocks: list[Block] = []
        size = number = 0
        for name in files:
            file = TextFile(name, self.options.column)
            before = self.bytes_read
            for block in file.blocks(self.chunk_bytes, self.options.form == "wrapped"):
                self.bytes_read = before + file.position
                blocks.append(block)
                size += len(block.data)
                if size >= self.chunk_bytes:
                    yield self.place / f"{split}-{number:06d}.chunk", blocks
                    blocks, size, number = [], 0, number + 1
            self.bytes_read = before + file.position
            self.sources.append(
                {
                    "name": shown(name),
                    "split": split,
                    "bytes": file.position,
                    "sha256": file.sha256,
                }
            )
        if blocks:
            yield self.place / f"{split}-{number:06d}.chunk", blocks

    def hold_out(self) -> None:
        """Decide which lines of the text to train on are held out."""
        if self.held_out.settle() >= self.words_read:
            self.held_out.clear()  # it is all there is, such as one long line
        for number in self.held_out.chunks():
            chunk = Chunk.load(self.chunks[TRAIN][number])
            counts = chunk.counts(self.held_out.chosen(chunk.keys_S))
            self.counts[TRAIN].subtract(chunk.words, counts)
            self.counts[VALID].add(chunk.words, counts)

    def number(self, given: Vocabulary | None) -> None:
        """Decide which words there are, and their numbers."""
        options, train = self.options, self.counts[TRAIN]
        size = options.size
        if size is None:
            size = options.words
            if options.min_count is None:
                size = min(size, VOCABULARY_SIZE)
        ordered = by_frequency(train)
        vocabulary = given or make_vocabulary(ordered, train, size, options.min_count)
        words = make_list(vocabulary, ordered, self.counts[VALID], options.words)
        self.counts.clear()  # the memory
        (self.place / VOCABULARY).write_bytes(vocabulary.dump())
        with (self.place / WORDS).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in words)
        self.vocabulary = vocabulary
        self.unknown = vocabulary.index_of(UNKNOWN)
        self.size = len(words)
        self.index = dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))

    def write(self, shard_tokens: int) -> dict[str, Any]:
        """The second pass: the chunks to shards. Says what there is."""
        counts = {split: np.zeros(self.size, np.int64) for split in (TRAIN, VALID)}
        unlisted = {TRAIN: 0, VALID: 0}
        with (
            SplitWriter(self.place, TRAIN, shard_tokens) as train,
            SplitWriter(self.place, VALID, shard_tokens) as valid,
        ):
            writers = {TRAIN: train, VALID: valid}
            for split, chunk in self._in_splits():
                numbers_U = self._numbers(chunk.words)
                counts_U = chunk.counts()
                writers[split].add(numbers_U[chunk.ids_N], chunk.lengths_S)
                np.add.at(counts[split], numbers_U, counts_U)
                unlisted_U = numbers_U == self.unknown
                if UNKNOWN in chunk.words:
                    unlisted_U[chunk.words.index(UNKNOWN)] = False  # it was written so
                unlisted[split] += int(counts_U[unlisted_U].sum())
        np.save(self.place / COUNTS, counts[TRAIN])
        about: dict[str, Any] = {
            "vocabulary": len(self.vocabulary),
            "words": self.size,
            "cut_sentences": self.cut,
            "lines": self.lines,
            "broken_lines": self.broken,
        }
        for split, writer in writers.items():
            about[split] = self._describe(writer, counts[split], unlisted[split])
        return about | {"sources": self.sources, "options": asdict(self.options)}

    def _in_splits(self) -> Iterator[tuple[str, Chunk]]:
        """All chunks in order, with their lines in the split they belong to."""
        for split, paths in self.chunks.items():
            for path in paths:
                chunk = Chunk.load(path)
                path.unlink()
                if split == VALID:
                    yield VALID, chunk
                    continue
                chosen_S = self.held_out.chosen(chunk.keys_S)
                if chosen_S.any():
                    yield VALID, chunk.select(chosen_S)
                    chunk = chunk.select(~chosen_S)
                yield TRAIN, chunk

    def _numbers(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        get, unknown = self.index.get, self.unknown
        return np.fromiter((get(word, unknown) for word in words), np.int32, len(words))

    def _describe(
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


def _given(vocabulary: Vocabulary | str | Path, options: Options) -> Vocabulary:
    if options.size is not None or options.min_count is not None:
        raise InputError("a given vocabulary is taken as it is: no size or minimum count with it")
    source = "the vocabulary"
    if not isinstance(vocabulary, Vocabulary):
        source = str(vocabulary)
        vocabulary = Vocabulary.read(Path(vocabulary).expanduser())
    if missing := vocabulary.missing_marks():
        raise FormatError(
            f"{source} lacks {', '.join(missing)}; expected <S>, </S> and <UNK>, then the words by "
            "falling frequency, one a line"
        )
    return vocabulary


def _total(files: Sequence[str]) -> int | None:
    """The bytes to read, where that can be known."""
    return None if STDIN in files else sum(map(os.path.getsize, files))
