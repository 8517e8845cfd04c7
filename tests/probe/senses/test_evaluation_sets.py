"""The sets of the unified evaluation framework."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.senses.corpus import SenseUse
from elmokit.probe.senses.evaluation_sets import (
    find_evaluation_sets,
    find_gold_keys,
    read_evaluation_set,
)

DATA = """\
<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="x">
<text id="d0">
<sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="greenhouse_gas" pos="NOUN">greenhouse gases</instance>
<wf lemma="&amp;" pos=".">&amp;</wf>
<instance id="d0.s0.t1" lemma="Mind-boggling" pos="ADJ">mind-boggling</instance>
</sentence>
<sentence id="d0.s1">
<wf lemma="so" pos="ADV">So</wf>
</sentence>
</text>
</corpus>
"""
GOLD = """\
d0.s0.t0 greenhouse_gas%1:27:00::
d0.s0.t1 mind-boggling%5:00:00:surprising:00 mind-boggling%5:00:00:x:00
"""


def write(folder: Path, data: str = DATA, gold: str = GOLD, name: str = "x") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.gold.key.txt").write_text(gold)
    path = folder / f"{name}.data.xml"
    path.write_text(data)
    return path


def test_words_and_instances(tmp_path: Path) -> None:
    found = read_evaluation_set(write(tmp_path))
    assert found.name == "x"
    assert [" ".join(sentence.words) for sentence in found.sentences] == [
        "The greenhouse gases & mind-boggling",
        "So",
    ]
    assert list(found.uses()) == [
        SenseUse(1, 3, "greenhouse_gas", "n", ("greenhouse_gas%1:27:00::",)),
        SenseUse(4, 5, "mind-boggling", "a", tuple(GOLD.split()[3:])),
    ]


def test_a_directory_stands_for_its_sets(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a", name="b"), write(tmp_path / "a", name="a")
    assert find_evaluation_sets(tmp_path / "a") == [other, one]
    assert find_evaluation_sets(tmp_path) == [other, one], "or for those below it"
    assert find_evaluation_sets(one) == [one]
    assert find_gold_keys(one).name == "b.gold.key.txt"
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no file with a name ending in .data.xml"):
        find_evaluation_sets(tmp_path / "empty")
    with pytest.raises(InputError, match="does not exist"):
        find_evaluation_sets(tmp_path / "nowhere")


def test_the_right_senses_may_be_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path)
    gold = (tmp_path / "x.gold.key.txt").rename(tmp_path / "keys")
    with pytest.raises(InputError, match=r"x.gold.key.txt does not exist; .*--gold"):
        read_evaluation_set(path)
    assert len(list(read_evaluation_set(path, gold).uses())) == 2


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            'pos="NOUN"',
            'pos="NN"',
            r'x.data.xml:6: found pos="NN" at d0.s0.t0; expected one of NOUN',
        ),
        ('id="d0.s0.t1"', 'id="d0.s0.t9"', "x.data.xml:8: d0.s0.t9 is not in .*gold.key.txt"),
        ('id="d0.s0.t1"', 'id="d0.s0.t0"', "x.data.xml:8: d0.s0.t0 occurs a second time"),
        (' lemma="greenhouse_gas"', "", "x.data.xml:6: found <instance> without lemma"),
        (">greenhouse gases<", "> <", "x.data.xml:6: found an empty <instance>"),
        ("</wf>\n<inst", "\n<inst", "x.data.xml:6: found <instance> within a word"),
        ("</text>\n", "", "x.data.xml:13: invalid XML .mismatched tag"),
        ("</corpus>\n", "", "invalid XML .no element found"),
        ("&amp;</wf>", "&nbsp;</wf>", "x.data.xml:7: invalid XML .undefined entity"),
        ('<sentence id="d0.s0">\n', "", "x.data.xml:4: found <wf> outside a sentence"),
    ],
)
def test_damaged_data(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert old in DATA
    with pytest.raises(FormatError, match=what):
        read_evaluation_set(write(tmp_path, DATA.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("gold", "what"),
    [
        (
            GOLD + "d0.s9.t9 so%4:02:00::\n",
            "1 instances that are not in .*x.data.xml, such as d0.s9",
        ),
        (GOLD + GOLD, "gold.key.txt:3: d0.s0.t0 occurs a second time"),
        ("d0.s0.t0\n", "gold.key.txt:1: found 'd0.s0.t0'; expected an id and the key"),
        ("d0.s0.t0 greenhouse_gas\n", "gold.key.txt:1: 'greenhouse_gas' is not a sense key"),
    ],
)
def test_damaged_gold(tmp_path: Path, gold: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_evaluation_set(write(tmp_path, gold=gold))


def test_nothing_to_score(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no <instance>"):
        read_evaluation_set(write(tmp_path, "<corpus/>", ""))


def test_entities_are_refused_before_they_grow(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE corpus [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n'
    with pytest.raises(FormatError, match=r"x.data.xml:2: found an entity declaration"):
        read_evaluation_set(write(tmp_path, DATA.replace("<corpus ", f"{bomb}<corpus ", 1)))


def test_compressed_files(tmp_path: Path) -> None:
    plain = read_evaluation_set(write(tmp_path))
    for name in ("x.data.xml", "x.gold.key.txt"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    assert read_evaluation_set(tmp_path / "x.data.xml").sentences == plain.sentences


def test_gold_that_is_not_utf_8(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "x.gold.key.txt").write_bytes(b"\n\xe9\n")
    with pytest.raises(InputError, match=r"x\.gold\.key\.txt, line 2 is not UTF-8"):
        read_evaluation_set(path)


def test_an_encoding_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "x.data.xml"
    path.write_text('<?xml version="1.0" encoding="MTF-8"?><corpus></corpus>')
    (tmp_path / "x.gold.key.txt").write_text("")
    with pytest.raises(FormatError, match="unknown encoding: MTF-8"):
        read_evaluation_set(path)
