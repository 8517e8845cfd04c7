"""How fast a model runs on this machine."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice

from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError

SCENARIOS = {
    "one sentence of 20 words": "ms",
    "batches of 64, sorted": "words/s",
    "natural order, one call": "words/s",
    "one document of 2,000 words": "words/s",
}
"""Units of the measurements, by scenario."""
SENTENCES = 2000
"""Number of synthetic sentences that `benchmark` embeds by default."""


def benchmark(
    elmo: Elmo,
    sentences: Iterable[Sentence] | None = None,
    *,
    rounds: int = 5,
    on_scenario: Callable[[str], None] = lambda scenario: None,
) -> dict[str, float]:
    """Measure the speed of a model, and return the median of each scenario in its unit.

    The machine should be idle otherwise. The command `elmo bench` does this.

    Args:
        elmo: Model to measure.
        sentences: Strings (tokenized) or lists of words; by default 2000 synthetic sentences.
        rounds: Number of measurements per scenario, after one that does not count.
        on_scenario: Called with the name of each scenario before it is measured.
    """
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; expected 1 or more")
    if sentences is None:
        sentences = islice(synthetic_sentences(), SENTENCES)
    texts = [list(words) for words in elmo.words(sentences) if words]
    if not texts:
        raise InputError("the sentences have no words, so nothing can be measured")
    medians = {}
    for scenario, calls in _scenario_calls(texts).items():
        on_scenario(scenario)
        words = sum(len(sentence) for call in calls for sentence in call)
        seconds = []
        for turn in range(1 + rounds):  # the first one does not count
            elmo.clear_word_cache()
            start = time.perf_counter()
            for call in calls:
                elmo.embed(call)
            if turn:
                seconds.append(time.perf_counter() - start)
        median = statistics.median(seconds)
        medians[scenario] = 1000 * median if SCENARIOS[scenario] == "ms" else words / median
    return medians


def _scenario_calls(texts: list[list[str]]) -> dict[str, list[Sequence[Sequence[str]]]]:
    """Return the arguments of the calls of `embed` in each scenario."""
    words = [word for sentence in texts for word in sentence]
    by_length = sorted(texts[:256], key=len)
    return {
        "one sentence of 20 words": [[words[:20]]],
        "batches of 64, sorted": [by_length[i : i + 64] for i in range(0, len(by_length), 64)],
        "natural order, one call": [texts],
        "one document of 2,000 words": [[words[:2000]]],
    }


def synthetic_sentences(seed: int = 0) -> Iterator[list[str]]:
    """Yield random sentences without end, with the sentence lengths and word counts of English.

    Args:
        seed: Random seed.
    """
    generator = random.Random(seed)
    letters = "etaoinshrdlu"
    lexicon = [
        "".join(generator.choices(letters, k=generator.randint(1, 9))) for _ in range(30_000)
    ]
    # Word frequencies follow Zipf's law.
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(lexicon))))
    while True:
        length = max(1, round(generator.gauss(21, 9)))
        yield generator.choices(lexicon, cum_weights=weights, k=length)
