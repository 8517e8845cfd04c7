"""Reader of WordNet's database files: which senses a word has, and in which order.

A sense is named by its key, `lemma%ss_type:lex_filenum:lex_id:head:head_id`. Keys and their order
are read from `index.sense` or, in a directory without it, derived from `index.*` and `data.*`.
Knows nothing about glosses and relations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from elmokit.errors import FormatError, InputError
from elmokit.text.files import read_lines

PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""Parts of speech and the extensions of WordNet's files for them."""
SS_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
"""Part of speech of the number after the % of a key. Satellites (5) are adjectives (3)."""
_NUMBERS = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
_LONGEST_LEX_ID = 8
_LONGEST_FILENUM = 8
LONGEST_LEMMA = 1000
"""Characters of a lemma at most; it is part of the keys of all its senses, and of others."""

INSTALL = (
    "on Debian or Ubuntu `apt install wordnet-base wordnet-sense-index`, elsewhere the database "
    "files of WordNet 3.0 from wordnet.princeton.edu"
)
"""How to install WordNet, for error messages."""


class WordNet:
    """The senses of all lemmas."""

    def __init__(self, senses: Mapping[tuple[str, str], tuple[str, ...]]) -> None:
        """Create it from sense keys in WordNet's order, by lemma and part of speech.

        Lemmas are in lower case, with `_` for spaces.
        """
        self._senses = dict(senses)
        self._number = {
            key: number for keys in self._senses.values() for number, key in enumerate(keys, 1)
        }

    def __len__(self) -> int:
        """Return the number of senses."""
        return len(self._number)

    def __contains__(self, key: object) -> bool:
        """Return whether there is a sense with this key."""
        return key in self._number

    def senses(self, lemma: str, part: str) -> tuple[str, ...]:
        """Return the keys of a lemma's senses in WordNet's order."""
        return self._senses.get((lemma, part), ())

    def first(self, lemma: str, part: str) -> str | None:
        """Return the key of a lemma's first sense, or None if the lemma is unknown."""
        senses = self.senses(lemma, part)
        return senses[0] if senses else None

    def number(self, key: str) -> int | None:
        """Return the number of a sense among those of its lemma, from 1; None if it is unknown."""
        return self._number.get(key)


def lemma_and_part(key: str) -> tuple[str, str]:
    """Return the lemma and part of speech of a sense key: `("say", "v")` for `say%2:32:00::`."""
    lemma, _, rest = key.rpartition("%")
    fields = rest.split(":")
    if not lemma or len(fields) != 5 or fields[0] not in SS_TYPES:
        raise FormatError(f"{key!r} is not a sense key; expected one like say%2:32:00::")
    return lemma, SS_TYPES[fields[0]]


def find_wordnet() -> Path:
    """Return the directory of the installed WordNet, by its variables or in the usual places."""
    candidates = [
        os.environ.get("WNSEARCHDIR"),
        os.path.join(home, "dict") if (home := os.environ.get("WNHOME")) else None,
        "/usr/share/wordnet",
        "/usr/local/WordNet-3.0/dict",
    ]
    for directory in filter(None, candidates):
        if _files(Path(directory)):
            return Path(directory)
    raise InputError(
        f"WordNet was not found in {', '.join(filter(None, candidates))}; install it ({INSTALL}), "
        "or name the directory of its files: --wordnet DIR"
    )


def read_wordnet(directory: str | Path) -> WordNet:
    """Read WordNet from the directory of its files, or from one with `dict` in it."""
    root = Path(directory).expanduser()
    if not root.is_dir():
        raise InputError(f"{directory} is not a directory; expected WordNet's files: {INSTALL}")
    files = wordnet_files(root)
    if not files:
        raise InputError(
            f"{directory} has neither index.sense nor index.noun, data.noun, …; expected "
            f"WordNet's files: {INSTALL}"
        )
    return WordNet(_by_sense_index(files[0]) if len(files) == 1 else _by_synsets(files[0].parent))


def wordnet_files(directory: str | Path) -> list[Path]:
    """Return the files in a directory that `read_wordnet` reads."""
    root = Path(directory).expanduser()
    return _files(root) or _files(root / "dict")


def _files(directory: Path) -> list[Path]:
    """Return `index.sense`, or all files that replace it; empty if one of them is missing."""
    if (directory / "index.sense").is_file():
        return [directory / "index.sense"]
    files = [directory / f"{kind}.{name}" for name in PARTS.values() for kind in ("index", "data")]
    return files if all(path.is_file() for path in files) else []


def _by_sense_index(path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Read `index.sense`: lines of a key, an offset, the sense's number and its tag count."""
    by_lemma: dict[tuple[str, str], dict[int, str]] = {}
    for where, line in _lines(path):
        fields = line.split()
        try:
            key, _, sense, *_ = fields
            by_lemma.setdefault(lemma_and_part(key), {})[int(sense)] = key
        except (ValueError, FormatError):
            raise FormatError(
                f"{where}: found {line[:60]!r}; expected a sense key, an offset and the number of "
                "the sense"
            ) from None
    return {word: tuple(key for _, key in sorted(keys.items())) for word, keys in by_lemma.items()}


def _by_synsets(directory: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Read the index of each part of speech, which lists synsets in the order of the senses."""
    senses = {}
    for part, name in PARTS.items():
        keys = _keys_of_synsets(directory / f"data.{name}")
        for where, line in _lines(directory / f"index.{name}"):
            fields = line.split()
            try:
                # lemma pos synsets pointers [symbol…] senses tagged offset…
                lemma, offsets = fields[0], fields[6 + int(fields[3]) :]
                senses[lemma, part] = tuple(keys[offset, lemma] for offset in offsets)
                if len(offsets) != int(fields[2]):
                    raise ValueError
            except (ValueError, LookupError):
                raise FormatError(
                    f"{where}: found {line[:60]!r}; expected a lemma and the offsets of its "
                    f"synsets in data.{name}"
                ) from None
    return senses


def _keys_of_synsets(path: Path) -> dict[tuple[str, str], str]:
    """Return the key of each word in each synset of a data file."""
    members: dict[str, list[tuple[str, int]]] = {}  # the words of a synset and their lex_id
    kinds: dict[str, tuple[str, int]] = {}  # the ss_type and lex_filenum of a synset
    heads: dict[str, str] = {}  # the head synset of a satellite
    for where, line in _lines(path):
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
            if (
                max(map(len, words[::2]), default=0) > LONGEST_LEMMA
                or max(map(len, words[1::2]), default=0) > _LONGEST_LEX_ID
                or len(fields[1]) > _LONGEST_FILENUM
            ):
                raise ValueError
            kinds[offset] = kind, filenum
            if kind == "s":
                heads[offset] = next(
                    pointers[i + 1] for i in range(0, len(pointers), 4) if pointers[i] == "&"
                )
            if kind not in _NUMBERS or len(members[offset]) != count:
                raise ValueError
        except (ValueError, LookupError, StopIteration):
            raise FormatError(
                f"{where}: found {line[:60]!r}; expected an offset, a file number, a type, and the "
                "words of a synset"
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
                    f"{path}: synset {offset} has its head at {heads[offset]}; expected a synset "
                    "there"
                ) from None
            head = f"{word}:{lex_id:02d}"
        for word, lex_id in words_of:
            key = f"{word}%{_NUMBERS[kind]}:{filenum:02d}:{lex_id:02d}:{head}"
            keys.setdefault((offset, word), key)
    return keys


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file with their locations, without the license, which is indented."""
    for where, line in read_lines(path):
        if not line.startswith("  ") and line.strip():
            yield where, line.rstrip()
