"""Reader of the test sets of the unified WSD evaluation framework (Raganato et al., 2017).

`X.data.xml` has `<wf lemma="the" pos="DET">The</wf>` and
`<instance id="d000.s000.t000" lemma="art" pos="NOUN">art</instance>` in `<sentence>`s;
`X.gold.key.txt` has one line per instance: its id and the key of its sense, or several correct
keys. The framework's own copy of SemCor has the same format.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

from elmokit.errors import FormatError, InputError
from elmokit.probe.senses.corpus import SenseCorpus, SenseSentence, SenseUse
from elmokit.probe.senses.wordnet import lemma_and_part
from elmokit.text.files import TextFile, read_lines

DATA, GOLD = ".data.xml", ".gold.key.txt"
"""Ends of the names of data files and of their gold files."""
PARTS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_KNOWN_PARTS = PARTS | {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}
_BLOCK_BYTES = 1 << 20
"""Not less: before 2.6, expat reads what it has of an element again with each block."""


def find_evaluation_sets(path: str | Path) -> list[Path]:
    """Return the data files of a path: the file itself, or all `*.data.xml` in a directory."""
    root = Path(path).expanduser()
    if not root.exists():
        raise InputError(f"{path} does not exist; expected X{DATA}, or a directory of such files")
    if not root.is_dir():
        return [root]
    files = sorted(root.glob(f"*{DATA}")) or sorted(root.rglob(f"*{DATA}"))
    if not files:
        raise InputError(f"{path} has no file with a name ending in {DATA}; expected test sets")
    return files


def find_gold_keys(data: str | Path) -> Path:
    """Return the file of gold keys that lies beside a data file."""
    path = Path(data).expanduser()
    name = path.name.removesuffix(DATA) if path.name.endswith(DATA) else path.stem
    gold = path.with_name(name + GOLD)
    if not gold.is_file():
        raise InputError(
            f"{gold} does not exist; expected the gold keys of {path.name} there, or another "
            "file: --gold FILE"
        )
    return gold


def read_evaluation_set(data: str | Path, gold: str | Path | None = None) -> SenseCorpus:
    """Read a test set.

    Args:
        data: The XML file, plain or compressed.
        gold: The file of gold keys; the one beside the XML file by default.
    """
    path = Path(data).expanduser()
    gold = find_gold_keys(path) if gold is None else Path(gold).expanduser()
    keys = _read_gold(gold)
    reader = _XMLReader(path, gold, keys)
    sentences = list(reader.sentences())
    if missing := [name for name in keys if name not in reader.seen]:
        raise FormatError(
            f"{gold} has {len(missing):,} instances that are not in {path}, such as {missing[0]}; "
            "expected two files that belong together"
        )
    if not reader.seen:
        raise FormatError(f"{path} has no <instance> in a <sentence>; expected words to evaluate")
    return SenseCorpus(path.name.removesuffix(DATA), sentences)


def _read_gold(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the keys of each instance."""
    keys_by_id: dict[str, tuple[str, ...]] = {}
    for where, line in read_lines(path):
        if not line.strip():
            continue
        name, *keys = line.split()
        if not keys:
            raise FormatError(
                f"{where}: found {line[:60]!r}; expected an id and the key of its sense"
            )
        if name in keys_by_id:
            raise FormatError(f"{where}: {name} occurs a second time; expected each id once")
        for key in keys:
            try:
                lemma_and_part(key)
            except FormatError as error:
                raise FormatError(f"{where}: {error}") from None
        keys_by_id[name] = tuple(map(sys.intern, keys))
    return keys_by_id


class _XMLReader:
    """Reads sentences from XML in blocks; with expat, which knows the line numbers."""

    def __init__(self, path: Path, gold: Path, keys: Mapping[str, tuple[str, ...]]) -> None:
        self.seen: set[str] = set()
        self._path, self._gold, self._keys = path, gold, keys
        self._done: list[SenseSentence] = []
        self._sentence: SenseSentence | None = None
        self._word: dict[str, str] | None = None  # the attributes of the element being read
        self._text: list[str] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        # No test set needs entities of its own, and they could expand to fill the memory.
        self._parser.EntityDeclHandler = self._reject_entity

    def sentences(self) -> Iterator[SenseSentence]:
        """Yield all sentences of the file."""
        try:
            for block in TextFile(str(self._path)).blocks(_BLOCK_BYTES):
                self._parser.Parse(block.data, False)
                yield from self._done
                self._done.clear()
            self._parser.Parse(b"", True)
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error.strerror}") from None
        except expat.ExpatError as error:
            raise FormatError(
                f"{self._path}:{error.lineno}: invalid XML ({expat.ErrorString(error.code)}); "
                f"expected a file such as ALL{DATA}"
            ) from None
        except (LookupError, ValueError) as error:  # of Python's codecs: XML may name any of them
            raise FormatError(
                f"{self._path} has an encoding that cannot be read ({error}); expected UTF-8"
            ) from None

    def _error(self, text: str) -> FormatError:
        return FormatError(f"{self._path}:{self._parser.CurrentLineNumber}: {text}")

    def _reject_entity(self, *_: object) -> None:
        raise self._error("found an entity declaration; expected XML without any")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._word is not None:
            raise self._error(f"found <{tag}> within a word; expected text")
        if tag == "sentence":
            if self._sentence is not None:
                raise self._error(
                    "found <sentence> within a sentence; expected </sentence> before it"
                )
            self._sentence = SenseSentence([], [])
        elif tag in ("wf", "instance"):
            if self._sentence is None:
                raise self._error(
                    f"found <{tag}> outside a sentence; expected <sentence> before it"
                )
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
                raise self._error(f"found an empty <{tag}>; expected a word in it")
            if tag == "instance":
                start = len(self._sentence.words)
                self._sentence.uses.append(self._make_use(self._word, start, start + len(words)))
            self._sentence.words.extend(words)
            self._word = None

    def _make_use(self, attributes: Mapping[str, str], start: int, end: int) -> SenseUse:
        if missing := {"id", "lemma", "pos"} - set(attributes):
            raise self._error(f"found <instance> without {', '.join(sorted(missing))}")
        name, lemma, part = attributes["id"], attributes["lemma"], attributes["pos"]
        if part not in _KNOWN_PARTS:
            raise self._error(f'found pos="{part}" at {name}; expected one of {", ".join(PARTS)}')
        if name not in self._keys:
            raise self._error(f"{name} is not in {self._gold}; expected its sense there")
        if name in self.seen:
            raise self._error(f"{name} occurs a second time; expected each id once")
        self.seen.add(name)
        lemma = sys.intern("_".join(lemma.lower().split()))
        return SenseUse(start, end, lemma, _KNOWN_PARTS[part], self._keys[name])
