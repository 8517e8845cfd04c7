"""How often `elmo change` finds a change where there is none: its rate of false alarms.

    python benchmarks/change_null.py [--cases 1000] [--permutations 500] [--seed 0]
    python benchmarks/change_null.py --text FILE [--words 40] [--splits 5] [--model builtin]

The first form draws vectors: uses come in documents, each of which has a topic that moves all of
its uses, and both texts draw their documents from the same source. The second form divides the
documents of a real text at random into two texts and measures its most frequent words. A test that
keeps its promise has p <= 0.05 in 5 % of the cases. The last column is what a test that permutes
single uses, blind to documents, would claim.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit import Elmo
from elmokit.probe import semantic_change
from elmokit.probe.change.distances import Distances, measure_distances, permuted_groups
from elmokit.probe.corpus_files import CorpusSentences

LEVEL = 0.05
"""The rate of p <= LEVEL should be LEVEL."""
DIM = 32


class Scenario(NamedTuple):
    """How two texts without any change are drawn."""

    name: str
    documents: tuple[int, int]
    """Documents of each text in which the word occurs."""
    uses: tuple[float, float]
    """Mean number of uses per document in each text."""
    topic: float
    """Spread between documents, where the spread between uses of a document is 1."""


SCENARIOS = (
    Scenario("independent uses", (40, 40), (1, 1), 0),
    Scenario("documents with topics", (40, 40), (5, 5), 1),
    Scenario("strong topics, few documents", (10, 10), (10, 10), 2),
    Scenario("a text with fewer documents", (40, 10), (5, 5), 1),
    Scenario("a word that became rarer", (40, 40), (10, 1), 0.3),
    Scenario("one text of longer documents", (50, 10), (1, 10), 0.5),
)


def draw_text(
    documents: int, uses: float, topic: float, generator: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return the vectors of a word's uses in a text, and the document of each."""
    sizes = 1 + generator.poisson(uses - 1, documents)
    of_use = np.repeat(np.arange(documents), sizes)
    center = np.full(DIM, 1.0)
    topics = topic * generator.normal(size=(documents, DIM)) * (np.arange(DIM) < DIM // 4)
    vectors = center + topics[of_use] + generator.normal(size=(len(of_use), DIM))
    return vectors.astype(np.float32), of_use


def simulate(
    scenario: Scenario, cases: int, permutations: int, seed: int
) -> Iterator[tuple[Distances, Distances]]:
    """Yield the distances between two texts of the same source, testing documents and uses."""
    for case in range(cases):
        generator = np.random.default_rng([seed, case])
        (one, documents_one), (two, documents_two) = (
            draw_text(documents, uses, scenario.topic, generator)
            for documents, uses in zip(scenario.documents, scenario.uses, strict=True)
        )
        vectors = np.concatenate([one, two])
        units = np.concatenate([documents_one, scenario.documents[0] + documents_two])
        yield (
            measure_distances(
                vectors,
                len(one),
                units,
                permuted_groups(*scenario.documents, permutations, generator),
            ),
            measure_distances(
                vectors,
                len(one),
                np.arange(len(vectors)),
                permuted_groups(len(one), len(two), permutations, generator),
            ),
        )


def rate(p_values: Sequence[float | None]) -> float:
    """Return the share of p-values up to LEVEL among those that exist."""
    return float(np.mean([p <= LEVEL for p in p_values if p is not None]))


def print_simulations(cases: int, permutations: int, seed: int) -> None:
    """Print the rate of false alarms of each scenario."""
    error = (LEVEL * (1 - LEVEL) / cases) ** 0.5
    print(f"rate of p <= {LEVEL:g} in {cases:,} cases without a change; expected: {LEVEL:g}")
    print(f"(standard error {error:.3f})")
    print(f"{'':32} {'PRT':>7} {'APD':>7} {'permuting uses (PRT)':>22}")
    for scenario in SCENARIOS:
        found = list(simulate(scenario, cases, permutations, seed))
        prt = rate([documents.prt_p for documents, _ in found])
        apd = rate([documents.apd_p for documents, _ in found])
        blind = rate([uses.prt_p for _, uses in found])
        print(f"{scenario.name:32} {prt:7.3f} {apd:7.3f} {blind:22.3f}", flush=True)


def split_documents(
    text: str, seed: int, max_words: int | None
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the sentences of a text in two parts, whole documents assigned at random."""
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    generator = random.Random(seed)
    side = generator.randrange(2)
    for words in CorpusSentences([text], max_words=max_words, mark_documents=True):
        parts[side].append(words)
        if not words:
            side = generator.randrange(2)
    return parts


def print_splits(options: argparse.Namespace) -> None:
    """Print how many words of a real text have changed between two random parts of it."""
    elmo = Elmo.load(options.model)
    p_values: list[float | None] = []
    q_values: list[float | None] = []
    for split in range(options.splits):
        then, now = split_documents(options.text, options.seed + split, options.limit)
        measured = semantic_change(
            elmo, then, now, most_frequent=options.words, seed=options.seed + split
        )
        distances = [word["layers"][measured["layer"]] for word in measured["words"]]
        p_values += [each["prt_p"] for each in distances]
        q_values += [each["prt_q"] for each in distances]
        found = sum(p is not None and p <= LEVEL for p in p_values)
        print(f"split {split + 1}: so far {found} of {len(p_values)} words with p <= {LEVEL:g}")
    print(f"rate of p <= {LEVEL:g}: {rate(p_values):.3f}; of q <= {LEVEL:g}: {rate(q_values):.3f}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000, help="Simulated words per scenario.")
    parser.add_argument("--permutations", type=int, default=500, help="Permutations per word.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed.")
    parser.add_argument("--text", help="Text file whose documents a blank line separates.")
    parser.add_argument("--words", type=int, default=40, help="Words per random division.")
    parser.add_argument("--splits", type=int, default=5, help="Number of random divisions.")
    parser.add_argument("--limit", type=int, help="Words to read of the text; all by default.")
    parser.add_argument("--model", default="builtin", help="Path or name of the model.")
    options = parser.parse_args()
    if options.text:
        print_splits(options)
    else:
        print_simulations(options.cases, options.permutations, options.seed)


if __name__ == "__main__":
    main()
