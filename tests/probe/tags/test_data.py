from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.tags.data import read_tagged


@pytest.fixture
def file(tmp_path: Path):
    """Write a file of this text."""

    def write(text: str, name: str = "tags.tsv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def test_tabs(file) -> None:
    found = read_tagged(file("\nIt\tPRON\tPRP\r\nis\tAUX\tVBZ\n\n\ncafé\tNOUN\tNN\n"))
    assert found.sentences == [["It", "is"], ["café"]]
    assert found.tags == {"UPOS": ["PRON", "AUX", "NOUN"], "XPOS": ["PRP", "VBZ", "NN"]}
    assert found.words == ["It", "is", "café"]


def test_one_tag_and_no_last_newline(file) -> None:
    found = read_tagged(file("a b\tX\n#\tY"))
    assert found.sentences == [["a b", "#"]] and found.tags == {"tag": ["X", "Y"]}


CONLLU = """\
# sent_id = 1
# text = I don't run.
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tnever\tnever\tADV\tRB\t_\t_\t_\t_\t_
4\trun\trun\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

# sent_id = 2
1\t#\t#\tSYM\t$\t_\t0\troot\t_\t_
"""


def test_conllu(file) -> None:
    found = read_tagged(file(CONLLU))
    assert found.sentences == [["I", "do", "n't", "run", "."], ["#"]]
    assert found.tags["UPOS"] == ["PRON", "AUX", "PART", "VERB", "PUNCT", "SYM"]
    assert found.tags["XPOS"] == ["PRP", "VBP", "RB", "VB", ".", "$"]
    relations = read_tagged(file(CONLLU), ["DEPREL"])
    assert relations.tags == {"DEPREL": "nsubj aux advmod root punct root".split()}
    assert read_tagged(file(CONLLU), ["8"]) == read_tagged(file(CONLLU), ["deprel"]) == relations


def test_conllu_without_xpos(file) -> None:
    text = "1\tBonjour\tbonjour\tINTJ\t_\t_\t0\troot\t_\t_\n"
    assert read_tagged(file(text)).tags == {"UPOS": ["INTJ"]}
    with pytest.raises(FormatError, match="no tags in column XPOS"):
        read_tagged(file(text), ["XPOS"])
    with pytest.raises(FormatError, match="no tags in the columns UPOS and XPOS"):
        read_tagged(file(text.replace("INTJ", "_")))


CONLL = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
# # I-NP O

.  . O O
"""


def test_columns_between_spaces(file) -> None:
    found = read_tagged(file(CONLL))
    assert found.sentences == [["EU", "#"], ["."]] and found.tags == {"pos": ["NNP", "#", "."]}
    assert read_tagged(file(CONLL), ["ner", "3"]).tags == {
        "ner": ["B-ORG", "O", "O"],
        "chunk": ["B-NP", "I-NP", "O"],
    }
    assert read_tagged(file("a DT B-NP\n")).tags == {"pos": ["DT"]}


def test_a_form_that_is_said(file) -> None:
    # Seen as tabs, but the word has a tab in it only by chance.
    assert read_tagged(file("a\tDT B-NP\n"), format="spaces").tags == {"pos": ["DT"]}
    with pytest.raises(FormatError, match=r":1: .*not a line of CoNLL-U"):
        read_tagged(file("a\tDT\n"), format="conllu")
    with pytest.raises(InputError, match="format is 'xml'"):
        read_tagged(file("a\tDT\n"), format="xml")


def test_columns_without_names(file) -> None:
    path = file("a\t1\t2\t3\t4\n")
    with pytest.raises(FormatError, match="5 columns; name the column"):
        read_tagged(path)
    assert read_tagged(path, ["4"]).tags == {"column 4": ["3"]}


@pytest.mark.parametrize("column", ["1", "6", "word", "UPOS", "0"])
def test_a_column_that_is_not_there(file, column: str) -> None:
    with pytest.raises(InputError, match="its columns are 2 pos, 3 chunk, 4 ner"):
        read_tagged(file(CONLL), [column])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("word\tNOUN", "2 cells; expected 3, separated by tabs"),
        ("word\tNOUN\tNN\tmore", "4 cells; expected 3"),
        ("word NOUN NN", "1 cells; expected 3"),
        ("\tX\tY", "empty cell"),
        ("word\t\tY", "empty cell"),
    ],
)
def test_a_bad_line_is_named(file, line: str, message: str) -> None:
    with pytest.raises(FormatError, match=rf"tags.tsv:2: .*{message}"):
        read_tagged(file(f"It\tPRON\tPRP\n{line}\n"))


def test_a_bad_line_of_conllu(file) -> None:
    bad = CONLLU.replace("3.1\t", "x\t")
    with pytest.raises(FormatError, match=r"tags.tsv:7: the ID is 'x'"):
        read_tagged(file(bad))


def test_what_is_no_such_file(tmp_path: Path, file) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        read_tagged(tmp_path / "nothing.tsv")
    with pytest.raises(FormatError, match="no words"):
        read_tagged(file("\n\n# only a note\n"))
    with pytest.raises(FormatError, match="a single cell"):
        read_tagged(file("word\n"))
    (tmp_path / "latin.tsv").write_bytes(b"caf\xe9\tNOUN\tNN\n")
    with pytest.raises(InputError, match=r"latin.tsv, line 1 is not UTF-8"):
        read_tagged(tmp_path / "latin.tsv")


def test_compressed(tmp_path: Path) -> None:
    (tmp_path / "tags.tsv.gz").write_bytes(gzip.compress(b"a\tA\n\nb\tB\n"))
    assert read_tagged(tmp_path / "tags.tsv.gz").sentences == [["a"], ["b"]]


def test_the_first_words(file) -> None:
    found = read_tagged(file("a\tA\nb\tB\n\nc\tC\n\nd\tD\n"))
    assert found.first(3).sentences == [["a", "b"], ["c"]]
    assert found.first(3).tags == {"tag": ["A", "B", "C"]}
    assert found.first(1).words == ["a", "b"] and found.first(9) == found
