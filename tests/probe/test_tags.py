from __future__ import annotations

import numpy as np
import pytest

from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.tagged import Tagged
from elmokit.probe.tags import (
    TagScore,
    embed_layers,
    most_frequent_tag,
    tag_probe,
    untrained,
)


def made_up(sentences: int, seed: int) -> Tagged:
    """Two columns: `own`, which the word itself says, and `next`, which the word behind it says."""
    source = np.random.default_rng(seed)
    read, own, behind = [], [], []
    for _ in range(sentences):
        words = source.choice(["a", "b"], 6).tolist()
        read.append(words)
        own += [word.upper() for word in words]
        behind += [word.upper() for word in words[1:]] + ["END"]
    return Tagged(read, {"own": own, "next": behind})


def test_what_the_layers_know(elmo: Elmo) -> None:
    """Characters tell the word itself; what comes behind it only the backward LSTM can tell."""
    heard: list[TagScore] = []
    test = made_up(40, 1)
    # Tags that were not in train: nobody can tell them.
    strange = Tagged(test.sentences, {"own": ["?"] * 240, "next": test.tags["next"]})
    tests = {"dev": test, "strange": strange}
    scores = tag_probe(elmo, made_up(150, 0), tests, tell=heard.append)
    assert scores == heard
    assert [(s.column, s.layer) for s in scores] == [
        (column, layer) for column in ("own", "next") for layer in ("0", "1", "2", "all")
    ]
    accuracy = {(s.column, s.layer): s.accuracy["dev"] for s in scores}
    assert accuracy["own", "0"] == accuracy["own", "all"] == 1.0
    # Without context: one of two letters, or that the sentence ends, five to one.
    assert accuracy["next", "0"] < 0.55
    assert accuracy["next", "1"] > 0.9 and accuracy["next", "all"] > 0.9
    for score in scores:
        same = score.accuracy["dev"] if score.column == "next" else 0.0
        assert score.accuracy["strange"] == same


def test_a_column_must_be_in_both(elmo: Elmo) -> None:
    test = Tagged([["a"]], {"own": ["A"]})
    with pytest.raises(InputError, match=r"dev has no next"):
        tag_probe(elmo, made_up(150, 0), {"dev": test})


def test_layers_one_sentence_after_another(elmo: Elmo) -> None:
    sentences = [["One", "two"], ["a"], ["three", "more", "words"]]
    layers = embed_layers(elmo, sentences)
    expected = np.concatenate(elmo.embed(sentences, layers="all"), axis=1)
    np.testing.assert_array_equal(np.stack(layers), expected)


def test_the_most_frequent_tag() -> None:
    train = Tagged([["x", "x", "x", "y", "z"]], {"T": ["A", "B", "B", "A", "A"]})
    test = Tagged([["x", "y", "new", "new"]], {"T": ["B", "B", "A", "C"]})
    # x: B, right; y: A, wrong; a new word: A, the most frequent of all, once right.
    assert most_frequent_tag(train, test, "T") == 0.5
    tie = Tagged([["x", "x"]], {"T": ["B", "A"]})
    assert most_frequent_tag(tie, Tagged([["x"]], {"T": ["A"]}), "T") == 1.0


def test_the_untrained_network(bilm: BiLM) -> None:
    one, two, other = untrained(bilm), untrained(bilm), untrained(bilm, seed=1)
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert one.config == bilm.config and one.fingerprint != bilm.fingerprint
    assert one.settled is not None and not one.settled.cell.any()
    assert Elmo(one).embed("a b").shape == (2, bilm.config.dim)
