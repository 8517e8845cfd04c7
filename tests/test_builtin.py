"""The English model in the package: it is there, small, whole, and knows some English."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import REPOSITORY

import elmokit
from elmokit import Elmo
from elmokit.lm import perplexity, substitutes
from elmokit.probe import results
from elmokit.probe.report_page import COMMANDS, render_page

DIRECTORY = Path(elmokit.__file__).parent / "builtin"
MOST_BYTES = 25_000_000
OF_TASKS = {"layers", "place", "efficiency"}
"""Kinds of measurements that train task models for hours; they are not of this model yet."""


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load()


def test_it_is_in_the_package(elmo: Elmo) -> None:
    files = {file.name: file.stat().st_size for file in DIRECTORY.iterdir()}
    assert {"README.md", "config.json", "model.safetensors", "vocab.txt"} <= set(files)
    assert sum(files.values()) <= MOST_BYTES
    assert elmo.bilm.vocabulary is not None and not elmo.bilm.vocabulary.missing_marks()
    assert elmo.bilm.fingerprint in (DIRECTORY / "README.md").read_text(encoding="utf-8")


def test_what_was_measured_of_it_is_with_it(elmo: Elmo) -> None:
    found = results.find_measurements(elmo.bilm.fingerprint, [DIRECTORY / "measured"])
    assert len(found) == len(list((DIRECTORY / "measured").glob("*.json"))), "all of this model"
    assert {one["kind"] for one in found} == set(results.KINDS) - OF_TASKS
    for one in found:
        assert all(table.rows for table in results.render_tables(one))
        assert all(picture.svg.startswith("<svg") for picture in results.render_figures(one))
    whole = render_page("x", [], None, found)
    titles = re.findall(r"<h3>(.*?)</h3>", whole)
    assert len(set(titles)) == len(titles) == len(found), "each has a heading of its own"
    assert all(COMMANDS[kind] in whole for kind in OF_TASKS), "how to measure what is missing"
    heads = [results.headline(one) for one in found]
    assert sum(head is not None for head in heads) >= 5
    assert all(head is None or all(head) for head in heads)


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


def test_the_senses_of_bank_are_separated(elmo: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest other use has the same sense: 61 % in an untrained network."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "runs" / "builtin"))
    separation = import_module("separation")
    uses = separation.read_senses(REPOSITORY / "runs" / "builtin" / "senses" / "bank.tsv")
    layers = separation.sense_separation(elmo, "bank", uses)
    assert max(layer.accuracy for layer in layers) >= 0.8
    assert layers[-1].within > layers[-1].between + 0.05
