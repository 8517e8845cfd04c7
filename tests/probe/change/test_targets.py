from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.probe.change import targets
from elmokit.probe.change.targets import (
    TargetWord,
    check_targets,
    frequent_targets,
    make_target,
    parse_target,
    read_targets,
    sample_uses,
)


def test_forms() -> None:
    assert parse_target("Play") == TargetWord("Play", ("play",))
    assert parse_target("play=plays, Played,play") == TargetWord(
        "play", ("play", "plays", "played")
    )
    assert make_target(["a", "b"]) == TargetWord("a", ("a", "b"))
    with pytest.raises(InputError, match="empty"):
        parse_target(" ")
    with pytest.raises(InputError, match="'plays' belongs to 'play' and to 'plays'"):
        check_targets([parse_target("play=plays"), parse_target("plays")])


def test_a_file_of_words(tmp_path: Path) -> None:
    path = tmp_path / "targets.txt"
    path.write_text("play=plays\n\nbank\r\n")
    assert read_targets(path) == [
        TargetWord("play", ("play", "plays")),
        TargetWord("bank", ("bank",)),
    ]
    path.write_text("attack_nn\t0.144\nbag_nn\t1e-1\n")
    assert [target.gold for target in read_targets(path)] == [0.144, 0.1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t1\nb\tmany\n", r"targets.txt:2: found 'b\\tmany'"),
        ("a\t1\t2\n", ":1: "),
        ("a\t1\nb\n", "1 of 2 words have a number"),
        ("\n", "no words"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "targets.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_targets(path)
    with pytest.raises(InputError, match="there is no file"):
        read_targets(tmp_path / "none.txt")


TEXT = [["The", "play", "."], ["Play", "plays", "it"], ["no", "such"], ["play"]]


def test_all_uses_if_they_are_few() -> None:
    play, bank = sample_uses(TEXT, [parse_target("play=plays"), parse_target("bank")], 10, "0")
    assert (play.count, play.repeated) == (4, 0)
    assert play.uses == [(TEXT[0], 1), (TEXT[1], 0), (TEXT[1], 1), (TEXT[3], 0)]
    assert (bank.count, bank.uses) == (0, [])


def test_a_repeated_sentence_counts_once() -> None:
    (play,) = sample_uses([*TEXT, *TEXT], [parse_target("play")], 10, "0")
    assert (play.count, play.repeated, len(play.uses)) == (6, 3, 3)


def test_the_sample_is_fair_and_repeatable() -> None:
    text = [["play", str(k)] for k in range(20)]
    target = [parse_target("play")]
    drawn: Counter[str] = Counter()
    for seed in range(600):
        (found,) = sample_uses(text, target, 5, str(seed))
        assert found.count == 20 and len(found.uses) == 5
        order = [int(words[1]) for words, _ in found.uses]
        assert order == sorted(order)
        drawn.update(words[1] for words, _ in found.uses)
    assert sum(drawn.values()) == 3000
    assert all(110 < drawn[str(k)] < 190 for k in range(20)), drawn
    once, twice = (sample_uses(text, target, 5, "7")[0].uses for _ in range(2))
    assert once == twice
    assert sample_uses(text, target, 5, "7")[0].uses != sample_uses(text, target, 5, "8")[0].uses


def test_frequent_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "FUNCTION_WORDS", 1)
    then = [["the"] * 9 + ["Play"] * 3 + ["bank"] * 3 + ["1990"] * 5 + ["it"] * 5 + ["old"] * 5]
    now = [["the"] * 9 + ["play"] * 3 + ["bank"] * 4 + ["1990"] * 5 + ["it"] * 5 + ["new"] * 5]
    assert [target.name for target in frequent_targets(then, now, 9, 3)] == ["bank", "play"]
    assert [target.name for target in frequent_targets(then, now, 1, 3)] == ["bank"]
    assert frequent_targets(then, now, 9, 4) == []
