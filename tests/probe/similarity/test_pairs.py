from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.similarity.pairs import read_pairs

WIC = (
    "place\tN\t2-6\tDo you place him high ?\tThere was hardly a good place to sit .\n"
    "bank\tN\t5-1\tWe sat on the grassy bank .\tThe bank lent it to me .\n"
)
JSON = [
    {
        "word": "place",
        "sentence1": "Do you want to come over to my place later?",
        "sentence2": "A political system with no place for the less prominent groups.",
        "idx": 0,
        "label": False,
        "start1": 31,
        "start2": 27,
        "end1": 36,
        "end2": 32,
        "version": 1.1,
    },
    {
        "word": "can",
        "sentence1": "We cannot go.",
        "sentence2": "Who can?",
        "label": True,
        "start1": 3,
        "end1": 9,
        "start2": 4,
        "end2": 7,
    },
]
SCWS = (
    "1\tBrazil\tn\tnut\tn\tHe came home . In 1835 he was sent to <b> Brazil </b> . It was far .\t"
    "a variety of <b> nut </b>s .\t1.1\t0.0\t1.0\t2.3\n"
    "2\tbank\tn\tBank\tn\ton the <b>bank</b> of\tThe <b>Bank</b> of\t5.5\t4.5\t6\t6\n"
)


@pytest.fixture
def write(tmp_path: Path):
    def to(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return to


def test_wic(write) -> None:
    path = write("dev.data.txt", WIC)
    found = read_pairs(path, write("answers", "T\nF\n"))
    assert found.format == "wic" and found.answers == [True, False] and not found.ratings
    first, second = found.pairs
    assert first.first.words[first.first.start : first.first.end] == ["place"]
    assert first.second == ("There was hardly a good place to sit .".split(), 6, 7)
    assert second.same_word and second.second.words[second.second.start] == "bank"


def test_the_gold_beside(write) -> None:
    path = write("dev.data.txt", WIC)
    with pytest.raises(InputError, match="no file of answers"):
        read_pairs(path)
    gold = write("dev.gold.txt", "T\nF\n")
    assert read_pairs(path).answers == [True, False]
    gold.write_text("T\nF\nT\n")
    with pytest.raises(FormatError, match="3 answers for 2 pairs"):
        read_pairs(path)
    gold.write_text("T\nmaybe\n")
    with pytest.raises(FormatError, match=r"gold.txt:2: found 'maybe'; expected T or F"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "bank\tN\t9-1\tWe sat .\tThe bank .",
            "is 9, but the sentence has 3 words, counted from 0",
        ),
        ("bank\tN\t1\tWe sat .\tThe bank .", "expected word, part of speech, i-j"),
        ("bank\tN\t1-1\tWe sat .", "expected word, part of speech, i-j"),
    ],
)
def test_a_bad_line_of_wic(write, line: str, message: str) -> None:
    with pytest.raises(FormatError, match=rf"data.txt:3: .*{message}"):
        read_pairs(write("data.txt", f"{WIC}{line}\n"), write("gold", "T\nF\nF\n"))


def test_json(write) -> None:
    found = read_pairs(write("val.jsonl", "".join(json.dumps(one) + "\n" for one in JSON)))
    assert found.format == "json" and found.answers == [False, True]
    place, can = found.pairs
    assert place.first.words[place.first.start : place.first.end] == ["place"]
    assert place.second.words[place.second.start : place.second.end] == ["place"]
    assert place.first.words[-2:] == ["later", "?"]
    # A word that the tokenizer cuts in two is both of them.
    assert can.first.words[can.first.start : can.first.end] == ["can", "not"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": None}, "no label"),
        ({"start1": None}, "start1 and end1"),
        ({"start1": 36, "end1": 36}, "there is no word from 36 to 36"),
        ({"end2": 400}, "there is no word from 27 to 400"),
        ({"label": "perhaps"}, "expected T or F"),
    ],
)
def test_a_bad_object(write, change: dict[str, object], message: str) -> None:
    text = json.dumps(JSON[1]) + "\n" + json.dumps(JSON[0] | change)
    with pytest.raises(FormatError, match=rf"val.jsonl:2: .*{message}"):
        read_pairs(write("val.jsonl", text))
    with pytest.raises(FormatError, match=r":2: invalid JSON"):
        read_pairs(write("val.jsonl", json.dumps(JSON[1]) + "\n{"))


def test_scws(write) -> None:
    found = read_pairs(write("ratings.txt", SCWS))
    assert found.format == "scws" and not found.answers
    assert found.ratings == [1.1, 5.5] and found.raters == [[0.0, 1.0, 2.3], [4.5, 6.0, 6.0]]
    first, second = found.pairs
    # The sentence alone, not the paragraph around it.
    assert first.first == ("In 1835 he was sent to Brazil .".split(), 6, 7)
    assert (first.same_word, second.same_word) == (False, True)
    assert second.second == (["The", "Bank", "of"], 1, 2)
    named = "id\tword1\tPOS1\tword2\tPOS2\tcontext1\tcontext2\trating\n" + SCWS
    assert read_pairs(write("ratings.txt", named)).pairs == found.pairs


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<b>Bank</b>", "Bank", "0 words between"),
        ("5.5", "much", "'much'; expected a number"),
        ("\t5.5\t4.5\t6\t6", "", "7 cells"),
        ("\t5.5\t4.5\t6\t6", "\t", "no rating"),
    ],
)
def test_a_bad_line_of_scws(write, old: str, new: str, message: str) -> None:
    with pytest.raises(FormatError, match=rf"ratings.txt:2: .*{message}"):
        read_pairs(write("ratings.txt", SCWS.replace(old, new)))


def test_ratings_of_different_numbers_of_people(write) -> None:
    assert read_pairs(write("ratings.txt", SCWS.replace("\t2.3\n", "\n"))).raters == []


def test_what_it_is_not(write) -> None:
    with pytest.raises(FormatError, match="neither WiC"):
        read_pairs(write("text", "Some sentence.\n"))
    with pytest.raises(FormatError, match="no pairs"):
        read_pairs(write("text", "\n"))
    with pytest.raises(InputError, match="format is 'usim'"):
        read_pairs(write("text", WIC), format="usim")
    with pytest.raises(InputError, match="contains the answers"):
        read_pairs(write("ratings.txt", SCWS), "gold")
    with pytest.raises(FormatError, match="cannot be read"):
        read_pairs("nothing.txt")
