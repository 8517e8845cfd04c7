"""`elmo substitutes` as a user meets it."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest
from tests.conftest import GOLDEN, random_bilm, small_config

from elmokit.cli.substitutes import command
from elmokit.elmo import Elmo
from elmokit.errors import InputError, WeightsError
from elmokit.lm import substitutes
from elmokit.text.vocabulary import Vocabulary

WORDS = "<S> </S> <UNK> the . bank I river money sat went to by".split()
SENTENCE = "I went to the Bank ."


@pytest.fixture
def model(tmp_path: Path) -> str:
    bilm = random_bilm(small_config())
    random = np.random.default_rng(3)
    softmax = {
        "softmax.weight": random.normal(size=(len(WORDS), 6)).astype(np.float32),
        "softmax.bias": random.normal(size=len(WORDS)).astype(np.float32),
    }
    speaking = replace(bilm, weights={**bilm.weights, **softmax}, vocabulary=Vocabulary(WORDS))
    Elmo(speaking).save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str):
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object, stdin: bytes | None = None) -> str:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        named = () if "-m" in arguments else ("-m", model)
        command.main([str(a) for a in (*named, *arguments)], standalone_mode=False)
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


def test_every_place_is_shown(call, model: str) -> None:
    out = call(SENTENCE, "-k", 4)
    places = substitutes(Elmo.load(model), SENTENCE, k=4)
    rows = out.partition("┡")[2].split("├")
    assert len(rows) == len(places) == 6
    for row, place in zip(rows, places, strict=True):
        assert place.word in row and f"rank {place.forward.rank}" in row
        for ranking in place[2:]:
            for word, _ in ranking.best:
                assert word in row
    assert "<UNK>" in rows[4], "Bank is out of the vocabulary"


@pytest.mark.parametrize("choice", [("--at", "went"), ("--word", 2)])
def test_one_place_with_probabilities(call, model: str, choice) -> None:
    out = call(SENTENCE, "-k", 3, *choice)
    place = substitutes(Elmo.load(model), SENTENCE, k=3)[1]
    lines = out.splitlines()
    assert lines[0] == SENTENCE
    assert f"rank {place.both.rank}, {100 * place.both.probability:.1f} %" in out
    rows = [line for line in lines if line.count("%") == 3 and "rank" not in line]
    assert len(rows) == 3
    for i, row in enumerate(rows):
        for ranking in place[2:]:
            word, chance = ranking.best[i]
            assert word in row and f"{100 * chance:.1f} %" in row


def test_at_a_word_that_comes_twice(call) -> None:
    out = call("the bank by the river", "--at", "the", "--json")
    assert [place["index"] for place in json.loads(out)["places"]] == [0, 3]


def test_json(call, model: str) -> None:
    one, two = map(json.loads, call(SENTENCE, "I sat", "--json", "-k", 5).splitlines())
    assert one["words"] == SENTENCE.split() and two["words"] == ["I", "sat"]
    assert (one["index"], two["index"]) == (0, 1)
    places = substitutes(Elmo.load(model), SENTENCE, k=5)
    for i, (found, place) in enumerate(zip(one["places"], places, strict=True)):
        assert found["index"] == i
        assert found["word"] == place.word and found["known"] == place.known
        for name in ("forward", "backward", "both"):
            ranking = getattr(place, name)
            assert found[name]["rank"] == ranking.rank
            assert found[name]["best"] == [list(pair) for pair in ranking.best]


def test_stdin_and_tokenized(call) -> None:
    found = call("--json", stdin=b"I sat.\n\nthe river\n").splitlines()
    assert [json.loads(line)["words"] for line in found] == [["I", "sat", "."], ["the", "river"]]
    (found,) = call("--json", "--tokenized", stdin=b"I sat.").splitlines()
    assert json.loads(found)["words"] == ["I", "sat."]


def test_fewer_words_than_asked_for(call) -> None:
    out = call("I sat", "--word", 1, "-k", len(WORDS))
    assert sum(line.count("%") == 3 and "rank" not in line for line in out.splitlines()) == 11


@pytest.mark.parametrize("width", ["20", "40", "200"])
def test_narrow_and_wide_terminals(call, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert call(SENTENCE) and call(SENTENCE, "--word", 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("I sat", "--word", 3), "the sentence has 2 words: I sat"),
        (("I sat", "--at", "the"), "not a word of the sentence: I sat"),
        (("", ""), "no words"),
        (("I sat", "-k", 99), "from 1 to 13"),
    ],
)
def test_what_is_not_there(call, arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(*arguments)


def test_wrong_use(call) -> None:
    with pytest.raises(click.UsageError, match="not both"):
        call("I sat", "--word", 1, "--at", "sat")


def test_a_model_that_cannot_speak(call) -> None:
    with pytest.raises(WeightsError, match="no softmax"):
        call("I sat", "-m", GOLDEN / "models" / "plain")
