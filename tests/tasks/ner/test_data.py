from __future__ import annotations

import io
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.tasks import ner
from elmokit.tasks.ner.data import Example

IOB1 = """\
-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
British JJ I-NP B-MISC

#1\tCD\tI-NP\tO
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "data.conll"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_read(tmp_path: Path) -> None:
    path = written(tmp_path, IOB1)
    read = ner.data.read(path)
    assert read.items == [
        Example(("EU", "rejects", "German", "British"), ("B-ORG", "O", "B-MISC", "B-MISC")),
        Example(("#1",), ("O",)),
    ]
    assert [example.where for example in read.items] == [f"{path}:3", f"{path}:8"]
    assert read.skipped == {"-DOCSTART- lines": 1}
    assert read.items[0].texts == (("EU", "rejects", "German", "British"),)


@pytest.mark.parametrize(
    "text",
    [
        "a I-X\nb I-X\nc B-X\n",
        "a B-X\nb I-X\nc B-X",
        "a B-X\r\nb E-X\r\nc S-X\r\n\r\n",
        "\ufeffa\tB-X\nb\t\tE-X  \nc\tS-X\n\t\n",
        "\n\na B-X\nb I-X\nc B-X\n-DOCSTART- O\n",
    ],
)
def test_all_schemes_are_one_inside(tmp_path: Path, text: str) -> None:
    read = ner.data.read(written(tmp_path, text)).items
    assert read == [Example(("a", "b", "c"), ("B-X", "I-X", "B-X"))]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a O\nb NN O\n", 2, "3 columns, but 2 before"),
        ("a O\n\nb\n", 3, "found only 'b'"),
        ("a O\n O\n", 2, "begins with a space"),
        ("a O\nb PER\n", 2, "last column is 'PER'"),
        ("a O\nb B-\n", 2, "last column is 'B-'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str | bytes, line: int, told: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FormatError, match=told) as caught:
        ner.data.read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_what_is_not_utf8_is_reported_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"a O\n\xff O\n")
    with pytest.raises(InputError, match=f"{path}, line 2 is not UTF-8"):
        ner.data.read(path)


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_nothing_in_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match="no sentences"):
        ner.data.read(written(tmp_path, text))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        ner.data.read(tmp_path / "none")


def test_parse() -> None:
    assert ner.data.parse(["Don't go to Oslo."]) == Example(
        ("Do", "n't", "go", "to", "Oslo", "."), None
    )
    with pytest.raises(InputError, match="no words"):
        ner.data.parse([" \n"])


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    examples = ner.data.read(written(tmp_path, IOB1)).items
    answers = [("B-ORG", "O", "B-PER", "I-PER"), ("B-PER",)]
    file = io.StringIO()
    ner.data.write(file, examples, answers)
    assert file.getvalue().startswith("EU B-ORG B-ORG\nrejects O O\nGerman B-MISC B-PER\n")
    again = ner.data.read(written(tmp_path, file.getvalue())).items
    assert [example.tags for example in again] == answers
    file = io.StringIO()
    ner.data.write(file, [Example(("Oslo",))], [("B-LOC",)])
    assert file.getvalue() == "Oslo B-LOC\n\n"


def test_record_and_show() -> None:
    example = Example(("In", "New", "York", "!"))
    answer = ("O", "B-LOC", "I-LOC", "O")
    assert ner.data.to_record(example, answer) == {
        "words": ["In", "New", "York", "!"],
        "tags": list(answer),
        "entities": [{"type": "LOC", "start": 1, "end": 3, "text": "New York"}],
    }
    text = ner.data.render(example, answer)
    assert text.plain == "In [New York LOC] !"
    assert any(span.style == "bold green" for span in text.spans)
    known = Example(example.words, answer)
    assert ner.data.to_record(known, answer)["gold"] == list(answer)


def test_facts() -> None:
    examples = [Example(("a", "b"), ("B-Y", "B-X")), Example(("a",), ("O",))]
    assert ner.data.label_set(examples) == {"types": ["X", "Y"]}
    assert set(ner.data.labels(examples[0])) == {"X", "Y"}
    assert not set(ner.data.labels(Example(("a",))))
    with pytest.raises(TrainingError, match="no entity"):
        ner.data.label_set(examples[1:])
