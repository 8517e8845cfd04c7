"""The English model in the package: it is there, small, whole, and knows some English."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit import Elmo
from elmokit.lm import perplexity, substitutes

DIRECTORY = Path(elmokit.__file__).parent / "builtin"
MOST_BYTES = 25_000_000


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load()


def test_it_is_in_the_package(elmo: Elmo) -> None:
    files = {file.name: file.stat().st_size for file in DIRECTORY.iterdir()}
    assert {"README.md", "config.json", "model.safetensors", "vocab.txt"} <= set(files)
    assert sum(files.values()) <= MOST_BYTES
    assert elmo.bilm.vocabulary is not None and not elmo.bilm.vocabulary.missing_marks()
    assert elmo.bilm.fingerprint in (DIRECTORY / "README.md").read_text(encoding="utf-8")


def test_a_sentence_starts_from_zeros_as_in_training(elmo: Elmo) -> None:
    zero = Elmo(elmo.bilm, state="zero")
    sentence = "A sentence about nothing ."
    assert np.array_equal(elmo.embed(sentence), zero.embed(sentence))


def test_it_predicts_english(elmo: Elmo) -> None:
    """Text that was written here; a uniform guess has a perplexity of 30,000, unigrams of 700."""
    text = [
        "The city is the capital of the province and has a population of about two million .",
        "He was born in London and studied law at the university before the war .",
        "She opened the door and looked at him for a long time without saying a word .",
        "The government said on Tuesday that it would not change the law .",
    ]
    found = perplexity(elmo, text)
    assert found.forward < 120 and found.backward < 120


def test_it_expects_fitting_words(elmo: Elmo) -> None:
    places = substitutes(elmo, "He was born in the United States of America .", k=3)
    assert places[5].backward.best[0][0] == "United"
    assert places[6].forward.best[0][0] == "States"


def test_the_senses_of_bank(elmo: Elmo) -> None:
    """A bank of a river is nearer to another one than to a bank with money."""
    sentences = [
        "We walked along the bank of the river until it grew dark .",
        "The boat was tied to a tree on the left bank of the stream .",
        "The bank raised its interest rates again this year .",
        "He borrowed the money from a bank in Switzerland .",
    ]
    vectors = []
    for sentence in sentences:
        words = sentence.split()
        (found,) = elmo.embed([words], layers="top")
        vectors.append(found[words.index("bank")])
    unit = np.stack(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    across = max(cosine[i, j] for i in (0, 1) for j in (2, 3))
    assert cosine[0, 1] > across and cosine[2, 3] > across
