"""BiDAF with self-attention (Clark & Gardner 2017, "Simple and Effective Multi-Paragraph Reading
Comprehension"), the model for one paragraph, as the ELMo paper uses it (its appendix A.5).

A word is x beside a character CNN. One bidirectional recurrent layer reads passage and question.
ELMo goes to its input and to its output, of both texts, as in the paper's code: that is before
the attention, which so compares words by their contextual vectors too. Then attention between
passage and question, a residual layer of attention of the passage to itself, and two recurrent
layers, the second on top of the first, for where the answer begins and ends. Any gold answer is
right: the probability of all their beginnings is summed, and so for their ends.

What differs: LSTMs stand for GRUs, which are slower on a CPU; ELMo reads a passage by its
sentences, as it was taught, not as a whole; no moving average of the weights; the attention begins
as a dot product (`Trilinear`); and, in the preset `cpu`, words know whether the question has them.

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
from elmokit.tasks.attention import attended, masked_softmax
from elmokit.tasks.characters import Characters
from elmokit.tasks.qa.answers import Answer, Prediction
from elmokit.tasks.qa.data import Example, Passage
from elmokit.tasks.recurrent import LockedDropout, LongBiLSTM
from elmokit.tasks.task import Place, Preset, Schooling
from elmokit.tasks.word_embedding import Words, in_rows

PAPER = "BiDAF with self-attention (Clark & Gardner 2017)"
PLACE: Place = "both"

LONGEST_ANSWER = 17
"""Words."""
GROUPS = 4
"""In how many parts the sentences of a batch get their vectors."""
SHARPNESS = 8.0
"""Of the attention at first."""
RUNNERS_UP = 3
CANDIDATES = 40
"""How many of the best spans the runners-up, which may not overlap, are taken from."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The network's numbers."""

    hidden: int
    """H; the layers between have 2H."""
    filters: int
    """Of the character CNN."""
    filter_width: int = 5
    """Characters."""
    character_dim: int = 20
    longest_word: int = 16
    """Characters of a word that the character CNN reads, its two marks included."""
    dropout: float
    """Before and behind the recurrent layers; one mask for all words of a text."""
    matches: bool = False
    """Whether the passage's words are told if the question has the same word (Chen et al. 2017, not
    Clark & Gardner). From few questions that is hardly learned otherwise."""


PRESETS = {
    "cpu": Preset(
        sizes=Sizes(hidden=48, filters=32, character_dim=16, dropout=0.2, matches=True),
        schooling=Schooling(epochs=5, batch=32, rate=3e-3, patience=3),
        dropout=0.3,
    ),
    "paper": Preset(
        sizes=Sizes(hidden=90, filters=100, dropout=0.2),
        schooling=Schooling(epochs=24, batch=45, rate=1.0, patience=5, optimizer="adadelta"),
        dropout=0.5,
    ),
}


class Model(torch.nn.Module):
    """From passages and questions to answers."""

    def __init__(self, words: Words, sizes: Sizes, facts: dict[str, Any]) -> None:
        """There are no `facts` to remember."""
        super().__init__()
        self.words, self.sizes = words, sizes
        both = 2 * sizes.hidden
        compared = both + words.output_dim  # G
        self.characters = Characters(
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
        """−log p(a gold answer begins here) − log p(one ends here), the mean over questions."""
        start_BT, end_BT = self(examples)
        gold_BT = torch.zeros(2, *start_BT.shape, dtype=torch.bool)
        for b, example in enumerate(examples):
            if not example.answers:
                raise InputError(f"{example.where or example.id}: no answer to learn from")
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
        """The span with the largest product of the two probabilities, not too long."""
        start_BT, end_BT = self(examples)
        words = start_BT.shape[1]
        # Ends from 0 to 16 words behind each start: (B, T, 17).
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
        """The logarithms of the probabilities of each word to begin and to end it: (B, T) twice."""
        # Questions about one passage share what is computed from the passage alone.
        passages = list({example.passage.text: example.passage for example in examples}.values())
        row = {passage.text: k for k, passage in enumerate(passages)}
        rows_B = torch.tensor([row[example.passage.text] for example in examples])
        h_PTG, lengths_P = self._read([passage.sentences for passage in passages])
        q_BJG, q_lengths_B = self._read([[example.question] for example in examples])
        lengths_B = lengths_P[rows_B]
        rows_B = rows_B.to(h_PTG.device)
        mask_BT = _mask(lengths_B, h_PTG.shape[1]).to(h_PTG.device)
        q_mask_BJ = _mask(q_lengths_B, q_BJG.shape[1]).to(h_PTG.device)

        match_BT = None
        if self.of_match is not None:
            match_BT = _matches(examples, h_PTG.shape[1]).to(h_PTG.device)
        g_BTH = self._attend(h_PTG[rows_B], mask_BT, q_BJG, q_mask_BJ, match_BT)
        g_BTH = self.dropout(g_BTH + self._attend_to_itself(g_BTH, lengths_B, mask_BT))
        start_BTH = self.start_recurrent(g_BTH, lengths_B)
        end_BTH = self.end_recurrent(torch.cat([g_BTH, start_BTH], -1), lengths_B)
        scores_BT = self.start(start_BTH)[..., 0], self.end(end_BTH)[..., 0]
        start_BT, end_BT = (
            scores.masked_fill(~mask_BT, -torch.inf).log_softmax(1) for scores in scores_BT
        )
        return start_BT, end_BT

    def _read(self, texts: Sequence[Sequence[Sequence[str]]]) -> tuple[Tensor, Tensor]:
        """Texts of one or more sentences: [h ; ELMo] of their words, and how many each has."""
        lengths = torch.tensor([sum(map(len, text)) for text in texts])
        there = _mask(lengths, int(lengths.max()))
        flat_x_NE, flat_elmo_ND = self._embed([sentence for text in texts for sentence in text])
        there = there.to(flat_x_NE.device)

        def join(rows_NE: Tensor) -> Tensor:
            joined = rows_NE.new_zeros(*there.shape, rows_NE.shape[1])
            joined[there] = rows_NE
            return joined

        h = self.dropout(self.contextual(self.dropout(join(flat_x_NE)), lengths))
        if flat_elmo_ND is not None:
            h = torch.cat([h, join(flat_elmo_ND)], -1)
        return h, lengths

    def _embed(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor | None]:
        """All words, one after another: x beside characters, and ELMo for the output."""
        x_NE, elmo_ND = in_rows(self.words, sentences, together=-(-len(sentences) // GROUPS))
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
        """BiDAF's attention: each word of the passage to the question, and the other way."""
        a_BTJ = self.similarity(h_BTG, q_BJG).masked_fill(~q_mask_BJ[:, None], -torch.inf)
        q_c_B1G = masked_softmax(a_BTJ.amax(2), mask_BT)[:, None] @ h_BTG
        merged: Tensor = self.merge(h_BTG, a_BTJ.softmax(2), q_BJG, q_c_B1G)
        if self.of_match is not None and match_BT is not None:
            merged = merged + self.of_match(match_BT[:, :, None])
        return merged.relu()

    def _attend_to_itself(self, g_BTH: Tensor, lengths_B: Tensor, mask_BT: Tensor) -> Tensor:
        """Each word of the passage to all others."""
        s_BTH = self.dropout(self.self_recurrent(self.dropout(g_BTH), lengths_B))
        a_BTT = self.self_similarity(s_BTH, s_BTH)
        itself_TT = torch.eye(a_BTT.shape[1], dtype=torch.bool, device=a_BTT.device)
        # A finite number, so that a passage of one word attends to itself and not to nothing.
        c_BTH = attended(a_BTT.masked_fill(itself_TT, -1e4), s_BTH, mask_BT)
        merged: Tensor = self.self_merge(torch.cat([s_BTH, c_BTH, s_BTH * c_BTH], -1))
        return merged.relu()


class Trilinear(torch.nn.Module):
    """a_ij = w_1·h_i + w_2·q_j + w_3·(h_i ∘ q_j)."""

    def __init__(self, size: int) -> None:
        """`size` is that of h and of q."""
        super().__init__()
        # It begins as a dot product: words look for their like from the first step on. From random
        # numbers that is learned late, and from few questions hardly.
        w_3 = torch.full((size,), SHARPNESS * size**-0.5)
        self.w = torch.nn.Parameter(torch.stack([torch.zeros(size), torch.zeros(size), w_3]))

    def forward(self, h_BTG: Tensor, q_BJG: Tensor) -> Tensor:
        """(B, T, J)."""
        w_1, w_2, w_3 = self.w.unbind()
        a_BTJ: Tensor = (h_BTG * w_3 + w_2) @ q_BJG.mT
        return a_BTJ + (h_BTG @ w_1)[:, :, None]


class Merge(torch.nn.Module):
    """A linear layer over [h ; c ; h ∘ c ; q_c ∘ c], where c = p·q is what is attended to.

    Two of the four depend on i only through p, so that their matrices are applied to the words of
    the question, which are few, and not to those of the passage.
    """

    def __init__(self, size: int, out: int) -> None:
        """`size` is that of h and of c."""
        super().__init__()
        self.of_h = torch.nn.Linear(size, out)
        self.of_c = torch.nn.Linear(size, out, bias=False)
        self.of_hc = torch.nn.Linear(size, out, bias=False)
        self.of_qc = torch.nn.Linear(size, out, bias=False)

    def forward(self, h_BTG: Tensor, p_BTJ: Tensor, q_BJG: Tensor, q_c_B1G: Tensor) -> Tensor:
        """(B, T, out)."""
        seen_BJH = self.of_c(q_BJG) + self.of_qc(q_c_B1G * q_BJG)
        merged: Tensor = self.of_h(h_BTG) + self.of_hc(h_BTG * (p_BTJ @ q_BJG)) + p_BTJ @ seen_BJH
        return merged


def _matches(examples: Sequence[Example], words: int) -> Tensor:
    """(B, T): 1 for a word of the passage that the question has too, whatever its case, else 0."""
    match_BT = torch.zeros(len(examples), words)
    for b, example in enumerate(examples):
        asked = {word.lower() for word in example.question}
        flat = (word for sentence in example.passage.sentences for word in sentence)
        match_BT[b, [t for t, word in enumerate(flat) if word.lower() in asked]] = 1
    return match_BT


def _mask(lengths_B: Tensor, longest: int) -> Tensor:
    """True where there is a word."""
    return torch.arange(longest) < lengths_B[:, None]


def _prediction(
    passage: Passage, first: list[int], last: list[int], scores: list[float]
) -> Prediction:
    """The best span, and the best of those that do not overlap each other."""
    chosen: list[tuple[int, int, float]] = []
    for begin, end, score in zip(first, last, scores, strict=True):
        if score > 0 and all(end < b or e < begin for b, e, _ in chosen):
            chosen.append((begin, end, score))
    if not chosen:  # all so improbable that their probabilities are 0
        chosen = [(first[0], last[0], scores[0])]
    answers = []
    for begin, end, score in chosen[: 1 + RUNNERS_UP]:
        start, stop = passage.characters(begin, end)
        answers.append(Answer(passage.text[start:stop], start, stop, score))
    return Prediction(answers[0], tuple(answers[1:]))
