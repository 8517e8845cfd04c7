"""The OpenAPI document, made from the same operations and schemas that answer requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import elmokit
from elmokit.serve.operation import ERROR, JSON, Operation
from elmokit.serve.settings import ServeConfig

REASONS = {
    400: "The request cannot be understood, or asks for what does not exist.",
    401: "The API key is missing or wrong.",
    403: "The `Host` header names another host.",
    404: "A model, an index or a word of that name does not exist.",
    406: "None of the content types that are accepted can be sent.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not JSON, by its `Content-Type`.",
    422: "The request has too many texts or words, or texts that cannot be used.",
    429: "Too many requests are under way; try again after `Retry-After` seconds.",
    500: "The server failed.",
    503: "The request took too long, or a model cannot be loaded.",
}
"""What the statuses of errors mean."""
BODY_ERRORS = (400, 408, 413, 415, 422, 429, 503)
"""Errors of operations that read a body and compute."""


def build_document(operations: Iterable[Operation], config: ServeConfig) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a server."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _describe(operation, config)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "elmokit",
            "version": elmokit.__version__,
            "description": "Contextual word vectors over HTTP. Errors have the shape of OpenAI's.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": {"Error": ERROR}},
    }
    if config.api_keys:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _describe(operation: Operation, config: ServeConfig) -> dict[str, Any]:
    statuses = {500, *operation.errors}
    if operation.request is not None:
        statuses.update(BODY_ERRORS)
    if config.api_keys and not operation.open:
        statuses.add(401)
    if config.hosts:
        statuses.add(403)
    content = {JSON: {"schema": operation.response}} if operation.response else {}
    content |= {kind: {"schema": schema} for kind, schema in operation.content.items()}
    responses: dict[str, Any] = {"200": {"description": "Success.", "content": content}}
    for status in sorted(statuses):
        responses[str(status)] = _error_response(status)
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": responses,
    }
    if operation.description:
        described["description"] = operation.description
    if operation.open:
        described["security"] = []
    if operation.parameters:
        described["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": schema}
            for name, schema in operation.parameters.items()
        ]
    if operation.request is not None:
        body = {"required": True, "content": {JSON: {"schema": operation.request}}}
        described["requestBody"] = body
    return described


def _error_response(status: int) -> dict[str, Any]:
    response: dict[str, Any] = {
        "description": REASONS[status],
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    if status == 429:
        seconds = {"type": "integer", "minimum": 1}
        response["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "schema": seconds, "required": True}
        }
    return response
