"""JSON from files that may be damaged or hostile: one kind of error, and checksums inside.

`parse_json` raises `ValueError` whatever is wrong. A file that ends with a checksum of everything
else in it (`seal`) is noticed when a bit of it flips (`check_seal`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeGuard

DEEPEST = 50
"""How deep the lists and objects of a model's file may be nested."""
MOST_DIGITS = 300
"""How many digits an integer may have: every float can hold it."""
SEAL = "checksum"
"""Key of the checksum in a sealed object."""


def parse_json(text: str | bytes, *, unique: bool = False) -> Any:
    """Return the value of a JSON text.

    Args:
        text: The text; bytes are UTF-8, UTF-16 or UTF-32.
        unique: Refuse what no program writes: objects that have a key twice, which is read in
            different ways, and values that are nested more than `DEEPEST` times.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, or has an integer of more than
            `MOST_DIGITS` digits.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_unique if unique else None, parse_int=_short_integer
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if unique and _is_deep(value):  # it would break whoever copies it
        raise ValueError("it is nested too deeply")
    return value


def _short_integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    return int(digits)


def _is_deep(value: Any) -> bool:
    """Return whether lists and objects lie in each other more than `DEEPEST` times."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"it has the key {twice[:60]!r} twice")
    return content


def is_list_of_text(value: object) -> TypeGuard[list[str]]:
    """Return whether a value of JSON is a list of strings, such as the words of a sentence."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object for JSON with a checksum of all of it as its last key."""
    plain = {key: value for key, value in content.items() if key != SEAL}
    return {**plain, SEAL: _digest(plain)}


def check_seal(content: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless an object has the checksum that `seal` gave it."""
    plain = {key: value for key, value in content.items() if key != SEAL}
    if content.get(SEAL) != _digest(plain):
        raise ValueError("its checksum differs from its content")


def _digest(content: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps(content))  # as a file would give it back
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
