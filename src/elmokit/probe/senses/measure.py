"""The sense probe: which sense a word is used in, told by the nearest of the senses' mean vectors.

As in the paper: each sense of WordNet has the mean of a layer's vectors over its uses in SemCor,
and a word takes the nearest sense that its lemma has there, or WordNet's first one if SemCor has
not got the lemma. Beside it what it has to be compared with: the same network before it learned
anything, WordNet's first sense, and the most frequent one of SemCor. (Layer 0, the characters
alone, knows no context: only which form of the word it is.)

Of equally near senses the one that SemCor uses more often is taken, then WordNet's order decides.
Shape letters: N instances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.paired import paired
from elmokit.probe.results import Json, measurement
from elmokit.probe.senses.inventory import SenseInventory, count_senses
from elmokit.probe.senses.render import (
    ALL,
    FIRST,
    FREQUENT,
    PARTS,
    ROWS,
    TRAINED,
    UNTRAINED,
    WHOLE,
)
from elmokit.probe.senses.uses import SenseText, Use
from elmokit.probe.senses.wordnet import WordNet

Right = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Way:
    """A way to choose a sense, and where it was right."""

    network: str
    """`"trained"` or `"untrained"`; `""` for a rule that needs no network."""
    layer: str
    """`"0"` to the top layer's number, or `"all"`; a rule's name: `"first"`, `"frequent"`."""
    right_N: Right
    """For every instance of all sets, one set after another."""


@dataclass(frozen=True)
class SenseProbe:
    """What was found on some sets."""

    ways: list[Way]
    sets: dict[str, slice]
    """Where the instances of each set are."""
    part_N: npt.NDArray[np.str_]
    """Parts of speech: n, v, a, r."""
    seen_N: npt.NDArray[np.int64]
    """How many senses the corpus has of the instance's lemma."""

    @property
    def whole(self) -> slice:
        """The instances of all sets, each once: those of the set `ALL`, if it is there."""
        return self.sets.get(WHOLE, slice(0, len(self.part_N)))

    def way(self, network: str, layer: str) -> Way:
        """The one of this name."""
        for way in self.ways:
            if (way.network, way.layer) == (network, layer):
                return way
        raise InputError(f"there is no layer {layer!r} of a network {network!r}")


def sense_probe(
    networks: Mapping[str, Elmo],
    corpus: SenseText,
    tests: Sequence[SenseText],
    wordnet: WordNet,
    *,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> SenseProbe:
    """Choose a sense for every instance of the sets, by every layer of some networks.

    Args:
        networks: `"trained"` and, to compare it with, `"untrained"`; words are taken as they are.
        corpus: what the vectors of senses are made of: SemCor.
        tests: what is scored; of other names each.
        wordnet: the senses and their order.
        tell: hears how many of how many sentences were read.
    """
    if not networks or not set(networks) <= set(ROWS) - {""}:
        raise InputError(f"networks are {list(networks)}; expected {TRAINED!r} and {UNTRAINED!r}")
    if not tests or len({test.name for test in tests}) != len(tests):
        raise InputError(
            f"the sets are called {[test.name for test in tests]}; expected one at least, and "
            "another name for each"
        )
    uses = [use for test in tests for use in test.uses()]
    counts = count_senses(corpus, wordnet, {(use.lemma, use.part) for use in uses})
    if not counts:
        raise InputError(f"{corpus.name} has no lemma of the sets; expected a corpus of senses")
    senses = [list(counts.get((use.lemma, use.part), ())) for use in uses]
    first = [wordnet.first(use.lemma, use.part) for use in uses]
    frequent = [keys[0] if keys else back for keys, back in zip(senses, first, strict=True)]
    ways = [Way("", FIRST, _right(first, uses)), Way("", FREQUENT, _right(frequent, uses))]
    sentences = [sentence for test in tests for sentence in test.sentences]
    total = len(corpus.sentences) + len(sentences)
    for number, (network, elmo) in enumerate(networks.items()):
        before = number * total

        def told(done: int, before: int = before) -> None:
            tell(before + done, len(networks) * total)

        inventory = SenseInventory.learn(elmo, corpus, counts, told)
        names = [*map(str, range(elmo.layers)), ALL]
        answers: list[list[str | None]] = [[] for _ in names]
        backed_off = iter(first)
        stream = elmo.stream((sentence.words for sentence in sentences), layers="all")
        for done, (sentence, vectors_LTD) in enumerate(zip(sentences, stream, strict=True), 1):
            for use in sentence.uses:
                back = next(backed_off)
                nearest = inventory.nearest(use, vectors_LTD)
                for layer, answer in enumerate(answers):
                    answer.append(nearest[layer] if nearest else back)
            told(len(corpus.sentences) + done)
        ways += [
            Way(network, name, _right(found, uses))
            for name, found in zip(names, answers, strict=True)
        ]
    ends = np.cumsum([sum(1 for _ in test.uses()) for test in tests]).tolist()
    starts = [0, *ends]
    return SenseProbe(
        ways,
        {test.name: slice(starts[i], ends[i]) for i, test in enumerate(tests)},
        np.array([use.part for use in uses]),
        np.array([len(keys) for keys in senses]),
    )


def _right(answers: Sequence[str | None], uses: Sequence[Use]) -> Right:
    return np.array([key in use.keys for key, use in zip(answers, uses, strict=True)], np.bool_)


# -- the measurement -----------------------------------------------------------------------------


def measure(probe: SenseProbe, corpus: SenseText, signature: Json) -> Json:
    """The numbers, for a file. All F1 are from 0 to 1."""
    whole = probe.whole
    parts: dict[str, Right] = {part: probe.part_N[whole] == part for part in PARTS}
    seen: Right = probe.seen_N[whole] > 0
    choice: Right = probe.seen_N[whole] > 1
    rows = []
    for way in probe.ways:
        right = way.right_N[whole]
        rows.append(
            {
                "network": way.network,
                "layer": way.layer,
                "f1": _share(right),
                "sets": {name: _share(way.right_N[where]) for name, where in probe.sets.items()},
                "parts": {part: _share(right[here]) for part, here in parts.items() if here.any()},
                "seen": _share(right[seen]),
                "choice": _share(right[choice]),
            }
        )
    return measurement(
        "wsd",
        signature,
        rows=rows,
        pairs=_pairs(probe),
        instances={
            "all": len(seen),
            "seen": int(seen.sum()),
            "choice": int(choice.sum()),
            "parts": {part: int(here.sum()) for part, here in parts.items() if here.any()},
            "sets": {name: where.stop - where.start for name, where in probe.sets.items()},
        },
        corpus={
            "name": corpus.name,
            "sentences": len(corpus.sentences),
            "words": corpus.words,
            "uses": sum(1 for _ in corpus.uses()),
            "skipped": corpus.skipped,
        },
    )


def _share(right: Right) -> float | None:
    return float(right.mean()) if len(right) else None


def _pairs(probe: SenseProbe) -> list[Json]:
    """The top layer of the trained network beside all that it has to be better than."""
    ways = [way for way in probe.ways if way.layer != ALL]
    trained = [way for way in ways if way.network == TRAINED]
    if not trained:
        return []
    top = trained[-1]
    others = [*reversed(trained[:-1])]
    others += [way for way in ways if way.network == UNTRAINED and way.layer == top.layer]
    others += [way for way in ways if not way.network]
    found = []
    for other in others:
        pair = paired(top.right_N[probe.whole], other.right_N[probe.whole])
        found.append(
            {
                "first": [top.network, top.layer],
                "second": [other.network, other.layer],
                "only_first": pair.only_first,
                "only_second": pair.only_second,
                "difference": pair.difference,
                "standard_error": pair.standard_error,
            }
        )
    return found
