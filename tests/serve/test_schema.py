"""The schemas that check requests: they accept and refuse as JSON Schema says."""

from __future__ import annotations

from typing import Any

import pytest

from elmokit.errors import ConfigError
from elmokit.serve.schema import SchemaMismatch, check_value, verify_schema

NAMED = {
    "type": "object",
    "properties": {"k": {"type": ["integer", "null"], "minimum": 1, "maximum": 5}},
    "required": ["k"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (3, {"type": "integer"}),
        (3.0, {"type": "integer"}),
        (-0.5, {"type": "number"}),
        (None, {"type": ["string", "null"]}),
        ("ab", {"type": "string", "maxLength": 2, "minLength": 2}),
        (["a", ["b"]], {"items": {"anyOf": [{"type": "string"}, {"type": "array"}]}}),
        ({"k": 5}, NAMED),
        ({"k": None}, NAMED),
        (True, {"type": "boolean"}),
        ("a", {"enum": ["a", "b"]}),
        (" x", {"type": "string", "pattern": r"\S"}),
    ],
)
def test_values_that_fit(value: Any, schema: dict[str, Any]) -> None:
    assert check_value(value, schema) == value


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        (3.5, {"type": "integer"}, "the body is 3.5; expected an integer"),
        (True, {"type": "integer"}, "the body is true; expected an integer"),
        (1, {"enum": [True]}, "expected one of True"),
        ("abc", {"type": "string", "maxLength": 2}, "has 3 characters; expected at most 2"),
        ("", {"type": "string", "minLength": 1}, "is empty; expected at least one character"),
        ({}, NAMED, "^k is missing"),
        ({"k": 6}, NAMED, "^k is 6; expected a number from 1 to 5"),
        ({"k": 1, "x": 1}, NAMED, "^x is not known; expected only k"),
        ([["a", 3]], {"items": {"items": {"type": "string"}}}, r"^\[0\]\[1\] is 3; expected a str"),
        (3, {"anyOf": [{"type": "string"}, {"type": "array"}]}, "expected a string, or an array"),
        ("  ", {"type": "string", "pattern": r"\S"}, "expected: a match of"),
        ("x" * 99, {"type": "array"}, "is a string of 99 characters; expected an array"),
    ],
)
def test_values_that_do_not_fit(value: Any, schema: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        check_value(value, schema)


def test_integers_become_integers() -> None:
    assert type(check_value(3.0, {"type": "integer"})) is int


def test_a_keyword_that_nobody_checks_is_refused() -> None:
    with pytest.raises(ConfigError, match="uniqueItems"):
        verify_schema({"anyOf": [{"properties": {"a": {"uniqueItems": True}}}]})


def test_the_pattern_for_words_is_what_the_tokenizer_says() -> None:
    pytest.importorskip("orjson", reason="needs the extra serve")
    import re

    from elmokit.serve.operation import HAS_WORDS
    from elmokit.text.tokenize import tokenize

    pattern = re.compile(HAS_WORDS)
    for code in [*range(0x3000), *range(0xFE00, 0x10000), 0x1F600, 0xE0020]:
        assert bool(tokenize(chr(code))) == bool(pattern.search(chr(code))), hex(code)
