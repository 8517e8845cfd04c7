from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.conftest import random_bilm, small_config

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.tags.data import TaggedText
from elmokit.probe.tags.measure import (
    embed_layers,
    frequent_tag_correct,
    measure_tags,
    tag_answers,
)


def made_up(sentences: int, seed: int) -> TaggedText:
    """Two columns: `own`, which the word itself says, and `next`, which the word behind it says."""
    source = np.random.default_rng(seed)
    read, own, behind = [], [], []
    for _ in range(sentences):
        words = source.choice(["a", "b"], 6).tolist()
        read.append(words)
        own += [word.upper() for word in words]
        behind += [word.upper() for word in words[1:]] + ["END"]
    return TaggedText(read, {"own": own, "next": behind})


def test_what_the_layers_know(elmo: Elmo) -> None:
    """Characters tell the word itself; what comes behind it only the backward LSTM can tell."""
    test = made_up(40, 1)
    # Tags that were not in train: nobody can tell them.
    strange = TaggedText(test.sentences, {"own": ["?"] * 240, "next": test.tags["next"]})
    tests = {"dev": test, "strange": strange}
    scores = [answers.score for answers in tag_answers(elmo, made_up(150, 0), tests)]
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
    test = TaggedText([["a"]], {"own": ["A"]})
    with pytest.raises(InputError, match=r"dev has no column next"):
        list(tag_answers(elmo, made_up(150, 0), {"dev": test}))


def test_layers_one_sentence_after_another(elmo: Elmo) -> None:
    sentences = [["One", "two"], ["a"], ["three", "more", "words"]]
    layers = embed_layers(elmo, sentences)
    expected = np.concatenate(elmo.embed(sentences, layers="all"), axis=1)
    np.testing.assert_array_equal(np.stack(layers), expected)


def test_the_most_frequent_tag() -> None:
    train = TaggedText([["x", "x", "x", "y", "z"]], {"T": ["A", "B", "B", "A", "A"]})
    test = TaggedText([["x", "y", "new", "new"]], {"T": ["B", "B", "A", "C"]})
    # x: B, right; y: A, wrong; a new word: A, the most frequent of all, once right.
    assert frequent_tag_correct(train, test, "T").mean() == 0.5
    tie = TaggedText([["x", "x"]], {"T": ["B", "A"]})
    assert frequent_tag_correct(tie, TaggedText([["x"]], {"T": ["A"]}), "T").all()


@pytest.fixture(scope="module")
def found() -> results.Measurement:
    elmo = Elmo(random_bilm(small_config()))
    test = made_up(40, 1)
    # A new word, and a tag that nobody has seen.
    test.sentences[0][0] = "c"
    test.tags["own"][0] = "C"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("elmokit.probe.tags.linear.FEWEST_STEPS", 60)
        return measure_tags(elmo, made_up(150, 0), {"dev": test}, results.make_signature(elmo, {}))


def test_the_measurement(found: results.Measurement) -> None:
    assert found["train"] == {"words": 900, "sentences": 150}
    (dev,) = found["tests"]
    own, behind = dev["columns"]["own"], dev["columns"]["next"]
    assert own == {"tags": 2, "all": 240, "ambiguous": 0, "new": 1, "unseen tags": 1}
    assert behind == {"tags": 3, "all": 240, "ambiguous": 239, "new": 1, "unseen tags": 0}
    scores = {(s["network"], s["column"], s["layer"]): s for s in found["scores"]}
    assert len(scores) == 2 * (1 + 4 + 4)
    told = scores["trained", "own", "0"]
    assert told["all"] == pytest.approx(239 / 240)
    assert told["new"] == 0.0 and told["ambiguous"] is None
    ambiguous, new = (scores["trained", "next", "1"][kind] for kind in ("ambiguous", "new"))
    whole = (239 * ambiguous + new) / 240
    assert scores["trained", "next", "1"]["all"] == pytest.approx(whole)
    assert scores["trained", "next", "1"]["all"] > scores["most frequent", "next", ""]["all"] + 0.2


def test_lower_against_upper(found: results.Measurement) -> None:
    scores = {(s["network"], s["column"], s["layer"]): s["all"] for s in found["scores"]}
    for one in found["lower_against_upper"]:
        assert (one["lower"], one["upper"], one["questions"]) == ("1", "2", 240)
        lower, upper = (scores["trained", one["column"], layer] for layer in ("1", "2"))
        assert one["difference"] == pytest.approx(lower - upper)
        assert one["only_first"] - one["only_second"] == round(240 * (lower - upper))


def test_tables_and_pictures(found: results.Measurement) -> None:
    every, ambiguous, new, compared = results.render_tables(found)
    assert every.columns == ["", "own dev", "next dev"]
    assert [row[0] for row in every.rows][:2] == [
        "the word's most frequent tag",
        "untrained: characters",
    ]
    assert every.rows[5] == ["characters", "99.6", every.rows[5][2]]
    # The best single layer: characters for the word itself, an LSTM for the next one.
    rows = dict(sorted((column, row) for row, column in every.bold))
    assert rows[1] == 5 and rows[2] in (6, 7)
    assert "not in training count as wrong: 1 in dev (own)" in every.note
    assert ambiguous.rows[5][1] == "–" and "239 of 240 (next dev)" in ambiguous.note
    assert new.rows[5][1] == "0.0"
    assert "±" in compared.rows[0][3]
    shown = results.render_figures(found)
    assert [picture.name for picture in shown] == ["own", "own-words", "next", "next-words"]
    assert all("99.6" in picture.svg for picture in shown[:2])


def test_showing_needs_no_torch() -> None:
    code = "import sys; import elmokit.probe.tags.measure; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_torch_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import elmokit.probe.tags.linear"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtra" in done.stderr and "pip install 'elmokit[train]'" in done.stderr
