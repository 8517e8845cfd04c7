"""`elmo change` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from elmokit.cli.change import command
from elmokit.errors import FormatError, InputError
from elmokit.probe.results import load_measurement


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    water = [f"They drink {kind} water." for kind in "cold warm clean fresh good sweet".split()]
    places = "barn house field yard garden forest".split()
    then = [f"A gray mouse lives in the {place}." for place in places]
    now = [f"Click the {kind} button of your Mouse!" for kind in "left right middle one".split()]
    now += ["Move the mouse and click twice.", "Connect the mouse to the computer."]
    (tmp_path / "then.txt").write_text("\n".join(then + water) + "\n")
    (tmp_path / "now.txt").write_text("\n".join(now + water[::-1]) + "\n")
    return ["--then", str(tmp_path / "then.txt"), "--now", str(tmp_path / "now.txt")]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> tuple[str, str]:
        command.main([*map(str, arguments), "--threads", "1"], standalone_mode=False)
        out, err = capsys.readouterr()
        return out, err

    return run


def test_the_tables(call, texts: list[str]) -> None:
    out, err = call("water", "mouse", "absent", *texts)
    rows = [line.split() for line in out.splitlines()]
    order = [row[0] for row in rows if row and row[0] in ("mouse", "water")]
    assert order[:2] == ["mouse", "water"]
    assert "absent (0 and 0)" in " ".join(out.split())
    assert "Uses of “mouse” that differ most" in out and "button of your" in out
    for word in ("PRT", "APD", "characters", "untrained"):
        assert word in out
    assert err.count("figure: ") == 4 and "uses-mouse.svg" in err
    for word in ("q", "halves", "Benjamini–Hochberg", "cosine distance between the mean vectors"):
        assert word in " ".join(out.split())
    assert "tables: " in err and ".tex, " in err and ".csv" in err


def test_the_numbers(call, texts: list[str], tmp_path: Path) -> None:
    out, _ = call("mouse=mice", "water", *texts, "--json", "--out", tmp_path / "out", "--uses", 5)
    found = json.loads(out)
    mouse = found["words"][0]
    assert (mouse["word"], mouse["forms"]) == ("mouse", ["mouse", "mice"])
    assert mouse["uses"] == {"then": 6, "now": 6} and mouse["sampled"] == {"then": 5, "now": 5}
    assert mouse["layers"]["0"]["apd"] > 0, "Mouse is not spelled like mouse"
    assert found["words"][1]["layers"]["0"]["apd"] == 0
    assert list(found["signature"]["data"]) == ["then", "now"]
    assert found["signature"]["seed"] == 0 and found["signature"]["layer"] == 2
    assert load_measurement(tmp_path / "out" / "change.json") == found
    assert json.loads(call("--forms", "mouse,mice", "water", *texts, "--json", "--uses", 5)[0])[
        "words"
    ] == sorted(found["words"], key=lambda word: -word["layers"]["2"]["prt"])


def test_all_words(call, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmokit.probe.change.targets.FUNCTION_WORDS", 0)
    found = json.loads(call("--all", 3, *texts, "--json")[0])
    # Equally frequent words by the alphabet: drink, then they and water.
    assert {word["word"] for word in found["words"]} == {"the", "mouse", "drink"}
    with pytest.raises(InputError, match="share no word"):
        call("--all", 3, *texts, "--least", 100, "--uses", 100)


def test_gold_scores(call, texts: list[str], tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("mouse\t0.9\nwater\t0\nthey\t0.1\n")
    out, _ = call("--targets", gold, *texts)
    assert "Spearman" in out
    found = json.loads(call("--targets", gold, *texts, "--json")[0])
    assert found["spearman"]["layers"]["prt"]["2"] >= 0.5
    gold.write_text("mouse\tmuch\n")
    with pytest.raises(FormatError, match=r"gold.txt:1"):
        call("--targets", gold, *texts)


def test_no_word_is_left(call, texts: list[str]) -> None:
    with pytest.raises(InputError, match="absent"):
        call("absent", *texts)
    with pytest.raises(InputError, match=r"mouse \(\d and \d\)"):
        call("mouse", *texts, "--limit", 20)


@pytest.mark.parametrize(
    "arguments",
    [[], ["a", "--all", "3"], ["a", "--targets", "F"], ["a", "--by", "size"], ["a", "--lines"]],
)
def test_wrong_use(call, texts: list[str], arguments: list[str]) -> None:
    more = ["--tokenized"] if "--lines" in arguments else []
    with pytest.raises(click.UsageError):
        call(*arguments, *more, *texts)


def test_missing_texts(call, texts: list[str]) -> None:
    with pytest.raises(click.UsageError, match="now"):
        call("a", *texts[:2])
    with pytest.raises(InputError, match="stdin"):
        call("a", *texts[:2], "--now", "-")
    with pytest.raises(InputError, match="does not exist"):
        call("a", *texts[:2], "--now", "nowhere.txt")


def test_files_are_there_though_nobody_reads_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`elmo change … | head` ends the command while it prints."""
    from elmokit.cli.results import save_and_print

    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console.print", closed)
    monkeypatch.setattr("elmokit.cli.results.click.echo", closed)
    for name in ("render_tables", "render_figures"):
        monkeypatch.setattr(f"elmokit.probe.results.{name}", lambda measurement: [])
    measurement = {"kind": "toy", "signature": {"model": "0" * 64}}
    with pytest.raises(BrokenPipeError):
        save_and_print(measurement, str(tmp_path / "out"), as_json=True)
    assert (tmp_path / "out" / "toy.json").exists()
