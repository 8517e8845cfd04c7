"""SemCor's tag files: sentences of the Brown corpus whose words carry senses of WordNet.

A line is a word (`<wf cmd=done pos=VB lemma=say wnsn=1 lexsn=2:32:00::>said</wf>`), a mark
(`<punc>.</punc>`) or the begin or end of a sentence. Attributes may be in quotes: the same files as
XML are read too. The files of `brownv` have senses for verbs only; nothing has to be done for that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import unescape

from elmokit.errors import FormatError, InputError
from elmokit.probe.senses.uses import SenseSentence, SenseText, Use
from elmokit.probe.senses.wordnet import lemma_and_part

_ELEMENT = re.compile(
    r"<wf\b(?P<marks>[^>]*)>(?P<word>.*?)</wf>"
    r"|<punc\b[^>]*>(?P<punc>.*?)</punc>"
    r"|(?P<opened><s\b[^>]*>)"
    r"|(?P<closed></s>)"
    r"|</?(?:p|context|contextfile)\b[^>]*>"
    r"|<[?!][^>]*>"
)
_MARK = re.compile(r"""(\w+)=("[^"]*"|'[^']*'|\S*)""")
_WHERE_IN_PHRASE = re.compile(r"\((?:a|p|ip)\)")
"""Some keys name their head as WordNet's data files do, `preceding(a)`, which keys never have."""


def semcor_files(directory: str | Path) -> list[Path]:
    """All tag files under a directory, in a fixed order; other files are passed over."""
    place = Path(directory).expanduser()
    if not place.exists():
        raise InputError(f"{directory} does not exist; expected a directory of SemCor's tag files")
    candidates = [place] if place.is_file() else sorted(place.rglob("*"))
    found = [path for path in candidates if path.is_file() and _is_tag_file(path)]
    if not found:
        raise InputError(
            f"{directory} has no tag file of SemCor; expected files that begin with <contextfile>, "
            "such as brown1/tagfiles/br-a01 of SemCor 3.0"
        )
    return found


def read_semcor(source: str | Path | Sequence[str | Path]) -> SenseText:
    """Read tag files: a directory of them, or some that `semcor_files` found.

    A word of several (`took_place`) is several words. A sense whose number is 0 is one that WordNet
    has no longer; it is counted in `skipped`.
    """
    paths: Iterable[str | Path]
    paths = semcor_files(source) if isinstance(source, (str, Path)) else source
    sentences: list[SenseSentence] = []
    skipped = 0
    for path in paths:
        skipped += _read(Path(path).expanduser(), sentences)
    return SenseText("SemCor", sentences, skipped)


def _is_tag_file(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"<contextfile" in file.read(400)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _read(path: Path, sentences: list[SenseSentence]) -> int:
    """Add a file's sentences; how many senses were skipped."""
    skipped = number = 0
    current: SenseSentence | None = None
    for number, element in _elements(path):
        what = element.lastgroup
        if what == "opened":
            if current is not None:
                raise FormatError(f"{path}:{number}: <s> in a sentence; expected </s> before")
            current = SenseSentence([], [])
        elif current is None:
            raise FormatError(
                f"{path}:{number}: {element[0][:60]!r} is in no sentence; expected <s> before it"
            )
        elif what == "closed":
            if current.words:
                sentences.append(current)
            current = None
        else:
            words = _words(element[what or 0])
            if not words:
                raise FormatError(f"{path}:{number}: found {element[0][:60]!r}, without a word")
            if what == "word" and "lexsn" in element["marks"]:
                start = len(current.words)
                where = f"{path}:{number}"
                uses, without = _uses(element["marks"], start, start + len(words), where)
                current.uses.extend(uses)
                skipped += without
            current.words.extend(words)
    if current is not None:
        raise FormatError(f"{path}:{number}: the file ends in a sentence; expected </s>")
    return skipped


def _elements(path: Path) -> Iterator[tuple[int, re.Match[str]]]:
    """Words, marks, and ends of sentences with the numbers of their lines."""
    for number, line in enumerate(_decoded(path).splitlines(), start=1):
        place = 0
        for element in _ELEMENT.finditer(line):
            if line[place : element.start()].strip():
                break
            place = element.end()
            if element.lastgroup:
                yield number, element
        if line[place:].strip():
            raise FormatError(
                f"{path}:{number}: found {line[place:].strip()[:60]!r}; expected a line of SemCor, "
                "such as <wf cmd=ignore pos=DT>The</wf>"
            )


def _decoded(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _words(text: str) -> list[str]:
    if "&" in text:
        text = unescape(text, {"&quot;": '"', "&apos;": "'"})
    # Interned, since a corpus says the same words again and again.
    return [sys.intern(word) for word in text.replace("_", " ").split()] or text.split()


def _uses(marks: str, start: int, end: int, where: str) -> tuple[list[Use], int]:
    """The sense that a word is marked with, and how many were skipped."""
    found = {name: value.strip("\"'") for name, value in _MARK.findall(marks)}
    lemma, lexical = sys.intern(found.get("lemma", "").lower()), found.get("lexsn", "")
    senses = [sense for sense in lexical.split(";") if sense]
    if not senses:
        return [], 0
    if not lemma:
        raise FormatError(f"{where}: found lexsn={lexical} without a lemma")
    numbers = found["wnsn"].split(";") if "wnsn" in found else ["1"] * len(senses)
    if len(numbers) != len(senses):
        raise FormatError(
            f"{where}: found wnsn={found['wnsn']} and lexsn={lexical}; expected as many senses in "
            "one as in the other"
        )
    by_part: dict[str, list[str]] = {}
    skipped = 0
    for sense, number in zip(senses, numbers, strict=True):
        key = sys.intern(f"{lemma}%{_WHERE_IN_PHRASE.sub('', sense)}")
        try:
            part = lemma_and_part(key)[1]
        except FormatError as error:
            raise FormatError(f"{where}: {error}") from None
        if number in ("0", "-1"):
            skipped += 1
        else:
            by_part.setdefault(part, []).append(key)
    return [Use(start, end, lemma, part, tuple(keys)) for part, keys in by_part.items()], skipped
