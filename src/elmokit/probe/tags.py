"""The tag probe: how well a linear classifier tells a word's tag from each layer's frozen vector.

Beside it what it has to be compared with: the same network before it learned anything, and the tag
that each word has most often, whatever its context. (Layer 0, the characters alone, is the third.)

Shape letters: N words of all sentences, D size of a vector.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX, FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.linear import EPOCHS, fit_linear
from elmokit.probe.tagged import Tagged

ALL = "all"


@dataclass(frozen=True)
class TagScore:
    """What one layer, or all of them side by side, told."""

    column: str
    """Which tags: `"UPOS"`, `"XPOS"`."""
    layer: str
    """`"0"` (characters alone) to the top layer's number, or `"all"`."""
    accuracy: dict[str, float]
    """By the name of the test set, 0 to 1."""
    penalty: float
    """λ, as it was chosen on a part of the training set."""


def tag_probe(
    elmo: Elmo,
    train: Tagged,
    tests: Mapping[str, Tagged],
    *,
    epochs: int = EPOCHS,
    seed: int = 0,
    tell: Callable[[TagScore], None] = lambda score: None,
) -> list[TagScore]:
    """Fit and score a linear tagger on every layer, and on all of them; for all columns of `train`.

    Args:
        elmo: any model; it stays as it is, and takes the words as they are.
        train: what the taggers learn from.
        tests: what they are scored on, by name.
        epochs: how often a tagger reads the training set.
        seed: of the order in which it does.
        tell: hears every score when it is there.
    """
    for name, test in tests.items():
        if missing := set(train.tags) - set(test.tags):
            raise InputError(f"{name} has no {', '.join(sorted(missing))}, which train has")
    vectors = embed_layers(elmo, train.sentences)
    tested = {name: embed_layers(elmo, test.sentences) for name, test in tests.items()}
    layers = {str(j): [j] for j in range(elmo.layers)} | {ALL: list(range(elmo.layers))}
    scores = []
    for column, tags in train.tags.items():
        number = {tag: k for k, tag in enumerate(sorted(set(tags)))}
        classes_N = np.array([number[tag] for tag in tags], np.int64)
        for layer, which in layers.items():
            tagger = fit_linear([vectors[j] for j in which], classes_N, epochs=epochs, seed=seed)
            accuracy = {}
            for name, test in tests.items():
                # -1: a tag that nobody could have learned, so always wrong.
                right_N = np.array([number.get(tag, -1) for tag in test.tags[column]])
                found_N = tagger.predict([tested[name][j] for j in which])
                accuracy[name] = float((found_N == right_N).mean())
            scores.append(TagScore(column, layer, accuracy, tagger.penalty))
            tell(scores[-1])
    return scores


def embed_layers(elmo: Elmo, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
    """Each layer's vectors (N, D) of all words, one sentence after another."""
    total = sum(map(len, sentences))
    layers = [np.empty((total, elmo.dim), np.float32) for _ in range(elmo.layers)]
    place = 0
    for vectors_LTD in elmo.stream(sentences, layers="all"):
        end = place + vectors_LTD.shape[1]
        for layer, vectors_TD in zip(layers, vectors_LTD, strict=True):
            layer[place:end] = vectors_TD
        place = end
    return layers


def most_frequent_tag(train: Tagged, test: Tagged, column: str) -> float:
    """The accuracy of the tag that a word has most often in `train`; of all words' if it is new."""
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(train.words, train.tags[column], strict=True):
        by_word[word][tag] += 1
    # By count, then by name, so that the order of the file does not matter.
    best = {word: min(tags, key=lambda t: (-tags[t], t)) for word, tags in by_word.items()}
    overall = Counter(train.tags[column])
    fallback = min(overall, key=lambda t: (-overall[t], t))
    pairs = zip(test.words, test.tags[column], strict=True)
    return sum(best.get(word, fallback) == tag for word, tag in pairs) / len(test.words)


def untrained(bilm: BiLM, seed: int = 0) -> BiLM:
    """The same architecture with the numbers that training begins with."""
    from elmokit.train.initial import initial_weights

    weights = initial_weights(bilm.config, np.ones(1, np.int64), seed)
    network = {name: array for name, array in weights.items() if name not in SOFTMAX}
    return replace(bilm, weights=network, settled=State.zeros(bilm.config), mix=None, extra={})
