"""The tag probe: how well a linear classifier predicts a word's tag from each layer's vectors.

The baselines are the same network before training, and the tag that each word has most often,
whatever its context. (Layer 0, the characters alone, is a third one.) Torch is imported when a
classifier is trained, not before: a measurement can be shown without it.

Shape letters: N words of all sentences, D size of a vector.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import InputError
from elmokit.extras import require
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.paired import BoolArray, compare_paired
from elmokit.probe.results import (
    Measurement,
    ModelOrName,
    ResultRow,
    as_elmo,
    layer_name,
    make_measurement,
    make_signature,
)
from elmokit.probe.tags.data import TaggedText, read_tagged
from elmokit.probe.tags.render import ALL, FREQUENT
from elmokit.probe.untrained import untrained_copy
from elmokit.storage import checksum


def probe_tags(
    train: str | Path,
    tests: str | Path | Sequence[str | Path],
    model: ModelOrName = BUILTIN,
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    words: int | None = None,
    epochs: int | None = None,
    seed: int = 0,
    threads: int = 1,
    on_message: Callable[[str], None] | None = None,
) -> Measurement:
    """Measure how well a linear classifier predicts tags from each layer of a frozen model.

    The command `elmo probe pos` does this. Needs torch.

    Args:
        train: File of tagged sentences to train the classifiers on; see `read_tagged`.
        tests: File or files of tagged sentences to evaluate them on.
        model: A model, or the name or path of one.
        columns: Columns of tags, by name or by number from 1; the parts of speech by default.
        format: Format of the files: `"tabs"`, `"conllu"` or `"spaces"`; detected by default.
        words: Train on the first sentences with this many words only; on all by default.
        epochs: Training epochs of each classifier; `linear.EPOCHS` by default.
        seed: Random seed of the classifiers and of the untrained network.
        threads: Threads that torch uses; more than one rarely pays for small classifiers.
        on_message: Called with a line of text at each step of the work.

    Returns:
        The measurement, of kind `"pos"`.
    """
    require("torch", "Tag probes")
    from elmokit.nn.threads import torch_threads

    paths = _short_names([tests] if isinstance(tests, (str, Path)) else tests)
    train_text = read_tagged(train, columns, format)
    test_texts = {name: read_tagged(path, columns, format) for name, path in paths.items()}
    if not columns:
        # A column that is missing in one of the files cannot be trained on and tested.
        common = set(train_text.tags).intersection(*(test.tags for test in test_texts.values()))
        if common:
            tags = {name: tags for name, tags in train_text.tags.items() if name in common}
            train_text = TaggedText(train_text.sentences, tags)
    for path in paths.values():
        if checksum(path) == checksum(train):
            warnings.warn(f"{path} is the training set: its scores do not generalize", stacklevel=2)
    if words is not None:
        train_text = train_text.first(words)
    elmo = as_elmo(model)
    signature = make_signature(
        elmo, {"train": train, **paths}, columns=list(train_text.tags), words=words, seed=seed
    )
    with torch_threads(threads):
        return measure_tags(
            elmo,
            train_text,
            test_texts,
            signature,
            epochs=epochs,
            seed=seed,
            on_message=on_message or (lambda text: None),
        )


def _short_names(paths: Sequence[str | Path]) -> dict[str, str | Path]:
    """Return the files by short names: the file name, with as many directories as needed."""
    for parts in (1, 2, 3, 10**6):
        names = {
            "/".join([*Path(path).parts[-parts:-1], Path(path).name.partition(".")[0]]): path
            for path in paths
        }
        if len(names) == len(paths) and "train" not in names:
            return names
    raise InputError(f"the test sets are {', '.join(map(str, paths))}; expected different files")


@dataclass(frozen=True)
class TagScore:
    """Accuracy of the classifier on one layer, or on all layers side by side."""

    column: str
    """Name of the column of tags, such as `"UPOS"`."""
    layer: str
    """`"0"` (characters alone) to the number of the top layer, or `"all"`."""
    accuracy: dict[str, float]
    """Accuracy on each test set, from 0 to 1."""
    penalty: float
    """Penalty λ that was chosen on held-out rows of the training set."""


@dataclass(frozen=True)
class TagAnswers:
    """Which words a classifier tagged correctly."""

    column: str
    """Name of the column of tags."""
    layer: str
    """`"0"` (characters alone) to the number of the top layer, or `"all"`."""
    correct: dict[str, BoolArray]
    """For each test set and each of its words, whether the predicted tag is correct."""
    penalty: float
    """Penalty λ that was chosen on held-out rows of the training set."""

    @property
    def score(self) -> TagScore:
        """The accuracy on each test set."""
        accuracy = {name: float(correct_N.mean()) for name, correct_N in self.correct.items()}
        return TagScore(self.column, self.layer, accuracy, self.penalty)


def tag_answers(
    elmo: Elmo,
    train: TaggedText,
    tests: Mapping[str, TaggedText],
    *,
    epochs: int | None = None,
    seed: int = 0,
) -> Iterator[TagAnswers]:
    """Train and evaluate a linear classifier on every layer, and on all of them side by side.

    Args:
        elmo: Any model; it takes the words as they are.
        train: Sentences to train on; all its columns of tags are used.
        tests: Sentences to evaluate on, by name.
        epochs: Training epochs; `linear.EPOCHS` by default.
        seed: Random seed of the classifiers.
    """
    from elmokit.probe.tags.linear import EPOCHS, fit_linear

    check_columns(train, tests)
    train_vectors = embed_layers(elmo, train.sentences)
    test_vectors = {name: embed_layers(elmo, test.sentences) for name, test in tests.items()}
    layers = {str(j): [j] for j in range(elmo.layers)} | {ALL: list(range(elmo.layers))}
    for column, tags in train.tags.items():
        number = {tag: k for k, tag in enumerate(sorted(set(tags)))}
        classes_N = np.array([number[tag] for tag in tags], np.int64)
        for layer, indices in layers.items():
            classifier = fit_linear(
                [train_vectors[j] for j in indices], classes_N, epochs=epochs or EPOCHS, seed=seed
            )
            correct: dict[str, BoolArray] = {}
            for name, test in tests.items():
                # -1: a tag that is not in the training set, so that every answer is wrong.
                gold_N = np.array([number.get(tag, -1) for tag in test.tags[column]])
                vectors = [test_vectors[name][j] for j in indices]
                correct[name] = classifier.predict(vectors) == gold_N
            yield TagAnswers(column, layer, correct, classifier.penalty)


def check_columns(train: TaggedText, tests: Mapping[str, TaggedText]) -> None:
    """Raise `InputError` if a test set lacks a column of tags that the training set has."""
    for name, test in tests.items():
        if missing := set(train.tags) - set(test.tags):
            raise InputError(
                f"the test set {name} has no column {', '.join(sorted(missing))}, which the "
                "training set has"
            )


def embed_layers(elmo: Elmo, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
    """Return one array of vectors (N, D) per layer, the words of all sentences in one array."""
    total = sum(map(len, sentences))
    layers = [np.empty((total, elmo.dim), np.float32) for _ in range(elmo.layers)]
    start = 0
    for vectors_LTD in elmo.stream(sentences, layers="all"):
        end = start + vectors_LTD.shape[1]
        for layer, vectors_TD in zip(layers, vectors_LTD, strict=True):
            layer[start:end] = vectors_TD
        start = end
    return layers


def frequent_tag_correct(train: TaggedText, test: TaggedText, column: str) -> BoolArray:
    """Return for each word of a test set whether its most frequent tag in training is correct.

    A word that is not in the training set gets the most frequent tag of all.
    """
    by_word = _count_tags(train, column)
    # By count, then by name, so that the order of the file does not matter.
    first = {word: min(tags, key=lambda t: (-tags[t], t)) for word, tags in by_word.items()}
    overall = Counter(train.tags[column])
    fallback = min(overall, key=lambda t: (-overall[t], t))
    pairs = zip(test.words, test.tags[column], strict=True)
    return np.array([first.get(word, fallback) == tag for word, tag in pairs], bool)


def _count_tags(train: TaggedText, column: str) -> dict[str, Counter[str]]:
    """Return how often each word has each tag."""
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(train.words, train.tags[column], strict=True):
        by_word[word][tag] += 1
    return by_word


# -- the measurement -----------------------------------------------------------------------------


def measure_tags(
    elmo: Elmo,
    train: TaggedText,
    tests: Mapping[str, TaggedText],
    signature: Mapping[str, object],
    *,
    epochs: int | None = None,
    seed: int = 0,
    on_message: Callable[[str], None] = lambda text: None,
) -> Measurement:
    """Return the scores of the trained network, the untrained one and the most frequent tag.

    Args:
        elmo: The model.
        train: Sentences to train the classifiers on.
        tests: Sentences to evaluate them on, by name.
        signature: What determines the measurement; see `results.make_signature`.
        epochs: Training epochs of each classifier.
        seed: Random seed of the classifiers and of the untrained network.
        on_message: Called with a line of text at each step of the work.
    """
    check_columns(train, tests)
    subsets = {
        (column, name): _word_subsets(train, test, column)
        for column in train.tags
        for name, test in tests.items()
    }
    scores: list[ResultRow] = []
    compared: list[ResultRow] = []

    def add_scores(network: str, answers: TagAnswers) -> None:
        for name, correct_N in answers.correct.items():
            score: ResultRow = {"network": network, "column": answers.column}
            score |= {"layer": answers.layer, "test": name, "penalty": answers.penalty}
            for subset, those_N in subsets[answers.column, name].items():
                score[subset] = float(correct_N[those_N].mean()) if those_N.any() else None
            scores.append(score)

    for column in train.tags:
        correct = {name: frequent_tag_correct(train, test, column) for name, test in tests.items()}
        add_scores(FREQUENT, TagAnswers(column, "", correct, 0.0))
    lower, upper = "1", str(elmo.layers - 1)
    untrained = Elmo(untrained_copy(elmo.bilm, seed), threads=elmo.threads)
    for network, model in zip(NETWORKS, (elmo, untrained), strict=True):
        on_message(f"{network} network: embedding {len(train.words):,} words")
        by_layer: dict[str, TagAnswers] = {}
        for answers in tag_answers(model, train, tests, epochs=epochs, seed=seed):
            add_scores(network, answers)
            name, accuracy = next(iter(answers.score.accuracy.items()))
            layer = layer_name(answers.layer)
            on_message(f"{network}, {answers.column}, {layer}: {accuracy:.2%} accuracy on {name}")
            by_layer[answers.layer] = answers
            if network == "trained" and answers.layer == upper != lower:
                compared += _compare(by_layer[lower], by_layer[upper])
    return make_measurement(
        "pos",
        signature,
        train={"words": len(train.words), "sentences": len(train.sentences)},
        tests=[
            {
                "name": name,
                "words": len(test.words),
                "sentences": len(test.sentences),
                "columns": {c: _sizes(train, test, c, subsets[c, name]) for c in train.tags},
            }
            for name, test in tests.items()
        ],
        scores=scores,
        lower_against_upper=compared,
    )


def _word_subsets(train: TaggedText, test: TaggedText, column: str) -> dict[str, BoolArray]:
    """Return which words of a test set belong to each subset: all, ambiguous, new."""
    by_word = _count_tags(train, column)
    tags_N = np.array([len(by_word.get(word, ())) for word in test.words])
    return {"all": np.ones(len(tags_N), bool), "ambiguous": tags_N > 1, "new": tags_N == 0}


def _sizes(
    train: TaggedText, test: TaggedText, column: str, subsets: Mapping[str, BoolArray]
) -> dict[str, int]:
    """Return the number of words in each subset, and of words with a tag not seen in training."""
    known = set(train.tags[column])
    return {
        "tags": len(known),
        **{subset: int(those_N.sum()) for subset, those_N in subsets.items()},
        "unseen tags": sum(tag not in known for tag in test.tags[column]),
    }


def _compare(lower: TagAnswers, upper: TagAnswers) -> Iterator[ResultRow]:
    """Yield the comparison of two layers on each test set."""
    for name, correct_N in lower.correct.items():
        comparison = compare_paired(correct_N, upper.correct[name])
        yield {
            "column": lower.column,
            "test": name,
            "lower": lower.layer,
            "upper": upper.layer,
            **asdict(comparison),
            "difference": comparison.difference,
            "standard_error": comparison.standard_error,
        }
