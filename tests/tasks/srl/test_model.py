from __future__ import annotations

from pathlib import Path

import pytest
import torch

from elmokit.elmo import Elmo
from elmokit.tasks import srl
from elmokit.tasks.layer_store import LayerStore
from elmokit.tasks.srl.data import Example, Frame
from elmokit.tasks.tag_schemes import spans_to_tags, tags_to_spans
from elmokit.tasks.task import Placement
from elmokit.tasks.word_embedding import WordEmbedding

SIZES = srl.model.Sizes(mark=6, hidden=20, layers=4, dropout=0.0)
SENTENCE = ("She", "saw", "him", "leave", "early")
EXAMPLES = [
    Example(SENTENCE, 1, ("B-A0", "B-V", "B-A1", "I-A1", "I-A1"), (1, 3)),
    Example(SENTENCE, 3, ("O", "O", "B-A0", "B-V", "B-TMP"), (1, 3)),
    Example(("He", "leave"), 1, ("B-A0", "B-V"), (1,)),
    Example(("Early",), None, None, ()),
]
VOCABULARY = sorted({word.lower() for example in EXAMPLES for word in example.words})


@pytest.fixture
def model() -> srl.model.Model:
    torch.manual_seed(0)
    return srl.model.Model(WordEmbedding(VOCABULARY), SIZES, srl.data.label_set(EXAMPLES))


def test_it_learns_roles_and_predicates(model: srl.model.Model) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss = model.loss(EXAMPLES)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    model.eval()
    asked = [Example(SENTENCE), Example(SENTENCE, predicates=(3,)), Example(("Early",))]
    frames = [Frame(e.predicate, e.tags) for e in EXAMPLES if e.tags and e.predicate]
    with torch.no_grad():
        assert model.predict(EXAMPLES) == [*((frame,) for frame in frames), ()]
        assert model.predict(asked) == [tuple(frames[:2]), (frames[1],), ()]


def test_an_example_is_answered_alike_in_any_company(model: srl.model.Model) -> None:
    """Directions alternate within a sentence, not within the padded batch."""
    model.eval()
    short = EXAMPLES[2]
    with torch.no_grad():
        together, _ = model._scores(model.words([SENTENCE, short.words]), [(0, 1), (0, 3), (1, 1)])
        alone, _ = model._scores(model.words([short.words]), [(0, 1)])
    torch.testing.assert_close(together[2, :2], alone[0])
    assert not torch.equal(together[0], together[1])  # the predicate makes a difference


@pytest.mark.parametrize(("layers", "before", "behind"), [(1, True, False), (2, True, True)])
def test_directions(layers: int, before: bool, behind: bool) -> None:
    """The first layer reads forward: alone, a word knows what is before it and not behind."""
    sizes = srl.model.Sizes(mark=6, hidden=20, layers=layers, dropout=0.0)
    model = srl.model.Model(WordEmbedding(VOCABULARY), sizes, srl.data.label_set(EXAMPLES)).eval()
    embedded = model.words([SENTENCE, SENTENCE[:2]])
    x = embedded.x_BTE.detach().requires_grad_()
    scores, _ = model._scores(embedded._replace(x_BTE=x), [(0, 1), (1, 0)])
    scores[0, 2].sum().backward()
    assert x.grad is not None
    seen = x.grad[0].abs().sum(-1) > 0
    assert seen[:2].all().item() is before and seen[3:].all().item() is behind
    assert not x.grad[1].any()


def test_answers_are_faultless_whatever_the_scores(model: srl.model.Model) -> None:
    model.eval()
    torch.nn.init.normal_(model.top.weight, std=30)
    sentence = Example(tuple(f"w{k}" for k in range(50)), 7)
    with torch.no_grad():
        ((frame,),) = model.predict([sentence])
    assert spans_to_tags(tags_to_spans(frame.tags), 50) == frame.tags
    assert len(tags_to_spans(frame.tags)) > 3


def test_the_detector_touches_nothing_else(model: srl.model.Model) -> None:
    model.loss([EXAMPLES[3]]).backward()
    for name, parameter in model.named_parameters():
        moved = parameter.grad is not None and bool(parameter.grad.any())
        assert moved == name.startswith("detector."), name


@pytest.mark.parametrize("place", ["input", "output", "both"])
def test_elmo_anywhere(elmo: Elmo, tmp_path: Path, place: Placement) -> None:
    words = WordEmbedding(VOCABULARY, LayerStore(elmo, tmp_path), placement=place)
    model = srl.model.Model(words, SIZES, srl.data.label_set(EXAMPLES))
    model.loss(EXAMPLES).backward()
    for mix in words.mixes.values():
        assert mix.gamma.grad is not None and mix.gamma.grad != 0
    model.eval()
    assert [len(frames) for frames in model.predict(EXAMPLES)] == [1, 1, 1, 0]


@pytest.mark.parametrize("name", ["cpu", "paper"])
def test_presets(name: str) -> None:
    preset = srl.model.PRESETS[name]
    model = srl.model.Model(WordEmbedding(VOCABULARY), preset.sizes, srl.data.label_set(EXAMPLES))
    assert model.loss(EXAMPLES).isfinite()
