"""Text files as the input of an analysis: which files they are, and their sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from elmokit.errors import InputError
from elmokit.storage import checksum
from elmokit.text.files import STDIN, TextBlock, TextFile, find_files
from elmokit.train.chunks import TextForm, read_chunk
from elmokit.train.corpus import MANIFEST as CORPUS_FILE
from elmokit.train.text_reader import BLOCK_BYTES, TextReader, is_corpus

TextInput = str | Path | Sequence[str | Path] | Sequence[Sequence[str]]
"""Text for an analysis: one or more files or directories, or sentences as lists of words."""
DOCUMENT_END: list[str] = []
"""The empty sentence, which separates documents where they matter."""

Words = TypeVar("Words", bound=Sequence[str])


def list_corpus_files(paths: Iterable[str | Path], name: str) -> dict[str, str]:
    """Return the text files that paths, patterns and directories stand for.

    Args:
        paths: Files, patterns or directories. A directory made by `elmo corpus` stays as it is.
        name: What the text is for. The keys of the result are this name, numbered from 2 on.
    """
    files: list[str] = []
    for path in map(str, paths):
        if path == STDIN:
            raise InputError(
                f"{name} is read more than once, so it cannot come from stdin: give a file"
            )
        directory = Path(path).expanduser()
        is_corpus = (directory / CORPUS_FILE).is_file()
        files += [str(directory)] if is_corpus else find_files([path])
    return {name if k == 0 else f"{name} {k + 1}": file for k, file in enumerate(files)}


class CorpusSentences:
    """The sentences of text files as words, up to a number of words; can be read repeatedly."""

    def __init__(
        self,
        paths: Iterable[str | Path],
        *,
        form: TextForm = "running",
        column: str | None = None,
        max_words: int | None = None,
        mark_documents: bool = False,
    ) -> None:
        """Name the files.

        Args:
            paths: Files, patterns, directories, or a directory made by `elmo corpus`.
            form: What a line is: `"running"` text, one sentence (`"lines"`), or one sentence with
                spaces between its words (`"tokenized"`).
            column: Column of the text in Parquet files.
            max_words: Stop after the sentence with this many words; all by default.
            mark_documents: Yield an empty sentence after each document. A document ends with a
                blank line, a row of a Parquet file, or its file.
        """
        self._paths = [str(path) for path in paths]
        self._form, self._column, self._max_words = form, column, max_words
        self._mark_documents = mark_documents

    def __iter__(self) -> Iterator[list[str]]:
        """Read the files from their beginning."""
        sentences: Iterable[list[str]] = (
            _read_documents(self._paths, self._form, self._column)
            if self._mark_documents
            else TextReader(self._paths, self._form, self._column)
        )
        return limit_words(sentences, self._max_words)


def _read_documents(
    paths: Iterable[str], form: TextForm, column: str | None
) -> Iterator[list[str]]:
    """Yield the sentences of files, and an empty one after each document."""
    for path in paths:
        if is_corpus(path):
            yield from TextReader([path], form, column)
            yield DOCUMENT_END
            continue
        for file in find_files([path]):
            for block in TextFile(file, column).blocks(BLOCK_BYTES, form == "wrapped"):
                for part in _split_at_blank_lines(block):
                    if part is None:
                        yield DOCUMENT_END
                    else:
                        yield from read_chunk([part], form).sentences()
            yield DOCUMENT_END


def _split_at_blank_lines(block: TextBlock) -> Iterator[TextBlock | None]:
    """Yield the runs of lines between blank lines, and None for each run of blank lines."""
    number = block.first_line
    all_lines = block.data.removesuffix(b"\n").split(b"\n")
    for blank, run in groupby(all_lines, key=lambda line: not line.strip()):
        lines = list(run)
        yield None if blank else TextBlock(block.name, number, b"\n".join(lines))
        number += len(lines)


def limit_words(sentences: Iterable[Words], max_words: int | None) -> Iterator[Words]:
    """Yield sentences up to the one with the last of `max_words` words; all if it is None."""
    count = 0
    for words in sentences:
        yield words
        count += len(words)
        if max_words is not None and count >= max_words:
            return


def open_text(
    text: TextInput,
    name: str,
    *,
    form: TextForm,
    column: str | None,
    max_words: int | None,
    mark_documents: bool = False,
) -> tuple[Iterable[Sequence[str]], dict[str, str]]:
    """Return the sentences of a text, and the SHA-256 of its files (or sentences) by name.

    Args:
        text: Files, or sentences as lists of words.
        name: What the text is for, in messages and as a key of the checksums.
        form: What a line of the files is.
        column: Column of the text in Parquet files.
        max_words: Stop after the sentence with this many words; all if it is None.
        mark_documents: Have an empty sentence after each document of the files; sentences given as
            lists of words may have them anyway.
    """
    items = [text] if isinstance(text, (str, Path)) else list(text)
    paths = [item for item in items if isinstance(item, (str, Path))]
    if len(paths) == len(items):
        files = list_corpus_files(paths, name)
        sentences = CorpusSentences(
            paths, form=form, column=column, max_words=max_words, mark_documents=mark_documents
        )
        return sentences, {key: checksum(file) for key, file in files.items()}
    if paths:
        raise InputError(
            f"{name} mixes text and lists of words ({paths[0]!r}); expected paths of files, or "
            "sentences as lists of words"
        )
    sentences_of_words = [list(item) for item in items if not isinstance(item, Path)]
    limited = list(limit_words(sentences_of_words, max_words))
    digest = hashlib.sha256()
    for words in limited:
        digest.update(f"{' '.join(words)}\n".encode("utf-8", "surrogatepass"))
    return limited, {name: digest.hexdigest()}
