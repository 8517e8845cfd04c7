"""SemCor's tag files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.senses.corpus import SenseUse
from elmokit.probe.senses.semcor import read_semcor, semcor_files

HEAD = "<contextfile concordance=brown>\n<context filename=br-a01 paras=yes>\n<p pnum=1>\n"
TAIL = "</p>\n</context>\n</contextfile>\n"
SENTENCES = """\
<s snum=1>
<wf cmd=ignore pos=DT>The</wf>
<wf cmd=done rdf=group pos=NNP lemma=group wnsn=1 lexsn=1:03:00:: pn=group>Grand_Jury</wf>
<wf cmd=done pos=VB lemma=say wnsn=1 lexsn=2:32:00::>said</wf>
<punc>``</punc>
<wf cmd=done pos=VB ot=notag>did</wf>
<wf cmd=ignore pos=RB>n't</wf>
<wf cmd=done pos=VB lemma=Take_Place wnsn=1 lexsn=2:30:00::>took_place</wf>
<punc>.</punc>
</s>
<s snum=2>
<wf cmd=done pos=JJ lemma=previous wnsn=1 lexsn=5:00:00:preceding(a):00>previous</wf>
<wf cmd=done pos=NN lemma=year wnsn=2;1 lexsn=1:28:02::;1:28:01::>year</wf>
<wf cmd=done pos=NN lemma=process wnsn=0;1 lexsn=1:22:00::;1:04:00::>processes</wf>
<wf cmd=done pos=JJ lemma=such wnsn=0 lexsn=5:00:01:specified:00>such</wf>
</s>
"""


def tag_file(path: Path, sentences: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + sentences + TAIL)
    return path


def test_words_and_senses(tmp_path: Path) -> None:
    tag_file(tmp_path / "brown1" / "tagfiles" / "br-a01", SENTENCES)
    found = read_semcor(tmp_path)
    assert [" ".join(sentence.words) for sentence in found.sentences] == [
        "The Grand Jury said `` did n't took place .",
        "previous year processes such",
    ]
    assert found.sentences[0].uses == [
        SenseUse(1, 3, "group", "n", ("group%1:03:00::",)),
        SenseUse(3, 4, "say", "v", ("say%2:32:00::",)),
        SenseUse(7, 9, "take_place", "v", ("take_place%2:30:00::",)),
    ]
    assert found.sentences[1].uses == [
        SenseUse(0, 1, "previous", "a", ("previous%5:00:00:preceding:00",)),
        SenseUse(1, 2, "year", "n", ("year%1:28:02::", "year%1:28:01::")),
        SenseUse(2, 3, "process", "n", ("process%1:04:00::",)),
    ]
    assert found.skipped == 2, "two senses are numbered 0"
    assert found.words == 14


def test_files_are_found_in_any_depth_and_others_passed_over(tmp_path: Path) -> None:
    last = tag_file(tmp_path / "brownv" / "br-b01", SENTENCES)
    first = tag_file(tmp_path / "brown1" / "tagfiles" / "br-a01", SENTENCES)
    (tmp_path / "LICENSE").write_text("A license.")
    assert semcor_files(tmp_path) == [first, last]
    assert semcor_files(first) == [first]
    assert len(read_semcor([last]).sentences) == 2
    assert len(read_semcor(tmp_path).sentences) == 4


def test_the_same_as_xml(tmp_path: Path) -> None:
    (tmp_path / "br-a01.xml").write_text(
        '<?xml version="1.0"?>\n<contextfile concordance="brown"><context filename="a">'
        '<p pnum="1"><s snum="1"><wf cmd="done" lemma="say" lexsn="2:32:00::" pos="VB" wnsn="1">'
        'says</wf><wf cmd="ignore" pos="NNP">AT&amp;T</wf></s></p></context></contextfile>\n'
    )
    (sentence,) = read_semcor(tmp_path).sentences
    assert sentence.words == ["says", "AT&T"]
    assert sentence.uses == [SenseUse(0, 1, "say", "v", ("say%2:32:00::",))]


def test_latin_1_is_read_too(tmp_path: Path) -> None:
    text = HEAD + "<s snum=1>\n<wf cmd=ignore pos=NN>café</wf>\n</s>\n" + TAIL
    for encoding in ("latin-1", "utf-8"):
        (tmp_path / "br-a01").write_bytes(text.encode(encoding))
        assert read_semcor(tmp_path).sentences[0].words == ["café"]


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("<s snum=1>\nThe\n</s>\n", r"br-a01:5: found 'The'; expected a line of SemCor"),
        ("<s snum=1>\n<wf cmd=ignore pos=DT>The\n</s>\n", "br-a01:5"),
        ("<s snum=1>\nx <punc>.</punc>\n</s>\n", "br-a01:5: found 'x <punc>"),
        ("<wf cmd=ignore pos=DT>The</wf>\n", "br-a01:4: .* is not in a sentence"),
        ("<s snum=1>\n<s snum=2>\n", "br-a01:5: <s> in a sentence"),
        ("</s>\n", "br-a01:4: '</s>' is not in a sentence"),
        ("<s snum=1>\n<punc>.</punc>\n", "ends within a sentence"),
        ("<s snum=1>\n<punc></punc>\n</s>\n", "br-a01:5: .*expected a word"),
        ("<s snum=1>\n<wf wnsn=1 lexsn=1:03:00::>x</wf>\n</s>\n", "br-a01:5: .*expected a lemma"),
        (
            "<s snum=1>\n<wf lemma=x wnsn=1 lexsn=7:03>x</wf>\n</s>\n",
            "br-a01:5: 'x%7:03' is not a sense key",
        ),
        ("<s snum=1>\n<wf lemma=x wnsn=1;2 lexsn=1:03:00::>x</wf>\n</s>\n", "br-a01:5: .*wnsn=1;2"),
    ],
)
def test_damaged_files(tmp_path: Path, lines: str, what: str) -> None:
    tag_file(tmp_path / "br-a01", lines)
    with pytest.raises(FormatError, match=what):
        read_semcor(tmp_path)


def test_a_directory_that_is_something_else(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("no tags")
    with pytest.raises(InputError, match="no SemCor tag file"):
        read_semcor(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_semcor(tmp_path / "nowhere")


def test_compressed_files(tmp_path: Path) -> None:
    plain = read_semcor(tag_file(tmp_path / "br-a01", SENTENCES)).sentences
    (tmp_path / "br-a01.gz").write_bytes(gzip.compress((tmp_path / "br-a01").read_bytes()))
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08 damaged")
    (tmp_path / "br-a01").unlink()
    assert read_semcor(tmp_path).sentences == plain
