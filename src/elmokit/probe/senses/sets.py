"""The sets of the unified evaluation framework: sentences as XML, and the right senses beside them.

`X.data.xml` has `<wf lemma="the" pos="DET">The</wf>` and
`<instance id="d000.s000.t000" lemma="art" pos="NOUN">art</instance>` in `<sentence>`s;
`X.gold.key.txt` has lines of an instance's id and its sense's key, or several that are right.
The framework's own copy of SemCor has the same form.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

from elmokit.errors import FormatError, InputError
from elmokit.probe.senses.uses import SenseSentence, SenseText, Use
from elmokit.probe.senses.wordnet import lemma_and_part

DATA, GOLD = ".data.xml", ".gold.key.txt"
PARTS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_KNOWN_PARTS = PARTS | {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}
_CHUNK = 1 << 16


def find_sets(path: str | Path) -> list[Path]:
    """The data files that a path stands for: itself, or all `*.data.xml` in a directory."""
    place = Path(path).expanduser()
    if not place.exists():
        raise InputError(f"{path} does not exist; expected X{DATA}, or a directory with some")
    if not place.is_dir():
        return [place]
    found = sorted(place.glob(f"*{DATA}")) or sorted(place.rglob(f"*{DATA}"))
    if not found:
        raise InputError(f"{path} has no file whose name ends in {DATA}; expected sets to score")
    return found


def gold_beside(data: str | Path) -> Path:
    """The file of right senses that belongs to a data file."""
    place = Path(data).expanduser()
    name = place.name.removesuffix(DATA) if place.name.endswith(DATA) else place.stem
    gold = place.with_name(name + GOLD)
    if not gold.is_file():
        raise InputError(
            f"{gold} does not exist; expected the right senses of {place.name} there, or "
            "say where they are: --gold FILE"
        )
    return gold


def read_set(data: str | Path, gold: str | Path | None = None) -> SenseText:
    """Read a set; the right senses are beside it by default."""
    place = Path(data).expanduser()
    gold = gold_beside(place) if gold is None else Path(gold).expanduser()
    keys = _read_gold(gold)
    reader = _Reader(place, gold, keys)
    sentences = list(reader.sentences())
    if missing := [name for name in keys if name not in reader.met]:
        raise FormatError(
            f"{gold} has {len(missing):,} instances that {place} has not, such as {missing[0]}; "
            "expected the two to belong together"
        )
    if not reader.met:
        raise FormatError(f"{place} has no <instance> in a <sentence>; expected words to be scored")
    return SenseText(place.name.removesuffix(DATA), sentences)


def _read_gold(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8: {error}") from None
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        name, *keys = line.split()
        if not keys:
            raise FormatError(
                f"{path}:{number}: found {line[:60]!r}; expected an id and the key of its sense"
            )
        if name in found:
            raise FormatError(f"{path}:{number}: {name} is here a second time")
        for key in keys:
            try:
                lemma_and_part(key)
            except FormatError as error:
                raise FormatError(f"{path}:{number}: {error}") from None
        found[name] = tuple(map(sys.intern, keys))
    return found


class _Reader:
    """Sentences as the parser meets them: expat itself, because it knows the lines."""

    def __init__(self, path: Path, gold: Path, keys: Mapping[str, tuple[str, ...]]) -> None:
        self.met: set[str] = set()
        self._path, self._gold, self._keys = path, gold, keys
        self._done: list[SenseSentence] = []
        self._sentence: SenseSentence | None = None
        self._word: dict[str, str] | None = None  # the attributes of the element being read
        self._text: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        # No set needs entities of its own, and they can be made to fill any memory.
        self._parser.EntityDeclHandler = self._entity

    def sentences(self) -> Iterator[SenseSentence]:
        """All of them, read a piece at a time."""
        try:
            with self._path.open("rb") as file:
                last = False
                while not last:
                    piece = file.read(_CHUNK)
                    last = not piece
                    self._parser.Parse(piece, last)
                    yield from self._done
                    self._done.clear()
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error.strerror}") from None
        except expat.ExpatError as error:
            raise FormatError(
                f"{self._path}:{error.lineno}: this is no XML ({expat.ErrorString(error.code)}); "
                f"expected a file such as ALL{DATA}"
            ) from None

    def _fail(self, words: str) -> FormatError:
        return FormatError(f"{self._path}:{self._parser.CurrentLineNumber}: {words}")

    def _entity(self, *_: object) -> None:
        raise self._fail("it declares an entity, which no set needs; it is not read")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._word is not None:
            raise self._fail(f"<{tag}> in a word; expected text")
        if tag == "sentence":
            if self._sentence is not None:
                raise self._fail("a sentence in a sentence")
            self._sentence = SenseSentence([], [])
        elif tag in ("wf", "instance"):
            if self._sentence is None:
                raise self._fail(f"<{tag}> in no sentence")
            self._word = attributes
            self._text.clear()

    def _end(self, tag: str) -> None:
        if tag == "sentence" and self._sentence is not None:
            if self._sentence.words:
                self._done.append(self._sentence)
            self._sentence = None
        elif self._word is not None and self._sentence is not None:
            words = [sys.intern(word) for word in "".join(self._text).split()]
            if not words:
                raise self._fail(f"<{tag}> without a word")
            if tag == "instance":
                start = len(self._sentence.words)
                self._sentence.uses.append(self._use(self._word, start, start + len(words)))
            self._sentence.words.extend(words)
            self._word = None

    def _use(self, attributes: Mapping[str, str], start: int, end: int) -> Use:
        if missing := {"id", "lemma", "pos"} - set(attributes):
            raise self._fail(f"<instance> without {', '.join(sorted(missing))}")
        name, lemma, part = attributes["id"], attributes["lemma"], attributes["pos"]
        if part not in _KNOWN_PARTS:
            raise self._fail(f'pos="{part}" of {name}; expected one of {", ".join(PARTS)}')
        if name not in self._keys:
            raise self._fail(f"{name} is not in {self._gold}; expected its right sense there")
        if name in self.met:
            raise self._fail(f"{name} is here a second time")
        self.met.add(name)
        whole = sys.intern("_".join(lemma.lower().split()))
        return Use(start, end, whole, _KNOWN_PARTS[part], self._keys[name])
