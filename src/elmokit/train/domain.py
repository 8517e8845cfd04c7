"""The text of a domain, made ready for a model that exists: a corpus in the model's vocabulary.

Some of it is held out, however little there is, since adapting without looking at other text is
learning by heart. Knows nothing about networks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError
from elmokit.text.files import STDIN, TextFile, find_files
from elmokit.text.vocabulary import Vocabulary
from elmokit.train.build import CHUNK_BYTES, Options, Report, build_corpus
from elmokit.train.chunks import Form, read_chunk
from elmokit.train.corpus import MANIFEST, Corpus

HELD_OUT = (2.0, 10.0, 30.0)
"""Per cent of the lines: more where less would be too little to tell better from worse."""
ENOUGH_HELD_OUT = 1000
"""Words."""
BLOCK_BYTES = 1 << 18


@dataclass(frozen=True)
class Domain:
    """Text files as `elmo corpus` takes them, or one directory that it made."""

    texts: Sequence[str]
    form: Form = "running"
    column: str | None = None
    """The text's column in Parquet files."""
    valid: Sequence[str] = ()
    """Held-out text; some of `texts` if there is none."""

    @property
    def corpus(self) -> Path | None:
        """The directory, if it is one that `elmo corpus` made."""
        for text in self.texts:
            if not is_corpus(text):
                continue
            if len(self.texts) > 1 or self.valid:
                raise InputError(
                    f"{text} is a corpus, with held-out text of its own: give it alone, or text "
                    "files instead"
                )
            return Path(text).expanduser()
        return None


def is_corpus(path: str) -> bool:
    """Whether `elmo corpus` made it."""
    return (Path(path).expanduser() / MANIFEST).is_file()


def open_corpus(path: Path, vocabulary: Vocabulary | None) -> Corpus:
    """A corpus that exists; its vocabulary has to be the given one, if there is one."""
    corpus = Corpus.open(path)
    if vocabulary is not None and corpus.vocabulary != vocabulary:
        raise InputError(
            f"the corpus {path} has a vocabulary of {len(corpus.vocabulary):,} words that is not "
            f"the model's, which has {len(vocabulary):,}. Give the text itself, or make the corpus "
            "again: elmo corpus TEXT --vocabulary MODEL/vocab.txt"
        )
    if corpus.valid is None:
        raise InputError(
            f"the corpus {path} has no held-out text, by which to know when to stop. Make it again "
            "with elmo corpus --held-out 2 or --valid"
        )
    return corpus


def make_corpus(
    domain: Domain, place: Path, vocabulary: Vocabulary | int, report: Report | None = None
) -> Corpus:
    """A corpus of the domain in `place`, with this vocabulary or a new one of at most that size."""
    given = vocabulary if isinstance(vocabulary, Vocabulary) else None
    size = vocabulary if isinstance(vocabulary, int) else None
    once = domain.valid or STDIN in domain.texts
    for per_cent in HELD_OUT[1:2] if once else HELD_OUT:
        options = Options(domain.form, size=size, held_out=per_cent, column=domain.column)
        corpus = build_corpus(
            domain.texts,
            place,
            options,
            valid=domain.valid,
            vocabulary=given,
            processes=1 if _is_small(domain) else None,
            force=True,
            report=report,
        )
        if corpus.valid is not None and corpus.valid.tokens >= ENOUGH_HELD_OUT:
            break
    if corpus.valid is None:
        raise InputError(
            f"the text has {corpus.train.sentences:,} sentences, too few lines to hold some out; "
            "give more text, or --valid"
        )
    return corpus


def _is_small(domain: Domain) -> bool:
    """Whether starting processes would take longer than reading it."""
    if STDIN in (*domain.texts, *domain.valid):
        return False
    return sum(map(os.path.getsize, find_files([*domain.texts, *domain.valid]))) < CHUNK_BYTES


def sentences_in(paths: Sequence[str], form: Form, column: str | None) -> Iterator[list[str]]:
    """The sentences of text files, or the held-out ones of corpora, one after another."""
    for path in paths:
        if is_corpus(path):
            yield from Corpus.open(path).held_out()
            continue
        for name in find_files([path]):
            for block in TextFile(name, column).blocks(BLOCK_BYTES, form == "wrapped"):
                yield from read_chunk([block], form).sentences()
