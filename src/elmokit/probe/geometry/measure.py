"""The geometry probe: how much a word's vectors depend on its context (Ethayarajh, 2019).

Self-similarity is the mean cosine between two uses of the same word; 1 if context changes nothing.
Intra-sentence similarity is the mean cosine between a word and the mean of its sentence. Maximum
explainable variance is how much of all uses of a word one direction explains, as a static vector
would. All of them are high where all vectors point the same way, so the value for unrelated words
is subtracted: from the first two anisotropy, the mean cosine between uses of two different words;
from the third the variance that one direction explains of the uses of as many different words. The
results are called adjusted.

Means over pairs are exact, computed from sums of vectors of length 1; only the uses for the
variance are a sample. Repeated sentences are read once: the same context twice adds nothing.

Shape letters: L layers, W words with enough uses, T words of a sentence, D size of a vector,
S words in the sample, N their uses.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import InputError
from elmokit.probe.layer_bars import NETWORKS
from elmokit.probe.results import (
    Measurement,
    ModelOrName,
    ResultRow,
    as_elmo,
    make_measurement,
    make_signature,
)
from elmokit.probe.untrained import untrained_copy
from elmokit.progress import ProgressCallback, ignore_progress
from elmokit.train.chunks import TextForm
from elmokit.train.text_reader import TextReader

WORDS = 200_000
"""Number of words of a text that are read by default."""
MIN_USES = 5
"""Minimum number of uses of a word that is counted, by default."""
MAX_WORDS, MAX_USES = 500, 20
"""Maximum number of words for the variance, and of uses of each: all their vectors are in memory
at once."""
LISTED, LISTED_USES = 10, 20
"""Number of words listed as most and least contextual, and the uses that such a word should have
for a reliable value."""

Array = npt.NDArray[np.float64]


def probe_geometry(
    corpus: str | Path | Sequence[str | Path],
    model: ModelOrName = BUILTIN,
    *,
    form: TextForm = "running",
    column: str | None = None,
    words: int | None = WORDS,
    uses: int = MIN_USES,
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> Measurement:
    """Measure how much the vectors of words depend on context, for each layer of a model.

    The command `elmo probe geometry` does this.

    Args:
        corpus: Text file or files: plain or compressed, Parquet, or a directory of them; `-` is
            stdin.
        model: A model, or the name or path of one.
        form: What a line of the text is: `"running"` text, one sentence (`"lines"`), or one
            sentence of words separated by spaces (`"tokenized"`).
        column: Column of text in Parquet files; by default `text`, or the only column of strings.
        words: Number of words to read; None reads all.
        uses: Minimum number of uses of a word that is counted.
        seed: Random seed of the sample of uses and of the untrained network.
        progress: Called with the number of words done and of all words.

    Returns:
        The measurement, of kind `"geometry"`.
    """
    files = [corpus] if isinstance(corpus, (str, Path)) else corpus
    text = sample_text(TextReader([str(file) for file in files], form, column), words, uses)
    elmo = as_elmo(model)
    signature = make_signature(elmo, {}, words=words, uses=uses, seed=seed)
    # Of the sentences that were read, not of the files: they may be large, or stdin.
    signature["data"]["corpus"] = text.sha256
    return measure_geometry(elmo, text, signature, seed=seed, progress=progress)


@dataclass(frozen=True)
class TextSample:
    """The sentences that are read of a text, and the words with enough uses in them."""

    sentences: list[Sequence[str]]
    counts: dict[str, int]
    """Number of uses of each word that has enough of them; in the order of the text."""
    repeated: int
    """Number of sentences that were left out because they had been read before."""
    sha256: str
    """SHA-256 of the sentences, one per line, with spaces between words."""

    @property
    def words(self) -> int:
        """Number of words in all sentences."""
        return sum(map(len, self.sentences))


def sample_text(
    text: Iterable[Sequence[str]], words: int | None = WORDS, min_uses: int = MIN_USES
) -> TextSample:
    """Return the first sentences of a text with at least this many words, each sentence once.

    Args:
        text: Sentences of words.
        words: Number of words to read; None reads all.
        min_uses: Minimum number of uses of a word that is counted.
    """
    seen: set[tuple[str, ...]] = set()
    sentences: list[Sequence[str]] = []
    digest = hashlib.sha256()
    remaining, repeated = words, 0
    for each in text:
        if remaining is not None and remaining <= 0:
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
        remaining = None if remaining is None else remaining - len(sentence)
    counts = Counter(word for sentence in sentences for word in sentence)
    enough = {word: count for word, count in counts.items() if count >= min_uses}
    if len(enough) < 2:
        raise InputError(
            f"{len(enough)} of {len(counts)} different words are used {min_uses} times or more; "
            "expected at least two such words: give more text, or require fewer uses"
        )
    return TextSample(sentences, enough, repeated, digest.hexdigest())


@dataclass(frozen=True)
class LayerGeometry:
    """The measures of one network, by layer."""

    self_similarity_LW: Array
    """Self-similarity of each word."""
    anisotropy_L: Array
    intra_sentence_L: Array
    variance_L: Array
    """Maximum explainable variance, the mean over the words of the sample."""
    variance_baseline_L: Array
    """Variance that one direction explains of as many uses of different words."""
    length_L: Array
    """Mean length of a vector."""


def measure_layers(
    elmo: Elmo, text: TextSample, *, seed: int = 0, progress: ProgressCallback = ignore_progress
) -> LayerGeometry:
    """Compute the measures of a model's layers on a text.

    Args:
        elmo: Any model.
        text: The text, from `sample_text`.
        seed: Random seed of the words and the uses for the variance.
        progress: Called with the number of words done and of all words.
    """
    number = {word: w for w, word in enumerate(text.counts)}
    counts_W = np.array(list(text.counts.values()), np.float64)
    sums_LWD = np.zeros((elmo.layers, len(number), elmo.dim))
    sampled = _sample_uses(text, seed)
    sample_vectors: dict[int, list[FloatArray]] = {}
    inside_L, lengths_L = np.zeros(elmo.layers), np.zeros(elmo.layers)
    total, sentences, words = text.words, 0, 0
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
            if w in sampled and int(used_W[w]) in sampled[w]:
                sample_vectors.setdefault(w, []).append(vectors_LTD[:, t].copy())
            used_W[w] += 1
        progress(words, total)
    squares_LW = np.einsum("lwd,lwd->lw", sums_LWD, sums_LWD)
    # The sum over all ordered pairs of two different uses, divided by the number of such pairs.
    self_LW = (squares_LW - counts_W) / (counts_W * (counts_W - 1))
    sums_LWD /= counts_W[:, None]
    W = len(number)
    total_LD = sums_LWD.sum(1)
    between_L = (total_LD**2).sum(1) - (squares_LW / counts_W**2).sum(1)
    variance_L, baseline_L = _variance([sample_vectors[w] for w in sorted(sample_vectors)], seed)
    return LayerGeometry(
        self_LW,
        between_L / (W * (W - 1)),
        inside_L / max(sentences, 1),
        variance_L,
        baseline_L,
        lengths_L / words,
    )


def _sample_uses(text: TextSample, seed: int) -> dict[int, frozenset[int]]:
    """Return which uses of which words are in the sample for the variance."""
    rng = np.random.default_rng([seed, 0])
    counts = list(text.counts.values())
    words = rng.permutation(len(counts))[:MAX_WORDS]
    return {
        int(w): frozenset(rng.permutation(counts[w])[:MAX_USES].tolist()) for w in sorted(words)
    }


def _variance(uses: Sequence[Sequence[FloatArray]], seed: int) -> tuple[Array, Array]:
    """Return the mean explained variance of a word's uses, and of as many different words' uses."""
    rng = np.random.default_rng([seed, 1])
    own, baseline = [], []
    for vectors in uses:
        own.append(_explained(np.stack(vectors, axis=1)))
        others = rng.permutation(len(uses))[: len(vectors)]
        if len(others) == len(vectors):
            picked = [uses[w][int(rng.integers(len(uses[w])))] for w in others]
            baseline.append(_explained(np.stack(picked, axis=1)))
    if not baseline:
        # There are fewer words than a word has uses: all of them, one use each.
        baseline.append(_explained(np.stack([each[0] for each in uses], axis=1)))
    return np.mean(own, axis=0), np.mean(baseline, axis=0)


def _explained(vectors_LND: FloatArray) -> Array:
    """Return the fraction of the vectors that lies in one direction, by layer: σ₁² / Σσ²."""
    exact_LND = vectors_LND.astype(np.float64)
    squares_LN = np.linalg.svd(exact_LND, compute_uv=False) ** 2
    share_L: Array = squares_LN[:, 0] / np.maximum(squares_LN.sum(1), 1e-24)
    return share_L


# -- the measurement -----------------------------------------------------------------------------


def measure_geometry(
    elmo: Elmo,
    text: TextSample,
    signature: Mapping[str, object],
    *,
    seed: int = 0,
    progress: ProgressCallback = ignore_progress,
) -> Measurement:
    """Return the measures of the trained and the untrained network as a measurement.

    Args:
        elmo: The model.
        text: The text, from `sample_text`.
        signature: What determines the measurement; see `results.make_signature`.
        seed: Random seed of the sample of uses and of the untrained network.
        progress: Called with the number of words done and of all words.
    """
    untrained = Elmo(untrained_copy(elmo.bilm, seed), threads=elmo.threads)
    total = 2 * text.words
    networks = []
    for before, model in ((0, elmo), (text.words, untrained)):

        def report(done: int, _: int | None, before: int = before) -> None:
            progress(before + done, total)

        networks.append(measure_layers(model, text, seed=seed, progress=report))
    layers: list[ResultRow] = []
    for network, each in zip(NETWORKS, networks, strict=True):
        for layer in range(elmo.layers):
            own = float(each.self_similarity_LW[layer].mean())
            anisotropy = float(each.anisotropy_L[layer])
            sentence = float(each.intra_sentence_L[layer])
            variance = float(each.variance_L[layer])
            baseline = float(each.variance_baseline_L[layer])
            layers.append(
                {
                    "network": network,
                    "layer": str(layer),
                    "anisotropy": anisotropy,
                    "self": own,
                    "self adjusted": own - anisotropy,
                    "sentence": sentence,
                    "sentence adjusted": sentence - anisotropy,
                    "variance": variance,
                    "variance adjusted": variance - baseline,
                    "length": float(each.length_L[layer]),
                }
            )
    return make_measurement(
        "geometry",
        signature,
        words=text.words,
        sentences=len(text.sentences),
        repeated=text.repeated,
        counted=len(text.counts),
        sampled=min(len(text.counts), MAX_WORDS),
        layers=layers,
        **_most_and_least_contextual(text, networks[0].self_similarity_LW),
    )


def _most_and_least_contextual(text: TextSample, self_LW: Array) -> ResultRow:
    """Return the words whose vectors depend most and least on context, by the top layer."""
    names, counts = list(text.counts), list(text.counts.values())
    with_letters = [w for w, name in enumerate(names) if any(letter.isalpha() for letter in name)]
    uses = LISTED_USES
    if sum(counts[w] >= uses for w in with_letters) < 2 * LISTED:
        uses = min(counts)
    listed = [w for w in with_letters if counts[w] >= uses]
    # By name where cosines are equal.
    listed.sort(key=lambda w: (round(float(self_LW[-1, w]), 6), names[w]))

    def make_row(w: int) -> ResultRow:
        return {"word": names[w], "uses": counts[w], "self": self_LW[:, w].tolist()}

    half = min(LISTED, len(listed) // 2)
    return {
        "listed uses": uses,
        "moving": [make_row(w) for w in listed[:half]],
        "constant": [make_row(w) for w in listed[len(listed) - half :][::-1]],
    }
