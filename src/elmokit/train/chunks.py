"""Tokenizing text in parallel, one chunk of a few megabytes at a time.

A worker finds the sentences and words of a chunk, numbers the words within the chunk, and writes
both to a file, since the word ids of the corpus are known only after all text was read. Where a
text is cut does not depend on the number of workers, and the files come back in the order of the
text, so that nothing made from them depends on it either. Knows nothing about vocabularies.

Shape letters: N words of a chunk, S its sentences, U its distinct words.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from elmokit.errors import ElmoError
from elmokit.text.characters import BOS, EOS
from elmokit.text.files import TextBlock, decode_lines, join_paragraphs
from elmokit.workers import WorkerDied, WorkerPool

TextForm = Literal["running", "wrapped", "lines", "tokenized"]
"""What a line of the input is: a paragraph ("running"), part of a paragraph that ends at a blank
line ("wrapped"), a sentence ("lines"), or a sentence as words separated by spaces ("tokenized")."""

MAX_SENTENCE_WORDS = 400
"""Longest sentence in words; longer ones are cut into pieces of this length."""

ChunkJob = tuple[Path, Sequence[TextBlock]]
"""The path of the chunk's file, and the text to tokenize."""


@dataclass(frozen=True)
class Chunk:
    """The sentences of a chunk of text, as ids of its own words."""

    ids_N: npt.NDArray[np.int32]
    """All sentences one after another, as indices into `words`."""
    lengths_S: npt.NDArray[np.int32]
    """Words per sentence."""
    keys_S: npt.NDArray[np.uint64]
    """Hash of the line that each sentence comes from; see `hash_line`."""
    words: list[str]
    """Distinct words in the order of their first occurrence."""
    cut: int
    """Number of sentences that were too long and were cut."""
    lines: int
    """Number of lines that are not blank."""
    broken: int
    """Number of lines that seem to continue the sentence of the line before."""

    def sentences(self) -> Iterator[list[str]]:
        """Yield the sentences in order, as lists of words."""
        start = 0
        for length in self.lengths_S.tolist():
            yield [self.words[i] for i in self.ids_N[start : start + length].tolist()]
            start += length

    def save(self, path: Path) -> None:
        """Write the chunk to a file."""
        blob = np.frombuffer("\n".join(self.words).encode("utf-8"), np.uint8)
        with path.open("wb") as file:
            np.savez(
                file,
                ids=self.ids_N,
                lengths=self.lengths_S,
                keys=self.keys_S,
                words=blob,
                numbers=np.array([self.cut, self.lines, self.broken]),
            )

    @classmethod
    def load(cls, path: Path) -> Chunk:
        """Read a chunk that `save` wrote."""
        with np.load(path) as file:
            blob = file["words"].tobytes().decode("utf-8")
            return cls(
                file["ids"],
                file["lengths"],
                file["keys"],
                blob.split("\n") if blob else [],
                *file["numbers"].tolist(),
            )

    def select(self, sentences_S: npt.NDArray[np.bool_]) -> Chunk:
        """Return a chunk with only the sentences that the mask selects."""
        ids_N = self.ids_N[np.repeat(sentences_S, self.lengths_S)]
        return replace(
            self,
            ids_N=ids_N,
            lengths_S=self.lengths_S[sentences_S],
            keys_S=self.keys_S[sentences_S],
        )

    def counts(self, sentences_S: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        """Return how often each word occurs, in all sentences or in those of a mask."""
        ids_N = self.ids_N
        if sentences_S is not None:
            ids_N = ids_N[np.repeat(sentences_S, self.lengths_S)]
        return np.bincount(ids_N, minlength=len(self.words))


class _Numbering(dict[str, int]):
    """Assigns the next free id to each new word."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def read_chunk(blocks: Iterable[TextBlock], form: TextForm) -> Chunk:
    """Find the sentences and words of some blocks of lines."""
    split_line = _line_splitter(form)
    number = _Numbering()
    ids: list[int] = []
    lengths: list[int] = []
    keys: list[int] = []
    cut = lines = broken = 0
    for block in blocks:
        previous = ""
        lines_of_block = decode_lines(block)
        for line in join_paragraphs(lines_of_block) if form == "wrapped" else lines_of_block:
            key = -1
            for words in map(strip_sentence_marks, split_line(line)):
                if not words:
                    continue
                if key < 0:  # a blank line needs no hash
                    key = hash_line(line)
                ids.extend(map(number.__getitem__, words))
                pieces = -(-len(words) // MAX_SENTENCE_WORDS)
                if pieces > 1:
                    cut += 1
                    lengths.extend([MAX_SENTENCE_WORDS] * (pieces - 1))
                lengths.append(len(words) - (pieces - 1) * MAX_SENTENCE_WORDS)
                keys.extend([key] * pieces)
            if key >= 0:
                lines += 1
                broken += line[:1].islower() and (previous[-1:].isalnum() or previous[-1:] == ",")
            previous = line
    return Chunk(
        np.array(ids, np.int32),
        np.array(lengths, np.int32),
        np.array(keys, np.uint64),
        list(number),
        cut,
        lines,
        broken,
    )


def hash_line(line: str) -> int:
    """Return a 64-bit hash of a line, evenly distributed and equal for equal lines."""
    digest = hashlib.blake2b(line.strip().encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def strip_sentence_marks(words: list[str]) -> list[str]:
    """Return a sentence without leading `<S>` and trailing `</S>`, which every reader adds itself.

    Inside a sentence they stay and stand for the marks, as in bilm-tf.
    """
    first, last = 0, len(words)
    while first < last and words[first] == BOS:
        first += 1
    while first < last and words[last - 1] == EOS:
        last -= 1
    return words[first:last]


def _line_splitter(form: TextForm) -> Callable[[str], Iterable[list[str]]]:
    """Return the function that splits a line into sentences of words."""
    if form == "tokenized":
        return lambda line: (line.split(),)
    from elmokit.text.tokenize import split_words

    if form == "lines":
        return lambda line: (split_words(line),)
    from elmokit.text.sentences import split_sentences

    return lambda line: (split_words(sentence.text) for sentence in split_sentences(line))


# -- parallel work ---------------------------------------------------------------------------------


def read_chunks(
    jobs: Iterable[ChunkJob], form: TextForm, processes: int
) -> Generator[Path, None, None]:
    """Write the chunk of each job to its file; yield the paths in the order of the jobs.

    Jobs are taken only a few ahead of the work. Close the iterator to stop early.
    """
    if processes == 1:
        yield from (_work(job, form) for job in jobs)
        return
    waiting: deque[Future[Path]] = deque()
    try:
        with WorkerPool(processes) as pool:
            for job in jobs:
                waiting.append(pool.submit(_work, job, form))
                if len(waiting) > 2 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    except WorkerDied as error:
        raise ElmoError(
            f"{error}. Try fewer processes: --processes 1 (in Python, processes=1)"
        ) from None


def _work(job: ChunkJob, form: TextForm) -> Path:
    path, blocks = job
    read_chunk(blocks, form).save(path)
    return path
