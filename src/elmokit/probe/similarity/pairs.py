"""Words in two contexts, and what people said about them: the readers of such data sets.

Pairs with a yes or no, whether a word means the same twice: WiC's text files, and WiC in lines of
JSON as SuperGLUE has it. Pairs with a number, how alike two words are as they are used: SCWS.
Knows nothing about models.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from elmokit.errors import FormatError, InputError
from elmokit.text.files import lines_of
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import tokenize

Form = Literal["wic", "json", "scws"]

_PLACES = re.compile(r"(\d+)-(\d+)")
_MARKED = re.compile(r"<b>\s*(.*?)\s*</b>", re.DOTALL)
_YES_NO = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}


class Use(NamedTuple):
    """A word in a sentence: its words from `start` to before `end`."""

    words: list[str]
    start: int
    end: int


@dataclass(frozen=True)
class Pair:
    """Two uses, of the same word or not."""

    first: Use
    second: Use
    same_word: bool


@dataclass(frozen=True)
class Pairs:
    """A data set."""

    form: str
    pairs: list[Pair]
    answers: list[bool]
    """Whether the word means the same; empty where people gave numbers."""
    ratings: list[float]
    """How alike people found the two; empty where they said yes or no."""
    raters: list[list[float]]
    """What each person said, if each pair has as many and two or more; else empty."""


def read_pairs(path: str | Path, gold: str | Path | None = None, form: str | None = None) -> Pairs:
    """Read a data set.

    Args:
        path: UTF-8. `"wic"`: lines of word, part of speech, i-j, sentence, sentence, between tabs;
            the word is word i and word j of the sentences, which spaces divide. `"json"`: objects
            with word, sentence1, sentence2, start1, end1, start2, end2 and label. `"scws"`: number,
            word, part of speech, word, part of speech, context, context, mean rating and ratings,
            between tabs, with `<b>` and `</b>` around the words in their contexts.
        gold: for `"wic"`, a file with T or F a line; by default the one beside it whose name has
            gold instead of data.
        form: which of them; what the first line looks like by default.
    """
    path = Path(path).expanduser()
    if form is not None and form not in get_args(Form):
        raise InputError(f"form is {form!r}; expected one of {', '.join(get_args(Form))}")
    form = form or _form(path)
    if gold is not None and form != "wic":
        raise InputError(f"{path} has its answers in it; expected no file of answers ({gold})")
    if form == "scws":
        return _ratings(path)
    if form == "json":
        found = [_from_json(where, line) for where, line in _filled(path)]
        return Pairs(form, [p for p, _ in found], [yes for _, yes in found], [], [])
    pairs = [_from_wic(where, line) for where, line in _filled(path)]
    where_gold = gold_beside(path) if gold is None else Path(gold).expanduser()
    if where_gold is None:
        raise InputError(f"there is no file of answers for {path}: give one, with T or F a line")
    answers = [_yes(where, line) for where, line in _filled(where_gold)]
    if len(answers) != len(pairs):
        raise FormatError(
            f"{where_gold} has {len(answers)} answers for {len(pairs)} pairs of {path}; expected "
            "one for each"
        )
    return Pairs(form, pairs, answers, [], [])


def gold_beside(path: str | Path) -> Path | None:
    """The file of answers that lies beside a file of WiC's: dev.gold.txt beside dev.data.txt."""
    path = Path(path).expanduser()
    beside = path.with_name(path.name.replace("data", "gold"))
    return beside if beside != path and beside.is_file() else None


def _filled(path: Path) -> Iterator[tuple[str, str]]:
    """The lines that are not blank."""
    return ((where, line) for where, line in lines_of(path) if line.strip())


def _form(path: Path) -> str:
    for where, line in _filled(path):
        if line.lstrip().startswith("{"):
            return "json"
        cells = line.split("\t")
        if len(cells) == 5 and _PLACES.fullmatch(cells[2].strip()):
            return "wic"
        if len(cells) >= 8:
            return "scws"
        raise FormatError(
            f"{where}: {_cut(line)} is neither WiC (word, part of speech, i-j, two sentences, "
            "between tabs), nor an object of JSON, nor SCWS (8 cells or more between tabs)"
        )
    raise FormatError(f"{path} has no pairs; expected one a line")


# -- WiC -----------------------------------------------------------------------------------------


def _from_wic(where: str, line: str) -> Pair:
    cells = line.split("\t")
    places = _PLACES.fullmatch(cells[2].strip()) if len(cells) == 5 else None
    if places is None:
        raise FormatError(
            f"{where}: {_cut(line)}; expected word, part of speech, i-j, sentence and sentence, "
            "with tabs between them"
        )
    uses = []
    for place, sentence in zip(places.groups(), cells[3:], strict=True):
        words = sentence.split()
        if int(place) >= len(words):
            raise FormatError(
                f"{where}: the word is number {place}, counted from 0, of a sentence of "
                f"{len(words)} words: {_cut(sentence)}"
            )
        uses.append(Use(words, int(place), int(place) + 1))
    return Pair(uses[0], uses[1], same_word=True)


def _yes(where: str, text: str) -> bool:
    if (answer := _YES_NO.get(text.strip().lower())) is None:
        raise FormatError(f"{where}: {_cut(text)}; expected T or F")
    return answer


def _from_json(where: str, line: str) -> tuple[Pair, bool]:
    try:
        found: Any = json.loads(line)
    except ValueError as error:
        raise FormatError(f"{where}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{where}: {_cut(line)}; expected an object of JSON")
    uses = []
    for n in ("1", "2"):
        sentence, start, end = (found.get(name + n) for name in ("sentence", "start", "end"))
        if not isinstance(sentence, str) or not isinstance(start, int) or not isinstance(end, int):
            raise FormatError(
                f"{where}: sentence{n}, start{n} and end{n} are {_cut(sentence)}, {start!r} and "
                f"{end!r}; expected a text and two places in it"
            )
        uses.append(_located(where, sentence, start, end))
    label = found.get("label")
    if label is None:
        raise FormatError(f"{where}: there is no label; expected data with answers to compare with")
    return Pair(uses[0], uses[1], same_word=True), _yes(where, str(label))


def _located(where: str, text: str, start: int, end: int) -> Use:
    """The words of a text that stand between two places of it."""
    tokens = tokenize(text)
    inside = [i for i, token in enumerate(tokens) if token.start < end and token.end > start]
    if not 0 <= start < end <= len(text) or not inside:
        raise FormatError(
            f"{where}: no word stands from {start} to {end} in {_cut(text)} of {len(text)} "
            "characters"
        )
    return Use([token.text for token in tokens], inside[0], inside[-1] + 1)


# -- SCWS ----------------------------------------------------------------------------------------


def _ratings(path: Path) -> Pairs:
    pairs, means, raters = [], [], []
    for place, cells in _scws_lines(path):
        numbers = [_number(place, cell) for cell in cells[7:] if cell.strip()]
        if not numbers:
            raise FormatError(f"{place}: there is no rating; expected a number in cell 8")
        uses = [_marked(place, cells[5]), _marked(place, cells[6])]
        same = cells[1].strip().casefold() == cells[3].strip().casefold()
        pairs.append(Pair(uses[0], uses[1], same))
        means.append(numbers[0])
        raters.append(numbers[1:])
    if not pairs:
        raise FormatError(f"{path} has no pairs; expected one a line")
    sizes = {len(each) for each in raters}
    return Pairs("scws", pairs, [], means, raters if len(sizes) == 1 and min(sizes) > 1 else [])


def _scws_lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    first = True
    for where, line in lines_of(path):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < 8:
            raise FormatError(
                f"{where}: {len(cells)} cells between tabs; expected 8 or more: number, word, part "
                "of speech, word, part of speech, context, context, mean rating"
            )
        if not (first and "<b>" not in line):  # the names of the columns
            yield where, cells
        first = False


def _number(where: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(f"{where}: the rating {_cut(cell)} is no number")
    return number


def _marked(where: str, context: str) -> Use:
    """The sentence with the marked word: a context may be a whole paragraph."""
    found = list(_MARKED.finditer(context))
    if len(found) != 1 or not found[0][1]:
        raise FormatError(
            f"{where}: {len(found)} words between <b> and </b> in {_cut(context)}; expected one"
        )
    start, end = found[0].span()
    before, word, after = context[:start], found[0][1], context[end:]
    text = f"{before}{word}{after}"
    start, end = len(before), len(before) + len(word)
    for sentence in split_sentences(text):
        if sentence.start <= start and end <= sentence.end:
            return _located(where, sentence.text, start - sentence.start, end - sentence.start)
    return _located(where, text, start, end)


def _cut(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
