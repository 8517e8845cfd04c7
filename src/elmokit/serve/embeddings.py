"""`POST /v1/embeddings` and `GET /v1/models`, as OpenAI's clients speak them."""

from __future__ import annotations

import base64
import time
from typing import Any

import numpy as np
import orjson

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import pool_vectors
from elmokit.serve.errors import ApiError, not_found
from elmokit.serve.models import Models
from elmokit.serve.operation import (
    INTEGER,
    NUMBER,
    STRING,
    USAGE,
    Answer,
    Call,
    Operation,
    array_of,
    json_answer,
    name_schema,
    object_of,
    sentences_of,
    text_schema,
    usage_of,
)

TOKEN_IDS = (
    "input has token ids, but ELMo reads characters: send text. In LangChain: "
    "OpenAIEmbeddings(..., check_embedding_ctx_length=False)"
)


def embeddings_operation(models: Models) -> Operation:
    """Return the operation that embeds texts."""
    text = text_schema(models, "A text, which is split into words and read as one sentence.")
    request = object_of(
        {
            "input": {"anyOf": [text, array_of(text, minItems=1, maxItems=models.limits.texts)]},
            "model": name_schema(models.names, "Name of the model."),
            "encoding_format": {
                "anyOf": [{"type": "string", "enum": ["float", "base64"]}, {"type": "null"}],
                "default": "float",
                "description": "Numbers, or the bytes of little-endian float32 in base64.",
            },
            "dimensions": {
                "type": "null",
                "description": "Vectors have the size of the model; it cannot be chosen.",
            },
            "user": {"type": ["string", "null"], "description": "Ignored."},
        },
        ("input",),
    )
    item = object_of(
        {
            "object": {"type": "string", "enum": ["embedding"]},
            "index": INTEGER,
            "embedding": {"anyOf": [array_of(NUMBER), STRING]},
        },
        ("object", "index", "embedding"),
    )
    return Operation(
        method="POST",
        path="/v1/embeddings",
        name="create_embeddings",
        summary="Return one vector per text.",
        description="The mean of the contextual vectors of the words, as `Elmo.encode` returns it.",
        handler=_embed,
        check=_check,
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
        errors=(404,),
    )


def model_operations(models: Models) -> list[Operation]:
    """Return the operations that list and describe the models."""
    model = object_of(
        {
            "id": STRING,
            "object": {"type": "string", "enum": ["model"]},
            "created": INTEGER,
            "owned_by": STRING,
            "architecture": STRING,
            "dimensions": INTEGER,
            "layers": INTEGER,
            "predicts_words": {"type": "boolean"},
            "loaded": {"type": "boolean"},
        },
        ("id", "object", "created", "owned_by", "dimensions", "layers"),
    )
    started = int(time.time())

    def describe(name: str) -> dict[str, Any]:
        info = models.info[name]
        return {
            "id": name,
            "object": "model",
            "created": started,
            "owned_by": "elmokit",
            "architecture": info["architecture"],
            "dimensions": info["dim"],
            "layers": info["layers"],
            "predicts_words": info["softmax"] and info["vocabulary"] is not None,
            "loaded": name in models.loaded,
        }

    async def list_models(call: Call) -> Answer:
        return json_answer({"object": "list", "data": [describe(name) for name in models.names]})

    async def get_model(call: Call) -> Answer:
        name = call.path["model"]
        if name not in models.info:
            raise not_found("model", name, models.names)
        return json_answer(describe(name))

    return [
        Operation(
            method="GET",
            path="/v1/models",
            name="list_models",
            summary="List the models.",
            handler=list_models,
            response=object_of(
                {"object": {"type": "string", "enum": ["list"]}, "data": array_of(model)},
                ("object", "data"),
            ),
        ),
        Operation(
            method="GET",
            path="/v1/models/{model}",
            name="get_model",
            summary="Describe a model.",
            handler=get_model,
            parameters={"model": {"type": "string", "enum": models.names}},
            response=model,
            errors=(404,),
        ),
    ]


def _check(body: dict[str, Any]) -> None:
    if body.get("dimensions") is not None:
        raise ApiError(
            400,
            "dimensions cannot be chosen: vectors have the size of the model, which "
            "GET /v1/models tells; leave dimensions out",
            param="dimensions",
            code="unsupported_parameter",
        )
    first = body.get("input")
    while isinstance(first, list) and first:
        first = first[0]
        if isinstance(first, int | float) and not isinstance(first, bool):
            raise ApiError(400, TOKEN_IDS, param="input", code="token_ids")


async def _embed(call: Call) -> Answer:
    name = call.body.get("model", call.models.names[0])
    as_bytes = call.body.get("encoding_format") == "base64"

    def reduce(vectors: FloatArray) -> str | FloatArray:
        mean = pool_vectors(vectors, "mean")
        # orjson writes float64 as Python does, so that float32 can be read back bit by bit.
        return encode_base64(mean) if as_bytes else mean.astype(np.float64)

    sentences = sentences_of(call.body)
    embedded = await call.models.embed(name, sentences, "mix", reduce)
    words = sum(len(each.words) for each in embedded)
    call.log.update(model=name, texts=len(sentences), words=words)
    content = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": each.vectors}
            for i, each in enumerate(embedded)
        ],
        "model": name,
        "usage": usage_of(words),
    }
    return Answer(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY))


def encode_base64(vector: FloatArray) -> str:
    """Return the little-endian float32 of a vector in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
