"""An index of a corpus: a vector for every use of a word in it, searched in milliseconds.

    index = Index.build(elmo, sentences, "news.index")       # Index.open("news.index") from then on
    use = embed_word(elmo, "play", "They staged a play .")
    for neighbor in index.search(use.vector, 10):
        print(neighbor.similarity, neighbor.words)

Vectors stay in their file and are read as they are compared. With usearch (the extra `analyses`)
and many uses, the search goes through a graph; its candidates are compared with the exact query
once more, so that the cosines are right even if a neighbor was missed. Otherwise every vector is
compared.

Shape letters: N uses, S sentences, V word forms (different spellings), D size of a vector.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.extras import install_command
from elmokit.formats.checked_rows import CheckedRows
from elmokit.json_text import check_seal, parse_json
from elmokit.probe.context import ContextChoice
from elmokit.probe.neighbors import graph
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.progress import StageCallback, ignore_stages
from elmokit.storage import check_regular

if TYPE_CHECKING:
    from elmokit.train.chunks import TextForm

FORMAT, VERSION = "elmokit-index", 2
"""Name and version of the format; indexes of version 1 have no checksums."""
MANIFEST = "manifest.json"
VECTORS, CHARACTERS, FORM_NUMBERS, LENGTHS, FORMS = (
    "vectors.f16",
    "characters.f16",
    "forms.i32",
    "lengths.i32",
    "forms.txt",
)
FIRST, ORDER = "first.i32", "order.i64"
VECTOR_CHECKSUMS, CHARACTER_CHECKSUMS = "vectors.crc", "characters.crc"
GRAPH_FROM = 50_000
"""Uses from which on a graph is built; fewer are all compared in some hundredths of a second."""
DIGITS = 6
"""Digits to which cosines are rounded, since the last bits depend on the position in a block."""


class Neighbor(NamedTuple):
    """A use of a word in the corpus that is similar to a query."""

    similarity: float
    """Cosine similarity with the query, -1 to 1."""
    words: Sequence[str]
    """Words of the sentence."""
    position: int
    """Index of the word in the sentence."""
    row: int = -1
    """Number of the use in the corpus."""


class Index:
    """An index of the word uses of a corpus, on disk; make one by `build`, `open`, `from_files`."""

    def __init__(self, directory: Path, manifest: dict[str, Any]) -> None:
        """Open the files of an index; use `Index.open`, which reads the manifest."""
        self.directory = directory
        """Directory of the index."""
        self.manifest = manifest
        """Metadata of the index: model, layer, sizes, source."""
        uses, sentences, forms, dim = (
            int(manifest[name]) for name in ("words", "sentences", "forms", "dim")
        )
        self._checksums: Mapping[str, int] | None = manifest.get("crc32")
        self.vectors_ND = self._open_rows(VECTORS, VECTOR_CHECKSUMS, (uses, dim))
        """Vector of each use, of length 1."""
        self.context: ContextChoice = manifest.get("context", "word")
        """What a vector stands for: `"word"`, or `"sentence"` with the mean of its sentence."""
        width = dim if self.context == "word" else dim // 2
        self.characters_VD = self._open_rows(CHARACTERS, CHARACTER_CHECKSUMS, (forms, width))
        """Context-free vector (layer 0) of each word form, of length 1."""
        self._form_N = self._read_array(FORM_NUMBERS, np.int32, (uses,))
        self._order_N = self._read_array(ORDER, np.int64, (uses,))
        self._first_S = self._read_array(FIRST, np.int32, (sentences,))
        lengths_S = self._read_array(LENGTHS, np.int32, (sentences,))
        self._starts_S = np.concatenate([[0], np.cumsum(lengths_S, dtype=np.int64)])
        text = self._read_file(FORMS).decode("utf-8", "surrogatepass")
        self.forms = text.split("\n")[:-1]
        """Word forms as they are spelled in the corpus, in the order of their first use."""
        if (
            len(self.forms) != forms
            or self._starts_S[-1] != uses
            or (len(lengths_S) and lengths_S.min() < 1)
            or not _are_below(self._form_N, forms)
            or not _are_below(self._order_N, uses)
            or not _are_below(self._first_S, sentences)
        ):
            raise FormatError(_unusable(directory, "its files do not fit each other"))
        self._graph: graph.Graph | None = None
        if (directory / graph.GRAPH_FILE).exists() and graph.is_available():
            self._graph = graph.Graph(directory)
            if len(self._graph) != uses:
                raise FormatError(_unusable(directory, "its graph has another number of uses"))

    @classmethod
    def build(
        cls,
        elmo: Elmo,
        sentences: Iterable[Sentence],
        directory: str | Path,
        *,
        layer: LayerChoice = "top",
        context: ContextChoice = "word",
        max_words: int | None = None,
        source: dict[str, Any] | None = None,
        graph_from: int = GRAPH_FROM,
        callback: StageCallback = ignore_stages,
    ) -> Index:
        """Index a corpus; after an interruption the same call continues where it stopped.

        Args:
            elmo: A model that does not carry its state from sentence to sentence.
            sentences: The corpus.
            directory: Directory of the new index. Until the index is complete, its files are in a
                hidden directory beside it.
            layer: Layer of the vectors: `"top"`, `"mix"` or a number.
            context: `"sentence"` puts the mean of its sentence beside the vector of each word.
            max_words: Stop after the sentence with this many words; all by default.
            source: Metadata to keep in the manifest.
            graph_from: Build a graph for fast search from this many uses on, if usearch is there.
            callback: Called with the stage ("embedding", "building the search graph", "checking
                the search graph"), the number of uses done, and their total if it is known.
        """
        from elmokit.probe.neighbors.indexing import build_index

        build_index(
            elmo,
            sentences,
            Path(directory).expanduser(),
            layer=layer,
            context=context,
            max_words=max_words,
            source=source or {},
            graph_from=graph_from,
            callback=callback,
        )
        return cls.open(directory)

    @classmethod
    def open(cls, directory: str | Path) -> Index:
        """Open a complete index."""
        path = Path(directory).expanduser()
        for file in path.iterdir() if path.is_dir() else ():
            check_regular(file)
        try:
            manifest = parse_json((path / MANIFEST).read_bytes())
            known = manifest["format"] == FORMAT and "version" in manifest
        except FileNotFoundError:
            raise InputError(
                f"there is no index in {directory}; `elmo neighbors … --corpus FILE` makes one"
            ) from None
        except (OSError, ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise FormatError(_unusable(path, f"{MANIFEST} is not that of an index"))
        if manifest["version"] not in (1, VERSION):
            raise FormatError(_unusable(path, "it was made by another version of elmokit"))
        try:
            if manifest["version"] != 1:
                check_seal(manifest)
            return cls(path, manifest)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, ElmoError):
                raise
            raise FormatError(_unusable(path, f"it is damaged: {error!r:.100}")) from None

    @classmethod
    def from_files(
        cls,
        elmo: Elmo,
        files: str | Path | Sequence[str | Path],
        directory: str | Path | None = None,
        *,
        layer: LayerChoice = "top",
        context: ContextChoice = "word",
        max_words: int | None = None,
        form: TextForm = "running",
        column: str | None = None,
        callback: StageCallback = ignore_stages,
    ) -> Index:
        """Open the index of text files, or build it if there is none yet.

        Args:
            elmo: A model that does not carry its state from sentence to sentence.
            files: Text files, plain or compressed, Parquet files, directories, or a directory that
                `elmo corpus` made. May be empty if the index exists.
            directory: Directory of the index; by default one in the cache, by model and files.
            layer: Layer of the vectors: `"top"`, `"mix"` or a number.
            context: `"sentence"` puts the mean of its sentence beside the vector of each word.
            max_words: Number of words of the corpus to index; all by default.
            form: What a line of the files is: `"running"` text, one sentence (`"lines"`), or one
                sentence with spaces between its words (`"tokenized"`).
            column: Column of the text in Parquet files.
            callback: Called with the stage, how much of it is done and how much there is.
        """
        from elmokit.probe.neighbors.indexing import open_or_build

        return open_or_build(
            elmo,
            [files] if isinstance(files, (str, Path)) else files,
            directory,
            layer=layer,
            context=context,
            max_words=max_words,
            form=form,
            column=column,
            callback=callback,
        )

    def __len__(self) -> int:
        """Return the number of uses."""
        return len(self._form_N)

    @property
    def recall(self) -> float | None:
        """Share of the ten nearest uses that the graph finds; None where the search is exact."""
        if self._graph is None:
            return None
        return float(self._graph.info[f"recall_at_{graph.RECALL_AT}"])

    @property
    def exact_reason(self) -> str:
        """Why every use is compared instead of searching a graph; empty if there is a graph."""
        if self._graph is not None:
            return ""
        if self.manifest["layer"] == 0:
            return "all uses of a word are equal in layer 0"
        if len(self) < self.manifest["graph_from"]:
            return "the corpus is small"
        return (
            f"usearch is not installed; `{install_command('usearch')}` makes searches of large "
            "indexes fast"
        )

    # -- uses and words --------------------------------------------------------------------------

    def get_use(self, row: int) -> tuple[list[str], int]:
        """Return the words of the sentence of a use, and the position of the word in it."""
        sentence = int(np.searchsorted(self._starts_S, row, side="right")) - 1
        start, end = self._starts_S[sentence : sentence + 2].tolist()
        return [self.forms[k] for k in self._form_N[start:end].tolist()], row - start

    def find_uses(self, word: str) -> npt.NDArray[np.int64]:
        """Return the rows of all uses of a word, in upper or lower case, in text order."""
        key = self._keys.get(word.casefold())
        if key is None:
            return np.empty(0, np.int64)
        start, end = self._key_starts[key : key + 2].tolist()
        return np.array(self._order_N[start:end], np.int64)

    def nearest_words(
        self, vector_D: FloatArray, word: str, number: int
    ) -> list[tuple[str, float]]:
        """Return the words with the most similar context-free vectors, and their cosines.

        Args:
            vector_D: Vector in layer 0 to compare with.
            word: A word to leave out. Words that differ only in case count as one.
            number: How many words to return.
        """
        query_1D = unit_length(np.asarray(vector_D, np.float32)[None])
        cosine_V = np.round(graph.cosine_similarities(self.characters_VD, query_1D)[0], DIGITS)
        return nearest_distinct(self.forms, cosine_V, word, number)

    @cached_property
    def _keys(self) -> dict[str, int]:
        return {folded: key for key, folded in enumerate(dict.fromkeys(self._folded))}

    @cached_property
    def _key_starts(self) -> npt.NDArray[np.int64]:
        """Where the uses of each key begin in `_order_N`."""
        key_V = np.array([self._keys[folded] for folded in self._folded], np.int64)
        counts_V = np.bincount(self._form_N, minlength=len(self.forms))
        counts = np.bincount(key_V, weights=counts_V, minlength=len(self._keys))
        return np.concatenate([[0], np.cumsum(counts.astype(np.int64))])

    @cached_property
    def _folded(self) -> list[str]:
        return [form.casefold() for form in self.forms]

    # -- search ----------------------------------------------------------------------------------

    def search(
        self,
        vector_D: FloatArray,
        number: int = 10,
        *,
        word: str | None = None,
        exclude: Sequence[str] | None = None,
        exact: bool = False,
    ) -> list[Neighbor]:
        """Return the most similar uses, best first; equally similar ones in text order.

        A sentence gives one neighbor, however often the corpus repeats it.

        Args:
            vector_D: Query vector, in the layer of the index.
            number: How many neighbors to return.
            word: Return only uses of this word, in upper or lower case.
            exclude: Words of a sentence whose uses are not returned.
            exact: Compare every vector even if there is a graph.
        """
        if number < 1:
            raise InputError(f"number is {number}; expected 1 or more neighbors")
        if vector_D.shape != (self.vectors_ND.shape[1],):
            raise InputError(
                f"the vector has the shape {vector_D.shape}; this index has vectors of "
                f"{self.vectors_ND.shape[1]} numbers"
            )
        query_1D = unit_length(np.asarray(vector_D, np.float32)[None])
        neighbors: list[Neighbor] = []
        for rows, cosines in self._candidates(query_1D, number, word, exact):
            neighbors = self._select(rows, cosines, number, exclude)
            if len(neighbors) == number:
                break
        return neighbors

    def _candidates(
        self, query_1D: FloatArray, number: int, word: str | None, exact: bool
    ) -> Iterator[tuple[npt.NDArray[np.int64], FloatArray]]:
        """Yield growing sets of candidates with their cosines, always with the nearest ones."""
        count = max(8 * number, 64)
        if word is None and self._graph is not None and not exact:
            while count < len(self) // 4:
                rows = np.sort(self._graph.find_candidates(query_1D[0], count))
                yield rows, self._cosines(rows, query_1D)
                count *= 4
        rows = np.arange(len(self)) if word is None else self.find_uses(word)
        cosines = self._cosines(None if word is None else rows, query_1D)
        while count < len(rows):
            lowest = np.partition(cosines, -count)[-count]
            near = np.flatnonzero(cosines >= lowest)  # with all that are as near as the last
            yield rows[near], cosines[near]
            count *= 8
        yield rows, cosines

    def _cosines(self, rows: npt.NDArray[np.int64] | None, query_1D: FloatArray) -> FloatArray:
        vectors = self.vectors_ND if rows is None else self.vectors_ND[rows]
        cosines: FloatArray = np.round(graph.cosine_similarities(vectors, query_1D)[0], DIGITS)
        return cosines

    def _select(
        self,
        rows: npt.NDArray[np.int64],
        cosines: FloatArray,
        number: int,
        exclude: Sequence[str] | None,
    ) -> list[Neighbor]:
        """Return the best uses, one per sentence; `rows` are in text order."""
        excluded = None if exclude is None else list(exclude)
        seen: set[int] = set()
        neighbors: list[Neighbor] = []
        for i in np.argsort(-cosines, kind="stable").tolist():
            row = int(rows[i])
            sentence = int(np.searchsorted(self._starts_S, row, side="right")) - 1
            first = int(self._first_S[sentence])
            if first in seen:
                continue
            seen.add(first)
            words, position = self.get_use(row)
            if words != excluded:
                neighbors.append(Neighbor(float(cosines[i]), words, position, row))
                if len(neighbors) == number:
                    break
        return neighbors

    def _open_rows(self, name: str, checksums: str, shape: tuple[int, ...]) -> CheckedRows:
        """Open a file of vectors, which are read and checked when they are needed."""
        self._check_size(name, math.prod(shape) * np.dtype(np.float16).itemsize)
        checksums_N = None
        if self._checksums is not None:
            checksums_N = self._read_array(checksums, np.uint32, shape[:1])
        return CheckedRows(self.directory / name, "<f2", shape, checksums_N)

    def _read_array(self, name: str, dtype: type[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        self._check_size(name, math.prod(shape) * np.dtype(dtype).itemsize)
        data = self._read_file(name)
        return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).reshape(shape)

    def _check_size(self, name: str, expected: int) -> None:
        try:
            size = (self.directory / name).stat().st_size
        except OSError:
            raise FormatError(_unusable(self.directory, f"{name} is missing")) from None
        if size != expected:
            reason = f"{name} has {size} bytes instead of {expected}"
            raise FormatError(_unusable(self.directory, reason))

    def _read_file(self, name: str) -> bytes:
        """Return the content of a file, after comparing it with its checksum."""
        try:
            data = (self.directory / name).read_bytes()
        except OSError:
            raise FormatError(_unusable(self.directory, f"{name} is missing")) from None
        if self._checksums is not None and zlib.crc32(data) != self._checksums[name]:
            raise FormatError(_unusable(self.directory, f"the checksum of {name} differs"))
        return data


def _are_below(numbers: npt.NDArray[Any], limit: int) -> bool:
    return not len(numbers) or 0 <= int(numbers.min()) <= int(numbers.max()) < limit


def nearest_distinct(
    words: Sequence[str], cosine_V: npt.NDArray[Any], exclude: str, number: int
) -> list[tuple[str, float]]:
    """Return the words of the largest cosines, each once, ignoring case.

    Args:
        words: The words.
        cosine_V: Cosine of each word.
        exclude: A word to leave out, in upper or lower case.
        number: How many words to return.
    """
    seen = {exclude.casefold()}
    nearest: list[tuple[str, float]] = []
    for i in np.argsort(-cosine_V, kind="stable").tolist():
        if (folded := words[i].casefold()) not in seen:
            seen.add(folded)
            nearest.append((words[i], float(cosine_V[i])))
            if len(nearest) == number:
                break
    return nearest


def _unusable(directory: Path, reason: str) -> str:
    return f"the index {directory} cannot be used: {reason}; delete it and index the corpus again"
