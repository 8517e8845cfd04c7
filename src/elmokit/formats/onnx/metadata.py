"""What a program must know to feed an ONNX export: inputs, outputs, character ids, mix.

The same JSON lies beside the file (`model.onnx.json`) and inside it, under the key `elmokit` of its
metadata. `elmo inspect` reads it from the file itself, with a few lines that step over everything
else, so that the package onnx is not needed for that.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import elmokit
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.errors import FormatError
from elmokit.formats.onnx.graph import (
    CHARACTER_IDS,
    LAYERS,
    LENGTHS,
    MIX,
    SHIFT,
    WORD_IDS,
    unknown_row,
)
from elmokit.json_text import parse_json
from elmokit.text.characters import NAMED_UNKNOWN

FORMAT, VERSION = "elmokit-onnx", 1
METADATA_KEY = "elmokit"
"""Key of the JSON in the metadata of the ONNX file."""
LARGEST_METADATA = 1 << 28
"""Size in bytes of the metadata at most; a large dictionary has a few megabytes."""

_METADATA_PROPS, _KEY, _VALUE = 14, 1, 2  # field numbers of ModelProto and StringStringEntryProto
_USED_BY_INSPECT = {"config": dict, "mix": dict, "fingerprint": str, "starts_from_zeros": bool}


def make_metadata(bilm: BiLM, stored: str, license: str | None) -> dict[str, Any]:
    """Return the description of an export; all values can be written as JSON.

    Args:
        bilm: The model.
        stored: Number format of the matrices in the file: `"float32"` or `"float16"`.
        license: License of the model, if it is known.
    """
    config = bilm.config
    mix = bilm.mix or Mix.uniform(config.layers)
    longest = config.char_cnn.max_characters
    inputs = {
        CHARACTER_IDS: {
            "type": "int64",
            "shape": ["batch", "words", longest],
            "meaning": "characters of every word; 0 where a sentence has no more words",
        },
        WORD_IDS: {
            "type": "int64",
            "shape": ["batch", "words"],
            "meaning": "row of every word in known_words.entries; 0 after the end of a sentence",
        },
        LENGTHS: {
            "type": "int64",
            "shape": ["batch"],
            "meaning": "number of words of every sentence",
        },
    }
    if bilm.lexicon is None:
        del inputs[WORD_IDS]
    return {
        "format": FORMAT,
        "version": VERSION,
        "elmokit": elmokit.__version__,
        "fingerprint": bilm.fingerprint,
        "license": license,
        "parameters": bilm.parameters,
        "stored_weights": stored,
        "initial_state": "settled",
        "starts_from_zeros": bilm.settled is not None and bilm.settled.is_zero,
        "layers": config.layers,
        "dim": config.dim,
        "max_characters": longest,
        "mix": {"weights": list(mix.weights), "gamma": mix.gamma},
        "inputs": inputs,
        "outputs": {
            LAYERS: {
                "type": "float32",
                "shape": [config.layers, "batch", "words", config.dim],
                "meaning": "all layers, the context-free one first; zeros after the end of a "
                "sentence",
            },
            MIX: {
                "type": "float32",
                "shape": ["batch", "words", config.dim],
                "meaning": "gamma * (weighted sum of the layers)",
            },
        },
        "characters": _describe_characters(bilm),
        **({} if bilm.lexicon is None else {"known_words": _describe_lexicon(bilm)}),
        "config": config.to_dict(),
    }


def _describe_characters(bilm: BiLM) -> dict[str, Any]:
    """Return how a word becomes character ids; all ids are as the graph expects them."""
    encoder = bilm.characters
    marks_2C, _ = encoder.encode(encoder.marks)
    begin, begin_sentence, end = (int(id) + SHIFT for id in marks_2C[0, :3])
    rules: dict[str, Any] = {
        "unit": "UTF-8 byte" if bilm.alphabet is None else "Unicode code point",
        "rule": f"[begin_word, ids of the first {encoder.longest_word} {encoder.unit}, end_word], "
        "then padding",
        "most_per_word": encoder.longest_word,
        "begin_word": begin,
        "end_word": end,
        "padding": encoder.padding + SHIFT,
        "no_word": 0,
        "sentence_marks": "added by the model",
        "sentence_mark_words": {
            encoder.marks[0]: begin_sentence,
            encoder.marks[1]: int(marks_2C[1, 1]) + SHIFT,
        },
    }
    if bilm.alphabet is None:
        return rules | {"id": f"byte + {SHIFT}"}
    return rules | {
        "id": f"index in alphabet + {SHIFT}, or unknown",
        "unknown": bilm.alphabet.index_of(NAMED_UNKNOWN) + SHIFT,
        "alphabet": list(bilm.alphabet),
    }


def _describe_lexicon(bilm: BiLM) -> dict[str, Any]:
    assert bilm.lexicon is not None
    return {
        "rule": f"index in entries of the first {bilm.characters.longest_word} code points of the "
        "word, or unknown",
        "unknown": unknown_row(bilm.lexicon),
        "entries": list(bilm.lexicon),
    }


# -- reading -------------------------------------------------------------------------------------


def read_metadata(file: BinaryIO, where: str) -> dict[str, Any]:
    """Return the metadata that `make_metadata` made, read from an ONNX file.

    Args:
        file: The ONNX file.
        where: Its name for error messages.
    """
    size = file.seek(0, 2)
    position = 0
    while position < size:
        file.seek(position)
        head = file.read(20)
        key, used = _varint(head, 0, where)
        number, wire_type = key >> 3, key & 7
        length = {0: 0, 1: 8, 5: 4}.get(wire_type, -1)
        if wire_type in (0, 2):
            value, used = _varint(head, used, where)
            length = value if wire_type == 2 else 0
        position += used
        if length < 0 or number == 0 or position + length > size:
            raise FormatError(f"{where} is truncated, or not an ONNX file; write or copy it again")
        if number == _METADATA_PROPS and wire_type == 2 and length <= LARGEST_METADATA:
            file.seek(position)
            entry = _strings(file.read(length), where)
            if entry.get(_KEY) == METADATA_KEY.encode():
                return _parse(entry.get(_VALUE, b""), where)
        position += length
    raise FormatError(
        f"{where} was not written by elmokit: it has no metadata called {METADATA_KEY!r}. Programs "
        "such as netron or onnx.load describe other ONNX files"
    )


def _parse(data: bytes, where: str) -> dict[str, Any]:
    try:
        metadata = parse_json(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the metadata of {where} is not valid JSON: {error}") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise FormatError(f"the metadata of {where} are not those of an export of elmokit")
    if metadata.get("version") != VERSION:
        raise FormatError(
            f"{where} has version {metadata.get('version')!r} of the format; elmokit "
            f"{elmokit.__version__} reads version {VERSION}. Update it with: pip install -U elmokit"
        )
    for key, kind in _USED_BY_INSPECT.items():
        if not isinstance(metadata.get(key), kind):
            raise FormatError(f"the metadata of {where} have no {key}; write the file again")
    return metadata


def _strings(data: bytes, where: str) -> dict[int, bytes]:
    """Return the fields of a message that consists of strings, by number."""
    fields: dict[int, bytes] = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position, where)
        length, position = _varint(data, position, where)
        if key & 7 != 2 or position + length > len(data):
            raise FormatError(f"{where} is damaged: its metadata are not strings")
        fields[key >> 3] = data[position : position + length]
        position += length
    return fields


def _varint(data: bytes, start: int, where: str) -> tuple[int, int]:
    """Return an unsigned number, stored in bytes of seven bits, and where it ends."""
    value = 0
    for i, byte in enumerate(data[start : start + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, start + i + 1
    raise FormatError(f"{where} is truncated, or not an ONNX file; write or copy it again")
