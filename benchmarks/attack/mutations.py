"""Ways to damage bytes: accidents (flipped bits, cut ends) and lies (numbers, tokens, JSON)."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

NUMBERS = (
    *(0, 1, 2, 3, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF),
    *(0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)
"""Numbers that parsers trip over."""
TOKENS = [
    *(b"-1", b"0", b"1e999", b"null", b"[]", b"{}", b'"x"', b"9" * 5000, b"true", b"NaN", b"1.5"),
    *(
        b"\n",
        b"\n\n",
        b"\t",
        b" ",
        b"\r",
        b"\r\n",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc2\xa0",
    ),
    *(b"\xe2\x80\xa8", b"\x85", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xcc\x81" * 50, b"\x1a"),
    *(b"(", b")", b"[", b"]", b"{", b"}", b"<", b">", b"/", b"..", b"../", b"|", b"*", b"-", b"_"),
    *(
        b"&#",
        b"&lt;",
        b"<!",
        b"]]>",
        b"<?",
        b"=",
        b'"',
        b"'",
        b"\\",
        b"\\u",
        b"\\ud800",
        b"%",
        b"#",
    ),
    *(b"(" * 3000, b"[" * 3000, b'{"a":' * 2000, b"<a>" * 1000, b">" * 100, b"I-", b"B-", b"E-"),
    *(b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08", b"PAR1", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY"),
    *(b"cos\nsystem\n", b"\x80\x02", b"\x80\x04", b"R.", b"c__builtin__\neval\n", b"\x81", b"\x82"),
]
"""Pieces that mean something in one format or another."""
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63), 10**400, 1e308, 1e-320, 0.5),
    *(float("inf"), float("-inf"), float("nan"), "", "x", "../x", "/etc/passwd", "\0", "\ud800"),
    *("a" * 10_000, [], {}, [[]], [None], {"": {}}, [0] * 1000, "1", "NaN", ["x", 1], {"a": [1]}),
]
"""JSON values where others are expected."""


def accident(data: bytes, source: random.Random) -> bytes:
    """Return the bytes with what a disk or a copy does to them: flipped bits, holes, a cut end."""
    if not data:
        return b"\0"
    damaged = bytearray(data)
    action = source.randrange(6)
    place = source.randrange(len(damaged))
    if action <= 2:
        for _ in range(source.choice((1, 1, 1, 2, 8))):
            place = source.randrange(len(damaged))
            damaged[place] ^= 1 << source.randrange(8)
    elif action == 3:
        del damaged[place:]
    elif action == 4:  # a block that was never written
        end = min(len(damaged), place + source.choice((1, 16, 512, 4096)))
        damaged[place:end] = bytes(end - place)
    else:  # a block of something else
        end = min(len(damaged), place + source.randrange(1, 64))
        damaged[place:end] = source.randbytes(end - place)
    return bytes(damaged)


def mutate(data: bytes, source: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Return the bytes after one to four accidents or lies.

    Args:
        data: What to damage.
        source: Where chance comes from.
        others: Other files, pieces of which may be inserted.
    """
    if data[:1] in (b"{", b"[") and source.random() < 0.4:
        lied = mutate_json(data, source)
        if lied is not None:
            return lied
    damaged = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 2, 3, 4))):
        _mutate_once(damaged, source, others)
    return bytes(damaged)


def _mutate_once(damaged: bytearray, source: random.Random, others: Sequence[bytes]) -> None:
    if not damaged:
        damaged += source.choice(TOKENS)
        return
    size = len(damaged)
    place = source.randrange(size)
    where = source.random()
    if where < 0.25:  # headers are where lies are told
        place = source.randrange(min(size, 256))
    elif where < 0.4:
        place = size - 1 - source.randrange(min(size, 256))
    action = source.randrange(11)
    if action <= 1:
        damaged[place] ^= 1 << source.randrange(8)
    elif action == 2:
        damaged[place] = source.randrange(256)
    elif action == 3:
        del damaged[place:]
    elif action == 4:
        del damaged[place : place + source.choice((1, 2, 4, 8, source.randrange(1, 64)))]
    elif action == 5:
        damaged[place:place] = damaged[place : place + source.randrange(1, 64)]
    elif action == 6:
        width = source.choice((1, 2, 4, 8))
        number = source.choice(NUMBERS) & ((1 << 8 * width) - 1)
        damaged[place : place + width] = number.to_bytes(width, source.choice(("little", "big")))
    elif action == 7:
        damaged[place : place + source.randrange(2)] = source.choice(TOKENS)
    elif action == 8:
        end = min(size, place + source.randrange(1, 512))
        damaged[place:end] = bytes(end - place)
    elif action == 9:  # swap two pieces
        width = source.randrange(1, 32)
        other = source.randrange(size)
        one, two = damaged[place : place + width], damaged[other : other + width]
        damaged[place : place + len(two)] = two
        damaged[other : other + len(one)] = one
    else:
        other_data = source.choice(others) if others else bytes(damaged)
        start = source.randrange(len(other_data)) if other_data else 0
        piece = other_data[start : start + source.randrange(1, 200)]
        damaged[place : place + source.randrange(len(piece) + 1)] = piece


def mutate_json(data: bytes, source: random.Random) -> bytes | None:
    """Return a JSON text with another value somewhere, or a key twice; None if it is not JSON."""
    try:
        return _mutate_value(json.loads(data), source)
    except (ValueError, RecursionError):
        return None


def _mutate_value(content: Any, source: random.Random) -> bytes:
    action = source.randrange(8)
    if action == 0:
        depth = source.choice((10, 900, 5000, 100_000))
        return b"[" * depth + b"]" * depth if source.random() < 0.5 else b'{"a":' * depth
    nodes = list(_nodes(content))
    if not nodes:
        return json.dumps(source.choice(VALUES)).encode()
    for _ in range(source.choice((1, 1, 2))):
        holder, key = source.choice(nodes)
        try:
            if action == 1 and isinstance(holder, dict):
                del holder[key]
            elif action == 2 and isinstance(holder, dict):
                holder[str(key) + source.choice(("x", " ", ""))] = source.choice(VALUES)
            elif action == 3:
                holder[key] = holder
                return _dump_deep(content, holder, key)
            else:
                holder[key] = source.choice(VALUES)
        except (IndexError, KeyError):
            pass
    text = json.dumps(content)
    if action == 4 and isinstance(content, dict) and content:  # a key twice
        name = source.choice(list(content))
        value = json.dumps(source.choice(VALUES))
        text = f"{{{json.dumps(name)}: {value}, {text[1:]}"
    return text.encode()


def _dump_deep(content: Any, holder: Any, key: Any) -> bytes:
    nested: Any = 0
    for _ in range(500):
        nested = [nested]
    holder[key] = nested
    return json.dumps(content).encode()


def _nodes(content: Any) -> list[tuple[Any, Any]]:
    """Return all places in a JSON value, as a container and a key."""
    places: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting and len(places) < 5000:
        holder = waiting.pop()
        if isinstance(holder, dict):
            keys: Any = list(holder)
        elif isinstance(holder, list):
            keys = range(min(len(holder), 50))
        else:
            continue
        for key in keys:
            places.append((holder, key))
            waiting.append(holder[key])
    return places
