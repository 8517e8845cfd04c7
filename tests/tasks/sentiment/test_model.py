"""BCN: equal to the equations, blind to padding and to its neighbors, able to learn."""

import pytest
import torch
from tests.tasks.toy import WithOutput, embedding_of
from torch import Tensor

from elmokit.tasks import sentiment
from elmokit.tasks.sentiment.data import Example
from elmokit.tasks.sentiment.model import Maxout, Model, Sizes

WORDS = "a b c d e f good bad not".split()


def model(source: object = None, **sizes: object) -> Model:
    torch.manual_seed(3)
    whole = Sizes(**{"hidden": 5, "dropout": 0.0, **sizes})  # type: ignore[arg-type]
    return Model(source or embedding_of(WORDS), whole, {})  # type: ignore[arg-type]


def sentence(text: str, label: int | None = None, classes: int = 5) -> Example:
    return Example(tuple(text.split()), label, classes)


SENTENCES = [sentence("a good b c", 4), sentence("bad", 0), sentence("not good a b c d e", 1)]


def by_hand(net: Model, example: Example) -> Tensor:
    """The paper's equations for one sentence, word by word."""
    embedded = net.words([example.words])
    x = net.encoder(net.feedforward(embedded.x_BTE), embedded.lengths_B)[0]
    c = torch.stack([torch.softmax(torch.stack([u @ v for v in x]), 0) @ x for u in x])
    joined = torch.cat([x, x - c, x * c], dim=1)
    y = embedded.append_elmo(net.integrator(joined[None], embedded.lengths_B))[0]
    beta = torch.softmax(net.self_attention(y)[:, 0], 0)
    pooled = [y.max(dim=0).values, y.mean(dim=0), y.min(dim=0).values, beta @ y]
    scores: Tensor = net.classifier(torch.cat(pooled)[None])
    return scores[0]


@pytest.mark.parametrize("maxout", [0, 4])
@pytest.mark.parametrize("with_output", [False, True])
def test_a_batch_gives_what_the_equations_give_one_by_one(with_output: bool, maxout: int) -> None:
    net = model(WithOutput(WORDS) if with_output else None, maxout=maxout).eval()
    expected = torch.stack([by_hand(net, example) for example in SENTENCES])
    torch.testing.assert_close(net(SENTENCES), expected)
    torch.testing.assert_close(net(SENTENCES[::-1]), expected.flip(0))
    loss = torch.nn.functional.cross_entropy(expected, torch.tensor([4, 0, 1]))
    torch.testing.assert_close(net.loss(SENTENCES), loss)


@pytest.mark.parametrize("classes", [5, 2])
def test_predictions_are_of_as_many_classes_as_asked_for(classes: int) -> None:
    net = model(classes=classes).eval()
    for found, scores in zip(net.predict(SENTENCES), net(SENTENCES), strict=True):
        assert len(found.probabilities) == classes
        assert sum(found.probabilities) == pytest.approx(1)
        assert found.label == int(scores.argmax())


@pytest.mark.parametrize("maxout", [0, 4])
def test_every_parameter_learns(maxout: int) -> None:
    net = model(WithOutput(WORDS), maxout=maxout)
    net.loss(SENTENCES).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        # A bias that all words share changes no softmax.
        assert parameter.grad.abs().sum() > 0 or name == "self_attention.bias", name


def test_a_maxout_unit_is_the_largest_of_its_pieces() -> None:
    torch.manual_seed(1)
    layer = Maxout(3, 2, 4).eval()
    x = torch.randn(5, 3)
    expected = layer.linear(layer.norm(x)).reshape(5, 2, 4).max(dim=2).values
    torch.testing.assert_close(layer(x), expected)


def test_batch_norm_takes_a_batch_of_one_and_keeps_its_statistics() -> None:
    layer = Maxout(3, 2, 4).train()
    before = layer.norm.running_mean.clone()
    assert layer(torch.randn(1, 3)).isfinite().all()
    torch.testing.assert_close(layer.norm.running_mean, before)
    layer(torch.randn(8, 3) + 1)
    assert not torch.equal(layer.norm.running_mean, before)
    assert "norm.running_mean" in layer.state_dict()


@pytest.mark.parametrize("maxout", [0, 2])
def test_it_learns_that_a_word_can_turn_another(maxout: int) -> None:
    torch.manual_seed(0)
    examples = []
    for k in range(48):
        fillers = [WORDS[i] for i in torch.randint(6, (3,)).tolist()]
        turned, liked = k % 2, k // 2 % 2
        phrase = ("not " if turned else "") + ("good" if liked else "bad")
        text = f"{' '.join(fillers)} {phrase} {fillers[0]}"
        examples.append(sentence(text, int(liked != turned), 2))
    net = model(hidden=12, classes=2, maxout=maxout)
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(80):
        optimizer.zero_grad()
        net.loss(examples).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        assert sentiment.metric.score(examples, net.predict(examples))["accuracy"] > 95


def test_dropout_is_in_training_only_and_from_the_global_generator() -> None:
    net = model(embedding_of(WORDS, dropout=0.3), dropout=0.5)
    torch.manual_seed(5)
    first = net(SENTENCES)
    assert not torch.equal(first, net(SENTENCES))
    torch.manual_seed(5)
    assert torch.equal(first, net(SENTENCES))
    net.eval()
    assert torch.equal(net(SENTENCES), net(SENTENCES))


def test_the_presets_fit_the_model() -> None:
    assert set(sentiment.model.PRESETS) == {"cpu", "paper"}
    paper = sentiment.model.PRESETS["paper"].sizes
    assert (paper.hidden, paper.phrases, paper.classes) == (300, 4, 5)
    assert Model(embedding_of(WORDS), sentiment.model.PRESETS["cpu"].sizes, {})(
        SENTENCES
    ).shape == (3, 5)
