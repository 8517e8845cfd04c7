"""Arrays in one binary message: a JSON header, then the numbers as little-endian float32.

The message begins with the length of the header in bytes (uint32, little-endian), which is a
multiple of four, so that a browser can view the numbers in place. The header is an object with any
fields, and `arrays`: for each name the `shape`, and the `offset` of its first number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.json_text import parse_json

MEDIA_TYPE = "application/octet-stream"


def pack_arrays(fields: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return a message.

    Args:
        fields: Fields of the header.
        arrays: Arrays of numbers by name.
    """
    places: dict[str, Any] = {}
    blocks: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        numbers = np.ascontiguousarray(array, "<f4")
        places[name] = {"shape": list(numbers.shape), "offset": offset}
        blocks.append(numbers.tobytes())
        offset += numbers.size
    header = json.dumps({**fields, "arrays": places}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 4)
    return b"".join([len(header).to_bytes(4, "little"), header, *blocks])


def unpack_arrays(message: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[np.float32]]]:
    """Return the header and the arrays of a message."""
    end = 4 + int.from_bytes(message[:4], "little")
    header: dict[str, Any] = parse_json(message[4:end])
    arrays = {
        name: np.frombuffer(
            message, "<f4", int(np.prod(place["shape"])), end + 4 * place["offset"]
        ).reshape(place["shape"])
        for name, place in header["arrays"].items()
    }
    return header, arrays
