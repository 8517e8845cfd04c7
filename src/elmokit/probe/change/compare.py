"""The comparison of the uses of words in two texts, given as sentences.

Shape letters: N uses of both texts, U units of the permutation test, P permutations, D size of a
vector.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import InputError
from elmokit.probe.change.contrast import ContrastedUse, contrast_uses
from elmokit.probe.change.distances import Distances, measure_distances, permuted_groups
from elmokit.probe.change.render import MEASURES
from elmokit.probe.change.targets import (
    TargetWord,
    TextSize,
    UseSample,
    check_targets,
    reference_targets,
    sample_uses,
)
from elmokit.probe.change.units import (
    PermutationUnit,
    assign_units,
    choose_unit,
    split_into_halves,
)
from elmokit.probe.multiple_tests import benjamini_hochberg
from elmokit.probe.neighbors.indexing import resolve_layer
from elmokit.probe.ranks import spearman
from elmokit.probe.untrained import untrained_copy
from elmokit.progress import StageCallback, ignore_stages

MAX_USES, MIN_USES, PERMUTATIONS = 200, 5, 5000
"""Defaults of `semantic_change`."""
CONTROL_PERMUTATIONS = 1000
"""Permutations of a control, at most: of its p-values only the rate matters."""


@dataclass(frozen=True)
class WordChange:
    """How the uses of one word have changed."""

    target: TargetWord
    """The word."""
    then: UseSample
    """Its uses in the first text."""
    now: UseSample
    """Its uses in the second text."""
    units: tuple[int, int]
    """Units of the permutation test with these uses, then and now."""
    layers: dict[str, Distances]
    """Distances by layer: `"0"` (characters), `"1"`, …, and `"mix"` if it was chosen."""
    untrained: dict[str, Distances]
    """Distances by layer in the network before training, without a test."""
    halves: dict[str, Distances | None]
    """The control: distances in the chosen layer between the first and the second half of the text
    `"then"` and of the text `"now"`; None if a half has fewer than two units."""
    uses_then: list[ContrastedUse]
    """Uses then in the chosen layer, those that differ most from now first."""
    uses_now: list[ContrastedUse]
    """Uses now in the chosen layer, those that differ most from then first."""


@dataclass(frozen=True)
class ChangeResults:
    """The change of all words, those that changed most first."""

    layer: str
    """Layer that the words are ranked by."""
    by: str
    """Measure that the words are ranked by."""
    words: list[WordChange]
    """Words in the order of their change."""
    skipped: dict[str, tuple[int, int]]
    """Words with too few uses, and how many they have then and now."""
    texts: dict[str, TextSize]
    """Sizes of the texts `"then"` and `"now"`."""
    reference: dict[str, Distances]
    """Distances in the chosen layer of the texts' most frequent words, such as "the": how much the
    texts differ as wholes. Empty if the texts are too small."""
    units: dict[str, str]
    """What was permuted of each text: `"documents"`, `"blocks of documents"` or `"blocks"`."""

    def correlations(self) -> dict[str, dict[str, dict[str, float | None]]] | None:
        """Return Spearman's correlation with the gold scores, by network, measure and layer.

        None if there are no gold scores, or fewer than three words; a layer has None if it gives
        all words the same distance.
        """
        gold = [word.target.gold for word in self.words]
        if len(gold) < 3 or any(each is None for each in gold):
            return None
        scores = [float(each) for each in gold if each is not None]
        return {
            network: {
                measure: {
                    layer: spearman(
                        [getattr(getattr(word, network)[layer], measure) for word in self.words],
                        scores,
                    )
                    for layer in self.words[0].layers
                }
                for measure in MEASURES
            }
            for network in ("layers", "untrained")
        }


def compare_uses(
    elmo: Elmo,
    then: Iterable[Sequence[str]],
    now: Iterable[Sequence[str]],
    targets: Sequence[TargetWord],
    *,
    layer: LayerChoice = "top",
    by: str = "prt",
    max_uses: int = MAX_USES,
    min_uses: int = MIN_USES,
    permutations: int = PERMUTATIONS,
    unit: PermutationUnit = "auto",
    seed: int = 0,
    samples: tuple[list[UseSample], list[UseSample]] | None = None,
    callback: StageCallback = ignore_stages,
) -> ChangeResults:
    """Compare the uses of words in two texts, given as sentences; see `semantic_change`.

    An empty sentence ends a document. Where sharded jobs have drawn `samples` of the targets then
    and now, the texts are not read, and there is no reference.
    """
    chosen = _check_settings(elmo, layer, by, max_uses, min_uses, permutations)
    check_targets(targets)
    callback("reading text 1 of 2", 0, None)
    known = {form for target in targets for form in target.forms}
    frequent = [] if samples else reference_targets(then, now, min_uses)
    references = [each for each in frequent if known.isdisjoint(each.forms)]
    wanted = [*targets, *references]
    if samples is not None:
        samples_then, samples_now = samples
    else:
        samples_then = sample_uses(then, wanted, max_uses, f"{seed} then")
        callback("reading text 2 of 2", 0, None)
        samples_now = sample_uses(now, wanted, max_uses, f"{seed} now")
    texts = {"then": samples_then[0].text, "now": samples_now[0].text}
    unit_kinds = {name: choose_unit(unit, size) for name, size in texts.items()}
    pairs = [
        _SamplePair.of(target, one, two, unit, permutations, seed)
        for target, one, two in zip(wanted, samples_then, samples_now, strict=True)
    ]
    untrained = Elmo(untrained_copy(elmo.bilm), state=elmo.state, threads=elmo.threads)
    words: list[WordChange] = []
    skipped: dict[str, tuple[int, int]] = {}
    for done, pair in enumerate(pairs[: len(targets)]):
        callback(f"embedding uses of “{pair.target.name}”", done, len(pairs))
        if min(len(pair.then.uses), len(pair.now.uses)) < min_uses:
            skipped[pair.target.name] = (pair.then.count, pair.now.count)
        else:
            words.append(_measure_word(elmo, untrained, pair, chosen))
    if not words:
        listed = ", ".join(
            f"{pair.target.name} ({len(pair.then.uses)} and {len(pair.now.uses)})"
            for pair in pairs[: min(10, len(targets))]
        )
        raise InputError(
            f"no word has {min_uses} uses in different sentences of both texts: {listed}; give "
            "other words, more text, or a smaller min_uses (--least)"
        )
    words.sort(key=lambda word: (-getattr(word.layers[chosen], by), word.target.name))
    reference = {
        word.target.name: word.layers[chosen]
        for word in words
        if any(set(word.target.forms) & set(each.forms) for each in frequent)
    }
    for done, pair in enumerate(pairs[len(targets) :], start=len(targets)):
        callback(f"embedding uses of “{pair.target.name}”, for comparison", done, len(pairs))
        if min(len(pair.then.uses), len(pair.now.uses)) >= min_uses:
            reference[pair.target.name] = pair.distances(_embed_uses(elmo, pair, chosen)[chosen])
    corrected = _with_q_values(list(reference.values()))
    return ChangeResults(
        chosen,
        by,
        _correct(words),
        skipped,
        texts,
        {name: each for name, each in zip(reference, corrected, strict=True) if each is not None},
        unit_kinds,
    )


@dataclass(frozen=True)
class _SamplePair:
    """The sampled uses of a word in both texts, and the units that the test permutes."""

    target: TargetWord
    then: UseSample
    now: UseSample
    units_then: npt.NDArray[np.int64]
    units_now: npt.NDArray[np.int64]
    permutations: int
    seed: int

    @classmethod
    def of(
        cls,
        target: TargetWord,
        then: UseSample,
        now: UseSample,
        unit: PermutationUnit,
        permutations: int,
        seed: int,
    ) -> _SamplePair:
        units_then, units_now = (assign_units(sample, unit) for sample in (then, now))
        return cls(target, then, now, units_then, units_now, permutations, seed)

    @property
    def unit_counts(self) -> tuple[int, int]:
        return int(self.units_then[-1]) + 1, int(self.units_now[-1]) + 1

    @property
    def uses(self) -> list[tuple[Sequence[str], int]]:
        return [*self.then.uses, *self.now.uses]

    @property
    def units_N(self) -> npt.NDArray[np.int64]:
        return np.concatenate([self.units_then, self.unit_counts[0] + self.units_now])

    def random(self, *more: int) -> np.random.Generator:
        """Return random numbers that depend on the seed and the word alone."""
        return np.random.default_rng([self.seed, zlib.crc32(self.target.name.encode()), *more])

    @cached_property
    def groups_PU(self) -> npt.NDArray[np.bool_]:
        return permuted_groups(*self.unit_counts, self.permutations, self.random())

    def distances(self, vectors_ND: FloatArray) -> Distances:
        return measure_distances(vectors_ND, len(self.then.uses), self.units_N, self.groups_PU)

    def halves(self, vectors_ND: FloatArray) -> dict[str, Distances | None]:
        size, count = len(self.then.uses), min(self.permutations, CONTROL_PERMUTATIONS)
        parts = (
            ("then", vectors_ND[:size], self.units_then),
            ("now", vectors_ND[size:], self.units_now),
        )
        return {
            name: _compare_halves(own_ND, units_N, count, self.random(k))
            for k, (name, own_ND, units_N) in enumerate(parts)
        }


def _measure_word(elmo: Elmo, untrained: Elmo, pair: _SamplePair, chosen: str) -> WordChange:
    """Measure the change of a word in all layers, and in the network before training."""
    vectors = _stored_vectors(elmo, pair, chosen) or _embed_uses(elmo, pair, chosen)
    control = _embed_uses(untrained, pair, chosen)
    size = len(pair.then.uses)
    return WordChange(
        pair.target,
        pair.then,
        pair.now,
        pair.unit_counts,
        {name: pair.distances(x_ND) for name, x_ND in vectors.items()},
        {name: measure_distances(x_ND, size) for name, x_ND in control.items()},
        pair.halves(vectors[chosen]),
        *contrast_uses(pair.then, pair.now, vectors[chosen]),
    )


def _compare_halves(
    vectors_ND: FloatArray,
    units_N: npt.NDArray[np.int64],
    permutations: int,
    random: np.random.Generator,
) -> Distances | None:
    """Compare the uses in the first and in the second half of a text, if it can be divided."""
    size = split_into_halves(units_N)
    if size is None:
        return None
    first = int(units_N[size])
    groups_PU = permuted_groups(first, int(units_N[-1]) + 1 - first, permutations, random)
    return measure_distances(vectors_ND, size, units_N, groups_PU)


def _correct(words: Sequence[WordChange]) -> list[WordChange]:
    """Return the words with q-values: p-values corrected for the number of words."""
    layers = {
        layer: _with_q_values([word.layers[layer] for word in words]) for layer in words[0].layers
    }
    halves = {
        text: _with_q_values([word.halves[text] for word in words]) for text in words[0].halves
    }
    return [
        replace(
            word,
            layers={
                layer: each for layer, found in layers.items() if (each := found[k]) is not None
            },
            halves={text: found[k] for text, found in halves.items()},
        )
        for k, word in enumerate(words)
    ]


def _with_q_values(tests: Sequence[Distances | None]) -> list[Distances | None]:
    prt_q, apd_q = (
        benjamini_hochberg([None if test is None else getattr(test, name) for test in tests])
        for name in ("prt_p", "apd_p")
    )
    return [
        None if test is None else replace(test, prt_q=prt_q[k], apd_q=apd_q[k])
        for k, test in enumerate(tests)
    ]


def _check_settings(
    elmo: Elmo, layer: LayerChoice, by: str, max_uses: int, min_uses: int, permutations: int
) -> str:
    """Raise an error for settings that cannot be, and return the name of the layer."""
    if elmo.state == "carry":
        raise InputError(
            "state is 'carry', but the vectors of a use must depend on its sentence alone; "
            "expected 'settled' or 'zero'"
        )
    if by not in MEASURES:
        raise InputError(f"by is {by!r}; expected one of {', '.join(MEASURES)}")
    for name, value, lowest in (("min_uses", min_uses, 2), ("permutations", permutations, 1)):
        if value < lowest:
            raise InputError(f"{name} is {value}; expected {lowest} or more")
    if max_uses < min_uses:
        raise InputError(
            f"max_uses (--uses) is {max_uses} and min_uses (--least) is {min_uses}; expected "
            "max_uses to be at least min_uses"
        )
    return str(resolve_layer(elmo, layer))


def _stored_vectors(elmo: Elmo, pair: _SamplePair, chosen: str) -> dict[str, FloatArray]:
    """Return the vectors (N, D) of uses by layer that sharded jobs have stored; empty if none."""
    then, now = pair.then.layers_NLD, pair.now.layers_NLD
    if then is None or now is None:
        return {}
    layers_LND = np.concatenate([then, now]).transpose(1, 0, 2)
    by_layer = {str(number): np.array(layer_ND) for number, layer_ND in enumerate(layers_LND)}
    return by_layer | ({"mix": elmo.mix.apply(layers_LND)} if chosen == "mix" else {})


def _embed_uses(elmo: Elmo, pair: _SamplePair, chosen: str) -> dict[str, FloatArray]:
    """Return the vectors (N, D) of uses by layer; a sentence with two uses is embedded once."""
    uses = pair.uses
    positions: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for k, (words, position) in enumerate(uses):
        positions.setdefault(tuple(words), []).append((k, position))
    layers = [np.empty((len(uses), elmo.dim), np.float32) for _ in range(elmo.layers)]
    mixed = np.empty((len(uses), elmo.dim), np.float32)
    for wanted, layers_LTD in zip(
        positions.values(), elmo.stream(list(positions), layers="all"), strict=True
    ):
        for k, position in wanted:
            for layer, vectors_TD in zip(layers, layers_LTD, strict=True):
                layer[k] = vectors_TD[position]
            if chosen == "mix":
                mixed[k] = elmo.mix.apply(layers_LTD[:, position])
    by_layer = {str(number): layer for number, layer in enumerate(layers)}
    return by_layer | ({"mix": mixed} if chosen == "mix" else {})
