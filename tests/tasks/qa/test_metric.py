"""SQuAD's scores against numbers that its own script gave (tests/golden/tasks/qa_make.py)."""

from __future__ import annotations

import json

import pytest
from tests.conftest import GOLDEN

from elmokit.errors import InputError
from elmokit.tasks.qa.answers import AnswerSpan, Prediction
from elmokit.tasks.qa.data import Example, Gold, Passage
from elmokit.tasks.qa.metric import exact_match, f1, normalize_answer, score

OFFICIAL = json.loads((GOLDEN / "tasks" / "qa.json").read_text(encoding="utf-8"))
NOWHERE = Passage.from_text("nothing")


def asked(golds: list[str]) -> Example:
    """A question; only the texts of its answers matter here."""
    return Example("q", NOWHERE, ("who", "?"), tuple(Gold(text, (0, 0)) for text in golds))


def answered(text: str | None) -> Prediction | None:
    """An answer; only its text matters here."""
    return None if text is None else Prediction(AnswerSpan(text, 0, len(text), 1.0))


def test_every_case_scores_as_the_official_script_says() -> None:
    assert len(OFFICIAL["cases"]) > 300
    for case in OFFICIAL["cases"]:
        found = score([asked(case["golds"])], [answered(case["answer"])])
        assert [found["EM"], found["F1"]] == pytest.approx(case["scores"], abs=1e-9), case


def test_all_cases_together_score_as_the_official_script_says() -> None:
    found = score(
        [asked(case["golds"]) for case in OFFICIAL["cases"]],
        [answered(case["answer"]) for case in OFFICIAL["cases"]],
    )
    assert [found["EM"], found["F1"]] == pytest.approx(OFFICIAL["all"], abs=1e-9)


def test_normalization_takes_case_punctuation_articles_and_space_in_this_order() -> None:
    assert normalize_answer(" The  U.S. (a Country)\n") == "us country"
    assert (
        normalize_answer("the-end") == "theend"
    )  # punctuation goes before articles are looked for
    assert normalize_answer("“An” été") == "“ ” été"  # only ASCII punctuation goes


def test_the_odd_rule_of_two_empty_answers() -> None:
    assert exact_match("the", "a") == 1
    assert f1("the", "a") == 0


def test_the_best_gold_answer_counts_for_each_score_by_itself() -> None:
    # Equal to the second; the first would give F1 2/3 alone.
    assert score([asked(["new york city of", "new york"])], [answered("New York")])["EM"] == 100
    assert score([asked(["a b c", "b x y z"])], [answered("b c")])["F1"] == pytest.approx(100)


def test_an_unanswered_question_counts_zero() -> None:
    examples = [asked(["x"]), asked(["x"])]
    assert score(examples, [answered("x"), None]) == {"EM": 50, "F1": 50}


def test_a_question_without_gold_answers_cannot_be_scored() -> None:
    with pytest.raises(InputError, match=r"dev\.json: article 1.*no gold answer"):
        score(
            [Example("q", NOWHERE, ("who",), None, "dev.json: article 1, paragraph 1, question 1")],
            [answered("x")],
        )
