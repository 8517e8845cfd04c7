"""How fast a model runs on this machine."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice

from elmokit.elmo import Elmo, Sentence
from elmokit.engine.limits import Limits
from elmokit.engine.work import Work, count_work
from elmokit.errors import InputError

SCENARIOS = {
    "one sentence of 20 words": "ms",
    "batches of 64, sorted": "words/s",
    "natural order, one call": "words/s",
    "one document of 2,000 words": "words/s",
}
"""Units of the measurements, by scenario."""
SENTENCE_WORDS = 20
"""Number of words of the single sentence, unless there are fewer."""
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
    medians = {}
    for scenario, calls in _scenario_calls(_texts(elmo, sentences)).items():
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


def roofline(
    elmo: Elmo, limits: Limits, sentences: Iterable[Sentence] | None = None
) -> dict[str, float]:
    """Return what `benchmark` would return at the limits of this machine, in the same units.

    Counts the matrix products and the weights that the model's architecture needs in each
    scenario: see `elmokit.engine.work`.

    Args:
        elmo: The model.
        limits: What `measure_limits` returned.
        sentences: The sentences that were measured; by default 2000 synthetic sentences.
    """
    values = {}
    for scenario, calls in _scenario_calls(_texts(elmo, sentences)).items():
        words = sum(len(sentence) for call in calls for sentence in call)
        seconds = limits.seconds_at_limit(_work(elmo, calls), elmo.dtype)
        values[scenario] = 1000 * seconds if SCENARIOS[scenario] == "ms" else words / seconds
    return values


def percent_of_limit(scenario: str, value: float, limit: float) -> float:
    """Return a measured value of a scenario as a percentage of its limit."""
    return 100 * (limit / value if SCENARIOS[scenario] == "ms" else value / limit)


def words_per_second(scenario: str, value: float) -> float:
    """Return the value of a scenario in words per second."""
    return 1000 * SENTENCE_WORDS / value if SCENARIOS[scenario] == "ms" else value


def _work(elmo: Elmo, calls: Iterable[Sequence[Sequence[str]]]) -> Iterator[Work]:
    """Yield the work of calls of `embed`, one after another, beginning with an empty cache."""
    known: set[str] = set()
    for call in calls:
        for batch in elmo.batches(call):
            words = {word for sentence in batch for word in sentence}
            words.update(elmo.marks)
            lengths = [len(sentence) + 2 for sentence in batch]
            yield from count_work(elmo.config, lengths, len(words - known), elmo.dtype)
            known |= words


def _texts(elmo: Elmo, sentences: Iterable[Sentence] | None) -> list[list[str]]:
    """Return the words of sentences that have some."""
    if sentences is None:
        sentences = islice(synthetic_sentences(), SENTENCES)
    texts = [list(words) for words in elmo.words(sentences) if words]
    if not texts:
        raise InputError("the sentences have no words, so nothing can be measured")
    return texts


def _scenario_calls(texts: list[list[str]]) -> dict[str, list[Sequence[Sequence[str]]]]:
    """Return the arguments of the calls of `embed` in each scenario."""
    words = [word for sentence in texts for word in sentence]
    by_length = sorted(texts[:256], key=len)
    return {
        "one sentence of 20 words": [[words[:SENTENCE_WORDS]]],
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
