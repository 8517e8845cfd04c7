"""How the uses of words have changed between two texts, by the vectors of their uses.

APD, the average pairwise distance: the mean cosine distance of a use then and a use now. PRT, the
distance of the prototypes: of the mean vector then and the mean vector now. Beside them what they
have to be compared with: the distance of two uses within a text; what uses that are dealt out to
two piles at random give (a permutation test); the characters alone, which no context changes; and
the network before it was trained.

Shape letters: N uses of both texts, P deals, D size of a vector.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, Layers
from elmokit.errors import InputError
from elmokit.probe.change.distances import DIGITS, Distances, dealt, distances, rounded
from elmokit.probe.change.render import MEASURES
from elmokit.probe.change.targets import Sample, Target, check_targets, sample_uses
from elmokit.probe.excerpt import line
from elmokit.probe.neighbors.nearest import unit_length
from elmokit.probe.plane import on_plane
from elmokit.probe.ranks import spearman
from elmokit.probe.results import Json, measurement
from elmokit.probe.untrained import untrained

USES, LEAST, PERMUTATIONS = 200, 5, 200
EXAMPLES, DRAWN, PICTURES = 5, 120, 4


class UseOf(NamedTuple):
    """A use of the word, seen from the other text."""

    words: Sequence[str]
    place: int
    distance: float
    """Its mean cosine distance to the uses in the other text."""
    contrast: float
    """The same, less its mean distance to the other uses of its own text."""
    at: tuple[float, float]
    """On a plane, for a picture."""


@dataclass(frozen=True)
class WordChange:
    """A word and all that was found out."""

    target: Target
    then: Sample
    now: Sample
    layers: dict[str, Distances]
    """By `"0"` (characters), `"1"`, …, and `"mix"` if it was asked for."""
    untrained: dict[str, Distances]
    """The same, before training."""
    uses_then: list[UseOf]
    """As the chosen layer sees them, those that differ most from now first."""
    uses_now: list[UseOf]


@dataclass(frozen=True)
class Changes:
    """All words, those that changed most first."""

    layer: str
    by: str
    words: list[WordChange]
    skipped: dict[str, tuple[int, int]]
    """Words with too few uses, and how many they have then and now."""

    def correlations(self) -> dict[str, dict[str, dict[str, float | None]]] | None:
        """Spearman's with what people say: by network, measure and layer; None without gold.

        None also for a layer that finds no difference between the words.
        """
        gold = [word.target.gold for word in self.words]
        if len(gold) < 3 or any(each is None for each in gold):
            return None
        said = [float(each) for each in gold if each is not None]
        return {
            network: {
                measure: {
                    layer: spearman(
                        [getattr(getattr(word, network)[layer], measure) for word in self.words],
                        said,
                    )
                    for layer in self.words[0].layers
                }
                for measure in MEASURES
            }
            for network in ("layers", "untrained")
        }


def changes(
    elmo: Elmo,
    then: Iterable[Sequence[str]],
    now: Iterable[Sequence[str]],
    targets: Sequence[Target],
    *,
    layer: Layers = "top",
    by: str = "prt",
    uses: int = USES,
    least: int = LEAST,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    tell: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Changes:
    """Compare the uses of words in two texts.

    Args:
        elmo: any model that does not carry its state.
        then: the sentences of one text, as words.
        now: those of the other.
        targets: the words.
        layer: what the words are ranked by, and whose examples are shown; all are measured.
        by: the measure they are ranked by: `"prt"`, `"apd"` or `"excess"`.
        uses: at most so many of each word in each text, drawn at random.
        least: a word with fewer uses in one of the texts is left out.
        permutations: how often the uses are dealt out at random.
        seed: of both.
        tell: hears what is done, how many of the words, of how many.
    """
    chosen = _checked(elmo, layer, by, uses, least, permutations)
    check_targets(targets)
    tell("reading then", 0, len(targets))
    before = sample_uses(then, targets, uses, f"{seed} then")
    tell("reading now", 0, len(targets))
    after = sample_uses(now, targets, uses, f"{seed} now")
    random = Elmo(untrained(elmo.bilm), state=elmo.state, threads=elmo.threads)
    words: list[WordChange] = []
    skipped: dict[str, tuple[int, int]] = {}
    for done, (target, one, two) in enumerate(zip(targets, before, after, strict=True)):
        tell(f"embedding “{target.name}”", done, len(targets))
        if min(len(one.uses), len(two.uses)) < least:
            skipped[target.name] = (one.count, two.count)
            continue
        chance = np.random.default_rng([seed, zlib.crc32(target.name.encode())])
        first_PN = dealt(len(one.uses), len(two.uses), permutations, chance)
        vectors = _embedded(elmo, [*one.uses, *two.uses], chosen)
        control = _embedded(random, [*one.uses, *two.uses], chosen)
        size = len(one.uses)
        uses_then, uses_now = _seen(one, two, vectors[chosen])
        words.append(
            WordChange(
                target,
                one,
                two,
                {name: distances(x_ND, size, first_PN) for name, x_ND in vectors.items()},
                {name: distances(x_ND, size, first_PN) for name, x_ND in control.items()},
                uses_then,
                uses_now,
            )
        )
    if not words:
        listed = ", ".join(f"{name} ({a} and {b})" for name, (a, b) in list(skipped.items())[:10])
        raise InputError(
            f"no word has {least} uses in both texts: {listed}; give other words, more text, or a "
            "smaller --least"
        )
    words.sort(key=lambda word: (-getattr(word.layers[chosen], by), word.target.name))
    return Changes(chosen, by, words, skipped)


def _checked(elmo: Elmo, layer: Layers, by: str, uses: int, least: int, permutations: int) -> str:
    from elmokit.probe.neighbors.indexing import layer_number

    if elmo.state == "carry":
        raise InputError("state is 'carry'; uses are compared by their own sentences: 'settled'")
    if by not in MEASURES:
        raise InputError(f"by is {by!r}; expected one of {', '.join(MEASURES)}")
    for name, value, lowest in (("least", least, 2), ("permutations", permutations, 1)):
        if value < lowest:
            raise InputError(f"{name} is {value}; expected {lowest} or more")
    if uses < least:
        raise InputError(f"uses is {uses}, least is {least}; expected at least as many uses")
    return str(layer_number(elmo, layer))


def _embedded(
    elmo: Elmo, uses: Sequence[tuple[Sequence[str], int]], chosen: str
) -> dict[str, FloatArray]:
    """The vectors (N, D) of uses, by layer; a sentence with two of them is read once."""
    places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for k, (words, place) in enumerate(uses):
        places.setdefault(tuple(words), []).append((k, place))
    layers = [np.empty((len(uses), elmo.dim), np.float32) for _ in range(elmo.layers)]
    mixed = np.empty((len(uses), elmo.dim), np.float32)
    for wanted, layers_LTD in zip(
        places.values(), elmo.stream(list(places), layers="all"), strict=True
    ):
        for k, place in wanted:
            for layer, vectors_TD in zip(layers, layers_LTD, strict=True):
                layer[k] = vectors_TD[place]
            if chosen == "mix":
                mixed[k] = elmo.mix.apply(layers_LTD[:, place])
    found = {str(number): layer for number, layer in enumerate(layers)}
    return found | ({"mix": mixed} if chosen == "mix" else {})


def _seen(one: Sample, two: Sample, vectors_ND: FloatArray) -> tuple[list[UseOf], list[UseOf]]:
    """The uses of each text from the other's side, those that differ most first."""
    unit_ND = np.asarray(unit_length(vectors_ND), np.float64)
    places = on_plane(unit_ND)
    size = len(one.uses)
    halves = (unit_ND[:size], unit_ND[size:])
    found = []
    for k, sample in enumerate((one, two)):
        own_ND, other_ND = halves[k], halves[1 - k]
        distance_N = 1 - own_ND @ other_ND.mean(axis=0)
        alike_N = own_ND @ own_ND.sum(axis=0) - (own_ND**2).sum(axis=1)
        contrast_N = distance_N - (1 - alike_N / (len(own_ND) - 1))
        order = np.argsort(-np.round(contrast_N, DIGITS), kind="stable").tolist()
        at = places[:size] if k == 0 else places[size:]
        found.append([_use_of(sample.uses[i], distance_N[i], contrast_N[i], at[i]) for i in order])
    return found[0], found[1]


def _use_of(
    use: tuple[Sequence[str], int], distance: float, contrast: float, at: tuple[float, float]
) -> UseOf:
    words, place = use
    return UseOf(words, place, rounded(distance), rounded(contrast), at)


# -- the measurement -----------------------------------------------------------------------------


def changes_measured(found: Changes, signature: Json) -> Json:
    """The measurement; the pictures need many uses, so they are kept for the first words only."""
    words = []
    for rank, word in enumerate(found.words):
        words.append(
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
                if rank >= PICTURES
                else {"then": _drawn(word.uses_then), "now": _drawn(word.uses_now)},
            }
        )
    return measurement(
        "change",
        signature,
        layer=found.layer,
        by=found.by,
        words=words,
        skipped=found.skipped,
        spearman=found.correlations(),
    )


def _example(use: UseOf) -> Json:
    return {
        "words": use.words,
        "place": use.place,
        "distance": use.distance,
        "contrast": use.contrast,
    }


def _drawn(uses: Sequence[UseOf]) -> list[Json]:
    """An even choice, from the most different to the least."""
    count = min(len(uses), DRAWN)
    some = [uses[k * len(uses) // count] for k in range(count)]
    return [{"text": line(use.words, use.place, side=70), "at": use.at} for use in some]
