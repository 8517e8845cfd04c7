"""Text to numbered words, a chunk of the text at a time, in parallel.

A chunk is a few megabytes of lines. A worker finds its sentences and words, numbers the words
within the chunk, and leaves both in a file, since the numbers that count for the whole corpus are
known only when all of it was read. How a text is cut into chunks does not depend on the number of
workers, and the files come back in the order of the text: so does everything that is made of them.
Knows nothing about vocabularies.

Shape letters: N words of a chunk, S its sentences, U its distinct words.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from elmokit.errors import ElmoError
from elmokit.text.characters import BOS, EOS
from elmokit.text.files import Block, decode_lines, paragraphs_of

Form = Literal["running", "wrapped", "lines", "tokenized"]
"""What a line of the input is: a paragraph; a piece of one, which a blank line ends; a sentence; or
the words of a sentence with spaces between them."""

LONGEST_SENTENCE = 400
"""Words; a longer sentence is cut into pieces of that length."""

Task = tuple[Path, Sequence[Block]]
"""Where the file goes, and the text."""


@dataclass(frozen=True)
class Chunk:
    """The words of a chunk."""

    ids_N: npt.NDArray[np.int32]
    """All sentences one after another, as numbers into `words`."""
    lengths_S: npt.NDArray[np.int32]
    keys_S: npt.NDArray[np.uint64]
    """A hash of the line that the sentence comes from: evenly spread, equal for equal lines."""
    words: list[str]
    """The distinct words in the order in which they first occur."""
    cut: int
    """How many sentences were too long."""
    lines: int
    """How many lines were not blank."""
    broken: int
    """How many of these go on in the next one, by the looks of it."""

    def sentences(self) -> Iterator[list[str]]:
        """Its sentences as words, in order."""
        place = 0
        for length in self.lengths_S.tolist():
            yield [self.words[i] for i in self.ids_N[place : place + length].tolist()]
            place += length

    def save(self, path: Path) -> None:
        """Write it to a file of its own."""
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
        """Read it back."""
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
        """Some of its sentences."""
        ids_N = self.ids_N[np.repeat(sentences_S, self.lengths_S)]
        return replace(
            self,
            ids_N=ids_N,
            lengths_S=self.lengths_S[sentences_S],
            keys_S=self.keys_S[sentences_S],
        )

    def counts(self, sentences_S: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        """How often each of the words occurs, in all sentences or in some of them."""
        ids_N = self.ids_N
        if sentences_S is not None:
            ids_N = ids_N[np.repeat(sentences_S, self.lengths_S)]
        return np.bincount(ids_N, minlength=len(self.words))


class _Numbering(dict[str, int]):
    """Numbers words as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def read_chunk(blocks: Iterable[Block], form: Form) -> Chunk:
    """The words of some lines."""
    sentences_of = _sentence_reader(form)
    number = _Numbering()
    ids: list[int] = []
    lengths: list[int] = []
    keys: list[int] = []
    cut = lines = broken = 0
    for block in blocks:
        before = ""
        paragraphs = decode_lines(block)
        for line in paragraphs_of(paragraphs) if form == "wrapped" else paragraphs:
            key = -1
            for words in map(without_marks, sentences_of(line)):
                if not words:
                    continue
                if key < 0:  # not for a blank line
                    key = line_key(line)
                ids.extend(map(number.__getitem__, words))
                pieces = -(-len(words) // LONGEST_SENTENCE)
                if pieces > 1:
                    cut += 1
                    lengths.extend([LONGEST_SENTENCE] * (pieces - 1))
                lengths.append(len(words) - (pieces - 1) * LONGEST_SENTENCE)
                keys.extend([key] * pieces)
            if key >= 0:
                lines += 1
                broken += line[:1].islower() and (before[-1:].isalnum() or before[-1:] == ",")
            before = line
    return Chunk(
        np.array(ids, np.int32),
        np.array(lengths, np.int32),
        np.array(keys, np.uint64),
        list(number),
        cut,
        lines,
        broken,
    )


def line_key(line: str) -> int:
    """A number of 64 bits that depends on the line's characters and nothing else."""
    digest = hashlib.blake2b(line.strip().encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def without_marks(words: list[str]) -> list[str]:
    """A sentence without `<S>` before and `</S>` behind it, which every reader adds by itself.

    Anywhere else these words, if they are typed, stay, and mean the marks, as in bilm-tf.
    """
    first, last = 0, len(words)
    while first < last and words[first] == BOS:
        first += 1
    while first < last and words[last - 1] == EOS:
        last -= 1
    return words[first:last]


def _sentence_reader(form: Form) -> Callable[[str], Iterable[list[str]]]:
    """What makes sentences of a line."""
    if form == "tokenized":
        return lambda line: (line.split(),)
    from elmokit.text.tokenize import words

    if form == "lines":
        return lambda line: (words(line),)
    from elmokit.text.sentences import split_sentences

    return lambda line: (words(sentence.text) for sentence in split_sentences(line))


# -- in parallel -----------------------------------------------------------------------------------


def read_chunks(tasks: Iterable[Task], form: Form, processes: int) -> Generator[Path, None, None]:
    """Make the files of all tasks; gives their paths in order, each when it is there.

    No more than a few tasks are taken ahead of the work. Close the iterator to stop early.
    """
    work = partial(_work, form=form)
    if processes == 1:
        yield from map(work, tasks)
        return
    # Not forked: the parent may have threads, whose locks a fork would copy as they are.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin)
    waiting: deque[Future[Path]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise ElmoError(
            "a worker process ended before its work was done, perhaps for want of memory; "
            "try fewer: --processes 1"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _work(task: Task, form: Form) -> Path:
    path, blocks = task
    read_chunk(blocks, form).save(path)
    return path


def _begin() -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and stops us
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot stop its workers, which would wait for it for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
