"""The nearest uses of a word in a corpus, as a measurement.

Beside them are the nearest words by vectors that know no context, as in the paper's table for
"play".

Shape letters: N words, D size of a vector, E size of a static vector.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.errors import InputError
from elmokit.probe.context import ContextChoice
from elmokit.probe.excerpt import excerpt_line
from elmokit.probe.neighbors.index import DIGITS, Index, nearest_distinct
from elmokit.probe.neighbors.word_use import embed_word, unit_length
from elmokit.probe.plane import project_to_plane
from elmokit.probe.results import Measurement, make_measurement, make_signature
from elmokit.progress import StageCallback, ignore_stages
from elmokit.vectors.static import GLOVE, has_glove, read_static

PLOTTED_USES = 150
"""Other uses of the word in the figure, at most."""
AUTO = "auto"
"""Static vectors by default: GloVe if it is installed and knows the words, else none."""
MIN_COVERAGE = 0.7
"""Share of a corpus' words that GloVe, which is English, knows at least: it has 94 to 98 % of the
words of English and biomedical text, but 38 % of German text."""
MIN_COVERED_WORDS, MIN_COVERED_LETTERS = 20, 4
"""Words from which on the share says something, and letters of those that are counted: short words
are the same in many languages, such as "die"."""


class StaticWords(NamedTuple):
    """The nearest words by static vectors, which know no context."""

    name: str
    """Name of the vectors."""
    words: Sequence[tuple[str, float]]
    """Words with their cosines, nearest first; empty if the word has no vector."""


def find_neighbors(
    elmo: Elmo,
    word: str,
    sentences: str | Sequence[Sentence],
    corpus: Index | str | Path | Sequence[str | Path],
    *,
    number: int = 10,
    same_word: bool = False,
    occurrence: int = 1,
    layer: LayerChoice = "top",
    context: ContextChoice = "word",
    max_words: int | None = None,
    exact: bool = False,
    static_vectors: str | None = AUTO,
    callback: StageCallback = ignore_stages,
    on_search: Callable[[float], None] | None = None,
) -> Measurement:
    """Return the uses of words in a corpus that are most similar to a word in some sentences.

    The command `elmo neighbors` does this. The result is a measurement, as JSON holds it.

    Args:
        elmo: The model.
        word: The word, in upper or lower case.
        sentences: One or more sentences with this word, as text or as words.
        corpus: Text files or directories to search, or an index of a corpus. The files are indexed
            once, in the cache; `Index.from_files` has more options.
        number: Neighbors per sentence.
        same_word: Return only uses of the same word.
        occurrence: Which one, if a sentence has the word several times; the first is 1.
        layer: Layer of the vectors: `"top"`, `"mix"` or a number. An index has its own layer.
        context: `"sentence"` compares the word and the mean of its sentence, `"word"` the word
            alone. An index has its own context.
        max_words: Number of words of the files to index; all by default.
        exact: Compare every use, even if the index has a graph for fast search.
        static_vectors: Static vectors to compare with: `"glove"`, a file, or None; by default
            GloVe if it is installed, unless it lacks most words of the corpus, because the corpus
            is not English.
        callback: Called with the stage of the indexing, how much is done and how much there is.
        on_search: Called after each search with the seconds it took.
    """
    queries = [sentences] if isinstance(sentences, str) else list(sentences)
    if isinstance(corpus, Index):
        if elmo.bilm.fingerprint != corpus.manifest["model"]:
            raise InputError(f"the index {corpus.directory} was made with another model")
        layer, context = corpus.manifest["layer"], corpus.context
    # Embedding comes first: a missing word is reported before the corpus is indexed.
    uses = [embed_word(elmo, word, each, layer, occurrence, context) for each in queries]
    if isinstance(corpus, Index):
        index = corpus
    else:
        index = Index.from_files(
            elmo, corpus, layer=layer, context=context, max_words=max_words, callback=callback
        )
    coverage = None
    if static_vectors == AUTO:
        static_vectors, coverage = _choose_glove(index.forms)
    static = None if static_vectors is None else find_static_words(static_vectors, word, number)
    results = []
    for use in uses:
        started = time.perf_counter()
        results.append(
            index.search(
                use.vector,
                number,
                word=word if same_word else None,
                exclude=use.words,
                exact=exact,
            )
        )
        if on_search is not None:
            on_search(time.perf_counter() - started)
    rows = index.find_uses(word)
    listed = {neighbor.row for neighbors in results for neighbor in neighbors}
    others = [row for row in _evenly_spaced(rows.tolist(), PLOTTED_USES) if row not in listed]
    vectors = [unit_length(np.stack([use.vector for use in uses]).astype(np.float32))]
    vectors += [_row_vectors(index, [each.row for each in neighbors]) for neighbors in results]
    points = iter(project_to_plane(np.concatenate([*vectors, _row_vectors(index, others)])))
    questions: list[Measurement] = [
        {"words": list(use.words), "place": use.position, "at": next(points)} for use in uses
    ]
    for question, neighbors in zip(questions, results, strict=True):
        question["neighbors"] = [
            {
                "similarity": round(neighbor.similarity, 4),
                "words": list(neighbor.words),
                "place": neighbor.position,
                "at": next(points),
            }
            for neighbor in neighbors
        ]
    character_D = elmo.embed([[word]], 0)[0][0]
    return make_measurement(
        "neighbors",
        {
            **make_signature(elmo, {}),
            "data": index.manifest["source"].get("data", {"index": index.manifest["text"]}),
            "text": index.manifest["text"],
            "layer": index.manifest["layer"],
            **({} if context == "word" else {"context": context}),
            "asked": [
                word,
                *(each if isinstance(each, str) else " ".join(each) for each in queries),
            ],
            "at": occurrence,
            "number": number,
            "same_word": same_word,
            "exact": exact,
            "vectors": None if static is None else static.name,
        },
        word=word,
        layer=index.manifest["layer"],
        same_word=same_word,
        corpus={key: index.manifest[key] for key in ("words", "sentences", "forms")},
        uses_of_the_word=len(rows),
        exact=exact or same_word or index.recall is None,
        recall_at_10=None if exact or same_word else index.recall,
        questions=questions,
        other_uses=[
            {"text": excerpt_line(*index.get_use(row), side=60), "at": next(points)}
            for row in others
        ],
        characters=[list(each) for each in index.nearest_words(character_D, word, number)],
        static=None if static is None else {"name": static.name, "words": list(static.words)},
        glove_coverage=coverage,
    )


def find_static_words(source: str, word: str, number: int) -> StaticWords:
    """Return the nearest words by static vectors.

    Args:
        source: `"glove"`, or a file of static vectors.
        word: The word; without a vector of its own, it is looked up in lower case.
        number: How many words to return.
    """
    words, vectors_NE = read_static(source)
    name = "GloVe" if source == GLOVE else source
    row = next((words.index(each) for each in (word, word.lower()) if each in words), None)
    if row is None:
        return StaticWords(name, [])
    unit_E = unit_length(np.array(vectors_NE[[row]], np.float32))[0]
    lengths_N = np.maximum(np.sqrt(np.einsum("ne,ne->n", vectors_NE, vectors_NE)), 1e-12)
    cosine_N = np.round((vectors_NE @ unit_E) / lengths_N, DIGITS)
    return StaticWords(name, nearest_distinct(words, cosine_N, word, number))


def _choose_glove(forms: Sequence[str]) -> tuple[str | None, float | None]:
    """Return GloVe if it is installed and fits the words of a corpus, and its share of them.

    The share is None if GloVe is not installed, or if there are too few words to tell.
    """
    if not has_glove():
        return None, None
    counted = {
        form
        for form in forms
        if form.isalpha()
        and form == form.lower()
        and (len(form) >= MIN_COVERED_LETTERS or not form.isascii())
    }
    if len(counted) < MIN_COVERED_WORDS:
        return GLOVE, None
    coverage = round(len(counted.intersection(read_static(GLOVE)[0])) / len(counted), 4)
    return (GLOVE if coverage >= MIN_COVERAGE else None), coverage


def _evenly_spaced(rows: Sequence[int], count: int) -> list[int]:
    """Return at most `count` of the rows, evenly spaced."""
    if len(rows) <= count:
        return list(rows)
    return [rows[k * len(rows) // count] for k in range(count)]


def _row_vectors(index: Index, rows: Sequence[int]) -> FloatArray:
    vectors: FloatArray = index.vectors_ND[np.array(rows, np.int64)].astype(np.float32)
    return vectors
