"""The measurement: the uses in an indexed corpus that are nearest to a word in some sentences.

Beside them stand the nearest words by vectors that know no context, as in the paper's table for
"play".

Shape letters: N words, D size of a vector, E size of a static one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Layers, Sentence
from elmokit.errors import InputError
from elmokit.probe.excerpt import line
from elmokit.probe.neighbors.index import Index
from elmokit.probe.neighbors.nearest import one_use, unit_length
from elmokit.probe.plane import on_plane
from elmokit.probe.results import Json, measurement

BACKGROUND = 150
"""At most so many other uses of the word are in the picture."""


class StaticWords(NamedTuple):
    """The nearest words by vectors that know no context."""

    name: str
    """Whose vectors."""
    words: Sequence[tuple[str, float]]
    """Each with its cosine, the nearest first; none if the word has no vector."""


def static_neighbors(source: str, word: str, number: int) -> StaticWords:
    """By GloVe (`"glove"`) or a file of static vectors."""
    from elmokit.vectors.static import GLOVE, read_static

    words, vectors_NE = read_static(source)
    name = "GloVe" if source == GLOVE else source
    for wanted in dict.fromkeys((word, word.lower())):
        if wanted in words:
            unit_E = unit_length(np.array(vectors_NE[[words.index(wanted)]], np.float32))[0]
            break
    else:
        return StaticWords(name, [])
    lengths_N = np.maximum(np.sqrt(np.einsum("ne,ne->n", vectors_NE, vectors_NE)), 1e-12)
    cosine_N = np.round((vectors_NE @ unit_E) / lengths_N, 6)
    seen, found = {word.casefold()}, []
    for i in np.argsort(-cosine_N, kind="stable").tolist():
        if (folded := words[i].casefold()) not in seen:
            seen.add(folded)
            found.append((words[i], float(cosine_N[i])))
            if len(found) == number:
                break
    return StaticWords(name, found)


def neighbors_measured(
    elmo: Elmo,
    index: Index,
    word: str,
    sentences: Sequence[Sentence],
    signature: Json,
    *,
    number: int = 10,
    same_word: bool = False,
    at: int = 1,
    exact: bool = False,
    static: StaticWords | None = None,
    searched: Callable[[float], None] = lambda seconds: None,
) -> Json:
    """The measurement: the uses in an indexed corpus that are nearest to the word in each sentence.

    Args:
        elmo: the model that the index was made with.
        index: the corpus.
        word: stands in all of the sentences.
        sentences: in which it is used.
        signature: of the measurement.
        number: of neighbors, for each sentence.
        same_word: only uses of the same word.
        at: which one, in a sentence that has the word several times.
        exact: look at every use, even if there is a graph.
        static: what to show beside it.
        searched: hears how long each search took.
    """
    if elmo.bilm.fingerprint != index.manifest["model"]:
        raise InputError(f"the index {index.directory} was made with another model")
    layer: Layers = index.manifest["layer"]
    asked = [one_use(elmo, word, sentence, layer, at) for sentence in sentences]
    only = word if same_word else None
    answers = []
    for use in asked:
        started = time.perf_counter()
        answers.append(index.nearest(use.vector, number, word=only, but=use.words, exact=exact))
        searched(time.perf_counter() - started)
    rows = index.rows_of(word)
    shown = {each.row for answer in answers for each in answer}
    others = [row for row in _spread(rows.tolist(), BACKGROUND) if row not in shown]
    vectors = [unit_length(np.stack([use.vector for use in asked]).astype(np.float32))]
    vectors += [_at(index, [each.row for each in answer]) for answer in answers]
    places = iter(on_plane(np.concatenate([*vectors, _at(index, others)])))
    questions: list[Json] = [
        {"words": list(use.words), "place": use.place, "at": next(places)} for use in asked
    ]
    for question, answer in zip(questions, answers, strict=True):
        question["neighbors"] = [
            {
                "similarity": round(each.similarity, 4),
                "words": list(each.words),
                "place": each.place,
                "at": next(places),
            }
            for each in answer
        ]
    alone = elmo.embed([[word]], 0)[0][0]
    return measurement(
        "neighbors",
        signature,
        word=word,
        layer=layer,
        same_word=same_word,
        corpus={key: index.manifest[key] for key in ("words", "sentences", "forms")},
        uses_of_the_word=len(rows),
        exact=exact or same_word or index.recall is None,
        recall_at_10=None if exact or same_word else index.recall,
        questions=questions,
        other_uses=[_other(index, row, next(places)) for row in others],
        characters=[list(each) for each in index.nearest_forms(alone, word, number)],
        static=None if static is None else {"name": static.name, "words": list(static.words)},
    )


def _spread(rows: Sequence[int], most: int) -> list[int]:
    """At most so many, evenly over all of them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[k * len(rows) // most] for k in range(most)]


def _at(index: Index, rows: Sequence[int]) -> FloatArray:
    found: FloatArray = index.vectors_ND[np.array(rows, np.int64)].astype(np.float32)
    return found


def _other(index: Index, row: int, at: tuple[float, float]) -> Json:
    return {"text": line(*index.use(row), side=60), "at": at}
