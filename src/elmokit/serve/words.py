"""`POST /v1/words`: one vector per word, with words and character offsets.

The answer is JSON, or a compact binary: NumPy's npz, or an Arrow stream with one row per word.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson

from elmokit.bilm.mix import Mix
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import LayerChoice
from elmokit.errors import MissingExtra
from elmokit.extras import install_command, require
from elmokit.serve.batcher import Reduce
from elmokit.serve.errors import ApiError
from elmokit.serve.models import Models, ServedSentence
from elmokit.serve.operation import (
    INTEGER,
    JSON,
    NUMBER,
    STRING,
    USAGE,
    Answer,
    Call,
    Operation,
    array_of,
    name_schema,
    object_of,
    sentences_of,
    sentences_schema,
    usage_of,
)

NPZ = "application/x-npz"
"""Content type of NumPy's npz; it has no registered one."""
ARROW = "application/vnd.apache.arrow.stream"
"""Content type of an Arrow stream."""
NPZ_CHARACTERS = 4 << 20
"""Largest number of words times the length of the longest, since npz pads words to one length."""


def words_operation(models: Models) -> Operation:
    """Return the operation that embeds the words of sentences."""
    counts = [info["layers"] for info in models.info.values()]
    number = {"type": "integer", "minimum": 0, "maximum": max(counts) - 1}
    scalar = {"type": "number", "minimum": -100, "maximum": 100}
    layers = {
        "anyOf": [
            {"type": "string", "enum": ["mix", "top", "all"]},
            number,
            array_of(number, minItems=1, maxItems=max(counts)),
            object_of(
                {
                    "scalars": array_of(scalar, minItems=min(counts), maxItems=max(counts)),
                    "gamma": {"type": "number", "minimum": -1000, "maximum": 1000},
                },
                ("scalars",),
            ),
            {"type": "null"},
        ],
        "default": "mix",
        "description": "The model's mix, the top layer, all layers, one or several by number, or "
        "the mix γ · Σ softmax(s)_j · layer_j with your own scalars s.",
    }
    request = object_of(
        {
            "input": sentences_schema(models),
            "model": name_schema(models.names, "Name of the model."),
            "layers": layers,
        },
        ("input",),
    )
    vectors = array_of({"anyOf": [array_of(NUMBER), array_of(array_of(NUMBER))]})
    item = object_of(
        {
            "object": {"type": "string", "enum": ["words"]},
            "index": INTEGER,
            "words": array_of(STRING),
            "offsets": {"anyOf": [array_of(array_of(INTEGER)), {"type": "null"}]},
            "vectors": vectors,
        },
        ("object", "index", "words", "offsets", "vectors"),
    )
    return Operation(
        method="POST",
        path="/v1/words",
        name="embed_words",
        summary="Return one vector per word, with words and character offsets.",
        description="As `Elmo.embed`: (T, D) per sentence, or (layers, T, D) for several layers. "
        f"With `Accept: {NPZ}` or `Accept: {ARROW}` the answer is binary.",
        handler=_embed_words,
        request=request,
        response=object_of(
            {
                "object": {"type": "string", "enum": ["list"]},
                "data": array_of(item),
                "model": STRING,
                "usage": USAGE,
            },
            ("object", "data", "model", "usage"),
        ),
        content={
            NPZ: {"type": "string", "contentEncoding": "binary"},
            ARROW: {"type": "string", "contentEncoding": "binary"},
        },
        errors=(404, 406),
    )


async def _embed_words(call: Call) -> Answer:
    content_type = choose_content_type(call.accept, (JSON, NPZ, ARROW))
    if content_type == ARROW:
        try:
            require("pyarrow", "Arrow streams")
        except MissingExtra:
            raise ApiError(
                406,
                f"this server cannot write Arrow; accept {JSON} or {NPZ}, or install on the "
                f"server: {install_command('pyarrow')}",
            ) from None
    name = call.body.get("model", call.models.names[0])
    info = call.models.model_info(name)
    layers, reduce, planes = _choose_layers(call.body.get("layers", "mix"), name, info["layers"])
    sentences = sentences_of(call.body)
    split = await call.models.split(sentences)
    words = sum(map(len, split))
    call.log.update(model=name, texts=len(sentences), words=words)
    numbers = words * info["dim"] * planes
    if numbers > call.models.limits.numbers:
        raise ApiError(
            422,
            f"the answer would have {numbers:,} numbers; expected at most "
            f"{call.models.limits.numbers:,}: send fewer texts per request, or choose a layer",
            code="too_many_numbers",
            param="input",
        )
    embedded = await call.models.embed_words(name, split, layers, reduce)
    if content_type == NPZ:
        return Answer(_to_npz(embedded), NPZ)
    if content_type == ARROW:
        return Answer(_to_arrow(embedded, name), ARROW)
    return Answer(await _to_json(embedded, name, words))


def _choose_layers(chosen: Any, name: str, count: int) -> tuple[LayerChoice, Reduce | None, int]:
    """Return which layers to compute, what to make of them, and how many come out."""
    if isinstance(chosen, str | int):
        return chosen, None, count if chosen == "all" else 1  # type: ignore[return-value]
    if isinstance(chosen, dict):
        if len(chosen["scalars"]) != count:
            raise ApiError(
                400,
                f"layers.scalars has {len(chosen['scalars'])} numbers; the model {name} has "
                f"{count} layers: expected one number per layer",
                param="layers.scalars",
            )
        return "all", Mix(tuple(chosen["scalars"]), chosen.get("gamma", 1.0)).apply, 1
    if max(chosen) >= count:
        raise ApiError(
            400,
            f"layers has {max(chosen)}; the model {name} has the layers 0 to {count - 1}",
            param="layers",
        )

    def select(layers_LTD: FloatArray) -> FloatArray:
        selected: FloatArray = layers_LTD[chosen]
        return selected

    return "all", select, len(chosen)


def choose_content_type(accept: str, offered: Sequence[str]) -> str:
    """Return the content type that a client prefers, or raise the error 406.

    Args:
        accept: The `Accept` header; empty for anything.
        offered: Content types to choose from, the default first.
    """
    if not accept.strip():
        return offered[0]
    best: tuple[float, int, int] | None = None
    choice = ""
    for part in accept.lower().split(","):
        wanted, *parameters = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        for i, content_type in enumerate(offered):
            specific = {content_type: 2, content_type.partition("/")[0] + "/*": 1, "*/*": 0}
            if wanted in specific and quality > 0:
                rank = (quality, specific[wanted], -i)
                if best is None or rank > best:
                    best, choice = rank, content_type
    if best is None:
        raise ApiError(
            406, f"the Accept header allows none of {', '.join(offered)}; accept one of them"
        )
    return choice


def _offsets(sentence: ServedSentence) -> list[tuple[int, int]] | None:
    """Return the character offsets of the words; None if words were given."""
    if any(word.start < 0 for word in sentence.words):
        return None
    return [(word.start, word.end) for word in sentence.words]


async def _to_json(embedded: Sequence[ServedSentence], name: str, words: int) -> bytes:
    items = []
    for i, each in enumerate(embedded):
        content = {
            "object": "words",
            "index": i,
            "words": [word.text for word in each.words],
            "offsets": _offsets(each),
            "vectors": np.ascontiguousarray(each.vectors, np.float64),
        }
        items.append(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY))
        if each.vectors.size > 10_000:
            await asyncio.sleep(0)  # other requests have their turn
    rest = orjson.dumps({"model": name, "usage": usage_of(words)})
    return b'{"object":"list","data":[' + b",".join(items) + b"]," + rest[1:]


def _to_npz(embedded: Sequence[ServedSentence]) -> bytes:
    """Return all vectors (…, N, D) with the words, their offsets and the lengths of sentences."""
    words = [word for each in embedded for word in each.words]
    longest = max((len(word.text) for word in words), default=0)
    if longest * len(words) > NPZ_CHARACTERS:
        raise ApiError(
            422,
            f"the longest word has {longest:,} characters, which is too long for npz, where all "
            f"words take the room of the longest; accept {JSON} or {ARROW}",
            param="input",
        )
    file = io.BytesIO()
    np.savez(
        file,
        vectors=np.concatenate([each.vectors for each in embedded], axis=-2),
        words=np.array([word.text for word in words], dtype=str),
        offsets=np.array([(word.start, word.end) for word in words], np.int32).reshape(-1, 2),
        lengths=np.array([len(each.words) for each in embedded], np.int32),
    )
    return file.getvalue()


def _to_arrow(embedded: Sequence[ServedSentence], name: str) -> bytes:
    """Return a table with one row per word: sentence, word, start, end and its vectors."""
    import pyarrow as pa

    words = [word for each in embedded for word in each.words]
    sentence = [i for i, each in enumerate(embedded) for _ in each.words]
    columns: dict[str, Any] = {
        "sentence": pa.array(sentence, pa.int32()),
        "word": pa.array([word.text for word in words], pa.string()),
        "start": pa.array([None if w.start < 0 else w.start for w in words], pa.int32()),
        "end": pa.array([None if w.start < 0 else w.end for w in words], pa.int32()),
    }
    vectors = np.concatenate([each.vectors for each in embedded], axis=-2)
    planes = {"vector": vectors}
    if vectors.ndim == 3:
        planes = {f"vector_{i}": plane for i, plane in enumerate(vectors)}
    for column, plane in planes.items():
        flat = pa.array(np.ascontiguousarray(plane).reshape(-1), pa.float32())
        columns[column] = pa.FixedSizeListArray.from_arrays(flat, plane.shape[-1])
    table = pa.table(columns).replace_schema_metadata({"model": name})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content
