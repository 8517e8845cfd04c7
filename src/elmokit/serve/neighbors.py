"""`POST /v1/neighbors`: the uses in an indexed corpus that are most similar to a word in a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elmokit.elmo import Elmo
from elmokit.probe.neighbors.index import Index
from elmokit.probe.neighbors.word_use import find_word
from elmokit.serve.errors import ApiError, not_found
from elmokit.serve.models import Models
from elmokit.serve.operation import (
    INTEGER,
    NUMBER,
    STRING,
    WORD,
    Answer,
    Call,
    Operation,
    array_of,
    json_answer,
    name_schema,
    object_of,
    sentence_schema,
)

MAX_K = 200
"""Largest number of neighbors that can be asked for."""


def neighbors_operation(models: Models) -> Operation:
    """Return the operation that searches the indexes."""
    request = object_of(
        {
            "input": sentence_schema(models),
            "word": {**WORD, "description": "The word of the sentence, in upper or lower case."},
            "index": name_schema(list(models.indexes), "Name of the index."),
            "occurrence": {
                "type": ["integer", "null"],
                "minimum": 1,
                "default": 1,
                "description": "Which one, if the sentence has the word several times.",
            },
            "k": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": MAX_K,
                "default": 10,
                "description": "Number of neighbors.",
            },
            "same_word": {
                "type": ["boolean", "null"],
                "default": False,
                "description": "Return only uses of the same word.",
            },
            "exact": {
                "type": ["boolean", "null"],
                "default": False,
                "description": "Compare every use, even if the index has a graph.",
            },
        },
        ("input", "word"),
    )
    use = object_of(
        {"similarity": NUMBER, "words": array_of(STRING), "position": INTEGER},
        ("similarity", "words", "position"),
    )
    form = object_of({"similarity": NUMBER, "word": STRING}, ("similarity", "word"))
    return Operation(
        method="POST",
        path="/v1/neighbors",
        name="find_neighbors",
        summary="Return the uses in a corpus that are most similar to a word in a sentence.",
        description="As `elmokit.probe.find_neighbors`. `context_free` has the words nearest by "
        "the model's character layer, which knows no context.",
        handler=_find,
        request=request,
        response=object_of(
            {
                "object": {"type": "string", "enum": ["list"]},
                "data": array_of(use),
                "context_free": array_of(form),
                "words": array_of(STRING),
                "position": INTEGER,
                "layer": {"anyOf": [STRING, INTEGER]},
                "index": STRING,
                "model": STRING,
            },
            ("object", "data", "context_free", "words", "position", "layer", "index", "model"),
        ),
        errors=(404,),
    )


async def _find(call: Call) -> Answer:
    models, body = call.models, call.body
    name = body.get("index", next(iter(models.indexes), ""))
    if name not in models.indexes:
        raise not_found("index", name, list(models.indexes), "index")
    (tokens,) = await models.split([body["input"]])
    words = [token.text for token in tokens]
    position = _find_position(words, body["word"], body.get("occurrence", 1))
    call.log.update(index=name, texts=1, words=len(words))
    number = body.get("k", 10)

    def search(elmo: Elmo, index: Index) -> dict[str, Any]:
        word = words[position]
        vector = elmo.embed([words], index.manifest["layer"])[0][position]
        neighbors = index.search(
            vector,
            number,
            word=word if body.get("same_word") else None,
            exclude=words,
            exact=bool(body.get("exact")),
        )
        characters = elmo.embed([[word]], 0)[0][0]
        return {
            "object": "list",
            "data": [
                {
                    "similarity": round(each.similarity, 6),
                    "words": list(each.words),
                    "position": each.position,
                }
                for each in neighbors
            ],
            "context_free": [
                {"word": form, "similarity": round(similarity, 6)}
                for form, similarity in index.nearest_words(characters, word, number)
            ],
            "words": words,
            "position": position,
            "layer": index.manifest["layer"],
            "index": name,
            "model": models.indexes[name],
        }

    return json_answer(await models.search(name, search))


def _find_position(words: Sequence[str], word: str, occurrence: int) -> int:
    positions = find_word(words, word)
    if not positions:
        raise ApiError(
            404,
            f"the sentence has no word {word[:100]!r}; its words are separated as in "
            "POST /v1/words",
            code="word_not_found",
            param="word",
        )
    if occurrence > len(positions):
        raise ApiError(
            404,
            f"occurrence is {occurrence}, but the sentence has the word {len(positions)} times",
            code="word_not_found",
            param="occurrence",
        )
    return positions[occurrence - 1]
