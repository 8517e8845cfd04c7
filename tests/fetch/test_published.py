"""The table: consistent, and nothing invented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

from elmokit.fetch.names import _plan_published
from elmokit.fetch.published import (
    PUBLISHED,
    PublishedModel,
    find_by_language,
    find_published,
    known_names,
    list_models,
)


def test_words_mean_one_model_each() -> None:
    assert len({model.name for model in list_models()}) == len(list_models()) == len(PUBLISHED)
    every = [w.lower() for m in PUBLISHED for w in (m.name, *m.aliases)]
    assert len(every) == len(set(every)) == len(known_names())
    for model in PUBLISHED:
        assert all(find_published(word) is model for word in (model.name, *model.aliases))


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda m: m.name)
def test_every_entry_is_whole(model: PublishedModel) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", model.name)  # also a folder's name
    assert re.fullmatch(r"[a-z]{2,3}", model.language)
    assert model.description and model.source
    assert model.page.startswith("http")
    for file in model.files:
        assert Path(file.name).name == file.name
        assert file.addresses
        assert all(re.fullmatch(r"https?://[^\s?#]+", a) for a in file.addresses)
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.bytes is None or file.bytes > 0


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda m: m.name)
def test_every_entry_has_a_form_that_can_be_read(model: PublishedModel) -> None:
    found = {file.name for file in model.files}
    zips = [name for name in found if name.endswith(".zip")]
    if zips:
        assert found == set(zips) and len(zips) == 1
        assert _plan_published(model).model == zips[0]
    else:
        assert any(name.endswith("options.json") for name in found)
        assert any(name.endswith((".hdf5", ".index")) for name in found)
        assert _plan_published(model).model == ""


def test_the_four_of_the_authors() -> None:
    assert [model.name for model in PUBLISHED[:4]] == [
        "small",
        "medium",
        "original",
        "original-5.5B",
    ]
    small = find_published("small")
    assert small
    options, weights = small.files
    assert options.addresses[0] == (
        "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/2x1024_128_2048cnn_1xhighway/"
        "elmo_2x1024_128_2048cnn_1xhighway_options.json"
    )
    assert (weights.bytes, weights.sha256) == (
        54_402_456,
        "747ba97abce8a5f446558369e10bb0f7931437a46867476fdd156f5d7f576229",
    )
    assert find_published("2x1024_128_2048cnn_1xhighway") is small
    assert find_published(" SMALL ") is small


def test_many_languages() -> None:
    numbers = {m.language: m.files[0].name for m in PUBLISHED if m.name.startswith("manylangs-")}
    assert len(numbers) == 44
    # Ends and middle of the table in the README of ELMoForManyLangs; Dutch and Bokmål stand there
    # in the wrong order of their numbers.
    for language, number in (("ar", 136), ("en", 144), ("nl", 164), ("nb", 165), ("zh", 179)):
        assert numbers[language] == f"{number}.zip"
    assert (
        find_published("manylangs-norwegian-bokmål")
        is find_published("nlpl-165")
        is find_published("manylangs-nb")
    )


def test_numbers_of_the_repository() -> None:
    assert find_published("nlpl-195") is find_published("russian")
    other = find_published("nlpl-42")
    assert other and other.files[0].addresses[0] == "https://vectors.nlpl.eu/repository/20/42.zip"
    assert find_published("nlpl-x") is None and find_published("nlpl-../1") is None


def test_the_page_about_names_has_them_all() -> None:
    page = (REPOSITORY / "docs" / "names.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([^`\s]+)`", page))
    missing = [model.name for model in PUBLISHED if model.name not in told]
    assert not missing
    for model in PUBLISHED:
        if model.name.startswith("manylangs-"):
            language = model.description.split(",")[0]
            number = model.files[0].name.removesuffix(".zip")
            assert f"`{model.name}` {language} {number}" in page


def test_models_are_searched_by_name_language_and_description() -> None:
    assert list_models() == list(PUBLISHED)
    assert [model.name for model in list_models("BASQUE")] == ["basque", "manylangs-eu"]
    assert list_models("klingon") == []


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("nl", "manylangs-nl"),
        ("Dutch", "manylangs-nl"),
        ("pt_BR", "portuguese-brwac"),
        ("ancient greek", "manylangs-grc"),
        ("de", "german"),
    ],
)
def test_models_of_a_language(language: str, expected: str) -> None:
    assert expected in [model.name for model in find_by_language(language)]


def test_no_models_of_a_language() -> None:
    assert find_by_language("xx") == find_by_language("smal") == []
