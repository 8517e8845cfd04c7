"""Reader of SemCor's tag files: sentences of the Brown corpus annotated with WordNet senses.

A line is a word (`<wf cmd=done pos=VB lemma=say wnsn=1 lexsn=2:32:00::>said</wf>`), a punctuation
mark (`<punc>.</punc>`), or the start or end of a sentence. Attributes may be quoted: the same files
as XML are read too. The files of `brownv` annotate verbs only and need no special treatment.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import unescape

from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.probe.senses.corpus import SenseCorpus, SenseSentence, SenseUse
from elmokit.probe.senses.wordnet import LONGEST_LEMMA, lemma_and_part
from elmokit.text.files import TextFile

_ELEMENT = re.compile(
    r"<wf\b(?P<attributes>[^>]*)>(?P<word>.*?)</wf>"
    r"|<punc\b[^>]*>(?P<punc>.*?)</punc>"
    r"|(?P<opened><s\b[^>]*>)"
    r"|(?P<closed></s>)"
    r"|</?(?:p|context|contextfile)\b[^>]*>"
    r"|<[?!][^>]*>"
)
_HEAD_BYTES = 400
"""Bytes at the beginning of a tag file within which <contextfile> is expected."""
_ATTRIBUTE = re.compile(r"""(?<!\w)(\w+)=("[^"]*"|'[^']*'|\S*)""")
"""Not in the middle of a word: otherwise a long one takes quadratic time."""
_POSITION_MARKER = re.compile(r"\((?:a|p|ip)\)")
"""Some keys name their head with a marker, `preceding(a)`, as in WordNet's data files; keys in
`index.sense` have no such markers."""


def semcor_files(directory: str | Path) -> list[Path]:
    """Return all tag files under a directory, in a fixed order; other files are ignored."""
    root = Path(directory).expanduser()
    if not root.exists():
        raise InputError(f"{directory} does not exist; expected a directory of SemCor's tag files")
    candidates = [root] if root.is_file() else sorted(root.rglob("*"))
    files = [path for path in candidates if path.is_file() and _is_tag_file(path)]
    if not files:
        raise InputError(
            f"{directory} has no SemCor tag file; expected files that begin with <contextfile>, "
            "such as brown1/tagfiles/br-a01 of SemCor 3.0"
        )
    return files


def read_semcor(source: str | Path | Sequence[str | Path]) -> SenseCorpus:
    """Read SemCor's tag files, plain or compressed.

    A multiword expression (`took_place`) becomes several words. A sense with the number 0 is not in
    WordNet any more; it is counted in `skipped`.

    Args:
        source: A directory of tag files, or the files themselves.
    """
    paths: Iterable[str | Path]
    paths = semcor_files(source) if isinstance(source, (str, Path)) else source
    sentences: list[SenseSentence] = []
    skipped = 0
    for path in paths:
        skipped += _read_file(Path(path).expanduser(), sentences)
    return SenseCorpus("SemCor", sentences, skipped)


def _is_tag_file(path: Path) -> bool:
    head = b""
    try:
        for block in TextFile(str(path)).blocks(_HEAD_BYTES):
            head += block.data
            if len(head) >= _HEAD_BYTES:
                break
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ElmoError:
        return False  # compressed data that cannot be decompressed: some other file
    return b"<contextfile" in head[:_HEAD_BYTES]


def _read_file(path: Path, sentences: list[SenseSentence]) -> int:
    """Append the sentences of a file; returns the number of skipped senses."""
    skipped = number = 0
    current: SenseSentence | None = None
    for number, element in _elements(path):
        kind = element.lastgroup
        if kind == "opened":
            if current is not None:
                raise FormatError(f"{path}:{number}: <s> in a sentence; expected </s> before it")
            current = SenseSentence([], [])
        elif current is None:
            raise FormatError(
                f"{path}:{number}: {element[0][:60]!r} is not in a sentence; expected <s> before it"
            )
        elif kind == "closed":
            if current.words:
                sentences.append(current)
            current = None
        else:
            words = _split_words(element[kind or 0])
            if not words:
                raise FormatError(
                    f"{path}:{number}: found {element[0][:60]!r}; expected a word in it"
                )
            if kind == "word" and "lexsn" in element["attributes"]:
                start = len(current.words)
                where = f"{path}:{number}"
                uses, unknown = _parse_senses(
                    element["attributes"], start, start + len(words), where
                )
                current.uses.extend(uses)
                skipped += unknown
            current.words.extend(words)
    if current is not None:
        raise FormatError(f"{path}:{number}: the file ends within a sentence; expected </s>")
    return skipped


def _elements(path: Path) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield words, punctuation, and starts and ends of sentences with their line numbers."""
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        # Not `finditer`: it would search the rest of a hostile line from each of its tags.
        position = len(line) - len(line.lstrip())
        while element := _ELEMENT.match(line, position):
            position = element.end()
            if element.lastgroup:
                yield number, element
            while position < len(line) and line[position].isspace():
                position += 1
        if rest := line[position:].strip():
            raise FormatError(
                f"{path}:{number}: found {rest[:60]!r}; expected a line of SemCor, such as "
                "<wf cmd=ignore pos=DT>The</wf>"
            )


def _read_text(path: Path) -> str:
    """Return the text of a file: UTF-8, or Latin-1 as some copies of SemCor have it."""
    try:
        data = b"".join(block.data for block in TextFile(str(path)).blocks(1 << 20))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _split_words(text: str) -> list[str]:
    if "&" in text:
        text = unescape(text, {"&quot;": '"', "&apos;": "'"})
    # Interned, since a corpus repeats the same words many times.
    return [sys.intern(word) for word in text.replace("_", " ").split()] or text.split()


def _parse_senses(attributes: str, start: int, end: int, where: str) -> tuple[list[SenseUse], int]:
    """Return the annotations of a word, one per part of speech, and how many were skipped."""
    values = {name: value.strip("\"'") for name, value in _ATTRIBUTE.findall(attributes)}
    lemma, lexical = sys.intern(values.get("lemma", "").lower()), values.get("lexsn", "")
    senses = [sense for sense in lexical.split(";") if sense]
    if not senses:
        return [], 0
    if not 0 < len(lemma) <= LONGEST_LEMMA:
        raise FormatError(
            f"{where}: found lexsn={lexical[:60]} beside {lemma[:60]!r}; expected a lemma of 1 to "
            f"{LONGEST_LEMMA} characters there"
        )
    numbers = values["wnsn"].split(";") if "wnsn" in values else ["1"] * len(senses)
    if len(numbers) != len(senses):
        raise FormatError(
            f"{where}: found wnsn={values['wnsn'][:60]} and lexsn={lexical[:60]}; expected the "
            "same number of senses in both"
        )
    by_part: dict[str, list[str]] = {}
    skipped = 0
    for sense, number in zip(senses, numbers, strict=True):
        key = sys.intern(f"{lemma}%{_POSITION_MARKER.sub('', sense)}")
        try:
            part = lemma_and_part(key)[1]
        except FormatError as error:
            raise FormatError(f"{where}: {error}") from None
        if number in ("0", "-1"):
            skipped += 1
        else:
            by_part.setdefault(part, []).append(key)
    return [
        SenseUse(start, end, lemma, part, tuple(keys)) for part, keys in by_part.items()
    ], skipped
