"""Semantic change: how the uses of words differ between two texts, by their vectors.

APD, the average pairwise distance, is the mean cosine distance between a use then and a use now.
PRT, the prototype distance, is the cosine distance between the mean vectors then and now. They are
compared with the distance between two uses within a text, with what random groups of the uses give
(a permutation test), with the character layer, which knows no context, and with the network before
it was trained.

Shape letters: N uses of both texts, P permutations, D size of a vector.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import InputError
from elmokit.probe.change.distances import (
    DIGITS,
    Distances,
    measure_distances,
    permuted_groups,
    round_distance,
)
from elmokit.probe.change.render import MEASURES
from elmokit.probe.change.targets import (
    TargetWord,
    UseSample,
    check_targets,
    frequent_targets,
    parse_target,
    sample_uses,
)
from elmokit.probe.corpus_files import TextInput, open_text
from elmokit.probe.excerpt import excerpt_line
from elmokit.probe.neighbors.indexing import resolve_layer
from elmokit.probe.neighbors.word_use import unit_length
from elmokit.probe.plane import project_to_plane
from elmokit.probe.ranks import spearman
from elmokit.probe.results import Measurement, make_measurement, make_signature
from elmokit.probe.untrained import untrained_copy
from elmokit.progress import StageCallback, ignore_stages
from elmokit.train.chunks import TextForm

MAX_USES, MIN_USES, PERMUTATIONS = 200, 5, 200
"""Defaults of `semantic_change`."""
EXAMPLES = 5
"""Uses of each text that are kept as examples of a word."""
PLOTTED_WORDS, PLOTTED_USES = 4, 120
"""Words that are plotted, and their uses per text, at most."""


class ContrastedUse(NamedTuple):
    """A use of a word, compared with the uses in the other text."""

    words: Sequence[str]
    """Words of the sentence."""
    position: int
    """Index of the word in the sentence."""
    distance: float
    """Mean cosine distance to the uses in the other text."""
    contrast: float
    """`distance` minus the mean distance to the other uses of its own text."""
    point: tuple[float, float]
    """Coordinates on a plane, for a figure."""


@dataclass(frozen=True)
class WordChange:
    """How the uses of one word have changed."""

    target: TargetWord
    """The word."""
    then: UseSample
    """Its uses in the first text."""
    now: UseSample
    """Its uses in the second text."""
    layers: dict[str, Distances]
    """Distances by layer: `"0"` (characters), `"1"`, …, and `"mix"` if it was chosen."""
    untrained: dict[str, Distances]
    """Distances by layer in the network before training."""
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


def semantic_change(
    elmo: Elmo,
    then: TextInput,
    now: TextInput,
    targets: Sequence[str | TargetWord] = (),
    *,
    most_frequent: int | None = None,
    layer: LayerChoice = "top",
    by: str = "prt",
    max_uses: int = MAX_USES,
    min_uses: int = MIN_USES,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    max_words: int | None = None,
    form: TextForm = "running",
    column: str | None = None,
    callback: StageCallback = ignore_stages,
) -> Measurement:
    """Measure how the uses of words have changed between two texts.

    The command `elmo change` does this. The result is a measurement, as JSON holds it.

    Args:
        elmo: A model that does not carry its state from sentence to sentence.
        then: First text: files or directories, or sentences as lists of words.
        now: Second text, likewise.
        targets: Words to compare, such as `"play"`, or `"play=plays,played"` to count other forms
            as the same word.
        most_frequent: Instead of `targets`, compare this many of the most frequent words that the
            texts share, without function words.
        layer: Layer that the words are ranked by, and that examples are chosen by: `"top"`,
            `"mix"` or a number. All layers are measured.
        by: Measure that the words are ranked by: `"prt"`, `"apd"` or `"excess"`.
        max_uses: Uses of a word that are compared per text, at most; drawn at random.
        min_uses: Leave out words with fewer uses in one of the texts.
        permutations: Random groups per word in the permutation test.
        seed: Random seed.
        max_words: Words to read of each text; all by default.
        form: What a line of the files is: `"running"` text, one sentence (`"lines"`), or one
            sentence with spaces between its words (`"tokenized"`).
        column: Column of the text in Parquet files.
        callback: Called with the stage of the work, how much is done and how much there is.
    """
    if bool(targets) == (most_frequent is not None):
        raise InputError("expected either words to compare (targets) or most_frequent")
    (sentences_then, hashes_then), (sentences_now, hashes_now) = (
        open_text(text, name, form=form, column=column, max_words=max_words)
        for name, text in (("then", then), ("now", now))
    )
    words = [parse_target(each) if isinstance(each, str) else each for each in targets]
    if most_frequent is not None:
        callback("counting words", 0, None)
        words = frequent_targets(sentences_then, sentences_now, most_frequent, min_uses)
        if not words:
            raise InputError(
                f"the texts share no word with {min_uses} uses in both; give more text, or a "
                "smaller min_uses (--least)"
            )
    results = compare_uses(
        elmo,
        sentences_then,
        sentences_now,
        words,
        layer=layer,
        by=by,
        max_uses=max_uses,
        min_uses=min_uses,
        permutations=permutations,
        seed=seed,
        callback=callback,
    )
    signed = make_signature(
        elmo,
        {},
        targets=[[target.name, *target.forms, target.gold] for target in words],
        layer=resolve_layer(elmo, layer),
        by=by,
        uses=max_uses,
        least=min_uses,
        permutations=permutations,
        seed=seed,
        limit=max_words,
        form=form,
        column=column,
    )
    return change_measurement(results, {**signed, "data": {**hashes_then, **hashes_now}})


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
    seed: int = 0,
    callback: StageCallback = ignore_stages,
) -> ChangeResults:
    """Compare the uses of words in two texts, given as sentences; see `semantic_change`."""
    chosen = _check_settings(elmo, layer, by, max_uses, min_uses, permutations)
    check_targets(targets)
    callback("reading text 1 of 2", 0, None)
    samples_then = sample_uses(then, targets, max_uses, f"{seed} then")
    callback("reading text 2 of 2", 0, None)
    samples_now = sample_uses(now, targets, max_uses, f"{seed} now")
    control_elmo = Elmo(untrained_copy(elmo.bilm), state=elmo.state, threads=elmo.threads)
    words: list[WordChange] = []
    skipped: dict[str, tuple[int, int]] = {}
    for done, (target, one, two) in enumerate(zip(targets, samples_then, samples_now, strict=True)):
        callback(f"embedding uses of “{target.name}”", done, len(targets))
        if min(len(one.uses), len(two.uses)) < min_uses:
            skipped[target.name] = (one.count, two.count)
            continue
        random = np.random.default_rng([seed, zlib.crc32(target.name.encode())])
        groups_PN = permuted_groups(len(one.uses), len(two.uses), permutations, random)
        vectors = _embed_uses(elmo, [*one.uses, *two.uses], chosen)
        control = _embed_uses(control_elmo, [*one.uses, *two.uses], chosen)
        size = len(one.uses)
        uses_then, uses_now = _contrast_uses(one, two, vectors[chosen])
        words.append(
            WordChange(
                target,
                one,
                two,
                {name: measure_distances(x, size, groups_PN) for name, x in vectors.items()},
                {name: measure_distances(x, size, groups_PN) for name, x in control.items()},
                uses_then,
                uses_now,
            )
        )
    if not words:
        listed = ", ".join(f"{name} ({a} and {b})" for name, (a, b) in list(skipped.items())[:10])
        raise InputError(
            f"no word has {min_uses} uses in both texts: {listed}; give other words, more text, or "
            "a smaller min_uses (--least)"
        )
    words.sort(key=lambda word: (-getattr(word.layers[chosen], by), word.target.name))
    return ChangeResults(chosen, by, words, skipped)


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


def _embed_uses(
    elmo: Elmo, uses: Sequence[tuple[Sequence[str], int]], chosen: str
) -> dict[str, FloatArray]:
    """Return the vectors (N, D) of uses by layer; a sentence with two uses is embedded once."""
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


def _contrast_uses(
    one: UseSample, two: UseSample, vectors_ND: FloatArray
) -> tuple[list[ContrastedUse], list[ContrastedUse]]:
    """Compare the uses of each text with those of the other; the most different ones come first."""
    unit_ND = np.asarray(unit_length(vectors_ND), np.float64)
    points = project_to_plane(unit_ND)
    size = len(one.uses)
    halves = (unit_ND[:size], unit_ND[size:])
    contrasted = []
    for k, sample in enumerate((one, two)):
        own_ND, other_ND = halves[k], halves[1 - k]
        distance_N = 1 - own_ND @ other_ND.mean(axis=0)
        cosine_sum_N = own_ND @ own_ND.sum(axis=0) - (own_ND**2).sum(axis=1)
        contrast_N = distance_N - (1 - cosine_sum_N / (len(own_ND) - 1))
        order = np.argsort(-np.round(contrast_N, DIGITS), kind="stable").tolist()
        own_points = points[:size] if k == 0 else points[size:]
        uses = []
        for i in order:
            words, position = sample.uses[i]
            distance, contrast = round_distance(distance_N[i]), round_distance(contrast_N[i])
            uses.append(ContrastedUse(words, position, distance, contrast, own_points[i]))
        contrasted.append(uses)
    return contrasted[0], contrasted[1]


# -- the measurement -----------------------------------------------------------------------------


def change_measurement(results: ChangeResults, signed: Measurement) -> Measurement:
    """Return the results as a measurement; only the first words keep the uses for a figure."""
    words = [
        {
            "word": word.target.name,
            "forms": word.target.forms,
            "gold": word.target.gold,
            "uses": {"then": word.then.count, "now": word.now.count},
            "sampled": {"then": len(word.then.uses), "now": len(word.now.uses)},
            "repeated": {"then": word.then.repeated, "now": word.now.repeated},
            "layers": {name: asdict(each) for name, each in word.layers.items()},
            "untrained": {name: asdict(each) for name, each in word.untrained.items()},
            "examples": {
                "then": [_example(use) for use in word.uses_then[:EXAMPLES]],
                "now": [_example(use) for use in word.uses_now[:EXAMPLES]],
            },
            "picture": None
            if rank >= PLOTTED_WORDS
            else {"then": _plotted(word.uses_then), "now": _plotted(word.uses_now)},
        }
        for rank, word in enumerate(results.words)
    ]
    return make_measurement(
        "change",
        signed,
        layer=results.layer,
        by=results.by,
        words=words,
        skipped=results.skipped,
        spearman=results.correlations(),
    )


def _example(use: ContrastedUse) -> Measurement:
    return {
        "words": use.words,
        "place": use.position,
        "distance": use.distance,
        "contrast": use.contrast,
    }


def _plotted(uses: Sequence[ContrastedUse]) -> list[Measurement]:
    """Return evenly spaced uses, from the most to the least different one."""
    count = min(len(uses), PLOTTED_USES)
    some = [uses[k * len(uses) // count] for k in range(count)]
    return [
        {"text": excerpt_line(use.words, use.position, side=70), "at": use.point} for use in some
    ]
