"""The tag probe: how well a linear classifier tells a word's tag from each layer's frozen vector.

Beside it what it has to be compared with: the same network before it learned anything, and the tag
that each word has most often, whatever its context. (Layer 0, the characters alone, is the third.)
Torch is imported when something is learned, not before: what was measured is shown without it.

Shape letters: N words of all sentences, D size of a vector.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.paired import BoolArray, paired
from elmokit.probe.results import Json, layer_name, measurement
from elmokit.probe.tags.data import Tagged
from elmokit.probe.tags.render import ALL, FREQUENT
from elmokit.probe.untrained import untrained


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


@dataclass(frozen=True)
class TagAnswers:
    """The same, word by word."""

    column: str
    layer: str
    right: dict[str, BoolArray]
    """By the name of the test set: for each of its words, whether its tag was told."""
    penalty: float

    @property
    def score(self) -> TagScore:
        """How many of them."""
        accuracy = {name: float(right_N.mean()) for name, right_N in self.right.items()}
        return TagScore(self.column, self.layer, accuracy, self.penalty)


def tag_probe(
    elmo: Elmo,
    train: Tagged,
    tests: Mapping[str, Tagged],
    *,
    epochs: int | None = None,
    seed: int = 0,
    tell: Callable[[TagScore], None] = lambda score: None,
) -> list[TagScore]:
    """Fit and score a linear tagger on every layer, and on all of them; for all columns of `train`.

    Args:
        elmo: any model; it stays as it is, and takes the words as they are.
        train: what the taggers learn from.
        tests: what they are scored on, by name.
        epochs: how often a tagger reads the training set; `linear.EPOCHS` by default.
        seed: of the order in which it does.
        tell: hears every score when it is there.
    """
    scores = []
    for answers in tag_answers(elmo, train, tests, epochs=epochs, seed=seed):
        scores.append(answers.score)
        tell(scores[-1])
    return scores


def tag_answers(
    elmo: Elmo,
    train: Tagged,
    tests: Mapping[str, Tagged],
    *,
    epochs: int | None = None,
    seed: int = 0,
) -> Iterator[TagAnswers]:
    """Like `tag_probe`, word by word, one layer after another."""
    from elmokit.probe.tags.linear import EPOCHS, fit_linear

    check_columns(train, tests)
    vectors = embed_layers(elmo, train.sentences)
    tested = {name: embed_layers(elmo, test.sentences) for name, test in tests.items()}
    layers = {str(j): [j] for j in range(elmo.layers)} | {ALL: list(range(elmo.layers))}
    for column, tags in train.tags.items():
        number = {tag: k for k, tag in enumerate(sorted(set(tags)))}
        classes_N = np.array([number[tag] for tag in tags], np.int64)
        for layer, which in layers.items():
            tagger = fit_linear(
                [vectors[j] for j in which], classes_N, epochs=epochs or EPOCHS, seed=seed
            )
            right: dict[str, BoolArray] = {}
            for name, test in tests.items():
                # -1: a tag that nobody could have learned, so always wrong.
                right_N = np.array([number.get(tag, -1) for tag in test.tags[column]])
                right[name] = tagger.predict([tested[name][j] for j in which]) == right_N
            yield TagAnswers(column, layer, right, tagger.penalty)


def check_columns(train: Tagged, tests: Mapping[str, Tagged]) -> None:
    """What is learned must be there to be tested."""
    for name, test in tests.items():
        if missing := set(train.tags) - set(test.tags):
            raise InputError(f"{name} has no {', '.join(sorted(missing))}, which train has")


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
    return float(frequent_answers(train, test, column).mean())


def frequent_answers(train: Tagged, test: Tagged, column: str) -> BoolArray:
    """The same, word by word."""
    by_word = _tags_by_word(train, column)
    # By count, then by name, so that the order of the file does not matter.
    first = {word: min(tags, key=lambda t: (-tags[t], t)) for word, tags in by_word.items()}
    overall = Counter(train.tags[column])
    fallback = min(overall, key=lambda t: (-overall[t], t))
    pairs = zip(test.words, test.tags[column], strict=True)
    return np.array([first.get(word, fallback) == tag for word, tag in pairs], bool)


def _tags_by_word(train: Tagged, column: str) -> dict[str, Counter[str]]:
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(train.words, train.tags[column], strict=True):
        by_word[word][tag] += 1
    return by_word


# -- the measurement -----------------------------------------------------------------------------


def measure(
    elmo: Elmo,
    train: Tagged,
    tests: Mapping[str, Tagged],
    signature: Json,
    *,
    epochs: int | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda words: None,
) -> Json:
    """The trained network, the untrained one and the most frequent tag, as one object.

    Args:
        elmo: the model.
        train: what the taggers learn from.
        tests: what they are scored on, by name.
        signature: of `measured.signature`.
        epochs: how often a tagger reads the training set.
        seed: of that order and of the untrained network.
        tell: hears what is being done.
    """
    check_columns(train, tests)
    words = {
        (column, name): _kinds(train, test, column)
        for column in train.tags
        for name, test in tests.items()
    }
    scores: list[Json] = []
    compared: list[Json] = []

    def note(network: str, answers: TagAnswers) -> None:
        for name, right_N in answers.right.items():
            score: Json = {"network": network, "column": answers.column, "layer": answers.layer}
            score |= {"test": name, "penalty": answers.penalty}
            for kind, those_N in words[answers.column, name].items():
                score[kind] = float(right_N[those_N].mean()) if those_N.any() else None
            scores.append(score)

    for column in train.tags:
        right = {name: frequent_answers(train, test, column) for name, test in tests.items()}
        note(FREQUENT, TagAnswers(column, "", right, 0.0))
    lower, upper = "1", str(elmo.layers - 1)
    blank = Elmo(untrained(elmo.bilm, seed), threads=elmo.threads)
    for network, model in (("trained", elmo), ("untrained", blank)):
        tell(f"the {network} network reads {len(train.words):,} words")
        kept: dict[str, TagAnswers] = {}
        for answers in tag_answers(model, train, tests, epochs=epochs, seed=seed):
            note(network, answers)
            name, accuracy = next(iter(answers.score.accuracy.items()))
            layer = layer_name(answers.layer)
            tell(f"{network}, {answers.column}, {layer}: {accuracy:.2%} of {name}")
            kept[answers.layer] = answers
            if network == "trained" and answers.layer == upper != lower:
                compared += _compared(kept[lower], kept[upper])
    return measurement(
        "pos",
        signature,
        train={"words": len(train.words), "sentences": len(train.sentences)},
        tests=[
            {
                "name": name,
                "words": len(test.words),
                "sentences": len(test.sentences),
                "columns": {c: _sizes(train, test, c, words[c, name]) for c in train.tags},
            }
            for name, test in tests.items()
        ],
        scores=scores,
        lower_against_upper=compared,
    )


def _kinds(train: Tagged, test: Tagged, column: str) -> dict[str, BoolArray]:
    """Which words of a test set are of each kind."""
    by_word = _tags_by_word(train, column)
    tags_N = np.array([len(by_word.get(word, ())) for word in test.words])
    return {"all": np.ones(len(tags_N), bool), "ambiguous": tags_N > 1, "new": tags_N == 0}


def _sizes(
    train: Tagged, test: Tagged, column: str, kinds: Mapping[str, BoolArray]
) -> dict[str, int]:
    """How many words there are of each kind, and with a tag that was never seen."""
    known = set(train.tags[column])
    return {
        "tags": len(known),
        **{kind: int(those_N.sum()) for kind, those_N in kinds.items()},
        "unseen tags": sum(tag not in known for tag in test.tags[column]),
    }


def _compared(lower: TagAnswers, upper: TagAnswers) -> Iterator[Json]:
    for name, right_N in lower.right.items():
        found = paired(right_N, upper.right[name])
        yield {
            "column": lower.column,
            "test": name,
            "lower": lower.layer,
            "upper": upper.layer,
            **asdict(found),
            "difference": found.difference,
            "standard_error": found.standard_error,
        }
