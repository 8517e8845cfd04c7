"""An operation of the server: what it takes, what it does, what it answers.

The routes, the checks of requests and the OpenAPI document are all made from these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from elmokit.serve.models import Models
from elmokit.serve.schema import Schema

JSON = "application/json"
"""Content type of requests, and of most answers."""


@dataclass
class Call:
    """A request whose body has been checked."""

    models: Models
    body: dict[str, Any]
    """The body; fields that are null are left out."""
    path: Mapping[str, str]
    """Parameters in the path."""
    accept: str
    """The `Accept` header."""
    log: dict[str, Any] = field(default_factory=dict)
    """Numbers and names for the log; never text."""


@dataclass(frozen=True)
class Answer:
    """A successful answer."""

    content: bytes
    content_type: str = JSON


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    """As in OpenAPI, such as `/v1/models/{model}`."""
    name: str
    """Unique name, `operationId` in OpenAPI."""
    summary: str
    handler: Handler
    description: str = ""
    request: Schema | None = None
    """Schema of the body; None if there is none."""
    response: Schema = field(default_factory=dict)
    """Schema of a successful JSON answer."""
    content: Mapping[str, Schema] = field(default_factory=dict)
    """Further content types of a successful answer, with their schemas."""
    parameters: Mapping[str, Schema] = field(default_factory=dict)
    """Schemas of the parameters in the path."""
    errors: tuple[int, ...] = ()
    """Statuses of errors that only some operations have."""
    check: Callable[[dict[str, Any]], None] = lambda body: None
    """Raises `ApiError` for what deserves a better message than a schema gives; called first."""
    open: bool = False
    """Whether it is answered without an API key."""


def json_answer(content: Any) -> Answer:
    """Return an answer with JSON; floats keep all their bits."""
    return Answer(orjson.dumps(content))


# -- parts of schemas ------------------------------------------------------------------------------


def object_of(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def array_of(items: Schema, **limits: Any) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": items, **limits}


HAS_WORDS = (
    r"[^\s\u0000-\u001f\u007f-\u009f\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb]"
)
"""Pattern of a text in which `text.tokenize` finds a word: a character that can be seen."""
STRING: Schema = {"type": "string"}
WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 500}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
USAGE: Schema = object_of(
    {"prompt_tokens": INTEGER, "total_tokens": INTEGER}, ("prompt_tokens", "total_tokens")
)
"""Numbers of words, under the names that OpenAI's clients know."""
ERROR: Schema = object_of(
    {
        "error": object_of(
            {
                "message": STRING,
                "type": STRING,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            ("message", "type", "param", "code"),
        )
    },
    ("error",),
)
"""The body of every error."""


def text_schema(models: Models, description: str = "A text.") -> dict[str, Any]:
    """Return the schema of a text."""
    most = models.limits.text_characters
    return {"type": "string", "minLength": 1, "maxLength": most, "description": description}


def sentences_schema(models: Models) -> dict[str, Any]:
    """Return the schema of one sentence, or several, as text or as words."""
    sentence = sentence_schema(models)
    several = array_of(sentence, minItems=1, maxItems=models.limits.sentences)
    return {"anyOf": [sentence["anyOf"][0], several]}


def sentence_schema(models: Models) -> dict[str, Any]:
    """Return the schema of one sentence, as text or as words."""
    limits = models.limits
    text = text_schema(models, "A sentence, which is split into words.")
    words = array_of(
        WORD, minItems=1, maxItems=limits.sentence_words, description="The words of a sentence."
    )
    return {"anyOf": [text | {"maxLength": limits.sentence_characters}, words]}


def name_schema(names: list[str], description: str) -> dict[str, Any]:
    """Return the schema of an optional name, of which the first is the default."""
    if not names:
        return {"type": ["string", "null"], "description": description}
    return {
        "anyOf": [{"type": "string", "enum": names}, {"type": "null"}],
        "description": description,
        "default": names[0],
    }


def sentences_of(body: dict[str, Any]) -> list[Any]:
    """Return the sentences of a request as a list."""
    given = body["input"]
    return [given] if isinstance(given, str) else list(given)


def usage_of(words: int) -> dict[str, int]:
    """Return the usage: every word counts as a token."""
    return {"prompt_tokens": words, "total_tokens": words}
