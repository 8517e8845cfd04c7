"""The sense probe."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.senses.corpus import SenseCorpus, SenseSentence, SenseUse
from elmokit.probe.senses.evaluation_sets import read_evaluation_set
from elmokit.probe.senses.measure import (
    SenseAnswers,
    choose_senses,
    measure_senses,
)
from elmokit.probe.senses.render import render_figures, render_tables
from elmokit.probe.senses.wordnet import WordNet, find_wordnet, read_wordnet
from elmokit.probe.tables import table_to_markdown

LAND, MONEY = "bank%1:17:01::", "bank%1:14:00::"
RIVER, RUN, HOP = "river%1:17:00::", "run%2:38:00::", "hop%2:38:00::"
WORDNET = WordNet(
    {("bank", "n"): (LAND, MONEY), ("river", "n"): (RIVER,), ("run", "v"): (RUN,), ("hop", "v"): ()}
)


def sentence(words: str, *marks: tuple[str, str, str]) -> SenseSentence:
    """Marks are a word, its part of speech and its key."""
    split = words.split()
    return SenseSentence(
        split,
        [
            SenseUse(split.index(word), split.index(word) + 1, key.split("%")[0], part, (key,))
            for word, part, key in marks
        ],
    )


CORPUS = SenseCorpus(
    "SemCor",
    [
        sentence("the bank lent money", ("bank", "n", MONEY)),
        sentence("my bank pays", ("bank", "n", MONEY)),
        sentence("muddy bank", ("bank", "n", LAND)),
        sentence("they run", ("run", "v", RUN)),
    ],
    skipped=7,
)
ONE = SenseCorpus(
    "one",
    [
        sentence("the bank lent money", ("bank", "n", MONEY)),
        sentence("muddy bank", ("bank", "n", LAND)),
        sentence("nothing here"),
        sentence("that river", ("river", "n", RIVER)),
    ],
)
OTHER = SenseCorpus(
    "other",
    [
        sentence("they run", ("run", "v", RUN)),
        sentence("to hop", ("hop", "v", HOP)),
        sentence("muddy bank", ("bank", "n", LAND)),
    ],
)


@pytest.fixture
def probe(elmo: Elmo) -> SenseAnswers:
    return choose_senses({"trained": elmo, "untrained": elmo}, CORPUS, [ONE, OTHER], WORDNET)


def right(probe: SenseAnswers, network: str, layer: str) -> list[int]:
    return probe.method(network, layer).correct_N.astype(int).tolist()


def test_the_rules(probe: SenseAnswers) -> None:
    assert right(probe, "", "first") == [0, 1, 1, 1, 0, 1]
    assert right(probe, "", "frequent") == [1, 0, 1, 1, 0, 0]


def test_layers(probe: SenseAnswers) -> None:
    # The characters are the same in all uses, so that the frequent sense wins the tie.
    assert right(probe, "trained", "0") == right(probe, "", "frequent")
    # A sentence of the corpus itself is nearest to the sense of which it is the only use.
    for layer in ("1", "2", "all"):
        assert right(probe, "trained", layer)[1:] == [1, 1, 1, 0, 1]


def test_what_was_seen(probe: SenseAnswers) -> None:
    assert probe.seen_N.tolist() == [2, 2, 0, 1, 0, 2]
    assert probe.part_N.tolist() == list("nnnvvn")
    assert probe.sets == {"one": slice(0, 3), "other": slice(3, 6)}
    assert probe.whole == slice(0, 6)


def test_a_set_called_all_is_the_whole(elmo: Elmo) -> None:
    both = SenseCorpus("ALL", [*ONE.sentences, *OTHER.sentences])
    found = choose_senses({"trained": elmo}, CORPUS, [both, ONE, OTHER], WORDNET)
    assert found.whole == slice(0, 6)
    assert measure_senses(found, CORPUS, {"model": "x"})["instances"]["all"] == 6


def test_progress_goes_over_all_networks(elmo: Elmo) -> None:
    reports: list[tuple[int, int | None]] = []
    choose_senses(
        {"trained": elmo, "untrained": elmo},
        CORPUS,
        [ONE],
        WORDNET,
        progress=lambda *report: reports.append(report),
    )
    assert reports[-1] == (16, 16)
    assert reports == sorted(reports)


def test_what_cannot_be(elmo: Elmo) -> None:
    with pytest.raises(InputError, match="a different name for each"):
        choose_senses({"trained": elmo}, CORPUS, [ONE, ONE], WORDNET)
    with pytest.raises(InputError, match="a different name for each"):
        choose_senses({"trained": elmo}, CORPUS, [], WORDNET)
    with pytest.raises(InputError, match="networks are"):
        choose_senses({"mine": elmo}, CORPUS, [ONE], WORDNET)
    with pytest.raises(InputError, match="no lemma of the test sets"):
        choose_senses({"trained": elmo}, SenseCorpus("SemCor", []), [ONE], WORDNET)


@pytest.fixture
def found(probe: SenseAnswers) -> dict[str, Any]:
    return measure_senses(probe, CORPUS, {"model": "x"})


def test_the_numbers(found: dict[str, Any]) -> None:
    first = found["rows"][0]
    assert (first["network"], first["layer"]) == ("", "first")
    assert first["f1"] == pytest.approx(4 / 6)
    assert first["sets"] == pytest.approx({"one": 2 / 3, "other": 2 / 3})
    assert first["parts"] == pytest.approx({"n": 3 / 4, "v": 1 / 2})
    assert first["seen"] == pytest.approx(3 / 4)
    assert first["choice"] == pytest.approx(2 / 3)
    assert found["instances"] == {
        "all": 6,
        "seen": 4,
        "choice": 3,
        "parts": {"n": 4, "v": 2},
        "sets": {"one": 3, "other": 3},
    }
    assert found["corpus"] == {
        "name": "SemCor",
        "sentences": 4,
        "words": 11,
        "uses": 4,
        "skipped": 7,
    }
    assert len(found["rows"]) == 2 + 2 * 4


def test_the_top_layer_is_compared_with_what_it_should_be_better_than(
    found: dict[str, Any],
) -> None:
    assert [pair["second"] for pair in found["pairs"]] == [
        ["trained", "1"],
        ["trained", "0"],
        ["untrained", "2"],
        ["", "first"],
        ["", "frequent"],
    ]
    assert all(pair["first"] == ["trained", "2"] for pair in found["pairs"])
    same = found["pairs"][2]
    assert (same["only_first"], same["only_second"], same["standard_error"]) == (0, 0, 0)
    characters = found["pairs"][1]
    apart = [row["f1"] for row in found["rows"] if row["layer"] in ("2", "0")]
    assert characters["difference"] == pytest.approx(apart[1] - apart[0])


def test_tables(found: dict[str, Any]) -> None:
    kinds, sets, evidence = render_tables(found)
    assert kinds.columns == ["", "ALL", "seen", "choice", "nouns", "verbs"]
    assert kinds.rows[0] == ["WordNet's first sense", "66.7", "75.0", "66.7", "75.0", "50.0"]
    assert kinds.rows[2][0] == "untrained: characters"
    assert kinds.rows[6][0] == "characters"
    assert kinds.rows[-1] == ["instances", "6", "4", "3", "4", "2"]
    assert sets.columns == ["", "one", "other", "ALL"]
    # The best trained layer; all of them are right about half of the verbs.
    assert {column for _, column in kinds.bold} == {1, 2, 3, 4}
    assert {row for row, _ in kinds.bold} <= {7, 8}
    assert "7 annotations with senses that are no longer in WordNet" in kinds.note
    assert evidence.title == "LSTM 2 compared with the other methods, difference in F1 points"
    assert "| untrained: LSTM 2 | +0.0 ± 0.0 | 0 | 0 |" in table_to_markdown(evidence)


def test_one_set_needs_no_table_of_sets(elmo: Elmo) -> None:
    one = measure_senses(
        choose_senses({"trained": elmo}, CORPUS, [ONE], WORDNET), CORPUS, {"model": "x"}
    )
    assert [table.title.split()[0] for table in render_tables(one)] == ["Word", "LSTM"]
    assert "untrained" not in render_figures(one)[0].svg


def test_pictures(found: dict[str, Any]) -> None:
    by_layer, by_part = render_figures(found)
    assert (by_layer.name, by_part.name) == ("", "parts")
    for text in ("characters", "LSTM 2", "all layers", "untrained", "WordNet's first sense 66.7"):
        assert text in by_layer.svg
    assert "nouns" in by_part.svg and "adverbs" not in by_part.svg


def test_a_file_shows_the_same(found: dict[str, Any], tmp_path: Path) -> None:
    written = results.save_measurement(found, tmp_path)
    tables = ["wsd.tex", "wsd.csv", "wsd-2.csv", "wsd-3.csv"]
    assert [path.name for path in written] == ["wsd.json", *tables, "wsd.svg", "wsd-parts.svg"]
    again = results.load_measurement(written[0])
    assert results.render_tables(again) == render_tables(found)
    assert results.render_figures(again) == render_figures(found)


def test_first_senses_score_on_the_real_sets_as_published(shared: Path, tmp_path: Path) -> None:
    try:
        place = find_wordnet()
    except InputError as error:
        pytest.skip(f"needs WordNet: {error}")
    archive = shared / "data" / "wsd-raganato.tar.xz"
    if not archive.is_file():
        pytest.skip(f"needs {archive.name} beside the repository, which is not here")
    with tarfile.open(archive) as members:
        for member in members:
            name = Path(member.name).name
            if name.startswith("ALL."):
                content = members.extractfile(member)
                assert content is not None
                (tmp_path / name).write_bytes(content.read())
    uses = list(read_evaluation_set(tmp_path / "ALL.data.xml").uses())
    wordnet = read_wordnet(place)
    assert len(uses) == 7253
    assert sum(wordnet.first(use.lemma, use.part) in use.keys for use in uses) == 4728


def test_known_sets_are_in_their_usual_order(elmo: Elmo) -> None:
    names = ("ALL", "mine", "semeval2007", "senseval2")
    sets = [SenseCorpus(name, ONE.sentences) for name in names]
    found = measure_senses(
        choose_senses({"trained": elmo}, CORPUS, sets, WORDNET), CORPUS, {"model": "x"}
    )
    assert render_tables(found)[1].columns == ["", "SE2", "SE07", "mine", "ALL"]
