"""End-to-end coreference by span ranking (Lee et al. 2017), from words to clusters.

Every span up to a length gets a mention score s_m; the best are kept, and each of them chooses an
antecedent among the kept spans before it, or none (ε), by s(i, j) = s_m(i) + s_m(j) + s_a(i, j),
s(i, ε) = 0. The loss is that of the total probability of the gold antecedents. The chosen
antecedents join spans to clusters, so that a cluster of one mention is never predicted; but gold
ones can teach what a mention is (`Sizes.mention_loss`). The genre of a document is not used.

The same numbers are computed with less work than the paper's formulas suggest: the first layer of a
feed-forward network is linear in the parts of its input, so that each part is multiplied once for
each word, or each kept span, and only sums are formed for all spans, or all pairs. That holds for
the soft head too: a product with an average of words is the average of the products.

Shape letters: B sentences, T words of a sentence, N words of the document, E size of x, D size of
ELMo, H size of the LSTM's output, C size of x*, W widths of spans, M spans kept, K antecedents,
R rows of M, G size of a span, P size of its product, F size of a hidden layer, Q size of a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from elmokit.tasks.character_cnn import CharacterCNN
from elmokit.tasks.coref.data import Clusters, Example, Mention, PredictedClusters
from elmokit.tasks.recurrent import BiLSTM, LockedDropout
from elmokit.tasks.task import Preset, TrainingConfig
from elmokit.tasks.word_embedding import WordEmbedding, embed_flat

BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)
"""Lower bounds of the buckets of distances between kept spans."""
WINDOWS, CHARACTER_DIM, LONGEST_WORD = (3, 4, 5), 8, 24
"""Widths of the filters, size of a character's vector and bytes of a word of the character CNN."""
PAIRS_AT_ONCE = 1 << 17
"""Number of pairs of spans that are scored at once, which bounds the memory."""
MIN_KEPT = 20
"""Minimum number of kept spans: λN of a sentence or two would be too few to choose from."""
SENTENCE_BATCH = 12
"""Number of sentences that are embedded together."""
IMPOSSIBLE = -1e9
"""The score of what cannot be, such as an antecedent that does not exist."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Hyperparameters of the model; the defaults are those of the paper."""

    hidden: int = 200
    """Number of LSTM cells of one direction."""
    ffnn: int = 150
    """Size of the hidden layers of the feed-forward networks."""
    depth: int = 2
    """Number of hidden layers of the networks that score spans and pairs."""
    features: int = 20
    """Size of the vectors for the width of a span, the distance of a pair, and its speakers."""
    characters: int = 50
    """Number of character filters of each width; 0 for no character CNN."""
    width: int = 10
    """Maximum number of words of a span."""
    keep: float = 0.4
    """λ: number of kept spans per word of the document."""
    antecedents: int = 250
    """K: number of kept spans before a span that may be its antecedent."""
    product: int = 0
    """Size to which spans are projected before they are multiplied with each other, which is most
    of the work; 0 for no projection, as in the paper."""
    sentences: int = 50
    """Maximum number of sentences of a document per training step."""
    mention_loss: float = 0.0
    """Weight of a second loss, on s_m: gold mentions, also those in clusters of one, should score
    above 0, other spans below. (Not in the paper, whose data has no clusters of one.)"""
    dropout: float = 0.2
    """Dropout of x*, hidden layers and features."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(
            hidden=64,
            ffnn=100,
            depth=1,
            features=20,
            characters=20,
            width=8,
            keep=0.22,
            antecedents=100,
            product=100,
            sentences=40,
            mention_loss=0.5,
        ),
        training=TrainingConfig(epochs=30, batch=1, rate=0.002, patience=10, steps=50),
        dropout=0.4,
        total_steps=2_400,
    ),
    "paper": Preset(
        sizes=Sizes(),
        training=TrainingConfig(epochs=150, batch=1, rate=0.001, patience=10),
        dropout=0.5,
    ),
}


class _Spans(NamedTuple):
    """The kept spans, in the order of the text."""

    start_M: Tensor
    """Position of the first word in the document."""
    last_M: Tensor
    """Position of the last word in the document."""
    width_M: Tensor
    """Number of words minus 1."""
    s_m_M: Tensor
    """Mention score."""
    head_MW: Tensor
    """Weight of each word of the span as its head."""


class ScoreNetwork(torch.nn.Module):
    """A feed-forward network to a score, after the linear part of its first layer.

    All spans with the same start share a dropout mask, and so do all antecedents of a span: a mask
    for each would cost as much time as the rest.
    """

    def __init__(self, size: int, depth: int, dropout: float) -> None:
        """Create a network of `depth` hidden layers of `size` units."""
        super().__init__()
        self.dropout = LockedDropout(dropout)
        self.layers = torch.nn.Sequential(
            *(
                layer
                for _ in range(depth - 1)
                for layer in (torch.nn.Linear(size, size), torch.nn.ReLU(), self.dropout)
            ),
            torch.nn.Linear(size, 1),
        )

    def forward(self, sum_NWF: Tensor) -> Tensor:
        """Map (N, W, F) to scores (N, W)."""
        score: Tensor = self.layers(self.dropout(functional.relu(sum_NWF)))
        return score.squeeze(-1)


class Model(torch.nn.Module):
    """The network: documents to clusters of mentions, by span ranking."""

    def __init__(self, words: WordEmbedding, sizes: Sizes, label_set: dict[str, Any]) -> None:
        """Create the network; `label_set` is empty."""
        super().__init__()
        self.words, self.sizes = words, sizes
        self.characters: CharacterCNN | None = None
        if sizes.characters:
            self.characters = CharacterCNN(
                sizes.characters, windows=WINDOWS, size=CHARACTER_DIM, longest=LONGEST_WORD
            )
        e = words.dim + (self.characters.dim if self.characters else 0)
        self.lstm = BiLSTM(e, sizes.hidden)
        self.dropout = torch.nn.Dropout(sizes.dropout)
        c = self.lstm.dim + words.output_dim
        f, q = sizes.ffnn, sizes.features

        def linear(size: int, to: int = f, bias: bool = False) -> torch.nn.Linear:
            return torch.nn.Linear(size, to, bias=bias)

        self.head = torch.nn.Sequential(linear(c, bias=True), torch.nn.ReLU(), linear(f, 1))  # α
        self.width = torch.nn.Embedding(sizes.width, q)
        # s_m: [x*_start; x*_last; head; width].
        self.m_start, self.m_last, self.m_head = linear(c), linear(c), linear(e)
        self.m_width = linear(q, bias=True)
        self.m_top = ScoreNetwork(f, sizes.depth, sizes.dropout)
        # s_a: [g_i; g_j; g_i ∘ g_j; distance; speaker].
        g = 2 * c + e + q
        self.distance = torch.nn.Embedding(len(BUCKETS), q)
        self.speaker = torch.nn.Embedding(3, q)  # unknown, different, same
        self.a_i, self.a_j = linear(g), linear(g)
        self.project = linear(g, sizes.product, bias=True) if sizes.product else None
        self.a_product = linear(sizes.product or g)
        self.a_distance, self.a_speaker = linear(q, bias=True), linear(q)
        self.a_top = ScoreNetwork(f, sizes.depth, sizes.dropout)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return −log P of the gold antecedents, the mean over the kept spans of each document."""
        losses = []
        for example in examples:
            example = self._window(example)
            document = _Document(example, self.sizes.width)
            s_m_NW, spans, s_MK, antecedent_MK = self._scores(document)
            cluster_NW = document.clusters(example, self.sizes.width).to(s_m_NW.device)
            cluster_M = cluster_NW[spans.start_M, spans.width_M]
            gold_MK = (cluster_M[antecedent_MK] == cluster_M[:, None]) & (cluster_M > 0)[:, None]
            gold_MK &= s_MK > IMPOSSIBLE / 2
            # ε comes first: it is right for a span without a gold antecedent among the kept spans.
            gold_MK1 = torch.cat([~gold_MK.any(dim=1, keepdim=True), gold_MK], dim=1)
            s_MK1 = torch.cat([s_MK.new_zeros(len(s_MK), 1), s_MK], dim=1)
            right_M = s_MK1.masked_fill(~gold_MK1, IMPOSSIBLE).logsumexp(dim=1)
            loss = (s_MK1.logsumexp(dim=1) - right_M).sum()
            if self.sizes.mention_loss:
                exists_NW = document.exists_NW.to(s_m_NW.device)
                loss = loss + self.sizes.mention_loss * functional.binary_cross_entropy_with_logits(
                    s_m_NW[exists_NW], (cluster_NW > 0)[exists_NW].float(), reduction="sum"
                )
            losses.append(loss / len(s_MK))
        return torch.stack(losses).mean()

    def predict(self, examples: Sequence[Example]) -> list[Clusters]:
        """Return the clusters of each document."""
        predictions: list[Clusters] = []
        for example in examples:
            document = _Document(example, self.sizes.width)
            _, spans, s_MK, antecedent_MK = self._scores(document)
            s_M, best_M = s_MK.max(dim=1)
            chosen = antecedent_MK.gather(1, best_M[:, None]).squeeze(1)
            antecedents = torch.where(s_M > 0, chosen, -1).tolist()
            # Among all antecedents and none, whose score is 0.
            all_M = torch.cat([s_MK.new_zeros(len(s_MK), 1), s_MK], dim=1).logsumexp(dim=1)
            probabilities = (s_M - all_M).exp().tolist()
            starts, widths = spans.start_M.tolist(), spans.width_M.tolist()
            mentions = [document.mention(*span) for span in zip(starts, widths, strict=True)]
            clusters = PredictedClusters(_join_clusters(mentions, antecedents))
            clusters.confidences = {
                mention: probability
                for mention, antecedent, probability in zip(
                    mentions, antecedents, probabilities, strict=True
                )
                if antecedent >= 0
            }
            predictions.append(clusters)
        return predictions

    def _window(self, example: Example) -> Example:
        """Return consecutive sentences of a document, from a random one on, if it is too long."""
        count = self.sizes.sentences
        if len(example.sentences) <= count:
            return example
        first = int(torch.randint(len(example.sentences) - count + 1, ()))
        clusters = example.clusters
        if clusters is not None:
            moved = (
                tuple(
                    mention._replace(sentence=mention.sentence - first)
                    for mention in cluster
                    if first <= mention.sentence < first + count
                )
                for cluster in clusters
            )
            clusters = tuple(cluster for cluster in moved if cluster)
        return Example(
            example.document,
            example.sentences[first : first + count],
            example.speakers[first : first + count],
            clusters,
            example.where,
        )

    def _scores(self, document: _Document) -> tuple[Tensor, _Spans, Tensor, Tensor]:
        """Return s_m of all spans, the kept spans, s(i, j) of their pairs, and each j."""
        x_NE, elmo_ND = self._embed(document)
        mask_BT = torch.arange(int(document.lengths_B.max())) < document.lengths_B[:, None]
        mask_BT = mask_BT.to(x_NE.device)
        x_BTE = x_NE.new_zeros(*mask_BT.shape, x_NE.shape[1])
        x_BTE[mask_BT] = x_NE
        h_NH = self.dropout(self.lstm(x_BTE, document.lengths_B)[mask_BT])
        star_NC = torch.cat([h_NH, elmo_ND], dim=1)
        s_m_NW, head_NWW = self._mention_scores(x_NE, star_NC, document)
        spans = self._keep_best(s_m_NW, head_NWW, document)
        g_MG = self._representations(x_NE, star_NC, spans)
        s_MK, antecedent_MK = self._antecedent_scores(g_MG, spans, document)
        return s_m_NW, spans, s_MK, antecedent_MK

    def _embed(self, document: _Document) -> tuple[Tensor, Tensor]:
        """Return x of the words and ELMo for the output, of size 0 if it is not used there."""
        x_NE, elmo_ND = embed_flat(self.words, document.sentences, SENTENCE_BATCH)
        if elmo_ND is None:
            elmo_ND = x_NE[:, :0]
        if self.characters is not None:
            flat = [word for sentence in document.sentences for word in sentence]
            x_NE = torch.cat([x_NE, self.words.dropout(self.characters(flat))], dim=1)
        return x_NE, elmo_ND

    def _mention_scores(
        self, x_NE: Tensor, star_NC: Tensor, document: _Document
    ) -> tuple[Tensor, Tensor]:
        """Return s_m of the span of each width at each word, and the weight of each word as head.

        Where no such span exists the numbers mean nothing.
        """
        width = self.sizes.width
        position_NW = document.position_NW.to(x_NE.device)
        alpha_N = self.head(star_NC).squeeze(1)
        # The head of a span of w words is among the first w of the W words from its start.
        inside_WW = torch.ones(width, width, dtype=torch.bool, device=x_NE.device).tril()
        head_NWW = alpha_N[position_NW][:, None].masked_fill(~inside_WW, IMPOSSIBLE).softmax(dim=2)
        words_NWF = functional.embedding(position_NW, self.m_head(x_NE))
        sum_NWF = torch.bmm(head_NWW, words_NWF)
        sum_NWF = sum_NWF + self.m_start(star_NC)[:, None]
        sum_NWF = sum_NWF + functional.embedding(position_NW, self.m_last(star_NC))
        sum_NWF = sum_NWF + self.m_width(self.dropout(self.width.weight))
        return self.m_top(sum_NWF), head_NWW

    def _keep_best(self, s_m_NW: Tensor, head_NWW: Tensor, document: _Document) -> _Spans:
        """Return the λN best spans of which no two cross."""
        masked_NW = s_m_NW.detach().cpu().masked_fill(~document.exists_NW, -torch.inf)
        number = max(MIN_KEPT, int(self.sizes.keep * len(masked_NW)))
        order = masked_NW.flatten().argsort(descending=True, stable=True)
        best = order[: int(document.exists_NW.sum())].tolist()
        kept = sorted(_without_crossing(best, self.sizes.width, len(masked_NW), number))
        flat_M = torch.tensor(kept, device=s_m_NW.device)
        start_M, width_M = flat_M // self.sizes.width, flat_M % self.sizes.width
        return _Spans(
            start_M,
            start_M + width_M,
            width_M,
            s_m_NW[start_M, width_M],
            head_NWW[start_M, width_M],
        )

    def _representations(self, x_NE: Tensor, star_NC: Tensor, spans: _Spans) -> Tensor:
        """Return g of the kept spans: [x*_start; x*_last; head; width]."""
        position_MW = spans.start_M[:, None] + torch.arange(self.sizes.width, device=x_NE.device)
        x_MWE = functional.embedding(position_MW.clamp(max=len(x_NE) - 1), x_NE)
        head_ME = torch.bmm(spans.head_MW[:, None], x_MWE).squeeze(1)
        width_MQ = self.dropout(self.width(spans.width_M))
        return torch.cat([star_NC[spans.start_M], star_NC[spans.last_M], head_ME, width_MQ], dim=1)

    def _antecedent_scores(
        self, g_MG: Tensor, spans: _Spans, document: _Document
    ) -> tuple[Tensor, Tensor]:
        """Return s(i, j) with the K spans before each, and their numbers.

        The score is `IMPOSSIBLE` where there are fewer spans before.
        """
        count = len(g_MG)
        antecedents = max(1, min(self.sizes.antecedents, count - 1))
        device = g_MG.device
        offset_K = torch.arange(1, antecedents + 1, device=device)
        antecedent_MK = torch.arange(count, device=device)[:, None] - offset_K
        exists_MK = antecedent_MK >= 0
        antecedent_MK = antecedent_MK.clamp(min=0)
        speaker_M = document.speaker_N.to(device)[spans.start_M]
        i_MF, j_MF = self.a_i(g_MG), self.a_j(g_MG)
        product_MP = g_MG if self.project is None else self.project(g_MG)
        bucket_K = torch.bucketize(offset_K, torch.tensor(BUCKETS, device=device), right=True) - 1
        distance_KF = self.a_distance(self.dropout(self.distance(bucket_K)))
        speaker_3F = self.a_speaker(self.dropout(self.speaker.weight))

        def score_block(rows: slice) -> Tensor:
            j_RK = antecedent_MK[rows]
            pair_RKF = self.a_product(
                product_MP[rows, None] * functional.embedding(j_RK, product_MP)
            )
            pair_RKF = pair_RKF + i_MF[rows, None] + functional.embedding(j_RK, j_MF) + distance_KF
            same_RK = 1 + (speaker_M[rows, None] == speaker_M[j_RK]).long()
            same_RK = same_RK.where((speaker_M[rows, None] > 0) & (speaker_M[j_RK] > 0), 0)
            pair_RKF = pair_RKF + functional.embedding(same_RK, speaker_3F)
            s_m_RK = spans.s_m_M[rows, None] + spans.s_m_M[j_RK]
            s_a_RK: Tensor = self.a_top(pair_RKF)
            return s_m_RK + s_a_RK

        # In blocks, since the pairs of a long document do not fit into memory.
        size = max(1, PAIRS_AT_ONCE // antecedents)
        s_MK = torch.cat([score_block(slice(k, k + size)) for k in range(0, count, size)])
        return s_MK.masked_fill(~exists_MK, IMPOSSIBLE), antecedent_MK


class _Document:
    """A document as one sequence of N words, with the spans in it."""

    def __init__(self, example: Example, width: int) -> None:
        self.sentences = example.sentences
        lengths = [len(sentence) for sentence in example.sentences]
        self.lengths_B = torch.tensor(lengths)
        self.sentence_N = torch.arange(len(lengths)).repeat_interleave(self.lengths_B)
        self.first = torch.tensor([0, *lengths[:-1]]).cumsum(0)
        """Position of the first word of each sentence."""
        numbers: dict[str, int] = {"": 0}
        speakers = [numbers.setdefault(speaker, len(numbers)) for speaker in example.speakers]
        self.speaker_N = torch.tensor(speakers)[self.sentence_N]
        count = len(self.sentence_N)
        position_NW = torch.arange(count)[:, None] + torch.arange(width)
        inside_NW = position_NW < count
        self.position_NW = position_NW.clamp(max=count - 1)
        """Last word of the span of each width at each word."""
        self.exists_NW = inside_NW & (self.sentence_N[self.position_NW] == self.sentence_N[:, None])

    def clusters(self, example: Example, width: int) -> Tensor:
        """Return (N, W): the number of each span's gold cluster, from 1; 0 if it is no mention."""
        cluster_NW = torch.zeros(self.exists_NW.shape, dtype=torch.long)
        for number, cluster in enumerate(example.clusters or (), start=1):
            for sentence, start, end in cluster:
                if end - start <= width:
                    cluster_NW[int(self.first[sentence]) + start, end - start - 1] = number
        return cluster_NW

    def mention(self, start: int, width: int) -> Mention:
        """Return the mention at a position in the document; `width` is its length minus 1."""
        sentence = int(self.sentence_N[start])
        begin = start - int(self.first[sentence])
        return Mention(sentence, begin, begin + width + 1)


def _without_crossing(best: list[int], width: int, words: int, number: int) -> list[int]:
    """Return the first `number` spans that do not cross.

    A span is the number `start * width + (length - 1)`.
    """
    kept: list[int] = []
    # At each word: the last word of the longest kept span that begins there, and the first word of
    # the longest that ends there.
    furthest, earliest = [-1] * words, [words] * words
    for span in best:
        start, extra = divmod(span, width)
        last = start + extra
        if any(furthest[t] > last for t in range(start + 1, last + 1)):
            continue
        if any(earliest[t] < start for t in range(start, last)):
            continue
        kept.append(span)
        if len(kept) == number:
            break
        furthest[start] = max(furthest[start], last)
        earliest[last] = min(earliest[last], start)
    return kept


def _join_clusters(mentions: Sequence[Mention], antecedents: Sequence[int]) -> Clusters:
    """Return the clusters that the chosen antecedents join; -1 stands for no antecedent."""
    cluster_of: dict[int, list[Mention]] = {}
    clusters = []
    for i, j in enumerate(antecedents):
        if j < 0:
            continue
        if j not in cluster_of:
            cluster_of[j] = [mentions[j]]
            clusters.append(cluster_of[j])
        cluster_of[j].append(mentions[i])
        cluster_of[i] = cluster_of[j]
    return tuple(sorted(tuple(sorted(cluster)) for cluster in clusters))
