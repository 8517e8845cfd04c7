"""Neighbors in the page's own small corpus: of a word in context, and of its characters alone.

Shape letters: N uses, L layers, D size of a vector, V words of the vocabulary, P width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from elmokit.bilm.mix import Mix
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.neighbors.index import nearest_distinct
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.serve.sentences import sample_sentences

STATIC_WORDS = 8000
"""Number of words among which the neighbors of a word's characters are looked for."""


class SampleCorpus:
    """The page's sentences embedded by one model: all uses of all words, in every layer."""

    def __init__(self, elmo: Elmo) -> None:
        """Embed all sentences; takes a fraction of a second with the built-in model."""
        texts = [sentence.text for sentence in sample_sentences()]
        self.sentences: list[Sequence[str]] = []
        vectors = []
        for words, array_LTD in elmo.items(texts, "all"):
            self.sentences.append(words)
            vectors.append(array_LTD)
        self.layers_LND: FloatArray = np.concatenate(vectors, axis=1)
        self.places = [(s, t) for s, words in enumerate(self.sentences) for t in range(len(words))]

    def search(
        self, vector_LD: FloatArray, mix: Mix, number: int, exclude: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the nearest uses, best first and at most one per sentence, as JSON objects.

        Args:
            vector_LD: The vector of a word in every layer.
            mix: How the layers are combined before they are compared.
            number: How many to return.
            exclude: Words of a sentence that is left out.
        """
        query_D = unit_length(mix.apply(vector_LD[:, None]))[0]
        cosine_N = unit_length(mix.apply(self.layers_LND)) @ query_D
        left_out = list(exclude)
        seen: set[int] = set()
        found: list[dict[str, Any]] = []
        for row in np.argsort(-cosine_N, kind="stable").tolist():
            sentence, position = self.places[row]
            words = list(self.sentences[sentence])
            if sentence in seen or words == left_out:
                continue
            seen.add(sentence)
            similarity = round(float(cosine_N[row]), 6)
            found.append({"words": words, "position": position, "similarity": similarity})
            if len(found) == number:
                break
        return found


class SpelledWords:
    """Frequent words with their vectors in layer 0, which depend on the characters alone."""

    def __init__(self, elmo: Elmo) -> None:
        """Compute the vectors of the most frequent words that the model can predict.

        For a model without a vocabulary they are the words of the page's own sentences.
        """
        self.words = list(dict.fromkeys(islice(_frequent_words(elmo), STATIC_WORDS)))
        self.vectors_VP = unit_length(elmo._runner.word_vectors(self.words))

    def search(self, word: str, vector_D: FloatArray, number: int) -> list[tuple[str, float]]:
        """Return the nearest words and their cosines, without the word itself.

        Args:
            word: The word.
            vector_D: Its vector in layer 0; both halves are the same.
            number: How many to return.
        """
        query_P = unit_length(vector_D[: self.vectors_VP.shape[1]])
        near = nearest_distinct(self.words, self.vectors_VP @ query_P, word, number)
        return [(each, round(cosine, 6)) for each, cosine in near]


def _frequent_words(elmo: Elmo) -> Iterable[str]:
    if elmo.bilm.vocabulary is not None:
        # Line 0 to 2 are marks; names and numbers crowd out everything else.
        return (word for word in elmo.bilm.vocabulary[3:] if word.islower() and word.isalpha())
    return (word for sentence in sample_sentences() for word in elmo.tokenize(sentence.text))


_CORPORA: WeakKeyDictionary[Elmo, SampleCorpus] = WeakKeyDictionary()
_SPELLED: WeakKeyDictionary[Elmo, SpelledWords] = WeakKeyDictionary()


def sample_corpus(elmo: Elmo) -> SampleCorpus:
    """Return the page's corpus embedded by a model; computed once per model."""
    if elmo not in _CORPORA:
        _CORPORA[elmo] = SampleCorpus(elmo)
    return _CORPORA[elmo]


def spelled_words(elmo: Elmo) -> SpelledWords:
    """Return the words that are compared by their characters; computed once per model."""
    if elmo not in _SPELLED:
        _SPELLED[elmo] = SpelledWords(elmo)
    return _SPELLED[elmo]


def find_corpus_neighbors(
    elmo: Elmo, words: Sequence[str], position: int, mix: Mix, number: int = 10
) -> dict[str, Any]:
    """Return the neighbors of a word in the page's corpus, and those of its characters.

    Args:
        elmo: The model.
        words: Words of a sentence.
        position: Index of the word in it.
        mix: How the layers are combined for the neighbors in context.
        number: How many of each to return.
    """
    if not 0 <= position < len(words):
        raise InputError(f"position is {position}; expected 0 to {len(words) - 1}")
    if len(mix.scalars) != elmo.layers:
        raise InputError(
            f"the mix has {len(mix.scalars)} scalars, but the model has {elmo.layers} layers"
        )
    vector_LD = elmo.embed([list(words)], "all")[0][:, position]
    corpus, spelled = sample_corpus(elmo), spelled_words(elmo)
    return {
        "context": corpus.search(vector_LD, mix, number, words),
        "uses": len(corpus.places),
        "sentences": len(corpus.sentences),
        "static": spelled.search(words[position], vector_LD[0], number),
        "static_words": len(spelled.words),
    }
