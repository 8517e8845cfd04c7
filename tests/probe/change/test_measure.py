from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.change.measure import (
    ChangeResults,
    change_measurement,
    compare_uses,
    semantic_change,
)
from elmokit.probe.change.render import MEASURES, render_figures, render_tables
from elmokit.probe.change.targets import TargetWord, parse_target
from elmokit.probe.ranks import spearman
from elmokit.probe.results import Measurement, load_measurement, make_signature

THEN = [
    f"She saw a {kind} mouse in the {place} .".split()
    for kind, place in product("gray small quick white".split(), "barn house field".split())
]
NOW = [
    f"Click the {kind} button of your mouse {end}".split()
    for kind, end in product("left right middle other".split(), ["!", "now", "twice"])
]
SAME = [f"They drink {kind} water {end}".split()
        for kind, end in product("cold warm clean fresh".split(), [".", "!", "daily"])]  # fmt: skip


def cosine_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.fixture(scope="module")
def found() -> ChangeResults:
    targets = [parse_target(word) for word in ("water", "mouse", "rare=seldom")]
    rare = [["a", "seldom", "one"]]
    return compare_uses(
        Elmo.load(threads=1),
        THEN + SAME[::2] + rare,
        NOW + SAME[1::2],
        targets,
        max_uses=10,
        seed=3,
    )


@pytest.fixture(scope="module")
def measured(found: ChangeResults) -> Measurement:
    return change_measurement(found, make_signature(Elmo.load(threads=1), {}))


def test_a_word_that_changed_and_one_that_did_not(found: ChangeResults) -> None:
    assert [word.target.name for word in found.words] == ["mouse", "water"]
    assert found.skipped == {"rare": (1, 0)}
    mouse, water = found.words
    assert (mouse.then.count, mouse.now.count) == (12, 12)
    assert (len(mouse.then.uses), len(mouse.now.uses)) == (10, 10)
    assert len(water.then.uses) == len(water.now.uses) == 6
    for measure in MEASURES:
        for layer in ("1", "2"):
            assert getattr(mouse.layers[layer], measure) > getattr(water.layers[layer], measure)
    assert mouse.layers["2"].prt_p < 0.01 and mouse.layers["2"].apd_p < 0.01
    assert water.layers["2"].prt_p > 0.05
    for word in found.words:
        assert word.layers["0"].apd == word.layers["0"].prt == 0, "characters know no context"
        assert word.layers["0"].apd_p == 1
        assert list(word.layers) == list(word.untrained) == ["0", "1", "2"]
        assert word.untrained["2"].apd != word.layers["2"].apd


def test_the_uses_that_differ_most_come_first(found: ChangeResults) -> None:
    mouse = found.words[0]
    elmo = Elmo.load(threads=1)
    then = np.stack([elmo.embed([w], "top")[0][p] for w, p in mouse.then.uses])
    now = np.stack([elmo.embed([w], "top")[0][p] for w, p in mouse.now.uses])
    for uses, own, other in ((mouse.uses_then, then, now), (mouse.uses_now, now, then)):
        contrasts = [use.contrast for use in uses]
        assert contrasts == sorted(contrasts, reverse=True) and len(uses) == 10
        first = uses[0]
        vector = elmo.embed([first.words], "top")[0][first.position]
        far = np.mean([cosine_distance(vector, each) for each in other])
        near = sum(cosine_distance(vector, each) for each in own) / 9  # itself is 0
        assert first.distance == pytest.approx(far, abs=1e-4)
        assert first.contrast == pytest.approx(far - near, abs=1e-4)
    assert {tuple(use.words) for use in mouse.uses_now} <= {tuple(words) for words in NOW}


def test_the_same_seed_gives_the_same_numbers(elmo: Elmo) -> None:
    def once(seed: int) -> Measurement:
        target = [parse_target("mouse")]
        found = compare_uses(elmo, THEN, NOW, target, max_uses=5, permutations=9, seed=seed)
        return change_measurement(found, make_signature(elmo, {}))

    assert once(1) == once(1)
    assert once(1)["words"] != once(2)["words"]


def test_mix_and_other_layers(elmo: Elmo) -> None:
    by_layer = {
        layer: compare_uses(elmo, THEN, NOW, [parse_target("mouse")], layer=layer).words[0]
        for layer in ("mix", 1, "top")
    }
    assert list(by_layer["mix"].layers) == ["0", "1", "2", "mix"]
    assert by_layer["mix"].layers["1"] == by_layer[1].layers["1"] == by_layer["top"].layers["1"]
    words, place = by_layer["mix"].then.uses[0]
    assert "mouse" in words[place]
    assert by_layer[1].uses_then[0].distance != by_layer["top"].uses_then[0].distance


def test_gold_scores(elmo: Elmo) -> None:
    targets = [TargetWord(w, (w,), g) for w, g in (("mouse", 0.9), ("water", 0.1), ("the", 0.5))]
    found = compare_uses(elmo, THEN + SAME[::2], NOW + SAME[1::2], targets, min_uses=5)
    rho = found.correlations()
    assert rho is not None
    values = [word.layers["2"].prt for word in found.words]
    gold = [word.target.gold for word in found.words]
    assert rho["layers"]["prt"]["2"] == spearman(values, gold)  # type: ignore[arg-type]
    measured = change_measurement(found, make_signature(elmo, {}))
    (table,) = [table for table in render_tables(measured) if "Spearman" in table.title]
    assert table.rows[0][0] == "PRT" and table.rows[0][3] == f"{rho['layers']['prt']['2']:+.3f}"
    assert render_tables(measured)[0].columns[-1] == "gold"
    for layer in measured["spearman"]["layers"].values():
        layer["0"] = None
    (table,) = [table for table in render_tables(measured) if "Spearman" in table.title]
    assert table.rows[0][1] == "–" and (0, 1) not in table.bold


def test_it_is_shown(measured: Measurement) -> None:
    ranking, control, layers, *examples = render_tables(measured)
    assert [row[0] for row in ranking.rows] == ["mouse", "water"]
    one = measured["words"][0]["layers"]["2"]
    shown = dict(zip(ranking.columns, ranking.rows[0], strict=True))
    assert list(shown) == "word PRT chance halves p q APD within then now".split()
    assert shown["PRT"] == f"{one['prt']:.3f}" and shown["APD"] == f"{one['apd']:.3f}"
    assert shown["q"] == f"{one['prt_q']:.4f}" and (shown["then"], shown["now"]) == ("12", "12")
    assert (0, 0) in ranking.bold and (1, 0) not in ranking.bold
    assert "rare (1 and 0)" in ranking.note
    for text in ("cosine distance between the mean vectors", "mean cosine distance between a use"):
        assert text in ranking.note, "what PRT and APD are"
    assert [row[0] for row in control.rows] == ["then and now", "halves of then", "halves of now"]
    assert control.rows[0][4] == "1", "one word with p <= 0.05"
    assert layers.columns[1:] == ["characters", "LSTM 1", "LSTM 2", "untrained"]
    assert layers.rows[0][1] == "0.000" and layers.rows[0][3] == shown["PRT"]
    assert len(examples) == 2 and "“mouse”" in examples[0].title
    assert [row[0] for row in examples[0].rows] == ["then", "", "", "", "", "now", "", "", "", ""]
    assert all(row[2] == "mouse" for row in examples[0].rows)
    assert any("button of your" in row[1] for row in examples[0].rows[5:])
    by_excess = render_tables({**measured, "by": "excess"})[0]
    assert by_excess.columns[1] == "APD − within"
    assert by_excess.rows[0][1] == f"{one['excess']:.3f}"


def test_it_is_drawn(measured: Measurement) -> None:
    drawn = {picture.name: picture.svg for picture in render_figures(measured)}
    assert list(drawn) == ["prt", "apd", "uses-mouse", "uses-water"]
    one = measured["words"][0]["layers"]["2"]
    assert f">{one['prt']:.3f}<" in drawn["prt"] and f">{one['apd']:.2f}<" in drawn["apd"]
    assert drawn["uses-mouse"].count("<circle") == 2 + 20
    assert "your *mouse*" in drawn["uses-mouse"] and "*water*" in drawn["uses-water"]


def test_figures_have_names_that_files_can_have(measured: Measurement) -> None:
    words = [{**word, "word": name} for word, name in zip(
        measured["words"] * 2, ["../Über", "über", "#", "a b"], strict=True
    )]  # fmt: skip
    names = [figure.name for figure in render_figures({**measured, "words": words})][2:]
    assert names == ["uses-Über", "uses-über-2", "uses-3", "uses-a-b"]


def test_a_measurement_of_an_older_version() -> None:
    old = load_measurement(Path(__file__).parent / "change-0.1.json")
    ranking, layers, *examples = render_tables(old)
    assert ranking.columns == "word PRT chance p APD within then now".split()
    assert "permuted single uses" in ranking.note and layers.title == "PRT by layer"
    assert len(examples) == 1 and len(render_figures(old)) == 3


def documents(sentences: list[list[str]], size: int) -> list[list[str]]:
    """Sentences in documents of some sentences each."""
    return [
        words for k in range(0, len(sentences), size) for words in [*sentences[k : k + size], []]
    ]


def test_documents_are_permuted(elmo: Elmo) -> None:
    target = [parse_target("mouse")]
    by_document = compare_uses(elmo, documents(THEN, 2), documents(NOW, 3), target, unit="document")
    assert by_document.words[0].units == (6, 4)
    assert by_document.texts == {"then": (6, 12), "now": (4, 12)}
    automatic = compare_uses(elmo, documents(THEN, 1), documents(NOW, 3), target)
    assert automatic.units == {"then": "documents", "now": "blocks"}
    assert automatic.words[0].units == (12, 12)
    one_each = compare_uses(elmo, documents(THEN, 12), NOW, target, unit="document").words[0]
    assert one_each.units == (1, 1) and one_each.layers["2"].prt_p is None
    assert one_each.halves == {"then": None, "now": None}
    shown = change_measurement(
        compare_uses(elmo, documents(THEN, 12), NOW, target, unit="document"),
        make_signature(elmo, {}),
    )
    assert render_tables(shown)[0].rows[0][2:6] == ["–"] * 4
    assert render_figures(shown)


def test_frequent_words_are_the_reference(elmo: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmokit.probe.change.targets.REFERENCE_TEXT", 10)
    monkeypatch.setattr("elmokit.probe.change.targets.REFERENCE_WORDS", 2)
    then, now = THEN + SAME[::2], NOW + SAME[1::2]
    results = compare_uses(elmo, then, now, [parse_target("water"), parse_target("mouse")])
    assert list(results.reference) == ["mouse", "the"], "one is a target itself"
    assert results.reference["mouse"].prt == results.words[0].layers["2"].prt
    shown = change_measurement(results, make_signature(elmo, {}))
    ranking, control, *_ = render_tables(shown)
    assert (0, 0) not in ranking.bold, "not farther apart than frequent words"
    assert control.rows[-1][:2] == ["most frequent words", "2"]
    farthest = max(results.reference, key=lambda name: results.reference[name].prt)
    assert f"largest for “{farthest}”" in control.note


def test_what_cannot_be_measured(elmo: Elmo, bilm) -> None:
    mouse = [parse_target("mouse")]
    with pytest.raises(InputError, match=r"no word has 5 uses in .*: mouse \(12 and 0\)"):
        compare_uses(elmo, THEN, SAME, mouse)
    with pytest.raises(InputError, match=r"in different sentences .*: mouse \(1 and 12\)"):
        compare_uses(elmo, THEN[:1] * 9, NOW, mouse)
    with pytest.raises(InputError, match="by is 'size'"):
        compare_uses(elmo, THEN, NOW, mouse, by="size")
    with pytest.raises(InputError, match="min_uses is 1"):
        compare_uses(elmo, THEN, NOW, mouse, min_uses=1)
    with pytest.raises(InputError, match=r"max_uses \(--uses\) is 3 and min_uses \(--least\) is 5"):
        compare_uses(elmo, THEN, NOW, mouse, max_uses=3)
    with pytest.raises(InputError, match="'all'"):
        compare_uses(elmo, THEN, NOW, mouse, layer="all")
    with pytest.raises(InputError, match="carry"):
        compare_uses(Elmo(bilm, state="carry"), THEN, NOW, mouse)
    with pytest.raises(InputError, match="belongs to"):
        compare_uses(elmo, THEN, NOW, mouse * 2)


def test_files_and_sentences_give_the_same_numbers(elmo: Elmo, tmp_path: Path) -> None:
    paths = [tmp_path / "then.txt", tmp_path / "now.txt"]
    for path, sentences in zip(paths, (THEN, NOW), strict=True):
        path.write_text("\n".join(" ".join(words) for words in sentences) + "\n")
    stages: list[str] = []
    files = semantic_change(
        elmo,
        *paths,
        ["mouse"],
        form="tokenized",
        callback=lambda stage, done, total: stages.append(stage),
    )
    assert stages == ["reading text 1 of 2", "reading text 2 of 2", "embedding uses of “mouse”"]
    words = semantic_change(elmo, THEN, NOW, [parse_target("mouse")], form="tokenized")
    assert files["words"] == words["words"]
    marked = semantic_change(elmo, documents(THEN, 4), documents(NOW, 4), ["mouse"], unit="block")
    paths[0].write_text("\n".join(" ".join(words) for words in documents(THEN, 4)) + "\n")
    paths[1].write_text("\n".join(" ".join(words) for words in documents(NOW, 4)) + "\n")
    blank_lines = semantic_change(elmo, *paths, ["mouse"], form="tokenized", unit="block")
    assert blank_lines["words"] == marked["words"] and blank_lines["texts"] == marked["texts"]
    assert marked["texts"]["then"] == {"documents": 3, "sentences": 12, "unit": "blocks"}
    for found in (files, words):
        assert list(found["signature"]["data"]) == ["then", "now"]
        assert found["signature"]["uses"] == 200 and found["signature"]["least"] == 5
    with pytest.raises(InputError, match="either words"):
        semantic_change(elmo, THEN, NOW)
    with pytest.raises(InputError, match="either words"):
        semantic_change(elmo, THEN, NOW, ["mouse"], most_frequent=3)
