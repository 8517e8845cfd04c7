from __future__ import annotations

from pathlib import Path

import pytest
import torch

from elmokit.elmo import Elmo
from elmokit.tasks import ner
from elmokit.tasks.layer_store import LayerStore
from elmokit.tasks.ner.data import Example
from elmokit.tasks.tag_schemes import spans_to_tags, tags_to_spans
from elmokit.tasks.task import Placement
from elmokit.tasks.word_embedding import WordEmbedding

SIZES = ner.model.Sizes(characters=8, filters=12, longest=12, hidden=16, layers=2, dropout=0.0)
EXAMPLES = [
    Example(("Ada", "lives", "in", "New", "York", "."), ("B-P", "O", "O", "B-L", "I-L", "O")),
    Example(("in", "Oslo"), ("O", "B-L")),
    Example(("Oslo", "Ada"), ("B-L", "B-P")),
]


@pytest.fixture
def model() -> ner.model.Model:
    torch.manual_seed(0)
    return ner.model.Model(WordEmbedding(["in", "oslo"]), SIZES, ner.data.label_set(EXAMPLES))


def test_it_learns(model: ner.model.Model) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    first = model.loss(EXAMPLES).item()
    for _ in range(25):
        optimizer.zero_grad()
        loss = model.loss(EXAMPLES)
        loss.backward()
        optimizer.step()
    assert loss.item() < first / 5
    model.eval()
    with torch.no_grad():
        assert model.predict(EXAMPLES) == [example.tags for example in EXAMPLES]


def test_a_sentence_is_answered_alike_in_any_company(model: ner.model.Model) -> None:
    model.eval()
    with torch.no_grad():
        scores, _ = model._scores(EXAMPLES)
        for row, example in enumerate(EXAMPLES):
            alone, _ = model._scores([example])
            torch.testing.assert_close(scores[row, : len(example.words)], alone[0])
            assert model.predict(EXAMPLES)[row] == model.predict([example])[0]


def test_answers_are_faultless_whatever_the_scores(model: ner.model.Model) -> None:
    scores_BTK = 30 * torch.randn(1, 60, len(model.tags))
    (path,) = model.crf.decode(scores_BTK, torch.tensor([60]))
    found = [model.tags[k] for k in path]
    assert spans_to_tags(tags_to_spans(found), 60, "BIOES") == tuple(found)
    assert {tag[0] for tag in found} == set("BIOES")


def test_case_and_endings_come_in_by_the_characters(model: ner.model.Model) -> None:
    model.eval()
    a, b = model._scores([Example(("ada",))])[0], model._scores([Example(("Ada",))])[0]
    assert not torch.equal(a, b)


@pytest.mark.parametrize("place", ["input", "output", "both"])
def test_elmo_anywhere(elmo: Elmo, tmp_path: Path, place: Placement) -> None:
    words = WordEmbedding(["in"], LayerStore(elmo, tmp_path), placement=place)
    model = ner.model.Model(words, SIZES, ner.data.label_set(EXAMPLES))
    model.loss(EXAMPLES).backward()
    for mix in words.mixes.values():
        assert mix.gamma.grad is not None and mix.gamma.grad != 0
    model.eval()
    assert [len(tags) for tags in model.predict(EXAMPLES)] == [6, 2, 2]


@pytest.mark.parametrize("name", ["cpu", "paper"])
def test_presets(name: str) -> None:
    preset = ner.model.PRESETS[name]
    model = ner.model.Model(WordEmbedding(["in"]), preset.sizes, ner.data.label_set(EXAMPLES))
    assert model.loss(EXAMPLES).isfinite()
