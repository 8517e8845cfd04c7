"""WordNet's files, whichever are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.senses import wordnet
from elmokit.probe.senses.wordnet import find_wordnet, lemma_and_part, read_wordnet, wordnet_files

LICENSE = "  1 This software and database is being provided to you\n"
SENSE_INDEX = """\
bank%1:14:00:: 00000100 2 20
bank%1:17:01:: 00000200 1 25
bank%2:40:00:: 00000500 1 0
quick%3:00:00:: 00000300 2 1
quick%5:00:01:fast:02 00000400 1 9
fast%3:00:02:: 00000600 1 9
"""
FILES = {
    "index.noun": "bank n 2 1 @ 2 2 00000200 00000100  \n",
    "data.noun": '00000100 14 n 01 bank 0 001 @ 00000200 n 0000 | money; "a | bank"  \n'
    "00000200 17 n 02 Bank 1 side_of_a_river a 000 | land  \n",
    "index.verb": "bank v 1 0 1 0 00000500  \n",
    "data.verb": "00000500 40 v 01 bank 0 000 01 + 08 00 | put money away  \n",
    "index.adj": "quick a 2 1 & 2 2 00000400 00000300  \nfast a 1 1 & 1 1 00000600  \n",
    "data.adj": "00000300 00 a 01 quick(p) 0 000 | one  \n"
    "00000400 00 s 01 quick 1 002 + 00000100 n 0101 & 00000600 a 0000 | two  \n"
    "00000600 00 a 01 Fast(a) 2 001 & 00000400 s 0000 | three  \n",
    "index.adv": "",
    "data.adv": "",
}


def written(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(LICENSE + text)
    return folder


def test_the_order_is_that_of_the_senses_numbers(tmp_path: Path) -> None:
    found = read_wordnet(written(tmp_path, {"index.sense": SENSE_INDEX}))
    assert found.senses("bank", "n") == ("bank%1:17:01::", "bank%1:14:00::")
    assert found.first("bank", "n") == "bank%1:17:01::"
    assert found.number("bank%1:14:00::") == 2
    assert found.first("bank", "a") is None and found.senses("bank", "a") == ()
    assert "bank%2:40:00::" in found and "bank%2:40:01::" not in found
    assert len(found) == 6


def test_satellites_are_adjectives(tmp_path: Path) -> None:
    found = read_wordnet(written(tmp_path, {"index.sense": SENSE_INDEX}))
    assert found.senses("quick", "a") == ("quick%5:00:01:fast:02", "quick%3:00:00::")


def test_without_the_sense_index_keys_are_made_of_the_synsets(tmp_path: Path) -> None:
    found = read_wordnet(written(tmp_path / "synsets", FILES))
    known = read_wordnet(written(tmp_path / "index", {"index.sense": SENSE_INDEX}))
    for lemma, part in (("bank", "n"), ("bank", "v"), ("quick", "a"), ("fast", "a")):
        assert found.senses(lemma, part) == known.senses(lemma, part) != ()
    assert len(wordnet_files(tmp_path / "synsets")) == 8
    assert len(wordnet_files(tmp_path / "index")) == 1


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("index.sense", "bank 1 1 1", "index.sense:2: .*'bank 1 1 1'"),
        ("index.sense", "bank%1:14:00:: 100 first 0", "index.sense:2"),
    ],
)
def test_a_damaged_sense_index(tmp_path: Path, name: str, line: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_wordnet(written(tmp_path, {name: line}))


@pytest.mark.parametrize(
    ("name", "line", "what"),
    [
        ("index.noun", "bank n 2 1 @ 2 2 00000200 00000999", "index.noun:2: .*offsets"),
        ("index.noun", "bank n 3 1 @ 3 2 00000200 00000100", "index.noun:2"),
        ("data.noun", "00000100 14 n 02 bank 0", "data.noun:2: .*synset"),
        ("data.adj", "00000400 00 s 01 quick 1 000 | no head", "data.adj:2"),
        ("data.adj", "00000400 00 s 01 quick 1 001 & 00000999 a 0000 | x", "00000999"),
    ],
)
def test_damaged_synsets(tmp_path: Path, name: str, line: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        read_wordnet(written(tmp_path, FILES | {name: line + "\n"}))


def test_a_directory_that_is_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither index.sense nor .*apt install"):
        read_wordnet(tmp_path)
    with pytest.raises(InputError, match="not a directory"):
        read_wordnet(tmp_path / "nowhere")
    incomplete = {name: text for name, text in FILES.items() if name != "data.adv"}
    with pytest.raises(InputError, match="neither"):
        read_wordnet(written(tmp_path / "incomplete", incomplete))


def test_it_is_found_where_its_variables_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    written(home / "dict", {"index.sense": SENSE_INDEX})
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("WNHOME", str(home))
    assert find_wordnet() == home / "dict"
    assert len(read_wordnet(home)) == 6, "the directory above will do"


def test_what_to_install_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordnet, "_files", lambda place: [])
    with pytest.raises(InputError, match=r"wordnet-sense-index.*--wordnet DIR"):
        find_wordnet()


def test_keys() -> None:
    assert lemma_and_part("say%2:32:00::") == ("say", "v")
    assert lemma_and_part("recent%5:00:00:past:00") == ("recent", "a")
    for wrong in ("say", "%2:32:00::", "say%2:32", "say%9:32:00::"):
        with pytest.raises(FormatError, match="not a sense key"):
            lemma_and_part(wrong)


def test_both_ways_agree_on_real_files(tmp_path: Path) -> None:
    """All but nouns, which are many and easy: they have no heads."""
    try:
        place = find_wordnet()
    except InputError as error:
        pytest.skip(f"needs WordNet: {error}")
    names = [f"{kind}.{part}" for kind in ("index", "data") for part in ("verb", "adj", "adv")]
    if not all((place / name).is_file() for name in [*names, "index.sense"]):
        pytest.skip(f"needs WordNet with its sense index; {place} has only a part of it")
    for name in names:
        (tmp_path / name).symlink_to(place / name)
    for name in ("index.noun", "data.noun"):
        (tmp_path / name).touch()
    known, made = read_wordnet(place)._senses, read_wordnet(tmp_path)._senses
    assert made == {lemma: keys for lemma, keys in known.items() if lemma[1] != "n"}
    assert len(made) > 30_000
