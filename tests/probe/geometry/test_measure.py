from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np
import pytest

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe import results
from elmokit.probe.geometry import measure as module
from elmokit.probe.geometry.measure import measure_geometry, measure_layers, sample_text

TEXT = [
    "the cat saw the dog".split(),
    "a dog saw a cat".split(),
    "the cat and the dog sat".split(),
    "cat and dog".split(),
    "so".split(),
]


def cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def uses_of(elmo: Elmo, layer: int) -> dict[str, list]:
    found: dict[str, list] = {}
    for words, vectors in elmo.items(TEXT, layer):
        for word, vector in zip(words, vectors.astype(np.float64), strict=True):
            found.setdefault(word, []).append(vector)
    return found


def test_the_sample() -> None:
    found = sample_text([*TEXT, [], TEXT[0]], words=None, min_uses=3)
    assert found.counts == {"the": 4, "cat": 4, "dog": 4}
    assert found.repeated == 1 and len(found.sentences) == 5 and found.words == 20
    text = "".join(" ".join(words) + "\n" for words in TEXT)
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert sample_text(TEXT, words=6, min_uses=2).words == 10
    with pytest.raises(InputError, match="0 of 8 different words are used 5 times"):
        sample_text(TEXT)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_against_the_definitions(elmo: Elmo, layer: int) -> None:
    text = sample_text(TEXT, min_uses=2)
    reports: list[tuple[int, int | None]] = []
    found = measure_layers(elmo, text, progress=lambda *report: reports.append(report))
    assert reports[-1] == (20, 20)
    uses = {word: each for word, each in uses_of(elmo, layer).items() if len(each) > 1}
    assert list(uses) == list(text.counts)
    for w, each in enumerate(uses.values()):
        expected = np.mean([cosine(a, b) for a, b in combinations(each, 2)])
        assert found.self_similarity_LW[layer, w] == pytest.approx(expected, abs=1e-6)
    apart = [
        np.mean([cosine(a, b) for a in first for b in second])
        for first, second in combinations(uses.values(), 2)
    ]
    assert found.anisotropy_L[layer] == pytest.approx(np.mean(apart), abs=1e-6)
    inside, lengths = [], []
    for vectors in elmo.embed(TEXT, layer):
        lengths += np.linalg.norm(vectors, axis=1).tolist()
        if len(vectors) > 1:  # a single word is its own mean
            inside.append(np.mean([cosine(vector, vectors.mean(0)) for vector in vectors]))
    assert found.intra_sentence_L[layer] == pytest.approx(np.mean(inside), abs=1e-6)
    assert found.length_L[layer] == pytest.approx(np.mean(lengths), rel=1e-5)
    variance = []
    for each in uses.values():
        squares = np.linalg.svd(np.stack(each), compute_uv=False) ** 2
        variance.append(squares[0] / squares.sum())
    assert found.variance_L[layer] == pytest.approx(np.mean(variance), abs=1e-6)


def test_characters_know_no_context(elmo: Elmo) -> None:
    found = measure_layers(elmo, sample_text(TEXT, min_uses=2))
    np.testing.assert_allclose(found.self_similarity_LW[0], 1.0, atol=1e-6)
    assert found.variance_L[0] == pytest.approx(1.0) and found.variance_baseline_L[0] < 0.999
    assert found.self_similarity_LW[1].mean() < 0.9999


def test_the_sample_for_the_variance(elmo: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more words and uses than asked for; the seed says which."""
    monkeypatch.setattr(module, "MAX_WORDS", 2)
    monkeypatch.setattr(module, "MAX_USES", 2)
    text = sample_text(TEXT, min_uses=2)
    wanted = {seed: module._sample_uses(text, seed) for seed in range(5)}
    assert all(len(each) == 2 for each in wanted.values())
    assert all(len(uses) == 2 for each in wanted.values() for uses in each.values())
    assert len({str(each) for each in wanted.values()}) > 1
    one, same, other = (measure_layers(elmo, text, seed=seed).variance_L for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_measurement(elmo: Elmo) -> None:
    text = sample_text(TEXT, min_uses=2)
    reports: list[tuple[int, int | None]] = []
    found = measure_geometry(
        elmo,
        text,
        results.make_signature(elmo, {}),
        progress=lambda *report: reports.append(report),
    )
    assert reports[-1] == (40, 40)
    assert (found["words"], found["sentences"], found["counted"]) == (20, 5, 6)
    assert [(e["network"], e["layer"]) for e in found["layers"]] == [
        (network, layer) for network in ("trained", "untrained") for layer in ("0", "1", "2")
    ]
    expected = measure_layers(elmo, text)
    for layer, each in enumerate(found["layers"][:3]):
        own = expected.self_similarity_LW[layer].mean()
        assert each["self adjusted"] == pytest.approx(own - expected.anisotropy_L[layer])
        anyway = expected.variance_baseline_L[layer]
        assert each["variance adjusted"] == pytest.approx(each["variance"] - anyway)
    assert found["layers"][4]["self"] != found["layers"][1]["self"]
    # Both ends together are all the words that there are, by the top layer.
    by_word = dict(zip(text.counts, expected.self_similarity_LW[2], strict=True))
    order = sorted(by_word, key=lambda word: by_word[word])
    assert [each["word"] for each in found["moving"]] == order[:3]
    assert [each["word"] for each in found["constant"]] == order[:2:-1]


def test_tables_and_pictures(elmo: Elmo) -> None:
    text = sample_text([*TEXT, TEXT[0]], min_uses=2)
    found = measure_geometry(elmo, text, results.make_signature(elmo, {}))
    adjusted, raw, words = results.render_tables(found)
    assert [row[0] for row in adjusted.rows][2:4] == ["untrained: LSTM 2", "characters"]
    assert raw.rows[3][1] == "1.000"
    column = [float(row[1]) for row in adjusted.rows[3:]]
    assert (3 + column.index(min(column)), 1) in adjusted.bold
    assert "20 words in 5 sentences (1 repeated sentences were left out); 6 words" in adjusted.note
    assert words.rows[0][0] == found["moving"][0]["word"] and len(words.rows) == 3
    (picture,) = results.render_figures(found)
    assert "LSTM 2" in picture.svg and "anisotropy" in picture.svg
