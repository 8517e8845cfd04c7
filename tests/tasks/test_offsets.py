"""Records of raw text: every answer says where it is, in characters, and how probable it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

import torch
from tests.tasks import toy

from elmokit.errors import InputError
from elmokit.tasks import get_task
from elmokit.tasks.coref.data import Mention, PredictedClusters
from elmokit.tasks.ner.data import Prediction
from elmokit.tasks.sentiment.data import Prediction as Sentiment
from elmokit.tasks.srl.data import Frame
from elmokit.tasks.trained import Trained


def cut(text: str, record: dict[str, Any]) -> str:
    """The part of the text that a record is about."""
    return text[record["start_char"] : record["end_char"]]


def record_of(task: str, text: str, prediction: Any) -> dict[str, Any]:
    definition = get_task(task)
    return definition.to_record(definition.parse([text]), prediction)


def test_entities() -> None:
    text = "  Dr.  Ada\tLovelace didn't  go to London!"
    tags = "O B-PER I-PER O O O O B-LOC O".split()
    record = record_of("ner", text, Prediction.from_tags(tags, (0.75, 0.5)))
    assert [cut(text, one) for one in record["entities"]] == ["Ada\tLovelace", "London"]
    assert [one["confidence"] for one in record["entities"]] == [0.75, 0.5]
    assert cut(text, record) == text.strip()
    assert "confidence" not in record_of("ner", text, tuple(tags))["entities"][0]


def test_roles_with_marked_predicates() -> None:
    text = "She [gave]  him a book."
    tags = "B-ARG0 B-V B-ARG2 B-ARG1 I-ARG1 O".split()
    record = record_of("srl", text, (Frame(1, tuple(tags), (0.5, 0.25, 1.0, 0.125)),))
    (pred,) = record["preds"]
    assert cut(text, pred) == "gave" and cut(text, record) == text
    assert [cut(text, role) for role in pred["roles"]] == ["She", "him", "a book"]
    assert [role["confidence"] for role in pred["roles"]] == [0.5, 1.0, 0.125]


def test_sentiment() -> None:
    record = record_of("sentiment", " Not bad. ", Sentiment(3, (0.0, 0.1, 0.2, 0.6, 0.1)))
    assert record["confidence"] == 0.6 and cut(" Not bad. ", record) == "Not bad."


def test_coreference() -> None:
    text = "Ada wrote.\n\nShe was  clever."
    clusters = PredictedClusters([(Mention(0, 0, 1), Mention(1, 0, 1))])
    clusters.confidences = {Mention(1, 0, 1): 0.75}
    (cluster,) = record_of("coref", text, clusters)["clusters"]
    assert [cut(text, mention) for mention in cluster] == ["Ada", "She"]
    assert [mention.get("confidence") for mention in cluster] == [None, 0.75]


# -- running text ----------------------------------------------------------------------------------


def make(task: str, label_set: dict[str, Any], **sizes: object) -> Trained:
    settings = toy.settings(task=task, vectors="none", sizes=sizes)
    torch.manual_seed(0)
    return Trained.assemble(settings, label_set, ["the"], None)


TEXT = "Dr. Ada [1] went home. She slept.\n\nA heading\n\n  Wer ist Jürgen? Nobody — yet."


def test_a_running_text_is_split_into_sentences() -> None:
    trained = make("ner", {"types": ["LOC", "PER"]}, **toy.SIZES)
    records = trained.predict_text(TEXT)
    assert [cut(TEXT, record) for record in records] == [
        "Dr. Ada [1] went home.",
        "She slept.",
        "A heading",
        "Wer ist Jürgen?",
        "Nobody — yet.",
    ]
    for record in records:
        for entity in record["entities"]:
            assert cut(TEXT, entity).split() and 0 <= entity["confidence"] <= 1
    assert any(record["entities"] for record in records)
    assert trained.predict_text(" \n") == []


def test_brackets_of_a_running_text_mark_no_predicates() -> None:
    trained = make("srl", {"roles": ["ARG0", "V"]}, hidden=4, mark=2, layers=2)
    (first, *_) = trained.parse_text(TEXT)
    assert first.predicates is None and first.words[2:5] == ("[", "1", "]")
    for record in trained.predict_text(TEXT):
        for pred in record["preds"]:
            assert cut(TEXT, pred) == pred["word"]
            assert all(0 <= role["confidence"] <= 1 for role in pred["roles"])


def test_coreference_takes_the_whole_text() -> None:
    (record,) = make("coref", {}, hidden=4, ffnn=4).predict_text(TEXT)
    assert len(record["sentences"]) == 5
    for cluster in record["clusters"]:
        for mention in cluster:
            assert cut(TEXT, mention).split()[0].startswith(mention["text"].split()[0])
            assert 0 <= mention.get("confidence", 0) <= 1


def test_tasks_of_two_texts_take_no_running_text() -> None:
    with pytest.raises(InputError, match="nli takes 2: premise, hypothesis"):
        make("nli", {"labels": ["no", "yes"]}).predict_text(TEXT)


def test_offsets_are_no_part_of_an_example(tmp_path: Path) -> None:
    """So that runs that were begun before they existed can be resumed."""
    definition = get_task("ner")
    assert "spans" not in repr(definition.parse(["Ada"]))
