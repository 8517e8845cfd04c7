"""From an HTTP request to a checked body, and from an answer to HTTP.

Each operation becomes one ASGI application. It reads the body within the limits, checks it, lets
the operation work until its time is over or the client is gone, and sends the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import orjson
from starlette.types import Message, Receive, Scope, Send

from elmokit.errors import InputError
from elmokit.serve.errors import ApiError, not_found
from elmokit.serve.models import Models
from elmokit.serve.operation import JSON, Answer, Call, Operation
from elmokit.serve.schema import LIMITS, SchemaMismatch, check_value
from elmokit.serve.settings import ServerLimits

DISCARD_SECONDS = 2.0
"""How long the rest of a body that is too large is read, so that the client sees the answer."""
DISCARD_TIMES = 8
"""How many times the limit is read and discarded at most."""


class ClientGone(Exception):
    """The client has closed the connection; there is nobody to answer."""


class OperationApp:
    """The ASGI application of one operation."""

    def __init__(self, operation: Operation, models: Models) -> None:
        """Prepare to answer requests.

        Args:
            operation: What to do.
            models: The models to do it with.
        """
        self.operation = operation
        self._models = models

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; errors are raised as `ApiError`."""
        operation, limits = self.operation, self._models.limits
        state = scope.setdefault("state", {})
        state["route"] = operation.path
        body: dict[str, Any] = {}
        if operation.request is not None:
            content = await read_body(scope, receive, limits)
            state["body_read"] = True
            body = self._check(parse_json(content))
        call = Call(
            models=self._models,
            body=body,
            path=scope.get("path_params", {}),
            accept=get_header(scope, b"accept"),
            log=state.setdefault("log", {}),
        )
        if operation.request is None:
            answer = await operation.handler(call)
        else:
            answer = await self._work(operation.handler(call), receive)
        await send_answer(send, answer)

    def _check(self, body: Any) -> dict[str, Any]:
        """Return the body without fields that are null, or raise the error that says why not."""
        assert self.operation.request is not None
        if isinstance(body, dict):
            self.operation.check(body)
        try:
            checked = check_value(body, self.operation.request)
        except SchemaMismatch as problem:
            if problem.keyword == "enum" and problem.path in ("model", "index"):
                names = self._models.names
                if problem.path == "index":
                    names = list(self._models.indexes)
                raise not_found(problem.path, body[problem.path], names, problem.path) from None
            raise ApiError(
                422 if problem.keyword in LIMITS else 400,
                str(problem),
                param=problem.path or None,
                code="too_large" if problem.keyword in LIMITS else None,
            ) from None
        return {name: value for name, value in checked.items() if value is not None}

    async def _work(self, work: Awaitable[Answer], receive: Receive) -> Answer:
        """Return the answer, unless it takes too long or the client goes away."""
        seconds = self._models.limits.request_seconds
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            done, _ = await asyncio.wait(
                {task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if task in done:
                return task.result()
            if gone in done:
                raise ClientGone
            raise ApiError(
                503,
                f"the request took longer than {seconds:g} s and was given up; send fewer texts, "
                "or try again later",
                code="timeout",
                headers={"Retry-After": str(self._models.retry_seconds)},
            )
        except InputError as error:
            raise ApiError(422, _without_paths(error), code="unusable_input") from error
        finally:
            for each in (task, gone):
                each.cancel()


async def read_body(scope: Scope, receive: Receive, limits: ServerLimits) -> bytes:
    """Return the body of a request, or raise the error that says why it is refused."""
    content_type = get_header(scope, b"content-type").partition(";")[0].strip().lower()
    if content_type != JSON:
        raise ApiError(
            415,
            f"the Content-Type is {content_type[:100] or 'missing'}; expected {JSON}",
            headers={"Connection": "close"},
        )
    if get_header(scope, b"content-encoding").strip().lower() not in ("", "identity"):
        raise ApiError(
            415,
            "the body is compressed; send it as it is, without Content-Encoding",
            headers={"Connection": "close"},
        )
    length = get_header(scope, b"content-length")
    most = limits.body_bytes
    if length.isdecimal() and int(length[:20]) > most * DISCARD_TIMES:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in _parts(receive):
                size += len(part)
                if size > most:
                    break
                parts.append(part)
    except TimeoutError:
        raise ApiError(
            408,
            f"the body did not arrive within {limits.body_seconds:g} s",
            headers={"Connection": "close"},
        ) from None
    if size > most:
        await _discard(receive, most * (DISCARD_TIMES - 1))
        raise _too_large(most)
    return b"".join(parts)


def parse_json(content: bytes) -> Any:
    """Return the value of a JSON text, or raise the error 400."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ApiError(400, f"the body is not JSON ({error.msg} at {where})") from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply") from None


async def send_answer(send: Send, answer: Answer, status: int = 200) -> None:
    """Send an answer whose content is complete."""
    await send_response(
        send, status, answer.content, {"Content-Type": answer.content_type, **NO_STORE}
    )


NO_STORE = {"Cache-Control": "no-store"}


async def send_response(send: Send, status: int, content: bytes, headers: dict[str, str]) -> None:
    """Send a response with these headers and its length."""
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    raw.append((b"content-length", str(len(content)).encode()))
    start: Message = {"type": "http.response.start", "status": status, "headers": raw}
    await send(start)
    await send({"type": "http.response.body", "body": content})


async def send_error(send: Send, error: ApiError) -> None:
    """Send an error in the shape of OpenAI's."""
    content = orjson.dumps(error.to_dict())
    headers = {"Content-Type": JSON, **NO_STORE, **error.headers}
    await send_response(send, error.status, content, headers)


def get_header(scope: Scope, name: bytes) -> str:
    """Return a header of a request; empty if there is none, joined by commas if several."""
    values = [value for key, value in scope["headers"] if key == name]
    return b",".join(values).decode("latin-1")


async def _parts(receive: Receive) -> Any:
    """Yield the parts of a body."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _discard(receive: Receive, most: int) -> None:
    """Read and forget the rest of a body, for a moment."""
    try:
        async with asyncio.timeout(DISCARD_SECONDS):
            async for part in _parts(receive):
                most -= len(part)
                if most < 0:
                    return
    except (TimeoutError, ClientGone):
        return


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_large(most: int) -> ApiError:
    return ApiError(
        413,
        f"the body is larger than {most:,} bytes; send the texts in several requests",
        code="body_too_large",
        headers={"Connection": "close"},
    )


def _without_paths(error: InputError) -> str:
    """Return the message of an error about an input, unless it names a file of this machine."""
    message = str(error)
    return "the input cannot be used" if "/" in message or "\\" in message else message
