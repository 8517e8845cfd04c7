"""How well a model separates the senses of one word, by runs/builtin/separation.py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import REPOSITORY

from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.probe.neighbors.word_use import embed_word
from elmokit.text.tokenize import split_words

USES = [
    ("river", "The bank of the river ."),
    ("river", "A muddy bank ."),
    ("river", "On the bank we sat ."),
    ("money", "The bank lent money ."),
    ("money", "A rich bank ."),
]


@pytest.fixture
def separation(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, which lies beside the script that uses it."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "runs" / "builtin"))
    return import_module("separation")


def test_by_hand(elmo: Elmo, separation: Any) -> None:
    for layer in separation.sense_separation(elmo, "bank", USES)[1:]:
        x = np.stack([embed_word(elmo, "bank", use, layer.layer).vector for _, use in USES])
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        cosine = {(i, j): float(x[i] @ x[j]) for i in range(5) for j in range(5) if i != j}
        same = {pair: USES[pair[0]][0] == USES[pair[1]][0] for pair in cosine}
        nearest = [
            max((j for j in range(5) if j != i), key=lambda j: cosine[i, j]) for i in range(5)
        ]
        assert layer.accuracy == sum(same[i, j] for i, j in enumerate(nearest)) / 5
        within = np.mean([cosine[pair] for pair in cosine if same[pair]])
        between = np.mean([cosine[pair] for pair in cosine if not same[pair]])
        assert layer.within == pytest.approx(within, abs=1e-5)
        assert layer.between == pytest.approx(between, abs=1e-5)


def test_characters_alone_can_only_guess(elmo: Elmo, separation: Any) -> None:
    """All uses are equally near: the accuracy is the part of them that has the same sense."""
    lowest = separation.sense_separation(elmo, "bank", USES)[0]
    assert lowest.layer == 0
    assert lowest.accuracy == pytest.approx((3 * 2 / 4 + 2 * 1 / 4) / 5)
    assert lowest.within == pytest.approx(1.0) and lowest.between == pytest.approx(1.0)


def test_there_must_be_something_to_compare(elmo: Elmo, separation: Any) -> None:
    with pytest.raises(InputError, match="2 uses of 1 senses"):
        separation.sense_separation(elmo, "bank", USES[:2])
    with pytest.raises(InputError, match="each with at least two uses"):
        separation.sense_separation(elmo, "bank", USES[:4])
    with pytest.raises(InputError, match="not in the sentence"):
        separation.sense_separation(elmo, "shore", USES)


def test_reading(tmp_path: Path, separation: Any) -> None:
    path = tmp_path / "uses.tsv"
    path.write_text("# a note\nriver\tBy the bank.\n\nmoney\tA bank.\n")
    assert separation.read_senses(path) == [("river", "By the bank."), ("money", "A bank.")]
    path.write_text("river By the bank.\n")
    with pytest.raises(FormatError, match=r"uses\.tsv:1: "):
        separation.read_senses(path)


@pytest.mark.parametrize("word", ["bank", "play"])
def test_our_own_uses_are_balanced_and_have_the_word_once(word: str, separation: Any) -> None:
    uses = separation.read_senses(REPOSITORY / "runs" / "builtin" / "senses" / f"{word}.tsv")
    senses = [sense for sense, _ in uses]
    assert len(set(senses)) == 2
    assert all(senses.count(sense) == 20 for sense in senses)
    assert len({sentence for _, sentence in uses}) == 40
    for _, sentence in uses:
        assert split_words(sentence).count(word) == 1
