"""Perplexity of a text, in each direction.

It is exp of the mean negative log likelihood of all words and one sentence mark per sentence, by
the full softmax. Words that are not in the vocabulary are predicted as `<UNK>` (and read by their
characters), so perplexities are comparable only between models with the same vocabulary.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import elmokit
from elmokit.elmo import Elmo, Sentence
from elmokit.errors import InputError, WeightsError
from elmokit.lm.scores import score_sentences
from elmokit.lm.softmax import Softmax


@dataclass(frozen=True)
class Perplexity:
    """The perplexity of a text in both directions, and what determined it."""

    forward: float
    """Perplexity of the forward language model."""
    backward: float
    """Perplexity of the backward language model."""
    words: int
    """Number of words of the text."""
    sentences: int
    """Number of sentences of the text."""
    unknown: int
    """Number of words that are not in the vocabulary."""
    signature: dict[str, Any] = field(default_factory=dict)
    """Everything that determines the result: hashes of model, vocabulary and text, and settings."""

    @property
    def mean(self) -> float:
        """Geometric mean of both directions: exp of their mean log likelihood."""
        return math.sqrt(self.forward) * math.sqrt(self.backward)

    @property
    def tokens(self) -> int:
        """Number of predictions of each direction: all words, and one mark per sentence."""
        return self.words + self.sentences

    @property
    def oov(self) -> float:
        """Fraction of the words that are not in the vocabulary."""
        return self.unknown / self.words

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary that can be written as JSON."""
        return {
            "forward": self.forward,
            "backward": self.backward,
            "mean": self.mean,
            "tokens": self.tokens,
            "words": self.words,
            "sentences": self.sentences,
            "oov": self.oov,
            "signature": self.signature,
        }


def perplexity(
    elmo: Elmo,
    sentences: Iterable[Sentence],
    *,
    max_words: int | None = None,
    on_progress: Callable[[Perplexity], None] = lambda so_far: None,
) -> Perplexity:
    """Return the perplexity of any number of sentences.

    The command `elmo perplexity` does this.

    Args:
        elmo: Model with softmax and vocabulary. Its `state` is the initial state of a sentence;
            `"carry"` reads the sentences as one stream, starting from zeros, as bilm-tf does.
        sentences: Strings (tokenized) or lists of words; those without words do not count.
        max_words: Stop after the sentence that reaches this number of words.
        on_progress: Called about every 1000 words with the result so far.
    """
    if max_words is not None and max_words < 1:
        raise InputError(f"max_words is {max_words}; expected 1 or more, or None for all")
    softmax = Softmax(elmo.bilm, elmo.threads)
    digest = hashlib.sha256()
    # Losses in nats, summed as Python floats, which are float64.
    forward = backward = 0.0
    words = count = unknown = reported = 0

    def result() -> Perplexity:
        tokens = words + count
        return Perplexity(_exp(forward / tokens), _exp(backward / tokens), words, count, unknown)

    for scored in score_sentences(elmo, _first(elmo.words(sentences), max_words), softmax=softmax):
        digest.update((" ".join(scored.words) + "\n").encode("utf-8", "surrogatepass"))
        forward -= float(scored.forward.sum())
        backward -= float(scored.backward.sum())
        words += len(scored.words)
        count += 1
        unknown += scored.unknown
        if words - reported >= 1000:
            reported = words
            on_progress(result())
    if not count:
        raise InputError("the text has no words, so it has no perplexity")
    final = result()
    final.signature.update(_signature(elmo, softmax), data=digest.hexdigest(), tokens=final.tokens)
    return final


def _exp(loss: float) -> float:
    if not loss < 700:  # nor NaN
        raise WeightsError(
            f"the mean loss is {loss:.4g} nats per word; the model is damaged, or its training has "
            "diverged"
        )
    return math.exp(loss)


def _first(sentences: Iterable[Sequence[str]], max_words: int | None) -> Iterator[Sequence[str]]:
    """Yield sentences until `max_words` is reached."""
    words = 0
    for sentence in sentences:
        yield sentence
        words += len(sentence)
        if max_words is not None and words >= max_words:
            return


def _signature(elmo: Elmo, softmax: Softmax) -> dict[str, Any]:
    """Return everything that determines the result, except the text.

    `perplexity` adds `data`, the SHA-256 of the sentences as they were read: words separated by a
    space, one sentence per line.
    """
    signature: dict[str, Any] = {
        "model": elmo.bilm.fingerprint,
        "vocabulary": hashlib.sha256(softmax.vocabulary.dump()).hexdigest(),
        "state": elmo.state,
        "dtype": elmo.dtype,
        "version": elmokit.__version__,
    }
    if elmo.state == "settled":
        settled = hashlib.sha256(elmo.settled.hidden.tobytes() + elmo.settled.cell.tobytes())
        signature["settled"] = settled.hexdigest()
    return signature
