"""Coreference: CoNLL-2012 files to documents and back. Knows no model and no score.

A document goes from `#begin document (id); part 000` to `#end document`; each line is a word, and a
blank line ends a sentence. Columns are separated by tabs or runs of spaces: the word is the fourth,
the speaker the tenth if there are as many columns as in CoNLL-2012, and coreference the last. There
`(3` opens a mention of cluster 3, `3)` closes the latest open one, `(3)` is a mention of one word,
`|` separates them, and `-`, `_` or nothing means none. Mentions lie within a sentence; those of
different clusters may cross, as they do in some annotated files.

Clusters of one mention are kept: CoNLL-2012 has none, but LitBank has, and a model can learn from
them what a mention is. `metric.score` ignores them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from elmokit.errors import FormatError, InputError
from elmokit.tasks.offsets import (
    CharacterSpans,
    character_fields,
    confidence_field,
    token_spans,
    token_words,
)
from elmokit.tasks.task import Examples
from elmokit.text.files import read_lines
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import tokenize

if TYPE_CHECKING:
    from rich.text import Text

ARGUMENTS = ("text",)


class Mention(NamedTuple):
    """Consecutive words of a sentence that refer to something."""

    sentence: int
    """Number of the sentence in the document, from 0."""
    start: int
    """Index of the first word in the sentence."""
    end: int
    """Index after the last word in the sentence."""


Cluster = tuple[Mention, ...]
Clusters = tuple[Cluster, ...]
"""Mentions of the same entity, in the order of the text; clusters sorted by first mention."""


class PredictedClusters(tuple[Cluster, ...]):
    """Predicted clusters, with the probability of each mention's link if it is known."""

    confidences: Mapping[Mention, float] = MappingProxyType({})
    """Probability of the link of a mention to an earlier one; the first of a cluster has none."""


@dataclass(frozen=True, slots=True)
class Example:
    """A document, with its coreference clusters if they are known."""

    document: str
    """Name of the document as in its first line, `(id); part 000`."""
    sentences: tuple[tuple[str, ...], ...]
    """The words of each sentence."""
    speakers: tuple[str, ...]
    """Speaker of each sentence; empty where none is named."""
    clusters: Clusters | None
    """The gold clusters; None if they are unknown."""
    where: str = field(default="", compare=False)
    """File and line of the document."""
    spans: tuple[CharacterSpans, ...] | None = field(default=None, compare=False, repr=False)
    """Where the words of each sentence are in the raw text; None for a document from a file."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The sentences, the texts to embed."""
        return self.sentences


def read(path: Path) -> Examples[Example]:
    """Read the documents of a file, or of all files in a directory whose names end in `conll`."""
    path = Path(path).expanduser()
    if path.is_dir():
        files = [
            file
            for file in sorted(path.rglob("*conll"))
            if file.is_file() and not file.name.startswith(".")
        ]
        if not files:
            raise FormatError(
                f"{path} has no file whose name ends in conll; expected CoNLL-2012 files "
                "(give a single file to read it whatever its name is)"
            )
    else:
        files = [path]
    skipped: Counter[str] = Counter()
    items = [example for file in files for example in _documents(file, skipped)]
    if not items:
        raise FormatError(
            f"{path} has no document with words; expected '#begin document (id); part 000' and "
            "lines of CoNLL-2012 columns"
        )
    return Examples(items, skipped)


def parse(texts: Sequence[str]) -> Example:
    """Return a document without clusters from raw text, which is split into sentences."""
    (text,) = texts
    found = [(span.start, tokenize(span.text)) for span in split_sentences(text)]
    found = [(start, tokens) for start, tokens in found if tokens]
    if not found:
        raise InputError(f"the text {text[:40]!r} has no words; expected at least one")
    return Example(
        "(text); part 000",
        tuple(token_words(tokens) for _, tokens in found),
        ("",) * len(found),
        None,
        spans=tuple(token_spans(tokens, start) for start, tokens in found),
    )


def labels(example: Example) -> Iterable[str]:
    """Return nothing: clusters have no names."""
    return ()


def label_set(examples: Sequence[Example]) -> dict[str, Any]:
    """Return nothing: the model needs no labels."""
    return {}


_BEGIN = re.compile(r"#\s*begin document\s*(.*)")
_END = re.compile(r"#\s*end document")
_PART = re.compile(r"(\()?(\d{1,18})(\))?")
_NAME = re.compile(r"\((.*)\); part (\S+)")
_MIN_COLUMNS, _WORD, _SPEAKER, _WITH_SPEAKER = 5, 3, 9, 12
_NOTHING = frozenset({"", "-", "_"})


def _documents(path: Path, skipped: Counter[str]) -> Iterator[Example]:
    """Yield the documents of a file; what has to be skipped is counted in `skipped`."""
    document: _OpenDocument | None = None
    for where, line in read_lines(path):
        if begin := _BEGIN.match(line):
            if document is not None:
                raise FormatError(
                    f"{where}: a document begins before the one of {document.where} has ended; "
                    "expected '#end document' between them"
                )
            document = _OpenDocument(begin[1].strip(), where)
        elif _END.match(line):
            if document is None:
                raise FormatError(f"{where}: '#end document' without '#begin document' before it")
            document.end_sentence(where)
            if document.sentences:
                yield document.close(skipped)
            else:
                skipped["document without words"] += 1
            document = None
        elif not line.strip():
            if document is not None:
                document.end_sentence(where)
        elif not line.startswith("#"):
            if document is None:
                raise FormatError(
                    f"{where}: a word outside of a document; expected "
                    "'#begin document (id); part 000' before it"
                )
            document.add_word(line, where)
    if document is not None:
        raise FormatError(
            f"{document.where}: this document does not end; expected '#end document' "
            "(is the file cut off?)"
        )


class _OpenDocument:
    """A document that is being read."""

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where
        self.sentences: list[tuple[str, ...]] = []
        self.speakers: list[str] = []
        self.words: list[str] = []
        self.speaker = ""
        self.mentions: defaultdict[int, list[Mention]] = defaultdict(list)
        # First word and line of the mentions of each cluster that have not ended yet.
        self.open_mentions: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)

    def add_word(self, line: str, where: str) -> None:
        """Add the word of a line."""
        columns = line.split("\t") if "\t" in line else line.split()
        if len(columns) < _MIN_COLUMNS:
            raise FormatError(
                f"{where}: {len(columns)} columns in {line[:60]!r}; expected at least "
                f"{_MIN_COLUMNS}: document, part, number, word, …, coreference"
            )
        word = columns[_WORD].strip()
        if not word or word.split() != [word]:
            raise FormatError(f"{where}: {columns[_WORD]!r} in column 4; expected a word")
        if not self.words and len(columns) >= _WITH_SPEAKER:
            speaker = columns[_SPEAKER].strip()
            self.speaker = "" if speaker in _NOTHING else speaker
        self._mark(columns[-1].strip(), len(self.words), where)
        self.words.append(word)

    def _mark(self, marks: str, position: int, where: str) -> None:
        """Add the mentions that begin and end at a word.

        As in the official scorer, mentions of one word are read first, then all beginnings, then
        all ends, and an end belongs to the latest beginning in its cluster.
        """
        if marks in _NOTHING:
            return
        sentence = len(self.sentences)
        ends = []
        for mark in marks.split("|"):
            part = _PART.fullmatch(mark.strip())
            if part is None or not (part[1] or part[3]):
                raise FormatError(
                    f"{where}: {mark!r:.60} in the coreference column {marks!r:.60}; expected (3, "
                    "3) or (3), with | between them, or - for none"
                )
            cluster = int(part[2])
            mentions = self.mentions[cluster]  # clusters are in the order in which they appear
            if part[1] and part[3]:
                mentions.append(Mention(sentence, position, position + 1))
            elif part[1]:
                self.open_mentions[cluster].append((position, where))
            else:
                ends.append(cluster)
        for cluster in ends:
            if not self.open_mentions[cluster]:
                raise FormatError(
                    f"{where}: {cluster}) ends a mention of cluster {cluster}, but none is open "
                    f"in this sentence; expected ({cluster} before it"
                )
            start, _ = self.open_mentions[cluster].pop()
            self.mentions[cluster].append(Mention(sentence, start, position + 1))

    def end_sentence(self, where: str) -> None:
        """End the current sentence, at a blank line or at the end of the document."""
        for cluster, begun in self.open_mentions.items():
            if begun:
                raise FormatError(
                    f"{begun[-1][1]}: ({cluster} begins a mention that does not end in its "
                    f"sentence; expected {cluster}) before {where}"
                )
        self.open_mentions.clear()
        if self.words:
            self.sentences.append(tuple(self.words))
            self.speakers.append(self.speaker)
            self.words = []
            self.speaker = ""

    def close(self, skipped: Counter[str]) -> Example:
        """Return the document. A mention that is in two clusters stays in the first of them."""
        seen: set[Mention] = set()
        clusters = []
        for marked in self.mentions.values():
            new = sorted(set(marked) - seen)
            if len(new) < len(marked):
                skipped["mention marked twice"] += len(marked) - len(new)
            seen.update(new)
            if new:
                clusters.append(tuple(new))
        return Example(
            self.name,
            tuple(self.sentences),
            tuple(self.speakers),
            tuple(sorted(clusters)),
            self.where,
        )


def write(file: TextIO, examples: Sequence[Example], predictions: Sequence[Clusters]) -> None:
    """Write the documents with the predicted clusters, as the official scorer reads them.

    The first line of a document is that of the file it was read from: the scorer pairs key and
    response by it.
    """
    for example, clusters in zip(examples, predictions, strict=True):
        match = _NAME.fullmatch(example.document)
        name, part = (match[1], match[2]) if match else (example.document or "-", "000")
        marks = _marks(clusters)
        file.write(f"#begin document {example.document}\n")
        for s, (sentence, speaker) in enumerate(
            zip(example.sentences, example.speakers, strict=True)
        ):
            for position, word in enumerate(sentence):
                mark = "|".join(marks.get((s, position), ["-"]))
                columns = [name.replace(" ", "_"), part.lstrip("0") or "0", str(position), word]
                columns += ["-", "*", "-", "-", "-", speaker or "-", "*", mark]
                file.write("\t".join(columns) + "\n")
            file.write("\n")
        file.write("#end document\n")


def _marks(clusters: Clusters) -> dict[tuple[int, int], list[str]]:
    """Return the coreference column by sentence and word, with outer brackets outside."""
    opening: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    closing: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    numbered = [(mention, number) for number, cluster in enumerate(clusters) for mention in cluster]
    # The longest first: it opens first where several begin, and closes last where several end.
    for mention, number in sorted(numbered, key=lambda one: one[0].start - one[0].end):
        if mention.end - mention.start == 1:
            opening[mention.sentence, mention.start].append(f"({number})")
        else:
            opening[mention.sentence, mention.start].append(f"({number}")
            closing[mention.sentence, mention.end - 1].insert(0, f"{number})")
    return {key: opening[key] + closing[key] for key in {*opening, *closing}}


def to_record(example: Example, prediction: Clusters) -> dict[str, Any]:
    """Return sentences and clusters as a JSON object; `end` is exclusive.

    `start_char` and `end_char` are positions in the raw text, if the document comes from one.
    """
    confidences = prediction.confidences if isinstance(prediction, PredictedClusters) else {}
    return {
        "document": example.document,
        "sentences": [list(sentence) for sentence in example.sentences],
        "clusters": [
            [
                {
                    **mention._asdict(),
                    "text": " ".join(
                        example.sentences[mention.sentence][mention.start : mention.end]
                    ),
                    **character_fields(
                        example.spans[mention.sentence] if example.spans else None,
                        mention.start,
                        mention.end,
                    ),
                    **confidence_field(confidences.get(mention)),
                }
                for mention in cluster
            ]
            for cluster in prediction
        ],
    }


_COLORS = ("red", "green", "yellow", "blue", "magenta", "cyan")


def render(example: Example, prediction: Clusters) -> Text:
    """Return one line per sentence, with mentions in brackets and the numbers of their clusters."""
    from rich.text import Text

    starts: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    ends: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for number, cluster in enumerate(prediction):
        for sentence, start, end in cluster:
            starts[sentence, start].append((-end, number))
            ends[sentence, end - 1].append((-start, number))
    text = Text()
    for s, sentence_words in enumerate(example.sentences):
        if s:
            text.append("\n")
        inside: list[int] = []
        for position, word in enumerate(sentence_words):
            if position:
                text.append(" ", _style(inside))
            for _, number in sorted(starts[s, position]):
                inside.append(number)
                text.append("[", _style(inside))
            text.append(word, _style(inside))
            for _, number in sorted(ends[s, position]):
                text.append(f"]{number + 1}", _style([number]))
                # The latest of its number: mentions of one cluster may be nested.
                del inside[len(inside) - 1 - inside[::-1].index(number)]
    return text


def _style(inside: list[int]) -> str:
    """Return the style of the innermost cluster."""
    return f"bold {_COLORS[inside[-1] % len(_COLORS)]}" if inside else ""
