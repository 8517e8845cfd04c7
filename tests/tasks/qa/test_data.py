"""SQuAD's files: what they become, and what is said of bad ones."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.qa.answers import AnswerSpan, Prediction, render, to_record, write
from elmokit.tasks.qa.data import UNANSWERABLE, Passage, label_set, labels, parse, read

CONTEXT = "The Apollo program ran from 1961–72. It didn't stop (NASA) there.  “Why?” It's\nunknown."


def answer(text: str, start: int | None = None) -> dict[str, Any]:
    """As SQuAD has it; found in the context unless told."""
    return {"text": text, "answer_start": CONTEXT.index(text) if start is None else start}


def question(number: int = 1, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """As SQuAD has it."""
    return {"id": f"q{number}", "question": "Who didn't stop?", "answers": list(answers), **more}


def squad(tmp_path: Path, *questions: Any, **top: Any) -> Path:
    """A file with one passage."""
    articles = [{"title": "Apollo", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}]
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"version": "1.1", "data": articles, **top}), encoding="utf-8")
    return path


def test_a_file_becomes_examples_that_share_their_passage(tmp_path: Path) -> None:
    path = squad(
        tmp_path, question(1, answer("NASA"), answer("(NASA) there")), question(2, answer("Apollo"))
    )
    examples = read(path)
    one, two = examples.items
    assert (one.id, two.id) == ("q1", "q2")
    assert one.passage is two.passage
    assert one.question == ("Who", "did", "n't", "stop", "?")
    assert one.texts == (*one.passage.sentences, one.question)
    assert one.answers is not None
    assert [gold.text for gold in one.answers] == ["NASA", "(NASA) there"]
    words = [word for sentence in one.passage.sentences for word in sentence]
    first, last = one.answers[1].span
    assert words[first : last + 1] == ["(", "NASA", ")", "there"]
    assert one.where == f"{path}: article 1 (Apollo), paragraph 1, question 1 (q1)"
    assert not examples.skipped


def test_words_of_a_passage_stand_where_it_says() -> None:
    passage = Passage.from_text(CONTEXT)
    words = [word for sentence in passage.sentences for word in sentence]
    assert len(passage.sentences) == 4
    assert [CONTEXT[start:end] for start, end in passage.places] == words
    assert "It" in words and "n't" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Apollo", "Apollo"),
        ("didn", "didn't"),  # cut inside `n't`: both its words
        ("NAS", "NASA"),
        ("ASA)", "NASA)"),
        (" there.", "there."),
        ("61", "1961"),
        ("ran from", "ran from"),
    ],
)
def test_an_answer_inside_words_is_widened_to_them(tmp_path: Path, text: str, words: str) -> None:
    example = read(squad(tmp_path, question(1, answer(text)))).items[0]
    assert example.answers is not None
    start, end = example.passage.characters(*example.answers[0].span)
    assert CONTEXT[start:end] == words


def test_every_stretch_touches_exactly_the_words_it_overlaps() -> None:
    passage = Passage.from_text(CONTEXT)
    for start in range(len(CONTEXT)):
        for end in range(start + 1, len(CONTEXT) + 1):
            over = [k for k, (a, b) in enumerate(passage.places) if a < end and b > start]
            assert passage.span(start, end) == ((over[0], over[-1]) if over else None)


def test_questions_without_an_answer_are_skipped_and_counted(tmp_path: Path) -> None:
    examples = read(
        squad(
            tmp_path,
            question(1, answer("NASA"), is_impossible=False),
            question(2, is_impossible=True, plausible_answers=[answer("NASA")]),
            version="v2.0",
        )
    )
    assert [example.id for example in examples.items] == ["q1"]
    assert examples.skipped == {UNANSWERABLE: 1}


def test_answers_may_be_unknown(tmp_path: Path) -> None:
    bare = {"id": "q2", "question": "Who?"}
    assert [e.answers for e in read(squad(tmp_path, question(1), bare)).items] == [None, None]


PLACE = r"squad\.json: article 1 \(Apollo\), paragraph 1"


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([question(1, answer("NASA", 3))], rf"{PLACE}, question 1 \(q1\), answer 1: .*'NASA'"),
        ([question(1, answer("NASA"), answer("x", 900))], r"answer 2: at answer_start 900"),
        ([question(1, answer("unknown.", -8))], "answer_start -8"),
        ([question(1, answer("", 3))], "has no words"),
        ([question(1, answer("  "))], "has no words"),
        ([question(1, {"text": "NASA"})], "no 'answer_start'"),
        ([question(1, {"text": "NASA", "answer_start": "4"})], "'answer_start' is a string"),
        ([question(1, {"text": "NASA", "answer_start": True})], "is true or false"),
        ([question(1, {"text": 5, "answer_start": 4})], "'text' is a whole number"),
        ([question(1) | {"answers": {}}], "'answers' is an object; expected a list"),
        ([question(1, answer("NASA")), question(1)], r"question 2 \(q1\): the id is used by art"),
        ([{"question": "Who?", "answers": []}], rf"{PLACE}, question 1: no 'id'"),
        ([question(1) | {"question": "  "}], "the question has no words"),
        ([{"id": "q"}], "no 'question'"),
        (["q"], "question 1 is a string; expected an object"),
        ([], "no questions"),
        ([question(1, is_impossible=True)], "none of 1 questions"),
    ],
)
def test_bad_questions_are_refused_with_their_place(
    tmp_path: Path, questions: list[Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        read(squad(tmp_path, *questions))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ('{"data":\n [}', r"squad\.json:2: not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "a list at the top"),
        ('{"version": "1.1"}', "no 'data'"),
        ('{"version": "3", "data": []}', "version is '3'"),
        ('{"data": {}}', "'data' is an object"),
        ('{"data": []}', "no questions"),
        ('{"data": [null]}', "article 1 is null"),
        ('{"data": [{"title": "A"}]}', r"article 1 \(A\): no 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "article 1, paragraph 1: no 'context'"),
        ('{"data": [{"paragraphs": [{"context": "", "qas": []}]}]}', "context has no words"),
        ('{"data": [{"paragraphs": [{"context": "x"}]}]}', "no 'qas'"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "squad.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read(path)


def test_files_that_are_no_text_or_not_there_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "squad.json"
    with pytest.raises(InputError, match="does not exist"):
        read(path)
    path.write_bytes(b'{"data": "\xff"}')
    with pytest.raises(FormatError, match="not UTF-8"):
        read(path)


def test_a_question_from_the_command_line() -> None:
    example = parse([CONTEXT, "Who didn't stop?"])
    assert example.passage == Passage.from_text(CONTEXT)
    assert example.question == ("Who", "did", "n't", "stop", "?")
    assert example.answers is None
    with pytest.raises(InputError, match="the passage has no words"):
        parse([" ", "Who?"])
    with pytest.raises(InputError, match="the question has no words"):
        parse([CONTEXT, ""])


def test_there_is_nothing_to_remember() -> None:
    assert list(labels(parse([CONTEXT, "Who?"]))) == []
    assert label_set([parse([CONTEXT, "Who?"])]) == {}


def found(text: str, score: float) -> AnswerSpan:
    """An answer in the context."""
    start = CONTEXT.index(text)
    return AnswerSpan(text, start, start + len(text), score)


def test_predictions_are_written_by_id(tmp_path: Path) -> None:
    examples = read(squad(tmp_path, question(1), question(2), question(3))).items
    file = io.StringIO()
    write(file, examples, [Prediction(found("1961–72", 1.0)), None, Prediction(found("It", 1.0))])
    assert json.loads(file.getvalue()) == {"q1": "1961–72", "q3": "It"}
    assert file.getvalue().endswith("\n")


def test_an_answer_as_a_record() -> None:
    given = Prediction(found("NASA", 0.5), (found("Apollo", 0.25),))
    assert to_record(parse([CONTEXT, "Who?"]), given) == {
        "id": "question",
        "question": "Who ?",
        "answer": {
            **{"text": "NASA", "start": 53, "end": 57, "score": 0.5},
            **{"start_char": 53, "end_char": 57, "confidence": 0.5},
        },
        "others": [
            {
                **{"text": "Apollo", "start": 4, "end": 10, "score": 0.25},
                **{"start_char": 4, "end_char": 10, "confidence": 0.25},
            }
        ],
    }


def test_an_answer_in_a_terminal_is_highlighted_in_its_passage() -> None:
    given = Prediction(found("NASA", 0.5), (found("Apollo", 0.25),))
    text = render(parse([CONTEXT, "Who?"]), given)
    question_line, passage, best, other = text.plain.split("\n")
    assert question_line == "Who ?"
    assert passage == CONTEXT.replace("\n", " ")
    assert best.split() == ["50%", "NASA"]
    assert other.split() == ["25%", "Apollo"]
    lit = [
        text.plain[span.start : span.end] for span in text.spans if "on green" in str(span.style)
    ]
    assert lit == ["NASA"]


def test_a_long_passage_is_shown_around_the_answer_by_whole_words() -> None:
    words = [f"w{k}" for k in range(400)]
    passage = " ".join(words)
    start = passage.index("w200")
    text = render(parse([passage, "Who?"]), Prediction(AnswerSpan("w200", start, start + 4, 0.9)))
    shown = text.plain.split("\n")[1].split()
    assert shown[0] == shown[-1] == "…"
    assert set(shown[1:-1]) < set(words) and "w200" in shown
    assert 60 < len(shown) < 110
