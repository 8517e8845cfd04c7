"""`POST /v1/substitutes` and `POST /v1/tasks/{name}`: what models predict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmokit.lm.substitution import SubstituteRanking, substitutes
from elmokit.serve.errors import ApiError
from elmokit.serve.models import Models
from elmokit.serve.operation import (
    HAS_WORDS,
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
    sentences_schema,
    text_schema,
    usage_of,
)
from elmokit.serve.schema import Schema

MAX_K = 1000
"""Largest number of words per position that can be asked for."""
MAX_POSITIONS = 5000
"""Largest number of words whose positions are predicted in one request."""


def substitutes_operation(models: Models) -> Operation:
    """Return the operation that predicts the words at each position."""
    sizes = {name: _vocabulary_size(models, name) for name in models.names}
    able = [name for name, size in sizes.items() if size]
    most = min([MAX_K, *(sizes[name] for name in able)])
    request = object_of(
        {
            "input": sentences_schema(models),
            "model": name_schema(able, "Name of a model that can predict words."),
            "k": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": most,
                "default": 10,
                "description": "Words per position and direction.",
            },
        },
        ("input",),
    )
    ranking = object_of(
        {
            "rank": INTEGER,
            "probability": NUMBER,
            "best": array_of(
                object_of({"word": STRING, "probability": NUMBER}, ("word", "probability"))
            ),
        },
        ("rank", "probability", "best"),
    )
    position = object_of(
        {
            "word": STRING,
            "known": STRING,
            "start": {"type": ["integer", "null"]},
            "end": {"type": ["integer", "null"]},
            "forward": ranking,
            "backward": ranking,
            "both": ranking,
        },
        ("word", "known", "forward", "backward", "both"),
    )
    item = object_of({"index": INTEGER, "positions": array_of(position)}, ("index", "positions"))

    async def predict(call: Call) -> Answer:
        name = call.body.get("model", able[0] if able else models.names[0])
        if name not in able:
            raise ApiError(
                404,
                f"the model {name} has no softmax with a vocabulary, so it cannot predict words; "
                f"models that can: {', '.join(able) or 'none'}",
                code="model_not_found",
                param="model",
            )
        sentences = await models.split(sentences_of(call.body))
        words = sum(map(len, sentences))
        call.log.update(model=name, texts=len(sentences), words=words)
        if words > MAX_POSITIONS:
            raise ApiError(
                422,
                f"the texts have {words:,} words; expected at most {MAX_POSITIONS:,} per request",
                code="too_many_words",
                param="input",
            )
        given = [[token.text for token in sentence] for sentence in sentences]
        k = call.body.get("k", min(10, most))
        predicted = await models.run(name, lambda elmo: substitutes(elmo, given, k))
        data = [
            {
                "index": i,
                "positions": [
                    {
                        "word": each.word,
                        "known": each.known,
                        "start": None if token.start < 0 else token.start,
                        "end": None if token.start < 0 else token.end,
                        "forward": _ranking(each.forward),
                        "backward": _ranking(each.backward),
                        "both": _ranking(each.both),
                    }
                    for token, each in zip(tokens, positions, strict=True)
                ],
            }
            for i, (tokens, positions) in enumerate(zip(sentences, predicted, strict=True))
        ]
        usage = usage_of(words)
        return json_answer({"object": "list", "data": data, "model": name, "usage": usage})

    return Operation(
        method="POST",
        path="/v1/substitutes",
        name="predict_words",
        summary="Return the likeliest words at each position of sentences.",
        description="As `elmokit.lm.substitutes`: `forward` sees the words before the position, "
        "`backward` those after it, `both` is their normalized product. Rank and probability are "
        "those of the word in the sentence.",
        handler=predict,
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


def task_operations(models: Models) -> list[Operation]:
    """Return one operation per task model, with a path of its own."""
    return [_task_operation(models, name) for name in models.tasks]


def _task_operation(models: Models, name: str) -> Operation:
    task, arguments = models.tasks[name]
    example = object_of(
        {
            each: text_schema(models, f"The {each}, with at least one word.")
            | {"pattern": HAS_WORDS}
            for each in arguments
        },
        arguments,
    )
    alternatives: list[Schema] = [
        example,
        object_of(
            {"inputs": array_of(example, minItems=1, maxItems=models.limits.sentences)},
            ("inputs",),
        ),
    ]
    running = len(arguments) == 1
    if running and arguments != ("text",):
        text = text_schema(models, "Running text, which is split into sentences.")
        alternatives.append(object_of({"text": text}, ("text",)))

    async def predict(call: Call) -> Answer:
        body: Mapping[str, Any] = call.body
        if "inputs" in body:
            records = await models.predict(
                name, [tuple(each[a] for a in arguments) for each in body["inputs"]]
            )
        elif running and "text" in body:
            records = await models.predict_text(name, body["text"])
        else:
            records = await models.predict(name, [tuple(body[each] for each in arguments)])
        call.log.update(task=name, texts=len(records))
        return json_answer({"object": "list", "data": records, "task": task, "model": name})

    return Operation(
        method="POST",
        path=f"/v1/tasks/{name}",
        name=f"predict_{name}",
        summary=f"Return predictions of the task model {name} ({task}).",
        description="As `elmo task predict --json`: one record per example, or per sentence of "
        "`text`.",
        handler=predict,
        request={"anyOf": alternatives},
        response=object_of(
            {
                "object": {"type": "string", "enum": ["list"]},
                "data": array_of({"type": "object"}),
                "task": STRING,
                "model": STRING,
            },
            ("object", "data", "task", "model"),
        ),
    )


def _vocabulary_size(models: Models, name: str) -> int:
    info = models.info[name]
    return (info["vocabulary"] or 0) if info["softmax"] else 0


def _ranking(ranking: SubstituteRanking) -> dict[str, Any]:
    best = [{"word": word, "probability": p} for word, p in ranking.best]
    return {"rank": ranking.rank, "probability": ranking.probability, "best": best}
