from __future__ import annotations

import io
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks import coref
from elmokit.tasks.coref.data import Example, Mention

ONTONOTES = """\
#begin document (bc/cctv/00/cctv_0001); part 002
bc/cctv 2 0 He       PRP  (TOP(S(NP*) - - - Speaker#1 * (ARG0*) (12)
bc/cctv 2 1 and      CC   *           - - - Speaker#1 * *       -
bc/cctv 2 2 John     NNP  (NP*        - - - Speaker#1 * *       (12|(7
bc/cctv 2 3 's       POS  *           - - - Speaker#1 * *       12)
bc/cctv 2 4 wife     NN   *)          - - - Speaker#1 * *       7)

bc/cctv 2 0 They     PRP  *           - - - -         * *       (3)|(4
bc/cctv 2 1 came     VBD  *           - - - -         * *       4)

#end document
"""
LITBANK = (
    "#begin document (1_emma_brat); part 0\n"
    "1_emma_brat\t0\t0\tEmma\t_\t_\t_\t_\t_\t_\t_\t_\t(0)\n"
    "1_emma_brat\t0\t1\tsmiled\t_\t_\t_\t_\t_\t_\t_\t_\t\n"
    "\n"
    "#end document\n"
)


def read_text(tmp_path: Path, text: str) -> Example:
    path = tmp_path / "some.conll"
    path.write_bytes(text.encode())
    (example,) = coref.data.read(path).items
    return example


def column(*cells: str) -> str:
    """A document of one sentence with these coreference cells."""
    lines = [f"d\t0\t{n}\tw{n}\t{cell}" for n, cell in enumerate(cells)]
    return "\n".join(["#begin document (d); part 000", *lines, "", "#end document", ""])


def mentions(example: Example) -> set[tuple[int, int]]:
    assert example.clusters is not None
    return {(m.start, m.end) for cluster in example.clusters for m in cluster}


def test_a_file_of_conll_2012(tmp_path: Path) -> None:
    example = read_text(tmp_path, ONTONOTES)
    assert example.document == "(bc/cctv/00/cctv_0001); part 002"
    assert example.texts == (("He", "and", "John", "'s", "wife"), ("They", "came"))
    assert example.speakers == ("Speaker#1", "")
    assert example.clusters == (
        (Mention(0, 0, 1), Mention(0, 2, 4)),
        (Mention(0, 2, 5),),
        (Mention(1, 0, 1),),
        (Mention(1, 0, 2),),
    )
    assert example.where == f"{tmp_path / 'some.conll'}:1"


def test_an_empty_last_column_is_no_mention(tmp_path: Path) -> None:
    example = read_text(tmp_path, LITBANK.replace("\n", "\r\n"))
    assert example.texts == (("Emma", "smiled"),)
    assert example.clusters == ((Mention(0, 0, 1),),)
    assert example.speakers == ("",)


def test_nested_mentions_of_a_cluster_pair_from_inside(tmp_path: Path) -> None:
    example = read_text(tmp_path, column("(1", "(1", "-", "1)", "1)"))
    assert mentions(example) == {(1, 4), (0, 5)}


def test_at_a_word_beginnings_are_read_before_ends(tmp_path: Path) -> None:
    assert mentions(read_text(tmp_path, column("(1", "1)|(1", "1)"))) == {(1, 2), (0, 3)}


def test_mentions_of_two_clusters_may_cross(tmp_path: Path) -> None:
    assert mentions(read_text(tmp_path, column("(1", "(2", "1)", "2)"))) == {(0, 3), (1, 4)}


def test_a_mention_in_two_clusters_stays_in_the_first(tmp_path: Path) -> None:
    path = tmp_path / "twice.conll"
    path.write_text(column("(1)|(2)|(1)", "(2)"))
    examples = coref.data.read(path)
    assert examples.items[0].clusters == ((Mention(0, 0, 1),), (Mention(0, 1, 2),))
    assert examples.skipped == {"mention marked twice": 2}
    # Cluster 5 appears first, though the first of its mentions ends last.
    example = read_text(tmp_path, column("(5", "(6)|(5)", "5)"))
    assert example.clusters == ((Mention(0, 0, 3), Mention(0, 1, 2)),)


def test_a_directory_gives_all_its_files_in_order(tmp_path: Path) -> None:
    for name in ("b.v4_gold_conll", "deep/a.conll", "a.conll", "notes.txt", ".hidden.conll"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(column("-").replace("(d)", f"({name})"))
    found = [example.document for example in coref.data.read(tmp_path).items]
    assert found == [f"({n}); part 000" for n in ("a.conll", "b.v4_gold_conll", "deep/a.conll")]


def test_a_document_without_words_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "two.conll"
    path.write_text("#begin document (e); part 0\n#end document\n" + column("-"))
    examples = coref.data.read(path)
    assert len(examples) == 1
    assert examples.skipped == {"document without words": 1}


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("d 0 0 word -\n", 1, "a word outside of a document"),
        (column("-").replace("d\t0\t0\tw0\t-", "d 0 0 w0"), 2, "4 columns"),
        (column("(1", "-"), 2, r"\(1 begins a mention that does not end"),
        (column("-", "1)"), 3, r"1\) ends a mention"),
        (column("(1", "1)|1)"), 3, r"1\) ends a mention"),
        (column("(1").replace("\n\n", "\n\nd\t0\t0\tx\t1)\n\n"), 2, "does not end in its sentence"),
        (column("-", "1"), 3, "'1' in the coreference column"),
        (column("-", "(a)"), 3, r"'\(a\)' in the coreference column"),
        (column("-", "(1)||(2)"), 3, "'' in the coreference column"),
        (column("-").replace("w0", " "), 2, "expected a word"),
        (column("-").replace("#end document", ""), 1, "does not end"),
        ("#end document\n", 1, "without '#begin document'"),
        (column("-").replace("#end document", "#begin document (e); part 0"), 4, "begins before"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, found: str
) -> None:
    path = tmp_path / "bad.conll"
    path.write_text(text)
    with pytest.raises(FormatError, match=found) as error:
        coref.data.read(path)
    assert str(error.value).startswith(f"{path}:{line}: ")


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.conll"
    path.write_bytes(column("-", "-").replace("w1", "é").encode("latin-1"))
    with pytest.raises(InputError, match=f"{path}, line 3 is not UTF-8"):
        coref.data.read(path)


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n"])
def test_a_file_without_documents(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.conll"
    path.write_text(text)
    with pytest.raises(FormatError, match="no document with words"):
        coref.data.read(path)


def test_a_directory_without_files_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no file whose name ends in conll"):
        coref.data.read(tmp_path)
    with pytest.raises(FormatError, match="cannot be read"):
        coref.data.read(tmp_path / "none.conll")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    examples = [read_text(tmp_path, text) for text in (ONTONOTES, LITBANK)]
    nested = read_text(tmp_path, column("(1", "(1|(2)", "-", "1)", "1)"))
    examples.append(nested)
    file = io.StringIO()
    coref.data.write(file, examples, [example.clusters or () for example in examples])
    path = tmp_path / "written.conll"
    path.write_text(file.getvalue())
    assert coref.data.read(path).items == examples


def test_what_is_written_is_what_the_official_scorer_reads(tmp_path: Path) -> None:
    example = read_text(tmp_path, ONTONOTES)
    file = io.StringIO()
    coref.data.write(file, [example], [((Mention(0, 0, 1), Mention(0, 2, 5)), (Mention(0, 2, 3),))])
    lines = file.getvalue().split("\n")
    assert lines[0] == "#begin document (bc/cctv/00/cctv_0001); part 002"
    cells = [line.split("\t") for line in lines[1:6]]
    assert {len(row) for row in cells} == {12}
    assert [row[3] for row in cells] == list(example.sentences[0])
    assert [row[-1] for row in cells] == ["(0)", "-", "(0|(1)", "-", "0)"]
    assert [row[9] for row in cells] == ["Speaker#1"] * 5
    assert lines[-4:] == [lines[-4], "", "#end document", ""]


def test_raw_text_becomes_a_document() -> None:
    example = coref.data.parse(["Emma saw Mr. Knightley. She didn't speak."])
    assert example.texts == (
        ("Emma", "saw", "Mr.", "Knightley", "."),
        ("She", "did", "n't", "speak", "."),
    )
    assert example.clusters is None
    with pytest.raises(InputError, match="no words"):
        coref.data.parse(["  "])


def test_answers_for_machines_and_for_people() -> None:
    example = coref.data.parse(["Emma saw her father. She smiled."])
    clusters = (
        (Mention(0, 0, 1), Mention(0, 2, 3), Mention(1, 0, 1)),
        (Mention(0, 2, 4), Mention(0, 3, 4)),
    )
    record = coref.data.to_record(example, clusters)
    assert record["sentences"][1] == ["She", "smiled", "."]
    assert record["clusters"][1][0] == {
        **{"sentence": 0, "start": 2, "end": 4, "text": "her father"},
        **{"start_char": 9, "end_char": 19},
    }
    shown = coref.data.render(example, clusters)
    assert shown.plain == "[Emma]1 saw [[her]1 [father]2]2 .\n[She]1 smiled ."
    emma, she = shown.plain.index("Emma"), shown.plain.index("She")
    colors = {
        place: {str(s.style) for s in shown.spans if s.start <= place < s.end}
        for place in (emma, she, shown.plain.index("father"))
    }
    assert colors[emma] == colors[she] != colors[shown.plain.index("father")]


def test_a_cluster_has_no_label() -> None:
    example = coref.data.parse(["Emma smiled."])
    assert list(coref.data.labels(example)) == []
    assert coref.data.label_set([example]) == {}
