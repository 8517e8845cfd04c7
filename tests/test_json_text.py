"""JSON from damaged and hostile files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elmokit.bilm.mix import Mix
from elmokit.errors import ConfigError, ElmoError, FormatError
from elmokit.json_text import check_seal, parse_json, seal


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "{", b"\xff", "1" * 5000])
def test_whatever_is_wrong_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_integers_that_no_float_can_hold_are_refused() -> None:
    assert parse_json("[" + "9" * 300 + "]") == [int("9" * 300)]
    for text in ("9" * 309, "[-" + "1" * 400 + "]"):
        with pytest.raises(ValueError, match=r"a number of (309|401) digits"):
            parse_json(text)
    with pytest.raises(ConfigError, match="expected one number per layer"):
        Mix((10**400, 0.0, 0.0))


def test_keys_twice_and_deep_values_are_refused_in_models() -> None:
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    for text in ('{"a": 1, "a": 2}', "[" * 60 + "]" * 60):
        with pytest.raises(ValueError):
            parse_json(text, unique=True)


def test_a_flipped_bit_of_a_sealed_file_is_noticed() -> None:
    content = {"b": [1, 2.5, None], "a": {"x": "é\ud800"}}
    data = json.dumps(seal(content)).encode()
    check_seal(parse_json(data))
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        try:
            found = parse_json(bytes(damaged))
        except ValueError:
            continue
        if found != seal(content):
            with pytest.raises(ValueError):
                check_seal(found)


def test_messages_stay_short() -> None:
    assert len(str(FormatError("x" * 100_000))) < 1500
    assert issubclass(FormatError, ElmoError)


def test_a_hostile_line_of_semcor_takes_linear_time(tmp_path: Path) -> None:
    """It took the square of its length: some minutes for this one."""
    from elmokit.probe.senses.semcor import read_semcor

    (tmp_path / "br-a01").write_text("<contextfile>\n<s>\n" + "<wf>" * 100_000 + "\n")
    with pytest.raises(FormatError, match="expected a line of SemCor"):
        read_semcor([tmp_path / "br-a01"])
