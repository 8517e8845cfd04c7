"""ESIM: equal to the equations, blind to padding and to its neighbors, able to learn."""

import pytest
import torch
from tests.tasks.toy import WithOutput, embedding_of
from torch import Tensor

from elmokit.tasks import nli
from elmokit.tasks.nli.data import Example
from elmokit.tasks.nli.model import Model, Sizes

WORDS = "a b c d e f g not".split()
FACTS = {"labels": ["contradiction", "entailment", "neutral"]}


def model(source: object = None, **sizes: object) -> Model:
    torch.manual_seed(3)
    whole = Sizes(**{"hidden": 5, "dropout": 0.0, **sizes})  # type: ignore[arg-type]
    return Model(source or embedding_of(WORDS), whole, FACTS)  # type: ignore[arg-type]


def pair(premise: str, hypothesis: str, label: str | None = None) -> Example:
    return Example(tuple(premise.split()), tuple(hypothesis.split()), label)


PAIRS = [
    pair("a b c d", "b a", "entailment"),
    pair("c", "d e f g a", "neutral"),
    pair("a b", "not a", "contradiction"),
]


def by_hand(net: Model, example: Example) -> Tensor:
    """The paper's equations for one pair, word by word."""
    sides = []
    for text in example.texts:
        embedded = net.words([text])
        h = net.encoder(embedded.x_BTE, embedded.lengths_B)
        sides.append(embedded.append_elmo(h)[0])
    a, b = sides
    a_tilde = torch.stack([torch.softmax(torch.stack([x @ y for y in b]), 0) @ b for x in a])
    b_tilde = torch.stack([torch.softmax(torch.stack([x @ y for x in a]), 0) @ a for y in b])
    pooled = []
    for own, other in ((a, a_tilde), (b, b_tilde)):
        m = torch.cat([own, other, own - other, own * other], dim=1)
        read = net.composition(net.projection(m).relu()[None], torch.tensor([len(m)]))[0]
        pooled += [read.mean(dim=0), read.max(dim=0).values]
    scores: Tensor = net.classifier(torch.cat(pooled))
    return scores


@pytest.mark.parametrize("with_output", [False, True])
def test_a_batch_gives_what_the_equations_give_pair_by_pair(with_output: bool) -> None:
    net = model(WithOutput(WORDS) if with_output else None).eval()
    expected = torch.stack([by_hand(net, example) for example in PAIRS])
    torch.testing.assert_close(net(PAIRS), expected)
    torch.testing.assert_close(net(PAIRS[::-1]), expected.flip(0))
    gold = torch.tensor([1, 2, 0])
    loss = torch.nn.functional.cross_entropy(expected, gold)
    torch.testing.assert_close(net.loss(PAIRS), loss)


def test_predictions_have_the_labels_of_the_facts_and_sum_to_one() -> None:
    net = model().eval()
    for example, found, scores in zip(PAIRS, net.predict(PAIRS), net(PAIRS), strict=True):
        assert list(found.probabilities) == FACTS["labels"]
        assert sum(found.probabilities.values()) == pytest.approx(1)
        assert found.label == FACTS["labels"][int(scores.argmax())]
        unlabeled = Example(example.premise, example.hypothesis)
        assert net.predict([unlabeled])[0].label == found.label


def test_every_parameter_learns() -> None:
    net = model(WithOutput(WORDS))
    net.loss(PAIRS).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_it_learns_what_only_alignment_can_tell() -> None:
    torch.manual_seed(0)
    letters = WORDS[:7]
    rows = [torch.randperm(7)[:4].tolist() for _ in range(48)]
    examples = []
    for k, row in enumerate(rows):
        inside = k % 2 == 0
        asked = row[0] if inside else next(i for i in range(7) if i not in row)
        premise = " ".join(letters[i] for i in sorted(row))
        examples.append(pair(premise, letters[asked], "entailment" if inside else "neutral"))
    net = model(hidden=16)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        net.loss(examples).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        assert nli.metric.score(examples, net.predict(examples))["accuracy"] > 95


def test_dropout_is_in_training_only_and_from_the_global_generator() -> None:
    net = model(embedding_of(WORDS, dropout=0.3), dropout=0.5)
    torch.manual_seed(5)
    first = net(PAIRS)
    assert not torch.equal(first, net(PAIRS))
    torch.manual_seed(5)
    assert torch.equal(first, net(PAIRS))
    net.eval()
    assert torch.equal(net(PAIRS), net(PAIRS))


def test_the_presets_fit_the_model() -> None:
    assert set(nli.model.PRESETS) == {"cpu", "paper"}
    assert nli.model.PRESETS["paper"].sizes == Sizes(hidden=300, dropout=0.5)
    net = Model(embedding_of(WORDS), nli.model.PRESETS["cpu"].sizes, {"labels": ["no", "yes"]})
    assert net(PAIRS).shape == (3, 2)
