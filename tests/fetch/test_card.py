"""The model card."""

from __future__ import annotations

import json

import pytest

from elmokit.bilm.model import BiLM
from elmokit.errors import InputError
from elmokit.fetch.card import make_model_card


def front_matter(card: str) -> dict[str, object]:
    """Every line is a key and a JSON value, which is YAML too."""
    start, matter, _ = card.split("---\n", 2)
    assert start == ""
    pairs = (line.split(": ", 1) for line in matter.splitlines())
    return {key: json.loads(value) for key, value in pairs}


def test_what_it_says(bilm: BiLM) -> None:
    card = make_model_card(bilm, "me/my-elmo", language=["en", "pt"], license="cc-by-4.0")
    matter = front_matter(card)
    assert matter["library_name"] == "elmokit"
    assert matter["language"] == ["en", "pt"]
    assert matter["license"] == "cc-by-4.0"
    assert "elmo" in matter["tags"]  # type: ignore[operator]
    assert "\n# my-elmo\n" in card
    assert 'elmo = Elmo.load("me/my-elmo")' in card
    assert bilm.fingerprint in card
    assert f"| parameters | {bilm.parameters:,} |" in card
    assert "`2x11_6_17cnn_1xhighway`" in card


def test_what_is_not_known_is_not_claimed(bilm: BiLM) -> None:
    matter = front_matter(make_model_card(bilm, "me/my-elmo"))
    assert "language" not in matter and "license" not in matter
    assert front_matter(make_model_card(bilm, "me/my-elmo", language="de"))["language"] == ["de"]


@pytest.mark.parametrize("value", ["en\nlicense: mit", "", "my own license", "a: b"])
def test_codes_only(bilm: BiLM, value: str) -> None:
    with pytest.raises(InputError, match="language is"):
        make_model_card(bilm, "me/x", language=[value])
    if value:
        with pytest.raises(InputError, match="license is"):
            make_model_card(bilm, "me/x", license=value)


def test_yaml_reads_it(bilm: BiLM) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    card = make_model_card(bilm, "me/my-elmo", language="en", license="mit")
    assert yaml.safe_load(card.split("---\n")[1]) == front_matter(card)
