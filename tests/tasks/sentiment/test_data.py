"""Sentences from trees and from the command line, the choice of classes, and answers back."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.sentiment.data import (
    Example,
    Prediction,
    label_set,
    labels,
    parse,
    prepare,
    read,
    render,
    to_record,
    write,
)
from elmokit.tasks.task import Examples

TREES = """(4 (3 (2 a) (4 (3 good) (2 film))) (2 .))
(2 (2 a) (2 film))
(1 (0 (2 no) (3 (3 good) (2 film))) (2 .))
"""
LIKED = Prediction(3, (0.0, 0.125, 0.125, 0.5, 0.25))


@dataclass
class Choice:
    classes: int = 5
    phrases: int = 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "trees.txt"
    path.write_text(TREES, encoding="utf-8")
    return path


def summary(examples: Examples[Example]) -> list[tuple[str, int | None]]:
    return [(" ".join(example.words), example.label) for example in examples.items]


def test_a_file_gives_its_sentences_with_five_labels_and_their_phrases(path: Path) -> None:
    found = read(path)
    assert summary(found) == [("a good film .", 4), ("a film", 2), ("no good film .", 1)]
    assert [example.classes for example in found.items] == [5, 5, 5]
    assert found.items[0].texts == (("a", "good", "film", "."),)
    assert found.items[0].phrases == ((1, 3, 4), (0, 3, 3))
    assert found.items[2].where == f"{path}:3"
    assert list(labels(found.items[0])) == []
    assert label_set(found.items) == {}


def test_a_bad_or_empty_file_is_an_error(path: Path) -> None:
    path.write_text(TREES + "\n(3 (2 so)\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"trees\.txt:5: 1 brackets are not closed"):
        read(path)
    path.write_text(" \n\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"trees\.txt: no tree"):
        read(path)


def test_whole_sentences_of_five_classes(path: Path) -> None:
    found = read(path)
    for training in (True, False):
        chosen = prepare(found, Choice(), training=training)
        assert summary(chosen) == summary(found)
        assert not chosen.skipped


def test_two_classes_leave_neutral_sentences_out(path: Path) -> None:
    chosen = prepare(read(path), Choice(classes=2), training=False)
    assert summary(chosen) == [("a good film .", 1), ("no good film .", 0)]
    assert [example.classes for example in chosen.items] == [2, 2]
    assert chosen.skipped == {"neutral": 1}
    path.write_text("(2 (0 bad) (4 good))\n", encoding="utf-8")
    with pytest.raises(FormatError, match=r"trees\.txt: all of 1 sentences are neutral"):
        prepare(read(path), Choice(classes=2), training=False)


def test_phrases_are_for_training_only_and_come_once(path: Path) -> None:
    found = read(path)
    # "good film" stands in two sentences; "a film" is a sentence itself.
    path.write_text(TREES + "(3 (2 (2 a) (2 film)) (2 !))\n", encoding="utf-8")
    chosen = prepare(read(path), Choice(phrases=2), training=True)
    assert summary(chosen) == [
        ("a good film .", 4),
        ("good film", 4),
        ("a good film", 3),
        ("a film", 2),
        ("no good film .", 1),
        ("no good film", 0),
        ("a film !", 3),
    ]
    assert chosen.items[1].where == f"{path}:1"
    long = prepare(found, Choice(phrases=3), training=True)
    assert ("good film", 4) not in summary(long)
    assert ("a film", 2) in summary(long)  # a whole sentence, however short
    assert summary(prepare(found, Choice(phrases=2), training=False)) == summary(found)


def test_phrases_of_two_classes(path: Path) -> None:
    path.write_text("(2 (0 (2 so) (1 bad)) (2 (2 , ) (2 is)) )\n", encoding="utf-8")
    chosen = prepare(read(path), Choice(classes=2, phrases=2), training=True)
    assert summary(chosen) == [("so bad", 0)]
    assert chosen.skipped == {"neutral": 1, "neutral phrase": 1}


def test_an_impossible_choice_is_an_error(path: Path) -> None:
    found = read(path)
    with pytest.raises(InputError, match="classes is 3; expected 5 or 2"):
        prepare(found, Choice(classes=3), training=False)
    two = prepare(found, Choice(classes=2), training=False)
    with pytest.raises(InputError, match="of 2 classes cannot be converted to 5"):
        prepare(two, Choice(classes=5), training=False)


def test_raw_text_becomes_a_sentence_without_a_label() -> None:
    assert parse(["Isn't it good?"]) == Example(("Is", "n't", "it", "good", "?"))
    with pytest.raises(InputError, match="no words"):
        parse([" "])
    with pytest.raises(InputError, match="2 texts; expected 1: sentence"):
        parse(["a", "b"])


def test_answers_are_written_a_line_a_sentence() -> None:
    out = io.StringIO()
    write(out, [Example(("so", "good"), 4), Example(("bad",))], [LIKED, Prediction(0, (0.9, 0.1))])
    assert out.getvalue() == "3\tso good\n0\tbad\n"


def test_an_answer_for_machines_and_for_people() -> None:
    sentence = Example(("so", "good"), 4)
    found = json.loads(json.dumps(to_record(sentence, LIKED)))
    assert found["probabilities"]["very positive"] == 0.25
    assert (found["prediction"], found["name"], found["gold"]) == (3, "positive", 4)
    lines = render(sentence, LIKED).plain.splitlines()
    assert lines[0] == "so good"
    assert lines[4] == "  positive       " + "█" * 12 + "·" * 12 + "  50.0 %"
    assert lines[6] == "  gold: very positive"
    assert len(render(Example(("so",)), Prediction(1, (0.25, 0.75))).plain.splitlines()) == 3
