"""simple_elmo's face against what the real package gave (tests/golden/tf/make.py)."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import formats
from elmokit.bilm.mix import Mix
from elmokit.compat.simple_elmo import ElmoModel
from elmokit.errors import ElmoError, FormatError, InputError, InputTypeError, ModelNotFound

PLAIN = GOLDEN / "models" / "plain"
TF = GOLDEN / "tf"
GIVEN = np.load(TF / "vectors.npz")
TEXTS = json.loads((TF / "texts.json").read_text())["texts"]
EQUAL = json.loads((TF / "texts.json").read_text())["equal"]
SAID = json.loads((TF / "substitutes.json").read_text(encoding="utf-8"))


@pytest.fixture
def model() -> ElmoModel:
    """Batches of two, as the golden vectors were made."""
    model = ElmoModel()
    assert model.load(PLAIN, max_batch_size=2) == "The model is now loaded."
    return model


@pytest.fixture
def speaker() -> ElmoModel:
    model = ElmoModel()
    model.load(TF / "sharded", full=True)
    return model


def words_only(vectors: Any, texts: list[list[str]] = TEXTS) -> list[Any]:
    return [row[..., : len(text), :] for row, text in zip(vectors, texts, strict=True)]


# -- vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("warmup", [True, False])
@pytest.mark.parametrize("layers", ["all", "average", "top"])
def test_vectors_of_the_original(model: ElmoModel, layers: Any, warmup: bool) -> None:
    given = GIVEN[f"{layers}_{'warm' if warmup else 'cold'}"]
    for _ in range(2):  # every call starts from nothing
        vectors = model.get_elmo_vectors(TEXTS, warmup=warmup, layers=layers)
        assert vectors.shape == given.shape and vectors.dtype == given.dtype == np.float64
        for ours, theirs in zip(words_only(vectors), words_only(given), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_zeros_behind_a_sentence_where_the_original_has_its_mask(model: ElmoModel) -> None:
    vectors = model.get_elmo_vectors(TEXTS, layers="all")
    for row, text in zip(vectors, TEXTS, strict=True):
        assert not row[:, len(text) :].any()
    # "Yes" was beside a longer sentence: the original's layer 0 is not zero behind it.
    assert np.abs(GIVEN["all_warm"][1, 0, 1:]).max() > 0.01
    assert not GIVEN["all_warm"][1, 1:, 1:].any()


def test_a_session_keeps_the_state(model: ElmoModel) -> None:
    session = object()
    for call in range(2):
        vectors = model.get_elmo_vectors(TEXTS[:3], warmup=call == 0, session=session)
        given = GIVEN[f"session_{call}"]
        for ours, theirs in zip(
            words_only(vectors, TEXTS[:3]), words_only(given, TEXTS[:3]), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
    # A call without it in between does not disturb it, nor is disturbed.
    alone = model.get_elmo_vectors(TEXTS, warmup=False)
    np.testing.assert_array_equal(alone, loaded(2).get_elmo_vectors(TEXTS, warmup=False))


def loaded(size: int) -> ElmoModel:
    model = ElmoModel()
    model.load(str(PLAIN), max_batch_size=size)
    return model


@pytest.mark.parametrize("warmup", [True, False])
@pytest.mark.parametrize("layers", ["average", "top"])
def test_averages_of_the_original_where_nothing_is_padded(
    model: ElmoModel, layers: Any, warmup: bool
) -> None:
    given = GIVEN[f"mean_{layers}_{'warm' if warmup else 'cold'}"]
    averages = model.get_elmo_vector_average(EQUAL, warmup=warmup, layers=layers)
    assert averages.dtype == given.dtype
    np.testing.assert_allclose(averages, given, atol=1e-5)


def test_averages_are_of_the_words_alone(model: ElmoModel) -> None:
    averages = model.get_elmo_vector_average(TEXTS, layers="all")
    vectors = model.get_elmo_vectors(TEXTS, layers="all")
    assert averages.shape == (5, 3, model.vector_size)
    for average, row, text in zip(averages, vectors, TEXTS, strict=True):
        if text:
            mean = row[:, : len(text)].mean(axis=1)
            np.testing.assert_allclose(average, mean / np.linalg.norm(mean), atol=1e-6)
            assert np.linalg.norm(average) == pytest.approx(1)
        else:
            assert not average.any()


def test_the_average_is_uniform_whatever_the_model_was_saved_with(
    model: ElmoModel, tmp_path: Path
) -> None:
    formats.write(replace(formats.read(PLAIN), mix=Mix((0.0, 0.0, 9.0), 2.0)), tmp_path / "m")
    mixed = ElmoModel()
    mixed.load(tmp_path / "m", max_batch_size=2)
    np.testing.assert_array_equal(mixed.get_elmo_vectors(TEXTS), model.get_elmo_vectors(TEXTS))


def test_no_texts(model: ElmoModel) -> None:
    assert model.get_elmo_vectors([]).shape == (0, 0, 16)
    assert model.get_elmo_vectors([[]], layers="all").shape == (1, 3, 0, 16)
    assert model.get_elmo_vector_average([]).shape == (0, 16)


def test_what_a_model_says_of_itself(model: ElmoModel) -> None:
    assert (model.batch_size, model.max_chars, model.vector_size, model.n_layers) == (2, 50, 16, 3)


def test_top_of_its_first_versions(model: ElmoModel) -> None:
    old = ElmoModel()
    old.load(PLAIN, max_batch_size=2, top=True)
    top = model.get_elmo_vectors(TEXTS, layers="top")
    np.testing.assert_array_equal(old.get_elmo_vectors(TEXTS), top)
    assert old.get_elmo_vectors(TEXTS, layers="all").ndim == 4


# -- loading ---------------------------------------------------------------------------------------


def test_model_hdf5_comes_before_other_files(model: ElmoModel, tmp_path: Path) -> None:
    shutil.copy(PLAIN / "options.json", tmp_path)
    shutil.copy(PLAIN / "weights.hdf5", tmp_path / "model.hdf5")
    shutil.copy(TF / "tokens.hdf5", tmp_path / "other.hdf5")
    other = ElmoModel()
    other.load(str(tmp_path), 2, 100, False)
    np.testing.assert_array_equal(other.get_elmo_vectors(TEXTS), model.get_elmo_vectors(TEXTS))


def test_full_reads_the_checkpoint_beside_hdf5(tmp_path: Path) -> None:
    shutil.copytree(TF / "trained", tmp_path, dirs_exist_ok=True)
    bilm = formats.read(PLAIN)
    formats.write(bilm, tmp_path / "weights.hdf5")
    shutil.copy(TF / "trained" / "options.json", tmp_path)
    model = ElmoModel()
    model.load(tmp_path, full=True)
    assert model.vector_size == 8 and model.vocab is not None and len(model.vocab) == 16
    assert model.get_elmo_vectors([["she", "went"]]).shape == (1, 2, 8)


def test_refusals(model: ElmoModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="call load"):
        ElmoModel().get_elmo_vectors([["a"]])
    with pytest.raises(ModelNotFound, match="no model at"):
        ElmoModel().load(tmp_path / "nothing", full=True)
    (tmp_path / "file").write_text("no model")
    with pytest.raises(FormatError, match="is not a model"):
        ElmoModel().load(tmp_path / "file", full=True)
    for size in (0, True, "many"):
        with pytest.raises(InputError, match="max_batch_size"):
            ElmoModel().load(PLAIN, max_batch_size=size)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'average', 'top' or 'all'"):
        model.get_elmo_vectors([["a"]], layers="bottom")  # type: ignore[arg-type]


def test_a_string_is_its_characters(model: ElmoModel) -> None:
    """Many scripts give strings; the original reads their characters as words."""
    with pytest.warns(UserWarning, match=r"texts contains strings.*text\.split") as warned:
        found = model.get_elmo_vectors(["a b", ["She"]])
    assert warned[0].filename == __file__
    assert np.array_equal(found, model.get_elmo_vectors([["a", " ", "b"], ["She"]]))
    with pytest.warns(UserWarning, match="texts is a string"):
        assert model.get_elmo_vectors("ab").shape == (2, 1, 16)


def test_its_batcher(model: ElmoModel) -> None:
    assert ElmoModel().batcher is None  # before a model is loaded, as in the original
    assert model.batcher is not None
    ids = model.batcher.batch_sentences([["She", "went"], []])
    assert ids.shape == (2, 4, 50) and ids.dtype == np.int64
    assert ids[0, 0, :4].tolist() == [259, 257, 260, 261]  # <S>
    assert ids[0, 1, :6].tolist() == [259, *(c + 1 for c in b"She"), 260, 261]
    assert ids[1, 1, :4].tolist() == [259, 258, 260, 261] and not ids[1, 2:].any()  # </S>, padding


# -- words -----------------------------------------------------------------------------------------


def sorted_candidates(side: dict[str, list[Any]]) -> list[tuple[float, str, int]]:
    return sorted(
        zip(side["logp"], side["candidate_words"], side["candidates"], strict=True), reverse=True
    )


def test_substitutes_of_the_original(speaker: ElmoModel) -> None:
    found = speaker.get_elmo_substitutes(SAID["sentences"], topn=4, nodelimiters=False)
    assert [len(s) for s in found] == [len(s.split()) for s in SAID["sentences"]]
    places = [p for sentence in found for p in sentence]
    given = [p for sentence in SAID["with_marks"] for p in sentence]
    assert [p["word"] for p in places] == [p["word"] for p in given]
    assert {p["word"] for p in places} > {"<UNK>", "сидит"}
    for ours, theirs in zip(places, given, strict=True):
        assert ours.keys() == theirs.keys()
        for side in ("forward", "backward"):
            assert ours[side].keys() == theirs[side].keys()
            assert ours[side]["logp"] == sorted(ours[side]["logp"], reverse=True)
            for one, other in zip(
                sorted_candidates(ours[side]), sorted_candidates(theirs[side]), strict=True
            ):
                assert one[1:] == other[1:]
                assert one[0] == pytest.approx(other[0], abs=2e-4)


def test_substitutes_without_the_marks(speaker: ElmoModel) -> None:
    """As the original, save where it offers a mark because 0 was among the best scores."""
    found = speaker.get_elmo_substitutes(SAID["sentences"], topn=4)
    compared = 0
    for ours, theirs in zip(found, SAID["without_marks"], strict=True):
        for place, given in zip(ours, theirs, strict=True):
            for side in ("forward", "backward"):
                assert not {"<S>", "</S>"} & set(place[side]["candidate_words"])
                if not {"<S>", "</S>"} & set(given[side]["candidate_words"]):
                    assert set(place[side]["candidates"]) == set(given[side]["candidates"])
                    compared += 1
    assert compared > 20


def test_substitutes_in_context(speaker: ElmoModel) -> None:
    found = speaker.get_elmo_substitutes(
        SAID["sentences"], topn=16, nodelimiters=False, context=True
    )
    for sentence, steps in zip(found, SAID["scores_in_context"], strict=True):
        words = len(sentence)
        for i, place in enumerate(sentence):
            # Step k predicts word k forward, and word k from the end backward.
            for side, scores in (("forward", steps[i][0]), ("backward", steps[words - 1 - i][1])):
                best = np.argsort(scores)[::-1]
                np.testing.assert_allclose(place[side]["logp"], np.array(scores)[best], atol=2e-4)
                assert place[side]["candidates"][0] == best[0]


def test_substitutes_of_any_batch(speaker: ElmoModel) -> None:
    several = speaker.get_elmo_substitutes([*SAID["sentences"], "", "dog"])
    assert several[3] == [] and len(several[4]) == 1
    assert several[1] == speaker.get_elmo_substitutes([SAID["sentences"][1]])[0]
    assert speaker.get_elmo_substitutes([]) == []
    assert speaker.get_elmo_substitutes([], context=True) == []
    as_words = speaker.get_elmo_substitutes([["the", "dog"]])  # type: ignore[list-item]
    assert as_words == speaker.get_elmo_substitutes(["the  dog"])


def test_substitutes_refused(speaker: ElmoModel, model: ElmoModel, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no softmax.*full=True"):
        model.get_elmo_substitutes(["the dog"])
    with pytest.raises(InputError, match="topn is 15; expected a number from 1 to 14"):
        speaker.get_elmo_substitutes(["the dog"], topn=15)
    with pytest.raises(InputTypeError, match="expected a list of sentences"):
        speaker.get_elmo_substitutes("the dog")
    shutil.copytree(TF / "sharded", tmp_path, dirs_exist_ok=True)
    (tmp_path / "vocab.txt").unlink()
    silent = ElmoModel()
    silent.load(tmp_path, full=True)
    with pytest.raises(ElmoError, match=r"no vocab\.txt"):
        silent.get_elmo_substitutes(["the dog"])
    (tmp_path / "vocab.txt").write_text("<S>\n" + "word\n" * 15)
    silent.load(tmp_path, full=True)
    with pytest.raises(InputError, match="the vocabulary lacks </S>, <UNK>"):
        silent.get_elmo_substitutes(["the dog"])
