"""A corpus, indexed once: every use of a word in it, to be searched by vectors in milliseconds.

    index = Index.build(elmo, sentences, "news.index")       # Index.open("news.index") from then on
    _, vector = in_context(elmo, "play", "They staged a play .")
    index.nearest(vector, 10)

The files are mapped into memory, not read. With usearch (the extra `analyses`) and many uses the
search goes through a graph; its candidates are compared with the exact question once more, so that
the cosines are right even if a neighbor was missed. Otherwise every vector is looked at.

Shape letters: N uses, S sentences, V forms (different words), D size of a vector.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Layers, Sentence
from elmokit.errors import FormatError, InputError
from elmokit.probe.neighbors import graph
from elmokit.probe.neighbors.nearest import Neighbor, unit_length

FORMAT, VERSION = "elmokit-index", 1
MANIFEST = "manifest.json"
VECTORS, CHARACTERS, NUMBERS, LENGTHS, FORMS = (
    "vectors.f16",
    "characters.f16",
    "forms.i32",
    "lengths.i32",
    "forms.txt",
)
FIRST, ORDER = "first.i32", "order.i64"
GRAPH_FROM = 50_000
"""Fewer uses are looked at one by one in a few hundredths of a second: they need no graph."""
DIGITS = 6
"""Cosines are equal if they are so far: the last bits depend on the place in a block."""


class Index:
    """An index on the disk; it is only read."""

    def __init__(self, directory: Path, manifest: dict[str, Any]) -> None:
        """See `Index.open` and `Index.build`."""
        self.directory = directory
        self.manifest = manifest
        uses, sentences, forms, dim = (
            int(manifest[name]) for name in ("words", "sentences", "forms", "dim")
        )
        self.vectors_ND = self._mapped(VECTORS, np.float16, (uses, dim))
        """Of each use, of length 1."""
        self.characters_VD = self._mapped(CHARACTERS, np.float16, (forms, dim))
        """Of each form alone (layer 0), of length 1."""
        self._form_N = self._mapped(NUMBERS, np.int32, (uses,))
        self._order_N = self._mapped(ORDER, np.int64, (uses,))
        self._first_S = self._mapped(FIRST, np.int32, (sentences,))
        lengths_S = self._mapped(LENGTHS, np.int32, (sentences,))
        self._starts_S = np.concatenate([[0], np.cumsum(lengths_S, dtype=np.int64)])
        listed = (directory / FORMS).read_bytes().decode("utf-8", "surrogatepass")
        self.forms = listed.split("\n")[:-1]
        """The words of the corpus as they are written, in the order of their first use."""
        if len(self.forms) != forms or self._starts_S[-1] != uses:
            raise FormatError(_damaged(directory, "its files do not fit each other"))
        self._graph: graph.Graph | None = None
        if (directory / graph.FILE).exists() and graph.available():
            self._graph = graph.Graph(directory)
            if len(self._graph) != uses:
                raise FormatError(_damaged(directory, "its graph is of other uses"))

    @classmethod
    def build(
        cls,
        elmo: Elmo,
        sentences: Iterable[Sentence],
        directory: str | Path,
        *,
        layer: Layers = "top",
        words_limit: int | None = None,
        source: dict[str, Any] | None = None,
        graph_from: int = GRAPH_FROM,
        progress: graph.Progress = lambda what, done, of: None,
    ) -> Index:
        """Index a corpus; interrupted, the same call goes on where it stopped.

        Args:
            elmo: any model that does not carry its state.
            sentences: the corpus.
            directory: where the index will be; until it is complete it is in a hidden directory
                beside it.
            layer: whose vectors: `"top"`, `"mix"` or a number.
            words_limit: stop after the sentence with this word.
            source: what the caller wants to know again from the manifest.
            graph_from: with at least so many uses, and usearch, a graph is made.
            progress: hears what is done ("embedding", "linking", "checking"), how much, and of how
                much, if that is known.
        """
        from elmokit.probe.neighbors.indexing import build

        build(
            elmo,
            sentences,
            Path(directory).expanduser(),
            layer=layer,
            words_limit=words_limit,
            source=source or {},
            graph_from=graph_from,
            progress=progress,
        )
        return cls.open(directory)

    @classmethod
    def open(cls, directory: str | Path) -> Index:
        """Map a complete index into memory."""
        place = Path(directory).expanduser()
        try:
            manifest = json.loads((place / MANIFEST).read_bytes())
            known = manifest["format"] == FORMAT
        except FileNotFoundError:
            raise InputError(
                f"there is no index in {directory}; `elmo neighbors … --corpus FILE` makes one"
            ) from None
        except (OSError, ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise FormatError(_damaged(place, f"{MANIFEST} is not that of an index"))
        if manifest["version"] != VERSION:
            raise FormatError(_damaged(place, "it was made by another version of elmokit"))
        return cls(place, manifest)

    def __len__(self) -> int:
        """N."""
        return len(self._form_N)

    @property
    def recall(self) -> float | None:
        """Which part of the ten nearest the graph finds; None where the search is exact."""
        if self._graph is None:
            return None
        return float(self._graph.facts[f"recall_at_{graph.AMONG}"])

    @property
    def why_exact(self) -> str:
        """Why there is no graph; nothing if there is one."""
        if self._graph is not None:
            return ""
        if self.manifest["layer"] == 0:
            return "all uses of a word are alike in layer 0"
        if len(self) < self.manifest["graph_from"]:
            return "the corpus is small"
        return "usearch is missing: pip install 'elmokit[analyses]' makes large indexes fast"

    # -- what stands where -----------------------------------------------------------------------

    def use(self, row: int) -> tuple[list[str], int]:
        """The sentence of a use, and which of its words it is."""
        sentence = int(np.searchsorted(self._starts_S, row, side="right")) - 1
        start, end = self._starts_S[sentence : sentence + 2].tolist()
        return [self.forms[k] for k in self._form_N[start:end].tolist()], row - start

    def rows_of(self, word: str) -> npt.NDArray[np.int64]:
        """All uses of a word, whatever its case, in the order of the text."""
        key = self._keys.get(word.casefold())
        if key is None:
            return np.empty(0, np.int64)
        start, end = self._begins[key : key + 2].tolist()
        return np.array(self._order_N[start:end], np.int64)

    def nearest_forms(
        self, vector_D: FloatArray, word: str, number: int
    ) -> list[tuple[str, float]]:
        """The words that are most alike by their characters; each only once, whatever its case."""
        query_1D = unit_length(np.asarray(vector_D, np.float32)[None])
        cosine_V = np.round(graph.similarities(self.characters_VD, query_1D)[0], DIGITS)
        seen, found = {word.casefold()}, []
        for k in np.argsort(-cosine_V, kind="stable").tolist():
            if (folded := self.forms[k].casefold()) not in seen:
                seen.add(folded)
                found.append((self.forms[k], float(cosine_V[k])))
                if len(found) == number:
                    break
        return found

    @cached_property
    def _keys(self) -> dict[str, int]:
        return {folded: key for key, folded in enumerate(dict.fromkeys(self._folded))}

    @cached_property
    def _begins(self) -> npt.NDArray[np.int64]:
        """Where the uses of each key begin in `_order_N`."""
        key_V = np.array([self._keys[folded] for folded in self._folded], np.int64)
        counts_V = np.bincount(self._form_N, minlength=len(self.forms))
        counts = np.bincount(key_V, weights=counts_V, minlength=len(self._keys))
        return np.concatenate([[0], np.cumsum(counts.astype(np.int64))])

    @cached_property
    def _folded(self) -> list[str]:
        return [form.casefold() for form in self.forms]

    # -- the search ------------------------------------------------------------------------------

    def nearest(
        self,
        vector_D: FloatArray,
        number: int = 10,
        *,
        word: str | None = None,
        but: Sequence[str] | None = None,
        exact: bool = False,
    ) -> list[Neighbor]:
        """The most similar uses, the best first; of equal ones the first in the text.

        A sentence gives one neighbor, however often the corpus repeats it.

        Args:
            vector_D: what to look for, in the layer of the index.
            number: how many.
            word: only uses of this word, whatever its case.
            but: never those in this sentence.
            exact: look at every vector even if there is a graph.
        """
        if number < 1:
            raise InputError(f"number is {number}; expected 1 or more neighbors")
        if vector_D.shape != (self.vectors_ND.shape[1],):
            raise InputError(
                f"the vector is {vector_D.shape}; this index has vectors of "
                f"{self.vectors_ND.shape[1]} numbers"
            )
        query_1D = unit_length(np.asarray(vector_D, np.float32)[None])
        found: list[Neighbor] = []
        for rows, cosines in self._growing(query_1D, number, word, exact):
            found = self._chosen(rows, cosines, number, but)
            if len(found) == number:
                break
        return found

    def _growing(
        self, query_1D: FloatArray, number: int, word: str | None, exact: bool
    ) -> Iterator[tuple[npt.NDArray[np.int64], FloatArray]]:
        """More and more candidates with their cosines, the nearest always among them."""
        count = max(8 * number, 64)
        if word is None and self._graph is not None and not exact:
            while count < len(self) // 4:
                rows = np.sort(self._graph.candidates(query_1D[0], count))
                yield rows, self._cosines(rows, query_1D)
                count *= 4
        rows = np.arange(len(self)) if word is None else self.rows_of(word)
        cosines = self._cosines(None if word is None else rows, query_1D)
        while count < len(rows):
            least = np.partition(cosines, -count)[-count]
            near = np.flatnonzero(cosines >= least)  # with all that are as near as the last
            yield rows[near], cosines[near]
            count *= 8
        yield rows, cosines

    def _cosines(self, rows: npt.NDArray[np.int64] | None, query_1D: FloatArray) -> FloatArray:
        vectors = self.vectors_ND if rows is None else self.vectors_ND[rows]
        cosines: FloatArray = np.round(graph.similarities(vectors, query_1D)[0], DIGITS)
        return cosines

    def _chosen(
        self,
        rows: npt.NDArray[np.int64],
        cosines: FloatArray,
        number: int,
        but: Sequence[str] | None,
    ) -> list[Neighbor]:
        """The best, one a sentence; `rows` are in the order of the text."""
        unwanted = None if but is None else list(but)
        seen: set[int] = set()
        found: list[Neighbor] = []
        for i in np.argsort(-cosines, kind="stable").tolist():
            row = int(rows[i])
            sentence = int(np.searchsorted(self._starts_S, row, side="right")) - 1
            same = int(self._first_S[sentence])
            if same in seen:
                continue
            seen.add(same)
            words, place = self.use(row)
            if words != unwanted:
                found.append(Neighbor(float(cosines[i]), words, place, row))
                if len(found) == number:
                    break
        return found

    def _mapped(self, name: str, dtype: type[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        path = self.directory / name
        expected = int(np.prod(shape)) * np.dtype(dtype).itemsize
        try:
            size = path.stat().st_size
        except OSError:
            raise FormatError(_damaged(self.directory, f"{name} is missing")) from None
        if size != expected:
            why = f"{name} has {size} bytes instead of {expected}"
            raise FormatError(_damaged(self.directory, why))
        return np.memmap(path, np.dtype(dtype).newbyteorder("<"), "r", shape=shape)


def _damaged(directory: Path, why: str) -> str:
    return f"the index {directory} cannot be used: {why}; delete it and index again"
