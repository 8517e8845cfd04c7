"""Readers of datasets of word pairs in context with human judgments.

Pairs with a yes/no answer, whether a word means the same in both contexts: WiC's text files, and
WiC as JSON Lines, as in SuperGLUE. Pairs with ratings, how similar two words are in their contexts:
SCWS. Knows nothing about models.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from elmokit.errors import FormatError, InputError
from elmokit.json_text import parse_json
from elmokit.text.files import read_lines
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import tokenize

PairFormat = Literal["wic", "json", "scws"]

_INDICES = re.compile(r"(\d{1,9})-(\d{1,9})")
_OPENED, _CLOSED = "<b>", "</b>"
_YES_NO = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


class WordInContext(NamedTuple):
    """A word in a sentence, or several words where the tokenizer split it."""

    words: list[str]
    """The sentence."""
    start: int
    """Index of the first word."""
    end: int
    """Index after the last word."""


@dataclass(frozen=True)
class ContextPair:
    """Two words in context."""

    first: WordInContext
    second: WordInContext
    same_word: bool
    """Whether both are the same word."""


@dataclass(frozen=True)
class PairDataset:
    """Pairs with either yes/no answers or ratings."""

    format: str
    """Format of the file: `"wic"`, `"json"` or `"scws"`."""
    pairs: list[ContextPair]
    answers: list[bool]
    """For each pair, whether the word means the same; empty if there are ratings."""
    ratings: list[float]
    """For each pair, the mean similarity rating; empty if there are answers."""
    raters: list[list[float]]
    """For each pair, the rating of each person; empty unless all pairs have the same number of
    ratings, at least two."""


def read_pairs(
    path: str | Path, gold: str | Path | None = None, format: str | None = None
) -> PairDataset:
    """Read a dataset of pairs.

    Args:
        path: File of UTF-8 text, plain or compressed. `"wic"`: word, part of speech, i-j, sentence
            and sentence, separated by tabs; the word has index i and j in the sentences, whose
            words are separated by spaces. `"json"`: objects with word, sentence1, sentence2,
            start1, end1, start2, end2 and label. `"scws"`: number, word, part of speech, word,
            part of speech, context, context, mean rating and ratings, separated by tabs, with
            `<b>` and `</b>` around the words in their contexts.
        gold: For `"wic"`, the file of answers with one T or F per line; by default the one beside
            the file with gold instead of data in its name.
        format: `"wic"`, `"json"` or `"scws"`; detected from the first line by default.
    """
    path = Path(path).expanduser()
    if format is not None and format not in get_args(PairFormat):
        raise InputError(f"format is {format!r}; expected one of {', '.join(get_args(PairFormat))}")
    format = format or _detect_format(path)
    if gold is not None and format != "wic":
        raise InputError(f"{path} contains the answers; expected no separate file ({gold})")
    if format == "scws":
        return _read_scws(path)
    if format == "json":
        labeled = [_parse_json(where, line) for where, line in _filled_lines(path)]
        return PairDataset(format, [pair for pair, _ in labeled], [a for _, a in labeled], [], [])
    pairs = [_parse_wic(where, line) for where, line in _filled_lines(path)]
    gold_path = find_gold_answers(path) if gold is None else Path(gold).expanduser()
    if gold_path is None:
        raise InputError(
            f"there is no file of answers beside {path}; name one with a T or F per line: "
            "--gold FILE"
        )
    answers = [_parse_answer(where, line) for where, line in _filled_lines(gold_path)]
    if len(answers) != len(pairs):
        raise FormatError(
            f"{gold_path} has {len(answers)} answers for {len(pairs)} pairs of {path}; expected "
            "one for each"
        )
    return PairDataset(format, pairs, answers, [], [])


def find_gold_answers(path: str | Path) -> Path | None:
    """Return the file of answers beside a WiC file, dev.gold.txt beside dev.data.txt, or None."""
    path = Path(path).expanduser()
    gold = path.with_name(path.name.replace("data", "gold"))
    return gold if gold != path and gold.is_file() else None


def _filled_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, with their locations."""
    return ((where, line) for where, line in read_lines(path) if line.strip())


def _detect_format(path: Path) -> str:
    """Return the format of a file, from its first line."""
    for where, line in _filled_lines(path):
        if line.lstrip().startswith("{"):
            return "json"
        cells = line.split("\t")
        if len(cells) == 5 and _INDICES.fullmatch(cells[2].strip()):
            return "wic"
        if len(cells) >= 8:
            return "scws"
        raise FormatError(
            f"{where}: {_shorten(line)} is neither WiC (word, part of speech, i-j and two "
            "sentences, separated by tabs), nor a JSON object, nor SCWS (8 or more cells, "
            "separated by tabs)"
        )
    raise FormatError(f"{path} has no pairs; expected one per line")


# -- WiC -----------------------------------------------------------------------------------------


def _parse_wic(where: str, line: str) -> ContextPair:
    cells = line.split("\t")
    indices = _INDICES.fullmatch(cells[2].strip()) if len(cells) == 5 else None
    if indices is None:
        raise FormatError(
            f"{where}: found {_shorten(line)}; expected word, part of speech, i-j, sentence and "
            "sentence, separated by tabs"
        )
    uses = []
    for index, sentence in zip(indices.groups(), cells[3:], strict=True):
        words = sentence.split()
        if int(index) >= len(words):
            raise FormatError(
                f"{where}: the index of the word is {index}, but the sentence has {len(words)} "
                f"words, counted from 0: {_shorten(sentence)}"
            )
        uses.append(WordInContext(words, int(index), int(index) + 1))
    return ContextPair(uses[0], uses[1], same_word=True)


def _parse_answer(where: str, text: str) -> bool:
    if (answer := _YES_NO.get(text.strip().lower())) is None:
        raise FormatError(f"{where}: found {_shorten(text)}; expected T or F")
    return answer


def _parse_json(where: str, line: str) -> tuple[ContextPair, bool]:
    try:
        item: Any = parse_json(line)
    except ValueError as error:
        raise FormatError(f"{where}: invalid JSON: {error}") from None
    if not isinstance(item, dict):
        raise FormatError(f"{where}: found {_shorten(line)}; expected a JSON object")
    uses = []
    for n in ("1", "2"):
        sentence, start, end = (item.get(name + n) for name in ("sentence", "start", "end"))
        if not isinstance(sentence, str) or not isinstance(start, int) or not isinstance(end, int):
            raise FormatError(
                f"{where}: sentence{n}, start{n} and end{n} are {_shorten(sentence)}, {start!r} "
                f"and {end!r}; expected a string and two positions in it"
            )
        uses.append(_locate(where, sentence, start, end))
    label = item.get("label")
    if label is None:
        raise FormatError(f"{where}: there is no label; expected a dataset with answers")
    return ContextPair(uses[0], uses[1], same_word=True), _parse_answer(where, str(label))


def _locate(where: str, text: str, start: int, end: int) -> WordInContext:
    """Tokenize a text and return the words between two positions in it."""
    tokens = tokenize(text)
    inside = [i for i, token in enumerate(tokens) if token.start < end and token.end > start]
    if not 0 <= start < end <= len(text) or not inside:
        raise FormatError(
            f"{where}: there is no word from {start} to {end} in {_shorten(text)}, which has "
            f"{len(text)} characters"
        )
    return WordInContext([token.text for token in tokens], inside[0], inside[-1] + 1)


# -- SCWS ----------------------------------------------------------------------------------------


def _read_scws(path: Path) -> PairDataset:
    pairs, means, raters = [], [], []
    for where, cells in _scws_lines(path):
        numbers = [_parse_rating(where, cell) for cell in cells[7:] if cell.strip()]
        if not numbers:
            raise FormatError(f"{where}: there is no rating; expected a number in cell 8")
        uses = [_marked_word(where, cells[5]), _marked_word(where, cells[6])]
        same = cells[1].strip().casefold() == cells[3].strip().casefold()
        pairs.append(ContextPair(uses[0], uses[1], same))
        means.append(numbers[0])
        raters.append(numbers[1:])
    if not pairs:
        raise FormatError(f"{path} has no pairs; expected one per line")
    sizes = {len(each) for each in raters}
    return PairDataset(
        "scws", pairs, [], means, raters if len(sizes) == 1 and min(sizes) > 1 else []
    )


def _scws_lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the cells of each line with its location, without a line of column names."""
    first = True
    for where, line in _filled_lines(path):
        cells = line.split("\t")
        if len(cells) < 8:
            raise FormatError(
                f"{where}: found {len(cells)} cells separated by tabs; expected 8 or more: number, "
                "word, part of speech, word, part of speech, context, context, mean rating"
            )
        if not (first and "<b>" not in line):  # the line of column names
            yield where, cells
        first = False


def _parse_rating(where: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(f"{where}: the rating is {_shorten(cell)}; expected a number")
    return number


def _marked_word(where: str, context: str) -> WordInContext:
    """Return the marked word in its sentence; a context may be a whole paragraph."""
    marked = _find_marked(context)
    word = context[slice(*marked[0])][len(_OPENED) : -len(_CLOSED)].strip() if marked else ""
    if len(marked) != 1 or not word:
        raise FormatError(
            f"{where}: found {len(marked)} words between <b> and </b> in {_shorten(context)}; "
            "expected one"
        )
    start, end = marked[0]
    before, after = context[:start], context[end:]
    text = f"{before}{word}{after}"
    start, end = len(before), len(before) + len(word)
    for sentence in split_sentences(text):
        if sentence.start <= start and end <= sentence.end:
            return _locate(where, sentence.text, start - sentence.start, end - sentence.start)
    return _locate(where, text, start, end)


def _find_marked(context: str) -> list[tuple[int, int]]:
    """Return where marked words begin and end, with their marks."""
    spans: list[tuple[int, int]] = []
    end = 0
    while (start := context.find(_OPENED, end)) >= 0:
        close = context.find(_CLOSED, start + len(_OPENED))
        if close < 0:
            break
        end = close + len(_CLOSED)
        spans.append((start, end))
    return spans


def _shorten(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
