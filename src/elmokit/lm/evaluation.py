"""Perplexity: how many words the model hesitates between, on the average, in each direction.

exp of the mean negative log-likelihood of the words and one end a sentence, by the full softmax.
Words out of the vocabulary are predicted as `<UNK>` and read by their characters: perplexities
compare only between models of the same vocabulary.
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
from elmokit.lm.scores import score
from elmokit.lm.softmax import Softmax


@dataclass(frozen=True)
class Perplexity:
    """The result, and what determined it."""

    forward: float
    backward: float
    words: int
    sentences: int
    unknown: int
    """How many of the words are out of the vocabulary."""
    signature: dict[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """exp of the mean of both directions' log-likelihoods: their geometric mean."""
        return math.sqrt(self.forward) * math.sqrt(self.backward)

    @property
    def tokens(self) -> int:
        """How many predictions each direction made: every word, and one mark a sentence."""
        return self.words + self.sentences

    @property
    def oov(self) -> float:
        """The part of the words that are out of the vocabulary."""
        return self.unknown / self.words

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    words: int | None = None,
    on_progress: Callable[[Perplexity], None] = lambda so_far: None,
) -> Perplexity:
    """The perplexity of sentences, of which there may be any number.

    Args:
        elmo: a model with softmax and vocabulary. Its `state` says where a sentence starts from;
            `"carry"` reads the sentences as one stream, from nothing, as bilm-tf does.
        sentences: strings (tokenized) or lists of words; those without words do not count.
        words: stop after the sentence that reaches so many words.
        on_progress: is told now and then how far it is.
    """
    if words is not None and words < 1:
        raise InputError(f"words is {words}; expected a number from 1 up, or None for all")
    softmax = Softmax(elmo.bilm, elmo.threads)
    digest = hashlib.sha256()
    # Losses in nats, summed by Python's floats, which are float64.
    forward = backward = 0.0
    count = number = unknown = told = 0

    def result() -> Perplexity:
        tokens = count + number
        return Perplexity(_exp(forward / tokens), _exp(backward / tokens), count, number, unknown)

    for scored in score(elmo, _first(elmo.words(sentences), words), softmax=softmax):
        digest.update((" ".join(scored.words) + "\n").encode("utf-8", "surrogatepass"))
        forward -= float(scored.forward.sum())
        backward -= float(scored.backward.sum())
        count += len(scored.words)
        number += 1
        unknown += scored.unknown
        if count - told >= 1000:
            told = count
            on_progress(result())
    if not number:
        raise InputError("there are no words in the text, so it has no perplexity")
    done = result()
    done.signature.update(_signature(elmo, softmax), data=digest.hexdigest(), tokens=done.tokens)
    return done


def _exp(loss: float) -> float:
    if not loss < 700:  # nor NaN
        raise WeightsError(
            f"the mean loss is {loss:.4g} nats a word; the model's numbers are damaged, or its "
            "training has diverged"
        )
    return math.exp(loss)


def _first(sentences: Iterable[Sequence[str]], words: int | None) -> Iterator[Sequence[str]]:
    """Sentences until there are so many words."""
    seen = 0
    for sentence in sentences:
        yield sentence
        seen += len(sentence)
        if words is not None and seen >= words:
            return


def _signature(elmo: Elmo, softmax: Softmax) -> dict[str, Any]:
    """All that determines the number, besides the text.

    `data` is beside it: the SHA-256 of the sentences as they were read, words separated by a
    space, one sentence a line.
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
