"""`elmo models`."""

from __future__ import annotations

import json


def test_models_are_listed_and_searched(elmo_command) -> None:
    assert "original-5.5B" in elmo_command("models").out
    found = elmo_command("models", "BASQUE")
    assert "basque" in found.out and "japanese" not in found.out
    lines = [json.loads(line) for line in elmo_command("models", "--json").out.splitlines()]
    assert {"small", "medium", "original"} <= {line["name"] for line in lines}
    assert next(line for line in lines if line["name"] == "small")["bytes"] > 54_000_000
    assert "no published model" in elmo_command("models", "klingon").out
