"""BiDAF with self-attention (Clark & Gardner 2017, "Simple and Effective Multi-Paragraph Reading
Comprehension"), the model for one paragraph, as the ELMo paper uses it (its appendix A.5).

A word is x beside a character CNN. One bidirectional recurrent layer encodes passage and question.
ELMo enters at its input and at its output, for both texts, as in the paper's code: that is before
the attention, which thus compares words by their contextual vectors too. Then follow attention
between passage and question, a residual layer of self-attention of the passage, and two recurrent
layers, the second on top of the first, for the beginning and the end of the answer. Any gold answer
is right: the probabilities of all their beginnings are summed, and likewise those of their ends.

What differs: LSTMs instead of GRUs, which are slower on a CPU; ELMo embeds a passage sentence by
sentence, as it was trained, not as a whole; no moving average of the weights; the attention starts
as a dot product (`Trilinear`); and, in the preset `cpu`, a feature for words that are in the
question.

Shape letters: B questions, P distinct passages, T words of a passage, J words of a question,
N words of all texts, E size of a word's input, D size of ELMo,
G size of what the attention compares, H cells of a direction, S spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from elmokit.errors import InputError
from elmokit.tasks.attention import attend, masked_softmax
from elmokit.tasks.character_cnn import CharacterCNN
from elmokit.tasks.qa.answers import AnswerSpan, Prediction
from elmokit.tasks.qa.data import Example, Passage
from elmokit.tasks.recurrent import LockedDropout, LongBiLSTM
from elmokit.tasks.task import Preset, TrainingConfig
from elmokit.tasks.word_embedding import WordEmbedding, embed_flat

LONGEST_ANSWER = 17
"""Maximum number of words of an answer."""
GROUPS = 4
"""Number of groups, by length, in which the sentences of a batch are embedded."""
SHARPNESS = 8.0
"""Initial scale of the attention's dot product."""
RUNNERS_UP = 3
"""Number of answers after the best one."""
CANDIDATES = 40
"""Number of the best spans from which the answers, which may not overlap, are chosen."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Hyperparameters of the model."""

    hidden: int
    """Number of cells H of one direction; the layers in between have the size 2H."""
    filters: int
    """Number of filters of the character CNN."""
    filter_width: int = 5
    """Width of the filters, in characters."""
    character_dim: int = 20
    """Size of a character's vector."""
    longest_word: int = 16
    """Characters of a word that are read, including the marks of its beginning and end."""
    dropout: float
    """Dropout before and after the recurrent layers, with one mask per text."""
    matches: bool = False
    """Whether words of the passage have a feature that the question contains the same word (Chen et
    al. 2017, not Clark & Gardner). It is hardly learned from few questions otherwise."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(hidden=48, filters=32, character_dim=16, dropout=0.2, matches=True),
        training=TrainingConfig(epochs=10, batch=32, rate=3e-3, patience=4),
        dropout=0.3,
        total_steps=2_700,
    ),
    "paper": Preset(
        sizes=Sizes(hidden=90, filters=100, dropout=0.2),
        training=TrainingConfig(epochs=24, batch=45, rate=1.0, patience=5, optimizer="adadelta"),
        dropout=0.5,
    ),
}


class Model(torch.nn.Module):
    """The network: questions with their passages to answers."""

    def __init__(self, words: WordEmbedding, sizes: Sizes, label_set: dict[str, Any]) -> None:
        """Create the network; `label_set` is empty."""
        super().__init__()
        self.words, self.sizes = words, sizes
        both = 2 * sizes.hidden
        compared = both + words.output_dim  # G
        self.characters = CharacterCNN(
            sizes.filters,
            windows=[sizes.filter_width],
            size=sizes.character_dim,
            longest=sizes.longest_word,
        )
        self.dropout = LockedDropout(sizes.dropout)
        self.contextual = LongBiLSTM(words.dim + sizes.filters, sizes.hidden)
        self.similarity = Trilinear(compared)
        self.merge = Merge(compared, both)
        self.of_match = torch.nn.Linear(1, both, bias=False) if sizes.matches else None
        self.self_recurrent = LongBiLSTM(both, sizes.hidden)
        self.self_similarity = Trilinear(both)
        self.self_merge = torch.nn.Linear(3 * both, both)
        self.start_recurrent = LongBiLSTM(both, sizes.hidden)
        self.end_recurrent = LongBiLSTM(2 * both, sizes.hidden)
        self.start = torch.nn.Linear(both, 1)
        self.end = torch.nn.Linear(both, 1)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Return −log P(gold beginning) − log P(gold end), the mean over questions."""
        start_BT, end_BT = self(examples)
        gold_BT = torch.zeros(2, *start_BT.shape, dtype=torch.bool)
        for b, example in enumerate(examples):
            if not example.answers:
                raise InputError(f"{example.where or example.id}: no gold answer to train on")
            first, last = zip(*(gold.span for gold in example.answers), strict=True)
            gold_BT[0, b, list(first)] = True
            gold_BT[1, b, list(last)] = True
        gold_BT = gold_BT.to(start_BT.device)
        log_p_B = sum(
            log_BT.masked_fill(~gold, -torch.inf).logsumexp(1)
            for log_BT, gold in zip((start_BT, end_BT), gold_BT, strict=True)
        )
        assert isinstance(log_p_B, Tensor)
        return -log_p_B.mean()

    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """Return the span with the largest product of the two probabilities, and the runners-up."""
        start_BT, end_BT = self(examples)
        words = start_BT.shape[1]
        # Ends from 0 to 16 words after each start: (B, T, 17).
        ends_BTS = F.pad(end_BT, (0, LONGEST_ANSWER - 1), value=-torch.inf).unfold(
            1, LONGEST_ANSWER, 1
        )
        spans_BS = (start_BT[:, :, None] + ends_BTS).flatten(1)
        scores_BS, flat_BS = spans_BS.topk(min(CANDIDATES, words), dim=1)
        first_BS = flat_BS // LONGEST_ANSWER
        last_BS = first_BS + flat_BS % LONGEST_ANSWER
        return [
            _prediction(example.passage, first, last, scores)
            for example, first, last, scores in zip(
                examples,
                first_BS.tolist(),
                last_BS.tolist(),
                scores_BS.exp().tolist(),
                strict=True,
            )
        ]

    def forward(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """Return the log probabilities of each word to begin and to end the answer, (B, T) each."""
        # Questions about one passage share what is computed from the passage alone.
        passages = list({example.passage.text: example.passage for example in examples}.values())
        row = {passage.text: k for k, passage in enumerate(passages)}
        rows_B = torch.tensor([row[example.passage.text] for example in examples])
        h_PTG, lengths_P = self._encode([passage.sentences for passage in passages])
        q_BJG, q_lengths_B = self._encode([[example.question] for example in examples])
        lengths_B = lengths_P[rows_B]
        rows_B = rows_B.to(h_PTG.device)
        mask_BT = _mask(lengths_B, h_PTG.shape[1]).to(h_PTG.device)
        q_mask_BJ = _mask(q_lengths_B, q_BJG.shape[1]).to(h_PTG.device)

        match_BT = None
        if self.of_match is not None:
            match_BT = _matches(examples, h_PTG.shape[1]).to(h_PTG.device)
        g_BTH = self._attend(h_PTG[rows_B], mask_BT, q_BJG, q_mask_BJ, match_BT)
        g_BTH = self.dropout(g_BTH + self._self_attend(g_BTH, lengths_B, mask_BT))
        start_BTH = self.start_recurrent(g_BTH, lengths_B)
        end_BTH = self.end_recurrent(torch.cat([g_BTH, start_BTH], -1), lengths_B)
        scores_BT = self.start(start_BTH)[..., 0], self.end(end_BTH)[..., 0]
        start_BT, end_BT = (
            scores.masked_fill(~mask_BT, -torch.inf).log_softmax(1) for scores in scores_BT
        )
        return start_BT, end_BT

    def _encode(self, texts: Sequence[Sequence[Sequence[str]]]) -> tuple[Tensor, Tensor]:
        """Return [h ; ELMo] of the words of texts, and the number of words of each.

        A text is one or more sentences.
        """
        lengths = torch.tensor([sum(map(len, text)) for text in texts])
        mask = _mask(lengths, int(lengths.max()))
        flat_x_NE, flat_elmo_ND = self._embed([sentence for text in texts for sentence in text])
        mask = mask.to(flat_x_NE.device)

        def pad(rows_NE: Tensor) -> Tensor:
            padded = rows_NE.new_zeros(*mask.shape, rows_NE.shape[1])
            padded[mask] = rows_NE
            return padded

        h = self.dropout(self.contextual(self.dropout(pad(flat_x_NE)), lengths))
        if flat_elmo_ND is not None:
            h = torch.cat([h, pad(flat_elmo_ND)], -1)
        return h, lengths

    def _embed(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor | None]:
        """Return [x ; characters] of all words, one after another, and ELMo for the output."""
        x_NE, elmo_ND = embed_flat(self.words, sentences, batch=-(-len(sentences) // GROUPS))
        flat = [word for sentence in sentences for word in sentence]
        return torch.cat([x_NE, self.characters(flat)], -1), elmo_ND

    def _attend(
        self,
        h_BTG: Tensor,
        mask_BT: Tensor,
        q_BJG: Tensor,
        q_mask_BJ: Tensor,
        match_BT: Tensor | None,
    ) -> Tensor:
        """Return BiDAF's attention: from each word of the passage to the question, and back."""
        a_BTJ = self.similarity(h_BTG, q_BJG).masked_fill(~q_mask_BJ[:, None], -torch.inf)
        q_c_B1G = masked_softmax(a_BTJ.amax(2), mask_BT)[:, None] @ h_BTG
        merged: Tensor = self.merge(h_BTG, a_BTJ.softmax(2), q_BJG, q_c_B1G)
        if self.of_match is not None and match_BT is not None:
            merged = merged + self.of_match(match_BT[:, :, None])
        return merged.relu()

    def _self_attend(self, g_BTH: Tensor, lengths_B: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the self-attention of the passage: from each word to all others."""
        s_BTH = self.dropout(self.self_recurrent(self.dropout(g_BTH), lengths_B))
        a_BTT = self.self_similarity(s_BTH, s_BTH)
        diagonal_TT = torch.eye(a_BTT.shape[1], dtype=torch.bool, device=a_BTT.device)
        # A finite number, so that a passage of one word attends to itself, not to nothing.
        c_BTH = attend(a_BTT.masked_fill(diagonal_TT, -1e4), s_BTH, mask_BT)
        merged: Tensor = self.self_merge(torch.cat([s_BTH, c_BTH, s_BTH * c_BTH], -1))
        return merged.relu()


class Trilinear(torch.nn.Module):
    """The similarity a_ij = w_1·h_i + w_2·q_j + w_3·(h_i ∘ q_j)."""

    def __init__(self, size: int) -> None:
        """Create the layer for h and q of `size` numbers."""
        super().__init__()
        # It starts as a dot product, so that words attend to similar words from the first step on.
        # From random numbers that is learned late, and hardly from few questions.
        w_3 = torch.full((size,), SHARPNESS * size**-0.5)
        self.w = torch.nn.Parameter(torch.stack([torch.zeros(size), torch.zeros(size), w_3]))

    def forward(self, h_BTG: Tensor, q_BJG: Tensor) -> Tensor:
        """Return the similarities, (B, T, J)."""
        w_1, w_2, w_3 = self.w.unbind()
        a_BTJ: Tensor = (h_BTG * w_3 + w_2) @ q_BJG.mT
        return a_BTJ + (h_BTG @ w_1)[:, :, None]


class Merge(torch.nn.Module):
    """A linear layer over [h ; c ; h ∘ c ; q_c ∘ c], where c = p·q is the attended vector.

    Two of the four depend on the passage only through p, so that their matrices are applied to the
    words of the question, which are few, and not to those of the passage.
    """

    def __init__(self, size: int, out: int) -> None:
        """Create the layer for h and c of `size` numbers and outputs of `out` numbers."""
        super().__init__()
        self.of_h = torch.nn.Linear(size, out)
        self.of_c = torch.nn.Linear(size, out, bias=False)
        self.of_hc = torch.nn.Linear(size, out, bias=False)
        self.of_qc = torch.nn.Linear(size, out, bias=False)

    def forward(self, h_BTG: Tensor, p_BTJ: Tensor, q_BJG: Tensor, q_c_B1G: Tensor) -> Tensor:
        """Return (B, T, out)."""
        question_BJH = self.of_c(q_BJG) + self.of_qc(q_c_B1G * q_BJG)
        merged: Tensor = (
            self.of_h(h_BTG) + self.of_hc(h_BTG * (p_BTJ @ q_BJG)) + p_BTJ @ question_BJH
        )
        return merged


def _matches(examples: Sequence[Example], words: int) -> Tensor:
    """Return (B, T): 1 for words of the passage that the question contains in any case, else 0."""
    match_BT = torch.zeros(len(examples), words)
    for b, example in enumerate(examples):
        question = {word.lower() for word in example.question}
        flat = (word for sentence in example.passage.sentences for word in sentence)
        match_BT[b, [t for t, word in enumerate(flat) if word.lower() in question]] = 1
    return match_BT


def _mask(lengths_B: Tensor, longest: int) -> Tensor:
    """Return a mask that is true where there is a word."""
    return torch.arange(longest) < lengths_B[:, None]


def _prediction(
    passage: Passage, first: list[int], last: list[int], scores: list[float]
) -> Prediction:
    """Return the best span, and the best of those that do not overlap each other."""
    chosen: list[tuple[int, int, float]] = []
    for begin, end, score in zip(first, last, scores, strict=True):
        if score > 0 and all(end < b or e < begin for b, e, _ in chosen):
            chosen.append((begin, end, score))
    if not chosen:  # all are so improbable that their probabilities are 0
        chosen = [(first[0], last[0], scores[0])]
    answers = []
    for begin, end, score in chosen[: 1 + RUNNERS_UP]:
        start, stop = passage.characters(begin, end)
        answers.append(AnswerSpan(passage.text[start:stop], start, stop, score))
    return Prediction(answers[0], tuple(answers[1:]))
