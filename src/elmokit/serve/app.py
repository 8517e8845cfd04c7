"""The application: all routes of a server, as an ASGI application for any server of the kind.

    from elmokit.serve import ServeConfig, create_app

    app = create_app(ServeConfig(models={"english": "builtin"}))

Everything that can be asked is an `Operation`; the page has routes of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from elmokit.serve.embeddings import embeddings_operation, model_operations
from elmokit.serve.errors import ApiError, not_found
from elmokit.serve.gate import Gate
from elmokit.serve.health import health_operations
from elmokit.serve.metrics import ServerMetrics
from elmokit.serve.models import Models
from elmokit.serve.neighbors import neighbors_operation
from elmokit.serve.openapi import build_document
from elmokit.serve.operation import JSON, Answer, Call, Operation
from elmokit.serve.predictions import substitutes_operation, task_operations
from elmokit.serve.requests import NO_STORE, OperationApp
from elmokit.serve.schema import verify_schema
from elmokit.serve.settings import ServeConfig
from elmokit.serve.words import words_operation

CORS_SECONDS = 600
"""How long a browser may remember what it may send from another origin."""


def create_app(config: ServeConfig | None = None) -> Starlette:
    """Return the ASGI application of a server; `elmo serve` runs it with uvicorn.

    The models are checked now, and loaded at the first request that needs them.

    Args:
        config: What to serve; by default the built-in model.
    """
    config = config or ServeConfig()
    metrics = ServerMetrics()
    models = Models(config, metrics)
    operations = list_operations(models)
    document = build_document(operations, config)

    async def get_document(call: Call) -> Answer:
        return Answer(orjson.dumps(document))

    operations.append(
        Operation(
            method="GET",
            path="/openapi.json",
            name="document",
            summary="Return the OpenAPI document.",
            handler=get_document,
        )
    )
    routes: list[BaseRoute] = [_route(operation, models) for operation in operations]
    routes.append(Route("/v1/tasks/{name:path}", _unknown_task, methods=["POST"]))
    routes += _page_routes(models)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loading = None
        if config.preload:
            loading = asyncio.create_task(models.preload())
        try:
            yield
        finally:
            if loading is not None:
                loading.cancel()
            await models.close()

    middleware = [Middleware(Gate, config=config, metrics=metrics)]
    if config.cors_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=list(config.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After", "X-Request-ID"],
            max_age=CORS_SECONDS,
        )
        middleware.insert(0, cors)
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _answer_http_exception},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.models = models
    return app


def list_operations(models: Models) -> list[Operation]:
    """Return all operations that a server with these models offers."""
    operations = [
        embeddings_operation(models),
        *model_operations(models),
        words_operation(models),
        substitutes_operation(models),
        neighbors_operation(models),
        *task_operations(models),
        *health_operations(models),
    ]
    for operation in operations:
        if operation.request is not None:
            verify_schema(operation.request)
    return operations


def _route(operation: Operation, models: Models) -> Route:
    path = operation.path
    for name in operation.parameters:
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
    return Route(path, OperationApp(operation, models), methods=[operation.method])


def _page_routes(models: Models) -> list[BaseRoute]:
    """Return the routes of the page, or a few words in its place."""
    if find_spec("elmokit.serve.page_routes") is not None:
        return list(import_module("elmokit.serve.page_routes").page_routes(models))

    async def show_index(request: Request) -> Response:
        return Response("elmokit: see /openapi.json\n", media_type="text/plain")

    return [Route("/", show_index)]


async def _unknown_task(request: Request) -> Response:
    names = list(request.app.state.models.tasks)
    raise not_found("task", request.path_params["name"], names)


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    """Return 404 and 405 of the router in the shape of all other errors."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        message = "there is nothing at this path; see GET /openapi.json for what there is"
    elif error.status_code == 405:
        message = f"this path does not take {request.method[:20]}; expected {headers.get('Allow')}"
    else:
        message = str(error.detail)
    problem = ApiError(error.status_code, message)
    content = orjson.dumps(problem.to_dict())
    return Response(content, error.status_code, {**NO_STORE, **headers}, JSON)
