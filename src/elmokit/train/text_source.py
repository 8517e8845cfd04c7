"""The text to fine-tune on, as a corpus in the vocabulary of the model.

Part of the text is held out, however little there is, since without other text nobody could tell
adapting from learning by heart. Knows nothing about networks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import InputError
from elmokit.text.files import STDIN, find_files
from elmokit.text.vocabulary import Vocabulary
from elmokit.train.build import CHUNK_BYTES, CorpusCallback, CorpusOptions, build_corpus
from elmokit.train.chunks import TextForm
from elmokit.train.corpus import Corpus
from elmokit.train.text_reader import is_corpus

HELD_OUT_PERCENT = (2.0, 10.0, 30.0)
"""Percent of the lines to hold out: the next value is tried where the one before is too little."""
MIN_HELD_OUT_WORDS = 1000
"""Fewest held-out words that can tell a better model from a worse one."""


@dataclass(frozen=True)
class TextSource:
    """Text to fine-tune on: text files, or one corpus that `elmo corpus` made."""

    texts: Sequence[str]
    """Files, directories, patterns or `-` for stdin; or the directory of one corpus."""
    form: TextForm = "running"
    """What a line of the files is."""
    column: str | None = None
    """Name of the text column in Parquet files."""
    valid: Sequence[str] = ()
    """Files with held-out text; if empty, part of `texts` is held out."""

    @property
    def corpus(self) -> Path | None:
        """Directory of the corpus, or None if the source is text files."""
        for text in self.texts:
            if not is_corpus(text):
                continue
            if len(self.texts) > 1 or self.valid:
                raise InputError(
                    f"{text} is a corpus, which has its own held-out text; give it alone, or give "
                    "text files instead"
                )
            return Path(text).expanduser()
        return None


def open_source_corpus(path: Path, vocabulary: Vocabulary | None) -> Corpus:
    """Open a corpus to fine-tune on; raise if it lacks held-out text or has another vocabulary.

    Args:
        path: Directory of the corpus.
        vocabulary: Vocabulary of the model; None if the corpus may have any.
    """
    corpus = Corpus.open(path)
    if vocabulary is not None and corpus.vocabulary != vocabulary:
        raise InputError(
            f"the corpus {path} has a vocabulary of {len(corpus.vocabulary):,} words that is not "
            f"the model's, which has {len(vocabulary):,}. Give the text itself, or build the "
            "corpus again: elmo corpus TEXT --vocabulary MODEL/vocab.txt"
        )
    if corpus.valid is None:
        raise InputError(
            f"the corpus {path} has no held-out text, which fine-tuning needs to know when to "
            "stop. Build it again with elmo corpus --held-out 2 or --valid"
        )
    return corpus


def build_source_corpus(
    source: TextSource,
    directory: Path,
    vocabulary: Vocabulary | int,
    on_chunk: CorpusCallback | None = None,
) -> Corpus:
    """Build a corpus from the text files of a source.

    Args:
        source: The text.
        directory: Where to write the corpus; an existing one is replaced.
        vocabulary: Vocabulary of the corpus, or the largest size of a new one.
        on_chunk: Called after each chunk of text; see `CorpusCallback`.
    """
    fixed = vocabulary if isinstance(vocabulary, Vocabulary) else None
    size = vocabulary if isinstance(vocabulary, int) else None
    only_once = source.valid or STDIN in source.texts
    for percent in HELD_OUT_PERCENT[1:2] if only_once else HELD_OUT_PERCENT:
        with warnings.catch_warnings():
            # Its advice is about a corpus of one's own, with a vocabulary of its own.
            warnings.simplefilter("ignore", UserWarning)
            corpus = build_corpus(
                source.texts,
                directory,
                CorpusOptions(source.form, size=size, held_out=percent, column=source.column),
                valid=source.valid,
                vocabulary=fixed,
                processes=1 if _is_small(source) else None,
                force=True,
                on_chunk=on_chunk,
            )
        if corpus.valid is not None and corpus.valid.tokens >= MIN_HELD_OUT_WORDS:
            break
    if corpus.valid is None:
        raise InputError(
            f"the text has {corpus.train.sentences:,} sentences on too few lines to hold some out; "
            "give more text, or held-out text: --valid"
        )
    return corpus


def _is_small(source: TextSource) -> bool:
    """Return whether starting processes would take longer than reading the text."""
    if STDIN in (*source.texts, *source.valid):
        return False
    return sum(map(os.path.getsize, find_files([*source.texts, *source.valid]))) < CHUNK_BYTES
