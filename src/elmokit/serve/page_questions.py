"""What the page's scripts ask the server: operations below `/page/`, for the page alone.

They are checked and bounded like all others, and may change with the page; programs use `/v1/…`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import elmokit
from elmokit.bilm.mix import Mix
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.neighbors.index import Index
from elmokit.probe.uses.collect import collect_uses
from elmokit.serve.array_message import MEDIA_TYPE, pack_arrays
from elmokit.serve.corpus_search import find_corpus_neighbors, spelled_words
from elmokit.serve.errors import ApiError
from elmokit.serve.guesses import guess_word
from elmokit.serve.models import Models
from elmokit.serve.network_trace import trace_word
from elmokit.serve.operation import (
    NUMBER,
    STRING,
    Answer,
    Call,
    Handler,
    Operation,
    array_of,
    json_answer,
    object_of,
    text_schema,
)
from elmokit.serve.schema import Schema
from elmokit.serve.sentences import sample_sentences, sample_uses

MOST_WORDS = 200
"""Words of a sentence at most: more cannot be shown."""
MOST_USES = 500
"""Sentences with one word at most: a plane with more shows less."""
MOST_CHARACTERS = 10_000
"""Characters of a sentence at most."""
GUESSES = 12
"""Number of likeliest words."""

_WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
_POSITION: Schema = {"type": "integer", "minimum": 0}
_WORDS: Schema = array_of(_WORD, minItems=1, maxItems=MOST_WORDS)


def page_operations(models: Models) -> list[Operation]:
    """Return all questions that the page asks.

    Args:
        models: The models, task models and indexes of the server.
    """
    # Only names that are served are enumerated in a schema, so that others get a 404.
    model: Schema = {"type": "string", "enum": models.names}
    place = {"model": model, "words": _WORDS, "position": _POSITION}
    sentence: Schema = {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS}
    texts = array_of(text_schema(models), minItems=1, maxItems=2)
    return [
        Operation(
            method="GET",
            path="/page/info",
            name="page_info",
            summary="Return what the page needs to know at its start.",
            handler=_information,
        ),
        _question("layers", _layers, {"model": model, "sentence": sentence}, 2),
        _question(
            "uses",
            _uses,
            {"model": model, "word": _WORD, "sentences": array_of(sentence, maxItems=MOST_USES)},
            3,
        ),
        _question("guess", _guess, {**place, "others": array_of(_WORD, maxItems=20)}, 3),
        _question(
            "neighbors",
            _neighbors,
            {
                **place,
                "mix": array_of(NUMBER, maxItems=100),
                "index": STRING,
                "number": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            3,
        ),
        _question("trace", _trace, place, 3),
        _question("tasks", _predict, {"task": STRING, "texts": texts}, 2),
    ]


def _question(
    name: str, handler: Handler, properties: Mapping[str, Schema], required: int
) -> Operation:
    return Operation(
        method="POST",
        path=f"/page/{name}",
        name=f"page_{name}",
        summary=f"Answer the page's question about {name}.",
        handler=handler,
        request=object_of(properties, tuple(properties)[:required]),
    )


async def _information(call: Call) -> Answer:
    models = call.models
    return json_answer(
        {
            "version": elmokit.__version__,
            "models": [describe_model(name, models.info[name]) for name in models.names],
            "tasks": [
                {"name": name, "task": task, "arguments": list(arguments)}
                for name, (task, arguments) in models.tasks.items()
            ],
            "indexes": [{"name": name, "model": model} for name, model in models.indexes.items()],
            **describe_samples(),
        }
    )


def describe_model(name: str, info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a model: nothing that names a path of the machine.

    Args:
        name: Name of the model.
        info: What `inspect_model` returned for it.
    """
    mix = info["mix"]
    return {
        "name": name,
        "layers": info["layers"],
        "dim": info["dim"],
        "parameters": info["parameters"],
        "mix": None if mix is None else list(mix["scalars"]),
    }


def describe_samples() -> dict[str, Any]:
    """Return the uses that ship with the page, by word, and the size of its corpus."""
    uses = {word: [[each.sense, each.text] for each in own] for word, own in sample_uses().items()}
    return {"samples": uses, "corpus": len(sample_sentences())}


async def _layers(call: Call) -> Answer:
    """Answer with the words of a sentence, and their vectors in all layers (L+1, T, D)."""
    ((tokens, vectors),) = await call.models.embed(
        call.body["model"], [call.body["sentence"]], "all"
    )
    if len(tokens) > MOST_WORDS:
        raise ApiError(
            422,
            f"the sentence has {len(tokens):,} words; the page shows at most {MOST_WORDS}: type a "
            "shorter one, or use `elmo embed`",
        )
    words = [token.text for token in tokens]
    return Answer(pack_arrays({"words": words}, {"layers": vectors}), MEDIA_TYPE)


async def _uses(call: Call) -> Answer:
    """Answer with the uses of a word in sentences, and its vectors in all layers (L+1, N, D)."""
    word, sentences = call.body["word"], call.body["sentences"]

    def collect(elmo: Elmo) -> bytes:
        # A sentence is known by its number, which is given as its sense.
        numbers = [str(i) for i in range(len(sentences))]
        found = collect_uses(elmo, word, sentences, numbers, MOST_USES)
        uses = [
            {"words": list(use.words), "position": use.position, "sentence": int(use.sense)}
            for use in found.uses
        ]
        fields = {"uses": uses, "without": found.without_word}
        return pack_arrays(fields, {"layers": found.layers_LND})

    return Answer(await call.models.run(call.body["model"], collect), MEDIA_TYPE)


async def _guess(call: Call) -> Answer:
    """Answer with what the model expects at a place."""
    name, words, position = call.body["model"], call.body["words"], call.body["position"]
    others = call.body.get("others", [])
    info = call.models.model_info(name)
    if not info["softmax"] or info["vocabulary"] is None:
        raise ApiError(
            422,
            f"the model {name} cannot guess words: its files lack the softmax, as those of most "
            "published models do; choose another model, such as builtin",
        )
    return json_answer(
        await call.models.run(name, lambda elmo: guess_word(elmo, words, position, others, GUESSES))
    )


async def _neighbors(call: Call) -> Answer:
    """Answer with neighbors of a word in the page's corpus or an index, and by its characters."""
    words, position = call.body["words"], call.body["position"]
    number = call.body.get("number", 10)
    if "index" not in call.body:
        mix = Mix(tuple(call.body.get("mix", [])) or (0.0,) * _layer_count(call))
        answer = await call.models.run(
            call.body["model"],
            lambda elmo: find_corpus_neighbors(elmo, words, position, mix, number),
        )
        return json_answer(answer)

    def search(elmo: Elmo, index: Index) -> dict[str, Any]:
        if position >= len(words):
            raise InputError(f"position is {position}; expected 0 to {len(words) - 1}")
        vector_LD = elmo.embed([words], "all")[0][:, position]
        layer = index.manifest["layer"]
        found = index.search(elmo.layer_selector(layer)(vector_LD), number, exclude=words)
        spelled = spelled_words(elmo)
        return {
            "context": [
                {"words": list(use.words), "position": use.position, "similarity": use.similarity}
                for use in found
            ],
            "uses": len(index),
            "sentences": index.manifest["sentences"],
            "layer": layer,
            "static": spelled.search(words[position], vector_LD[0], number),
            "static_words": len(spelled.words),
        }

    return json_answer(await call.models.search(call.body["index"], search))


def _layer_count(call: Call) -> int:
    return int(call.models.model_info(call.body["model"])["layers"])


async def _trace(call: Call) -> Answer:
    """Answer with every number on the way of a word through the network."""
    words, position = call.body["words"], call.body["position"]

    def trace(elmo: Elmo) -> bytes:
        return pack_arrays(*trace_word(elmo, words, position))

    return Answer(await call.models.run(call.body["model"], trace), MEDIA_TYPE)


async def _predict(call: Call) -> Answer:
    """Answer with the predictions of a task model."""
    name, texts = call.body["task"], call.body["texts"]
    if len(texts) == 1:
        records = await call.models.predict_text(name, texts[0])
    else:
        records = await call.models.predict(name, [texts])
    return json_answer({"records": records})
