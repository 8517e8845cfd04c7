"""BiDAF with self-attention: equal to its equations, blind to its neighbors, able to learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from elmokit.errors import InputError
from elmokit.tasks.qa.data import Example, Gold, parse
from elmokit.tasks.qa.metric import score
from elmokit.tasks.qa.model import LONGEST_ANSWER, PRESETS, Merge, Model, Sizes, Trilinear, _matches
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.word_embedding import EmbeddedBatch, WordEmbedding

SIZES = Sizes(hidden=6, filters=5, character_dim=4, dropout=0.0)
VOCABULARY = (
    "Ada Alan Grace lived worked in London Paris Vienna and . Where did live work ?".split()
)


class WithOutput(torch.nn.Module):
    """Words with vectors for the output too, as ELMo there would give them."""

    dim, output_dim = 8, 3

    def __init__(self) -> None:
        super().__init__()
        vectors = np.random.default_rng(1).standard_normal((len(VOCABULARY), 8))
        self.inner = WordEmbedding(StaticVectors.from_words(VOCABULARY, vectors, "test"))
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.asked: list[tuple[str, ...]] = []

    def forward(self, texts: Sequence[tuple[str, ...]]) -> EmbeddedBatch:
        self.asked += texts
        embedded: EmbeddedBatch = self.inner(texts)
        return embedded._replace(output_BTD=self.scale * embedded.x_BTE[..., :3])


def model(sizes: Sizes = SIZES, elmo: bool = True) -> Model:
    torch.manual_seed(2)
    words = WithOutput()
    made = Model(words if elmo else words.inner, sizes, {})  # type: ignore[arg-type]
    return made.eval()


def asked(passage: str, question: str, *answers: str) -> Example:
    example = parse([passage, question])
    golds = []
    for text in answers:
        start = passage.index(text)
        span = example.passage.span(start, start + len(text))
        assert span is not None
        golds.append(Gold(text, span))
    return replace(example, answers=tuple(golds) or None)


LONG = "Ada lived in London. Alan worked in Paris and lived in Vienna. Grace lived in Paris."
EXAMPLES = [
    asked(LONG, "Where did Ada live?", "London", "in London"),
    asked("Alan lived in Vienna.", "Where?", "Vienna"),
    asked(LONG, "Where did Alan work, and where did Grace live?", "Paris"),
    asked("Grace", "Where did Grace live?", "Grace"),  # one word, which has no others
]


def test_attention_is_trilinear() -> None:
    torch.manual_seed(0)
    layer = Trilinear(3)
    layer.w.data.normal_()
    h, q = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    w = layer.w
    for b in range(2):
        for i in range(4):
            for j in range(5):
                a = w[0] @ h[b, i] + w[1] @ q[b, j] + w[2] @ (h[b, i] * q[b, j])
                torch.testing.assert_close(layer(h, q)[b, i, j], a)


def test_merging_equals_one_matrix_over_four_parts() -> None:
    torch.manual_seed(0)
    layer = Merge(3, 4)
    h, q, q_c = torch.randn(2, 6, 3), torch.randn(2, 5, 3), torch.randn(2, 1, 3)
    p = torch.randn(2, 6, 5).softmax(2)
    c = p @ q
    parts = (layer.of_h, layer.of_c, layer.of_hc, layer.of_qc)
    matrix = torch.cat([part.weight for part in parts], 1)
    wanted = torch.cat([h, c, h * c, q_c * c], -1) @ matrix.T + layer.of_h.bias
    torch.testing.assert_close(layer(h, p, q, q_c), wanted)


@pytest.mark.parametrize("elmo", [False, True])
def test_a_question_is_answered_alike_in_any_company(elmo: bool) -> None:
    network = model(elmo=elmo)
    with torch.no_grad():
        together = network(EXAMPLES)
        for b, example in enumerate(EXAMPLES):
            count = len(example.passage.places)
            for all_BT, alone_BT in zip(together, network([example]), strict=True):
                torch.testing.assert_close(all_BT[b, :count], alone_BT[0], atol=1e-5, rtol=1e-4)
                assert all_BT[b, count:].eq(-torch.inf).all()
        one_by_one = [network.predict([example])[0].best for example in EXAMPLES]
        given = [prediction.best for prediction in network.predict(EXAMPLES)]
    assert [answer.text for answer in given] == [answer.text for answer in one_by_one]


def test_words_that_the_question_has() -> None:
    example = asked("Ada lived in London. LIVED Alan there?", "Where did Ada live, in london?")
    words = [word for sentence in example.passage.sentences for word in sentence]
    told = _matches([example], len(words) + 1)
    assert [
        w for w, m in zip(words, told[0].tolist(), strict=False) if m
    ] == "Ada in London ?".split()
    assert told[0, -1] == 0  # padding
    network = model(replace(SIZES, matches=True))
    before = network([example])[0]
    assert network.of_match is not None
    network.of_match.weight.data += 1.0
    assert not torch.equal(network([example])[0], before)
    assert model().of_match is None


def test_probabilities_sum_to_one_and_gold_ones_are_summed() -> None:
    network = model()
    start_BT, end_BT = network(EXAMPLES)
    wanted = 0.0
    for b, example in enumerate(EXAMPLES):
        assert start_BT[b].exp().sum().item() == pytest.approx(1, abs=1e-5)
        assert example.answers is not None
        for log_p, firsts in (
            (start_BT, {gold.span[0] for gold in example.answers}),
            (end_BT, {gold.span[1] for gold in example.answers}),
        ):
            wanted -= math.log(sum(log_p[b, k].exp().item() for k in firsts))
    assert network.loss(EXAMPLES).item() == pytest.approx(wanted / len(EXAMPLES), rel=1e-5)


def test_the_best_span_is_the_best_of_all_and_not_too_long() -> None:
    words = [f"w{k}" for k in range(60)]
    example = parse([" ".join(words), "Where?"])
    network = model()
    # Scores that want an answer longer than is allowed.
    torch.manual_seed(5)
    start_BT = torch.randn(1, 60).log_softmax(1)
    end_BT = torch.randn(1, 60).log_softmax(1)
    start_BT[0, 10], end_BT[0, 50] = 3, 3
    network.forward = lambda examples: (start_BT, end_BT)  # type: ignore[method-assign]
    found = network.predict([example])[0]
    scores = {
        (i, j): (start_BT[0, i] + end_BT[0, j]).item()
        for i in range(60)
        for j in range(i, min(i + LONGEST_ANSWER, 60))
    }
    i, j = max(scores, key=scores.__getitem__)
    assert LONGEST_ANSWER == 17
    assert found.best.text == " ".join(words[i : j + 1])
    assert example.passage.text[found.best.start : found.best.end] == found.best.text
    assert found.best.score == pytest.approx(math.exp(scores[i, j]), rel=1e-5)
    stretches = sorted((a.start, a.end) for a in (found.best, *found.others))
    assert len(stretches) > 1
    assert all(end < start for (_, end), (start, _) in pairwise(stretches))
    others = [answer.score for answer in found.others]
    assert others == sorted(others, reverse=True)


def test_it_asks_for_the_vectors_that_an_example_names_and_no_others() -> None:
    network = model()
    network(EXAMPLES)
    assert isinstance(network.words, WithOutput)
    named = [text for example in EXAMPLES for text in example.texts]
    assert set(network.words.asked) == set(named)
    assert len(network.words.asked) < len(named)  # a passage of two questions once


def test_elmo_goes_to_the_output_of_the_contextual_layer() -> None:
    network = model()
    assert network.similarity.w.shape[1] == 2 * SIZES.hidden + 3
    assert model(elmo=False).similarity.w.shape[1] == 2 * SIZES.hidden
    network.loss(EXAMPLES).backward()
    assert isinstance(network.words, WithOutput)
    scale = network.words.scale.grad
    assert scale is not None and scale.item() != 0
    for name, weights in network.named_parameters():
        assert weights.grad is not None and weights.grad.isfinite().all(), name


def test_training_is_random_by_torch_s_generator_alone() -> None:
    network = model(replace(SIZES, dropout=0.3)).train()
    losses = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        losses.append(network.loss(EXAMPLES).item())
    assert losses[0] == losses[2] != losses[1]


def test_it_learns_by_heart() -> None:
    network = model().train()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        network.loss(EXAMPLES).backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        assert score(EXAMPLES, network.predict(EXAMPLES)) == {"EM": 100, "F1": 100}


def test_nothing_is_learned_from_a_question_without_an_answer() -> None:
    with pytest.raises(InputError, match="question: no gold answer to train on"):
        model().loss([parse([LONG, "Where?"])])


def test_the_paper_s_sizes() -> None:
    assert PRESETS["paper"].sizes.hidden == 90
    assert PRESETS["paper"].training.optimizer == "adadelta"
    assert PRESETS["cpu"].sizes.hidden < 90
