"""The sense probe: word sense disambiguation by the nearest sense vector of each layer.

As in the paper: the vector of a WordNet sense is the mean of a layer's vectors over its uses in
SemCor. A word gets the nearest sense that its lemma has there, or WordNet's first sense if SemCor
does not have the lemma. The baselines are the same network before training, WordNet's first sense,
and the most frequent sense in SemCor. (Layer 0, the characters alone, knows no context: only the
form of the word.)

Among equally near senses the one that is more frequent in SemCor is chosen, then WordNet's order
decides. Shape letters: N instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import InputError
from elmokit.probe.context import ContextChoice, check_context
from elmokit.probe.paired import BoolArray, compare_paired
from elmokit.probe.results import (
    Measurement,
    ModelOrName,
    ResultRow,
    as_elmo,
    make_measurement,
    make_signature,
)
from elmokit.probe.senses.corpus import SenseCorpus, SenseUse
from elmokit.probe.senses.evaluation_sets import (
    DATA,
    find_evaluation_sets,
    find_gold_keys,
    read_evaluation_set,
)
from elmokit.probe.senses.inventory import SenseInventory, count_senses
from elmokit.probe.senses.render import (
    ALL,
    ALL_SETS,
    FIRST,
    FREQUENT,
    PARTS,
    TRAINED,
    UNTRAINED,
)
from elmokit.probe.senses.semcor import read_semcor
from elmokit.probe.senses.wordnet import WordNet, find_wordnet, read_wordnet, wordnet_files
from elmokit.probe.untrained import untrained_copy
from elmokit.progress import ProgressCallback, ignore_progress


def probe_senses(
    semcor: str | Path,
    tests: str | Path | Sequence[str | Path],
    model: ModelOrName = BUILTIN,
    *,
    wordnet: str | Path | None = None,
    gold: Sequence[str | Path] = (),
    context: ContextChoice = "word",
    progress: ProgressCallback = ignore_progress,
) -> Measurement:
    """Measure how well each layer of a frozen model disambiguates word senses.

    The command `elmo probe wsd` does this.

    Args:
        semcor: Directory of SemCor's tag files, or a corpus in the format of the test sets.
        tests: Test sets `X.data.xml`, or directories of them.
        model: A model, or the name or path of one. With `state="carry"` it reads SemCor and the
            test sets as running text, every sentence after those before it.
        wordnet: Directory of WordNet's files; the installed WordNet by default.
        gold: Files of gold keys, one per test set; `X.gold.key.txt` beside each by default.
        context: `"sentence"` compares the word and the mean of its sentence, `"word"` the word
            alone.
        progress: Called with the number of sentences done and of all sentences.

    Returns:
        The measurement, of kind `"wsd"`.
    """
    check_context(context)
    given = [tests] if isinstance(tests, (str, Path)) else tests
    paths = list(dict.fromkeys(path for test in given for path in find_evaluation_sets(test)))
    if gold and len(gold) != len(paths):
        raise InputError(
            f"there are {len(gold)} files of gold keys for {len(paths)} test sets; expected one "
            "for each set, or none"
        )
    gold_paths = [Path(path) for path in gold] or [find_gold_keys(path) for path in paths]
    wordnet_directory = Path(wordnet) if wordnet is not None else find_wordnet()
    elmo = as_elmo(model)
    senses = read_wordnet(wordnet_directory)
    sets = [read_evaluation_set(path, keys) for path, keys in zip(paths, gold_paths, strict=True)]
    corpus = _read_corpus(semcor)
    control = Elmo(untrained_copy(elmo.bilm), state=elmo.state, threads=elmo.threads)
    networks = {TRAINED: elmo, UNTRAINED: control}
    answers = choose_senses(networks, corpus, sets, senses, context=context, progress=progress)
    data: dict[str, str | Path] = {"semcor": semcor}
    data |= {f"wordnet {path.name}": path for path in wordnet_files(wordnet_directory)}
    for test, path, keys in zip(sets, paths, gold_paths, strict=True):
        data |= {f"test {test.name}": path, f"gold {test.name}": keys}
    signature = make_signature(elmo, data)
    if context != "word":
        signature |= {"context": context}
    return measure_senses(answers, corpus, signature)


def _read_corpus(path: str | Path) -> SenseCorpus:
    """Read SemCor as it was published, or in the format of the evaluation framework."""
    root = Path(path).expanduser()
    files = sorted(root.glob(f"*{DATA}")) if root.is_dir() else [root]
    if len(files) == 1 and files[0].name.endswith(DATA):
        return read_evaluation_set(files[0])
    return read_semcor(root)


@dataclass(frozen=True)
class SenseMethod:
    """A method of choosing a sense, and the instances where its choice was correct."""

    network: str
    """`"trained"` or `"untrained"`; `""` for a baseline without a network."""
    layer: str
    """`"0"` to the number of the top layer, or `"all"`; for a baseline its name, `"first"` or
    `"frequent"`."""
    correct_N: BoolArray
    """For every instance of all test sets, whether the chosen sense is correct."""


@dataclass(frozen=True)
class SenseAnswers:
    """The choices of all methods on some test sets."""

    methods: list[SenseMethod]
    sets: dict[str, slice]
    """Where the instances of each test set are."""
    part_N: npt.NDArray[np.str_]
    """Part of speech of each instance: n, v, a or r."""
    seen_N: npt.NDArray[np.int64]
    """Number of senses that the corpus has for each instance's lemma."""

    @property
    def whole(self) -> slice:
        """The instances of all test sets, each once: those of the set `ALL`, if it is there."""
        return self.sets.get(ALL_SETS, slice(0, len(self.part_N)))

    def method(self, network: str, layer: str) -> SenseMethod:
        """Return the method of a network and a layer."""
        for method in self.methods:
            if (method.network, method.layer) == (network, layer):
                return method
        raise InputError(f"there is no layer {layer!r} of a network {network!r}")


def choose_senses(
    networks: Mapping[str, Elmo],
    corpus: SenseCorpus,
    tests: Sequence[SenseCorpus],
    wordnet: WordNet,
    *,
    context: ContextChoice = "word",
    progress: ProgressCallback = ignore_progress,
) -> SenseAnswers:
    """Choose a sense for every instance of the test sets, with every layer of some networks.

    Args:
        networks: The models `"trained"` and, as a baseline, `"untrained"`; they take words as they
            are.
        corpus: Corpus to build the sense vectors from: SemCor.
        tests: Test sets, each with a name of its own.
        wordnet: The senses and their order.
        context: `"sentence"` compares the word and the mean of its sentence, `"word"` the word
            alone.
        progress: Called with the number of sentences done and of all sentences.
    """
    if not networks or not set(networks) <= {TRAINED, UNTRAINED}:
        raise InputError(f"networks are {list(networks)}; expected {TRAINED!r} and {UNTRAINED!r}")
    if not tests or len({test.name for test in tests}) != len(tests):
        raise InputError(
            f"the test sets are named {[test.name for test in tests]}; expected at least one, and "
            "a different name for each"
        )
    uses = [use for test in tests for use in test.uses()]
    counts = count_senses(corpus, wordnet, {(use.lemma, use.part) for use in uses})
    if not counts:
        raise InputError(
            f"{corpus.name} has no lemma of the test sets; expected a corpus annotated with senses"
        )
    senses = [list(counts.get((use.lemma, use.part), ())) for use in uses]
    first = [wordnet.first(use.lemma, use.part) for use in uses]
    frequent = [keys[0] if keys else back for keys, back in zip(senses, first, strict=True)]
    methods = [
        SenseMethod("", FIRST, _correct(first, uses)),
        SenseMethod("", FREQUENT, _correct(frequent, uses)),
    ]
    sentences = [sentence for test in tests for sentence in test.sentences]
    total = len(corpus.sentences) + len(sentences)
    for number, (network, elmo) in enumerate(networks.items()):
        before = number * total

        def report(done: int, _: int | None = None, before: int = before) -> None:
            progress(before + done, len(networks) * total)

        inventory = SenseInventory.build(elmo, corpus, counts, report, context)
        layers = [*map(str, range(elmo.layers)), ALL]
        choices: list[list[str | None]] = [[] for _ in layers]
        fallbacks = iter(first)
        stream = elmo.stream((sentence.words for sentence in sentences), layers="all")
        for done, (sentence, vectors_LTD) in enumerate(zip(sentences, stream, strict=True), 1):
            for use in sentence.uses:
                fallback = next(fallbacks)
                nearest = inventory.nearest(use, vectors_LTD)
                for layer, chosen in enumerate(choices):
                    chosen.append(nearest[layer] if nearest else fallback)
            report(len(corpus.sentences) + done)
        methods += [
            SenseMethod(network, layer, _correct(chosen, uses))
            for layer, chosen in zip(layers, choices, strict=True)
        ]
    ends = np.cumsum([sum(1 for _ in test.uses()) for test in tests]).tolist()
    starts = [0, *ends]
    return SenseAnswers(
        methods,
        {test.name: slice(starts[i], ends[i]) for i, test in enumerate(tests)},
        np.array([use.part for use in uses]),
        np.array([len(keys) for keys in senses]),
    )


def _correct(choices: Sequence[str | None], uses: Sequence[SenseUse]) -> BoolArray:
    return np.array([key in use.keys for key, use in zip(choices, uses, strict=True)], np.bool_)


# -- the measurement -----------------------------------------------------------------------------


def measure_senses(
    answers: SenseAnswers, corpus: SenseCorpus, signature: Mapping[str, object]
) -> Measurement:
    """Return the F1 scores of all methods, from 0 to 1, as a measurement.

    Every instance is answered, so that F1 is the accuracy.

    Args:
        answers: The choices of all methods.
        corpus: The corpus that the sense vectors were built from.
        signature: What determines the measurement; see `results.make_signature`.
    """
    whole = answers.whole
    parts: dict[str, BoolArray] = {part: answers.part_N[whole] == part for part in PARTS}
    seen: BoolArray = answers.seen_N[whole] > 0
    choice: BoolArray = answers.seen_N[whole] > 1
    rows = []
    for method in answers.methods:
        correct = method.correct_N[whole]
        rows.append(
            {
                "network": method.network,
                "layer": method.layer,
                "f1": _mean(correct),
                "sets": {
                    name: _mean(method.correct_N[where]) for name, where in answers.sets.items()
                },
                "parts": {part: _mean(correct[here]) for part, here in parts.items() if here.any()},
                "seen": _mean(correct[seen]),
                "choice": _mean(correct[choice]),
            }
        )
    return make_measurement(
        "wsd",
        signature,
        rows=rows,
        pairs=_comparisons(answers),
        instances={
            "all": len(seen),
            "seen": int(seen.sum()),
            "choice": int(choice.sum()),
            "parts": {part: int(here.sum()) for part, here in parts.items() if here.any()},
            "sets": {name: where.stop - where.start for name, where in answers.sets.items()},
        },
        corpus={
            "name": corpus.name,
            "sentences": len(corpus.sentences),
            "words": corpus.words,
            "uses": sum(1 for _ in corpus.uses()),
            "skipped": corpus.skipped,
        },
    )


def _mean(correct: BoolArray) -> float | None:
    return float(correct.mean()) if len(correct) else None


def _comparisons(answers: SenseAnswers) -> list[ResultRow]:
    """Return the comparison of the trained network's top layer with all other methods."""
    methods = [method for method in answers.methods if method.layer != ALL]
    trained = [method for method in methods if method.network == TRAINED]
    if not trained:
        return []
    top = trained[-1]
    others = [*reversed(trained[:-1])]
    others += [m for m in methods if m.network == UNTRAINED and m.layer == top.layer]
    others += [m for m in methods if not m.network]
    rows = []
    for other in others:
        comparison = compare_paired(top.correct_N[answers.whole], other.correct_N[answers.whole])
        rows.append(
            {
                "first": [top.network, top.layer],
                "second": [other.network, other.layer],
                "only_first": comparison.only_first,
                "only_second": comparison.only_second,
                "difference": comparison.difference,
                "standard_error": comparison.standard_error,
            }
        )
    return rows
