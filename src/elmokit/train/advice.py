"""One line of advice where a corpus or a run is likely to disappoint: what was found, what to do.

Functions that build or train warn with it (`warnings.warn`); the command line prints it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from elmokit.train.budget import Budget
    from elmokit.train.corpus import Corpus

HIGH_UNKNOWN_RATE = 0.06
"""Share of `<UNK>` above which a larger vocabulary is advised."""
TARGET_UNKNOWN_RATE = 0.05
"""Share of `<UNK>` that the advised vocabulary has at most."""
SHORT_TEXT_WORDS = 1_000
"""Texts shorter than this get no advice: nobody trains on them in earnest."""


def advise_on_corpus(corpus: Corpus) -> list[str]:
    """Return advice about a corpus that was just built, one sentence each; mostly none."""
    if corpus.metadata["train"]["tokens"] < SHORT_TEXT_WORDS:
        return []
    return [advice for advice in (_on_held_out(corpus), _on_unknown(corpus)) if advice]


def advise_on_run(corpus: Corpus, budget: Budget, tokens: int) -> list[str]:
    """Return advice about a pretraining run that has ended, one sentence each; mostly none.

    Args:
        corpus: The corpus that the model was trained on.
        budget: The budget of the run.
        tokens: Number of words that it read.
    """
    advice = []
    train = corpus.metadata["train"]
    words = train["tokens"] + train["sentences"]  # ends of sentences are read as well
    if budget.minutes is not None and 0 < tokens < words:
        share = tokens / words
        minutes = math.ceil(budget.minutes / share)
        advice.append(
            f"{budget.minutes:g} minutes were enough to read {share:.2g} of the text once; a model "
            f"is better when it has read all of it: --minutes {minutes} (in Python, "
            f"Budget(minutes={minutes})), or a smaller --size"
        )
    if corpus.valid is None:
        advice.append(
            "the corpus has no held-out text, so it is unknown how good the model is; measure it "
            "on other text: elmo perplexity MODEL TEXT"
        )
    return advice


def _on_held_out(corpus: Corpus) -> str | None:
    options = corpus.metadata["options"]
    if corpus.valid is not None or not options["held_out"]:
        return None
    lines = corpus.metadata["lines"]
    if options["form"] == "wrapped":
        kind = "paragraph" if lines == 1 else "paragraphs"
        return (
            f"no text is held out, so training cannot be evaluated: the text is {lines:,} {kind}, "
            "since only blank lines separate them. If each line is a paragraph, leave out "
            "--wrapped (form); or give held-out text: --valid FILE (valid)"
        )
    return (
        f"no text is held out, so training cannot be evaluated: {options['held_out']:g} % of "
        f"{lines:,} lines is none. Hold out more: --held-out {_enough(lines)} (held_out); or give "
        "held-out text: --valid FILE (valid)"
    )


def _enough(lines: int) -> int:
    """Return a percentage at which a few of so many lines are held out."""
    return min(50, max(1, math.ceil(500 / max(lines, 1))))


def _on_unknown(corpus: Corpus) -> str | None:
    train, options = corpus.metadata["train"], corpus.metadata["options"]
    rate = train["oov_rate"]
    if rate <= HIGH_UNKNOWN_RATE:
        return None
    found = f"{rate:.0%} of the words are outside the vocabulary (<UNK>), which the model cannot "
    found += f"learn to predict; below {HIGH_UNKNOWN_RATE:.0%} is fine. "
    if options.get("vocabulary") == "given":
        return found + "The given vocabulary does not fit the text; leave out --vocabulary"
    size = _vocabulary_size(corpus)
    if size <= len(corpus.vocabulary):
        return None
    advice = f"Make the vocabulary larger: --size {size} (size)"
    if options["min_count"] is not None:
        advice += ", without --min-count (min_count)"
    return found + advice


def _vocabulary_size(corpus: Corpus) -> int:
    """Return the number of words, in thousands, that leave few enough `<UNK>`."""
    counts = corpus.counts.copy()
    counts[corpus.special_ids.unknown] = 0
    covered = np.cumsum(np.sort(counts)[::-1]) / max(int(corpus.counts.sum()), 1)
    words = int(np.searchsorted(covered, 1 - TARGET_UNKNOWN_RATE)) + 1
    return min(math.ceil(words / 1000) * 1000, len(corpus.words))
