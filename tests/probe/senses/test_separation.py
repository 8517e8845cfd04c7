from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import REPOSITORY

from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.probe.neighbors.nearest import in_context
from elmokit.probe.senses.separation import read_senses, senses_apart
from elmokit.text.tokenize import words

USES = [
    ("river", "The bank of the river ."),
    ("river", "A muddy bank ."),
    ("river", "On the bank we sat ."),
    ("money", "The bank lent money ."),
    ("money", "A rich bank ."),
]


def test_by_hand(elmo: Elmo) -> None:
    for apart in senses_apart(elmo, "bank", USES)[1:]:
        x = np.stack([in_context(elmo, "bank", use, apart.layer)[1] for _, use in USES])
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        cosine = {(i, j): float(x[i] @ x[j]) for i in range(5) for j in range(5) if i != j}
        same = {pair: USES[pair[0]][0] == USES[pair[1]][0] for pair in cosine}
        nearest = [
            max((j for j in range(5) if j != i), key=lambda j: cosine[i, j]) for i in range(5)
        ]
        assert apart.accuracy == sum(same[i, j] for i, j in enumerate(nearest)) / 5
        within = np.mean([cosine[pair] for pair in cosine if same[pair]])
        between = np.mean([cosine[pair] for pair in cosine if not same[pair]])
        assert apart.within == pytest.approx(within, abs=1e-5)
        assert apart.between == pytest.approx(between, abs=1e-5)


def test_characters_alone_can_only_guess(elmo: Elmo) -> None:
    """All uses are equally near: the accuracy is the part of them that has the same sense."""
    lowest = senses_apart(elmo, "bank", USES)[0]
    assert lowest.layer == 0
    assert lowest.accuracy == pytest.approx((3 * 2 / 4 + 2 * 1 / 4) / 5)
    assert lowest.within == pytest.approx(1.0) and lowest.between == pytest.approx(1.0)


def test_there_must_be_something_to_compare(elmo: Elmo) -> None:
    with pytest.raises(InputError, match="2 uses of 1 senses"):
        senses_apart(elmo, "bank", USES[:2])
    with pytest.raises(InputError, match="each twice"):
        senses_apart(elmo, "bank", USES[:4])
    with pytest.raises(InputError, match="not in the sentence"):
        senses_apart(elmo, "shore", USES)


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "uses.tsv"
    path.write_text("# a note\nriver\tBy the bank.\n\nmoney\tA bank.\n")
    assert read_senses(path) == [("river", "By the bank."), ("money", "A bank.")]
    path.write_text("river By the bank.\n")
    with pytest.raises(FormatError, match="line 1"):
        read_senses(path)


@pytest.mark.parametrize("word", ["bank", "play"])
def test_our_own_uses_are_balanced_and_have_the_word_once(word: str) -> None:
    uses = read_senses(REPOSITORY / "runs" / "builtin" / "senses" / f"{word}.tsv")
    senses = [sense for sense, _ in uses]
    assert len(set(senses)) == 2
    assert all(senses.count(sense) == 20 for sense in senses)
    assert len({sentence for _, sentence in uses}) == 40
    for _, sentence in uses:
        assert words(sentence).count(word) == 1
