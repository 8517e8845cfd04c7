"""WordNet's own files: which senses a word has, in which order.

A sense is named by its key, `lemma%ss_type:lex_filenum:lex_id:head:head_id`. Keys and their order
are read from `index.sense`, or, in a directory without it, made of `index.*` and `data.*`. Knows
nothing of glosses and relations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from elmokit.errors import FormatError, InputError

PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""The parts of speech and how WordNet calls their files."""
SS_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
"""What the number behind % says. Satellites (5) are adjectives (3)."""
_NUMBERS = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}

INSTALL = (
    "on Debian or Ubuntu `apt install wordnet-base wordnet-sense-index`, elsewhere the database "
    "files of WordNet 3.0 from wordnet.princeton.edu"
)


class WordNet:
    """The senses of all words."""

    def __init__(self, senses: Mapping[tuple[str, str], tuple[str, ...]]) -> None:
        """`senses` are keys in WordNet's order, by lemma (lower case, `_` for spaces) and part."""
        self._senses = dict(senses)
        self._number = {
            key: number for keys in self._senses.values() for number, key in enumerate(keys, 1)
        }

    def __len__(self) -> int:
        """How many senses there are."""
        return len(self._number)

    def __contains__(self, key: object) -> bool:
        """Whether there is a sense of this key."""
        return key in self._number

    def senses(self, lemma: str, part: str) -> tuple[str, ...]:
        """The keys of a lemma's senses, WordNet's first one first."""
        return self._senses.get((lemma, part), ())

    def first(self, lemma: str, part: str) -> str | None:
        """The key of a lemma's first sense."""
        found = self.senses(lemma, part)
        return found[0] if found else None

    def number(self, key: str) -> int | None:
        """Which of its lemma's senses this one is, from 1."""
        return self._number.get(key)


def lemma_and_part(key: str) -> tuple[str, str]:
    """Whose sense a key names: `("say", "v")` for `say%2:32:00::`."""
    lemma, _, rest = key.rpartition("%")
    fields = rest.split(":")
    if not lemma or len(fields) != 5 or fields[0] not in SS_TYPES:
        raise FormatError(f"{key!r} is no key of a sense; expected one like say%2:32:00::")
    return lemma, SS_TYPES[fields[0]]


def find_wordnet() -> Path:
    """Where WordNet is installed, by its own variables or in the usual place."""
    places = [
        os.environ.get("WNSEARCHDIR"),
        os.path.join(home, "dict") if (home := os.environ.get("WNHOME")) else None,
        "/usr/share/wordnet",
        "/usr/local/WordNet-3.0/dict",
    ]
    for place in filter(None, places):
        if _files(Path(place)):
            return Path(place)
    raise InputError(
        f"WordNet was not found in {', '.join(filter(None, places))}; install it ({INSTALL}), or "
        "say where its files are: --wordnet DIR"
    )


def read_wordnet(directory: str | Path) -> WordNet:
    """Read a directory of WordNet's files, or one with such a directory `dict` in it."""
    place = Path(directory).expanduser()
    if not place.is_dir():
        raise InputError(f"{directory} is no directory; expected WordNet's files: {INSTALL}")
    if not _files(place) and _files(place / "dict"):
        place /= "dict"
    files = _files(place)
    if not files:
        raise InputError(
            f"{directory} has neither index.sense nor index.noun, data.noun, …; expected "
            f"WordNet's files: {INSTALL}"
        )
    return WordNet(_by_sense_index(files[0]) if len(files) == 1 else _by_synsets(place))


def wordnet_files(directory: str | Path) -> list[Path]:
    """Which files `read_wordnet` reads in a directory."""
    place = Path(directory).expanduser()
    return _files(place) or _files(place / "dict")


def _files(place: Path) -> list[Path]:
    """`index.sense`, or all that stand for it; none if some are missing."""
    if (place / "index.sense").is_file():
        return [place / "index.sense"]
    found = [place / f"{kind}.{name}" for name in PARTS.values() for kind in ("index", "data")]
    return found if all(path.is_file() for path in found) else []


def _by_sense_index(path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Lines of a key, an offset, the sense's number and how often it was tagged."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for number, line in _lines(path):
        fields = line.split()
        try:
            key, _, sense, *_ = fields
            found.setdefault(lemma_and_part(key), {})[int(sense)] = key
        except (ValueError, FormatError):
            raise FormatError(
                f"{path}:{number}: found {line[:60]!r}; expected a sense's key, an offset and the "
                "sense's number"
            ) from None
    return {word: tuple(key for _, key in sorted(keys.items())) for word, keys in found.items()}


def _by_synsets(place: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """The same from the index of each part of speech, whose order is that of the senses."""
    found = {}
    for part, name in PARTS.items():
        keys = _keys_of_synsets(place / f"data.{name}")
        path = place / f"index.{name}"
        for number, line in _lines(path):
            fields = line.split()
            try:
                # lemma pos synsets pointers [symbol…] senses tagged offset…
                lemma, offsets = fields[0], fields[6 + int(fields[3]) :]
                found[lemma, part] = tuple(keys[offset, lemma] for offset in offsets)
                if len(offsets) != int(fields[2]):
                    raise ValueError
            except (ValueError, LookupError):
                raise FormatError(
                    f"{path}:{number}: found {line[:60]!r}; expected a lemma and the offsets of "
                    f"its synsets in data.{name}"
                ) from None
    return found


def _keys_of_synsets(path: Path) -> dict[tuple[str, str], str]:
    """The key of each word in each synset of a file."""
    members: dict[str, list[tuple[str, int]]] = {}  # of a synset: its words and their lex_id
    kinds: dict[str, tuple[str, int]] = {}  # ss_type and lex_filenum
    heads: dict[str, str] = {}  # of a satellite: the synset of its head
    for number, line in _lines(path):
        fields = line.partition(" | ")[0].split()
        try:
            # offset lex_filenum ss_type words(hex) [word lex_id(hex)]… pointers [symbol offset …]…
            offset, filenum, kind, count = fields[0], int(fields[1]), fields[2], int(fields[3], 16)
            words = fields[4 : 4 + 2 * count]
            pointers = fields[5 + 2 * count :]
            members[offset] = [
                (word.partition("(")[0].lower(), int(lex_id, 16))  # "galore(ip)"
                for word, lex_id in zip(words[::2], words[1::2], strict=True)
            ]
            kinds[offset] = kind, filenum
            if kind == "s":
                heads[offset] = next(
                    pointers[i + 1] for i in range(0, len(pointers), 4) if pointers[i] == "&"
                )
            if kind not in _NUMBERS or len(members[offset]) != count:
                raise ValueError
        except (ValueError, LookupError, StopIteration):
            raise FormatError(
                f"{path}:{number}: found {line[:60]!r}; expected an offset, a file's number, a "
                "type, and the words of a synset"
            ) from None
    keys: dict[tuple[str, str], str] = {}
    for offset, words_of in members.items():
        kind, filenum = kinds[offset]
        head = ":"
        if kind == "s":
            try:
                word, lex_id = members[heads[offset]][0]
            except LookupError:
                raise FormatError(
                    f"{path}: synset {offset} has its head at {heads[offset]}, where no synset is"
                ) from None
            head = f"{word}:{lex_id:02d}"
        for word, lex_id in words_of:
            key = f"{word}%{_NUMBERS[kind]}:{filenum:02d}:{lex_id:02d}:{head}"
            keys.setdefault((offset, word), key)
    return keys


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, but for the license, which begins with spaces."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.startswith("  ") and line.strip():
                    yield number, line.rstrip()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8: {error}") from None
