"""The geometry of a layer: how far a word's vectors move with its context (Ethayarajh, 2019).

Self-similarity: the mean cosine between two uses of the same word; 1 if context changes nothing.
Intra-sentence similarity: the mean cosine between a word and the mean of its sentence. Maximum
explainable variance: how much of all uses of a word one direction explains, as a static vector
would. All of them are high where all vectors point the same way, so from each is taken what unlike
words give: anisotropy, the mean cosine between uses of two different words, from the first two; the
variance that one direction explains of uses of as many different words, from the third. What is
left is called adjusted.

Means over pairs are exact, from sums of vectors of length 1; only the uses for the variance are a
sample. Sentences that are repeated are read once: the same context twice says nothing.

Shape letters: L layers, W words with enough uses, T words of a sentence, D size of a vector,
S words in the sample, N their uses.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.results import Json, measurement
from elmokit.probe.untrained import untrained

WORDS = 200_000
"""Of a text that are read by default."""
LEAST_USES = 5
"""Of a word that is counted."""
MOST_WORDS, MOST_USES = 500, 20
"""Words for the variance, and uses of each: all vectors of them are held at once."""
LISTED, LISTED_USES = 10, 20
"""Words at both ends, and how many uses such a word should have to be trusted."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """What is read of a text."""

    sentences: list[Sequence[str]]
    counts: dict[str, int]
    """The words with enough uses, and how many they have; in the order of the text."""
    repeated: int
    """Sentences that were left out because they had been read before."""
    sha256: str
    """Of the sentences, a space between words, one sentence a line."""

    @property
    def words(self) -> int:
        """How many were read."""
        return sum(map(len, self.sentences))


def sample(
    text: Iterable[Sequence[str]], words: int | None = WORDS, least_uses: int = LEAST_USES
) -> Sample:
    """The first sentences of a text until there are so many words, each sentence once."""
    seen: set[tuple[str, ...]] = set()
    sentences: list[Sequence[str]] = []
    digest = hashlib.sha256()
    room, repeated = words, 0
    for each in text:
        if room is not None and room <= 0:
            break
        sentence = tuple(each)
        if not sentence:
            continue
        if sentence in seen:
            repeated += 1
            continue
        seen.add(sentence)
        sentences.append(sentence)
        digest.update((" ".join(sentence) + "\n").encode("utf-8"))
        room = None if room is None else room - len(sentence)
    counts = Counter(word for sentence in sentences for word in sentence)
    enough = {word: count for word, count in counts.items() if count >= least_uses}
    if len(enough) < 2:
        raise InputError(
            f"{len(enough)} of {len(counts)} different words are used {least_uses} times or more; "
            "expected two such words at least: give more text, or ask for fewer uses"
        )
    return Sample(sentences, enough, repeated, digest.hexdigest())


@dataclass(frozen=True)
class Geometry:
    """One network's layers."""

    self_similarity_LW: Array
    """Of each word."""
    anisotropy_L: Array
    intra_sentence_L: Array
    variance_L: Array
    """Maximum explainable variance, the mean over the words of the sample."""
    variance_anyway_L: Array
    """The same of as many uses of different words."""
    length_L: Array
    """The mean length of a vector."""


def geometry(
    elmo: Elmo,
    text: Sample,
    *,
    seed: int = 0,
    on_progress: Callable[[int], None] = lambda words: None,
) -> Geometry:
    """Measure a model's layers on a text.

    Args:
        elmo: any model.
        text: of `sample`.
        seed: of the words and the uses for the variance.
        on_progress: hears how many words were read.
    """
    number = {word: w for w, word in enumerate(text.counts)}
    counts_W = np.array(list(text.counts.values()), np.float64)
    sums_LWD = np.zeros((elmo.layers, len(number), elmo.dim))
    wanted = _wanted(text, seed)
    kept: dict[int, list[FloatArray]] = {}
    inside_L, lengths_L = np.zeros(elmo.layers), np.zeros(elmo.layers)
    sentences = words = 0
    used_W = np.zeros(len(number), np.int64)
    for sentence, vectors_LTD in elmo.items(text.sentences, layers="all"):
        length_LT = np.linalg.norm(vectors_LTD, axis=2)
        unit_LTD = vectors_LTD / np.maximum(length_LT, 1e-12)[:, :, None]
        lengths_L += length_LT.sum(1)
        words += len(sentence)
        if len(sentence) > 1:
            mean_LD = vectors_LTD.mean(1)
            mean_LD /= np.maximum(np.linalg.norm(mean_LD, axis=1), 1e-12)[:, None]
            inside_L += np.einsum("ltd,ld->lt", unit_LTD, mean_LD).mean(1)
            sentences += 1
        for t, word in enumerate(sentence):
            if (w := number.get(word)) is None:
                continue
            sums_LWD[:, w] += unit_LTD[:, t]
            if w in wanted and int(used_W[w]) in wanted[w]:
                kept.setdefault(w, []).append(vectors_LTD[:, t].copy())
            used_W[w] += 1
        on_progress(words)
    squares_LW = np.einsum("lwd,lwd->lw", sums_LWD, sums_LWD)
    # The sum over all ordered pairs of two different uses, through the number of such pairs.
    self_LW = (squares_LW - counts_W) / (counts_W * (counts_W - 1))
    sums_LWD /= counts_W[:, None]
    W = len(number)
    total_LD = sums_LWD.sum(1)
    apart_L = (total_LD**2).sum(1) - (squares_LW / counts_W**2).sum(1)
    variance_L, anyway_L = _variance([kept[w] for w in sorted(kept)], seed)
    return Geometry(
        self_LW,
        apart_L / (W * (W - 1)),
        inside_L / max(sentences, 1),
        variance_L,
        anyway_L,
        lengths_L / words,
    )


def _wanted(text: Sample, seed: int) -> dict[int, frozenset[int]]:
    """Which uses of which words are kept for the variance."""
    source = np.random.default_rng([seed, 0])
    counts = list(text.counts.values())
    some = source.permutation(len(counts))[:MOST_WORDS]
    return {
        int(w): frozenset(source.permutation(counts[w])[:MOST_USES].tolist()) for w in sorted(some)
    }


def _variance(uses: Sequence[Sequence[FloatArray]], seed: int) -> tuple[Array, Array]:
    """The mean share of the first direction: of a word's uses, and of as many words' uses."""
    source = np.random.default_rng([seed, 1])
    own, anyway = [], []
    for vectors in uses:
        own.append(_explained(np.stack(vectors, axis=1)))
        others = source.permutation(len(uses))[: len(vectors)]
        if len(others) == len(vectors):
            picked = [uses[w][int(source.integers(len(uses[w])))] for w in others]
            anyway.append(_explained(np.stack(picked, axis=1)))
    if not anyway:
        # Fewer words than a word has uses: all of them, one use each.
        anyway.append(_explained(np.stack([each[0] for each in uses], axis=1)))
    return np.mean(own, axis=0), np.mean(anyway, axis=0)


def _explained(vectors_LND: FloatArray) -> Array:
    """How much of the vectors lies in one direction, by layer: σ₁² of Σσ²."""
    exact_LND = vectors_LND.astype(np.float64)
    squares_LN = np.linalg.svd(exact_LND, compute_uv=False) ** 2
    share_L: Array = squares_LN[:, 0] / np.maximum(squares_LN.sum(1), 1e-24)
    return share_L


# -- the measurement -----------------------------------------------------------------------------


def measure(
    elmo: Elmo,
    text: Sample,
    signature: Json,
    *,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, of: None,
) -> Json:
    """The trained and the untrained network, as one object.

    Args:
        elmo: the model.
        text: of `sample`.
        signature: of `measured.signature`.
        seed: of the sample, and of the untrained network.
        on_progress: hears how many words of how many were read.
    """
    blank = Elmo(untrained(elmo.bilm, seed), threads=elmo.threads)
    total = 2 * text.words
    found = []
    for before, model in ((0, elmo), (text.words, blank)):
        tell = partial(_tell, on_progress, before, total)
        found.append(geometry(model, text, seed=seed, on_progress=tell))
    layers: list[Json] = []
    for network, each in zip(NETWORKS, found, strict=True):
        for layer in range(elmo.layers):
            own = float(each.self_similarity_LW[layer].mean())
            apart = float(each.anisotropy_L[layer])
            inside = float(each.intra_sentence_L[layer])
            variance = float(each.variance_L[layer])
            anyway = float(each.variance_anyway_L[layer])
            layers.append(
                {
                    "network": network,
                    "layer": str(layer),
                    "anisotropy": apart,
                    "self": own,
                    "self adjusted": own - apart,
                    "sentence": inside,
                    "sentence adjusted": inside - apart,
                    "variance": variance,
                    "variance adjusted": variance - anyway,
                    "length": float(each.length_L[layer]),
                }
            )
    return measurement(
        "geometry",
        signature,
        words=text.words,
        sentences=len(text.sentences),
        repeated=text.repeated,
        counted=len(text.counts),
        sampled=min(len(text.counts), MOST_WORDS),
        layers=layers,
        **_ends(text, found[0].self_similarity_LW),
    )


def _tell(on_progress: Callable[[int, int], None], before: int, total: int, words: int) -> None:
    on_progress(before + words, total)


def _ends(text: Sample, self_LW: Array) -> Json:
    """The words whose vectors move most and least with their context, by the top layer."""
    names, counts = list(text.counts), list(text.counts.values())
    spelled = [w for w, name in enumerate(names) if any(letter.isalpha() for letter in name)]
    uses = LISTED_USES
    if sum(counts[w] >= uses for w in spelled) < 2 * LISTED:
        uses = min(counts)
    listed = [w for w in spelled if counts[w] >= uses]
    # By name where cosines are equal.
    listed.sort(key=lambda w: (round(float(self_LW[-1, w]), 6), names[w]))

    def shown(w: int) -> Json:
        return {"word": names[w], "uses": counts[w], "self": self_LW[:, w].tolist()}

    half = min(LISTED, len(listed) // 2)
    return {
        "listed uses": uses,
        "moving": [shown(w) for w in listed[:half]],
        "constant": [shown(w) for w in listed[len(listed) - half :][::-1]],
    }
