from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.tasks import srl
from elmokit.tasks.srl.data import Example, Frame

WORDS = ["She", "gave", "him", "up"]
GAVE = ["B-ARG0", "B-V", "B-ARG1", "O"]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data"
    path.write_text(text)
    return path


def line(**fields: object) -> str:
    return json.dumps({"words": WORDS} | fields) + "\n"


def columns(*rows: str) -> str:
    """CoNLL-2012: each row is a word and its cells in the columns of predicates."""
    text = "#begin document (x); part 000\n"
    for number, row in enumerate(rows):
        word, *cells = row.split()
        lemma = "give 01" if word == "gave" else "- -"
        text += f"x 0 {number} {word} NN (S*) {lemma} - - * {' '.join(cells)} -\n"
    return text + "\n#end document\n"


def test_json_lines(tmp_path: Path) -> None:
    pred = {"i": 1, "roleset": "give.01", "tags": GAVE}
    path = written(tmp_path, line(preds=[pred, {"i": 3}]) + "\n" + line(preds=[]) + line())
    words = tuple(WORDS)
    read = srl.data.read(path)
    assert read.items == [
        Example(words, 1, tuple(GAVE), (1, 3), "give.01"),
        Example(words, 3, None, (1, 3)),
        Example(words, None, None, ()),
        Example(words, None, None, None),
    ]
    assert [example.where for example in read.items] == [f"{path}:{n}" for n in (1, 1, 3, 4)]
    assert read.items[0].texts == (words,)


def test_malformed_tags_are_set_right(tmp_path: Path) -> None:
    pred = {"i": 1, "tags": ["I-ARG0", "B-V", "I-ARG1", "I-ARG1"]}
    (example,) = srl.data.read(written(tmp_path, line(preds=[pred]))).items
    assert example.tags == ("B-ARG0", "B-V", "B-ARG1", "I-ARG1")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{broken\n", "not JSON"),
        ('{"words": []}', "'words', a non-empty list"),
        ('{"words": ["a", ""]}', "'words', a non-empty list"),
        ('{"words": ["a", 1]}', "'words', a non-empty list"),
        (line(preds={}), "not a list of objects"),
        (line(preds=[1]), "not a list of objects"),
        (line(preds=[{"tags": GAVE}]), "'i' of a predicate is None"),
        (line(preds=[{"i": 4, "tags": GAVE}]), "is 4; expected the position of one of 4 words"),
        (line(preds=[{"i": -1, "tags": GAVE}]), "is -1"),
        (line(preds=[{"i": True, "tags": GAVE}]), "is True"),
        (line(preds=[{"i": 1, "tags": GAVE[1:]}]), "found 3 tags; expected a list of 4"),
        (line(preds=[{"i": 1, "tags": "O"}]), "found 'O' tags"),
        (line(preds=[{"i": 1, "tags": ["ARG0", *GAVE[1:]]}]), "found the tag 'ARG0'"),
        (line(preds=[{"i": 1, "tags": ["S-ARG0", *GAVE[1:]]}]), "found the tag 'S-ARG0'"),
        (line(preds=[{"i": 1, "tags": [1, *GAVE[1:]]}]), "found the tag 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, line(preds=[]) + text)
    with pytest.raises(FormatError, match=told) as caught:
        srl.data.read(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_conll_2012(tmp_path: Path) -> None:
    text = columns("She (ARG0*) (ARG1*", "gave (V*) *", "him (ARG1* *)", "up *) (V*)")
    path = written(tmp_path, text + columns("Yes"))
    assert srl.data.read(path).items == [
        Example(tuple(WORDS), 1, ("B-ARG0", "B-V", "B-ARG1", "I-ARG1"), (1, 3), roleset="give.01"),
        Example(tuple(WORDS), 3, ("B-ARG1", "I-ARG1", "I-ARG1", "B-V"), (1, 3)),
        Example(("Yes",), None, None, ()),
    ]
    assert [example.where for example in srl.data.read(path).items] == [
        f"{path}:{n}" for n in (2, 2, 9)
    ]


def test_conll_2012_predicates_that_tags_cannot_hold_are_counted(tmp_path: Path) -> None:
    text = columns(
        "She (ARG0(ARG1*) * (ARG0*)", "gave *) * (V*)", "him (V*) (ARG1*) *", "up * * (C-V*)"
    )
    read = srl.data.read(written(tmp_path, text))
    assert [example.predicates for example in read.items] == [(1,)]
    assert read.skipped == {
        "predicates with roles inside roles": 1,
        "predicates without a (V*) bracket": 1,
    }


@pytest.mark.parametrize(
    ("rows", "at", "told"),
    [
        (["She (ARG0*", "gave (V*)"], 2, "bracket .ARG0\\* is not closed"),
        (["She (ARG0*)", "gave (V*))"], 3, "not opened"),
        (["She (ARG0)", "gave (V*)"], 2, "found '.ARG0.' in the column"),
        (["She *", "gave"], 3, "found 12 columns"),
    ],
)
def test_conll_2012_what_is_wrong(tmp_path: Path, rows: list[str], at: int, told: str) -> None:
    path = written(tmp_path, columns(*rows))
    with pytest.raises(FormatError, match=told) as caught:
        srl.data.read(path)
    assert str(caught.value).startswith(f"{path}:{at}: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("#begin document x\n", "no sentences"),
        ("plain text\n", "found 2 columns; expected JSON lines, or"),
    ],
)
def test_no_such_file(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        srl.data.read(written(tmp_path, text))


def test_parse() -> None:
    assert srl.data.parse(["She gave up."]) == Example(("She", "gave", "up", "."))
    marked = srl.data.parse(["She [didn't give] it, he [took] it."])
    assert marked.words == ("She", "did", "n't", "give", "it", ",", "he", "took", "it", ".")
    assert marked.predicates == (1, 7) and marked.predicate is None
    with pytest.raises(InputError, match="no words"):
        srl.data.parse([" "])


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    pred = {"i": 1, "roleset": "give.01", "tags": GAVE}
    other = {"i": 3, "tags": ["O", "O", "O", "B-V"]}
    text = line(preds=[pred, other]) + line(preds=[]) + line(preds=[pred])
    examples = srl.data.read(written(tmp_path, text)).items
    answers = [
        () if example.predicate is None else (Frame(example.predicate, example.tags or ()),)
        for example in examples
    ]
    file = io.StringIO()
    srl.data.write(file, examples, answers)
    assert list(map(json.loads, file.getvalue().splitlines())) == list(
        map(json.loads, text.splitlines())
    )
    assert srl.data.read(written(tmp_path, file.getvalue())).items == examples


def test_record_and_show() -> None:
    example = Example(tuple(WORDS))
    frames = (
        Frame(1, ("B-ARG0", "B-V", "B-ARG1", "I-ARG1")),
        Frame(3, ("O", "O", "O", "O")),
    )
    assert srl.data.to_record(example, frames)["preds"][0] == {
        "i": 1,
        "word": "gave",
        "tags": list(frames[0].tags),
        "roles": [
            {"role": "ARG0", "start": 0, "end": 1, "text": "She"},
            {"role": "ARG1", "start": 2, "end": 4, "text": "him up"},
        ],
    }
    text = srl.data.render(example, frames)
    assert text.plain == "[ARG0 She] [gave] [ARG1 him up]\nShe gave him [up]"
    assert any(span.style == "bold cyan" for span in text.spans)
    assert srl.data.render(example, ()).plain == "She gave him up  (no predicate)"


def test_facts() -> None:
    examples = [Example(("a", "b"), 0, ("B-V", "B-ARG1"), (0,)), Example(("a",))]
    assert srl.data.label_set(examples) == {"roles": ["ARG1", "V"]}
    with pytest.raises(TrainingError, match="no predicate"):
        srl.data.label_set(examples[1:])
