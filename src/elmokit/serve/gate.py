"""What happens to every request: who may ask, what is counted and logged, how errors look.

No answer has a path of the machine or a traceback: an unexpected exception is logged with the id
of the request, and the client gets that id.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmokit.serve.errors import ApiError
from elmokit.serve.logs import log_event
from elmokit.serve.metrics import ServerMetrics
from elmokit.serve.requests import ClientGone, get_header, send_error
from elmokit.serve.settings import ServeConfig

OPEN_PATHS = ("/healthz", "/readyz")
"""Paths that are answered without a key, for those who watch the server."""
API_PREFIXES = ("/v1/", "/metrics", "/openapi.json", *OPEN_PATHS)
"""Paths for programs; everything else is for browsers."""
COMMON_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
PAGE_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        b"img-src 'self' data: blob:; connect-src 'self'; manifest-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Gate:
    """The outermost ASGI application: every request enters here, every answer leaves here."""

    def __init__(self, app: ASGIApp, config: ServeConfig, metrics: ServerMetrics) -> None:
        """Put a gate before an application.

        Args:
            app: The application.
            config: Which keys and hosts are accepted.
            metrics: Where to count.
        """
        self._app = app
        self._keys = [key.encode() for key in config.api_keys]
        self._hosts = frozenset(host.lower() for host in config.hosts)
        self._cors = bool(config.cors_origins)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with an error."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = secrets.token_hex(8)
        state: dict[str, Any] = scope.setdefault("state", {})
        log: dict[str, Any] = {}
        state["log"], state["request_id"] = log, request_id
        programmatic = scope["path"].startswith(API_PREFIXES)
        added = [*COMMON_HEADERS, (b"x-request-id", request_id.encode())]
        if self._cors and programmatic:
            added.remove(COMMON_HEADERS[2])
        if not programmatic:
            added += PAGE_HEADERS
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= 400 and _has_unread_body(scope):
                    added.append((b"connection", b"close"))
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in added if pair[0] not in present),
                ]
            await send(message)

        try:
            self._check_host(scope)
            self._check_key(scope, programmatic)
            await self._app(scope, receive, send_with_headers)
        except ApiError as error:
            if not status:
                await send_error(send_with_headers, error)
        except ClientGone:
            status = 499  # nginx's number for a client that did not wait; nothing is sent
        except Exception as error:
            log_event("exception", level=logging.ERROR, error=error, id=request_id)
            if status:
                raise
            problem = ApiError(
                500,
                f"the server failed; its log has more under the id {request_id}",
                code="internal_error",
            )
            await send_error(send_with_headers, problem)
        finally:
            seconds = time.perf_counter() - started
            route = _route(scope, status, programmatic)
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.requests.add(1, route=route, method=method, status=str(status))
            self._metrics.seconds.observe(seconds, route=route)
            log_event(
                "request",
                id=request_id,
                method=method,
                route=route,
                status=status,
                ms=round(1000 * seconds, 2),
                **log,
            )

    def _check_host(self, scope: Scope) -> None:
        """Refuse names that are not ours: a page elsewhere may make its own name point here."""
        if not self._hosts:
            return
        host = get_header(scope, b"host").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name.strip("[]") not in self._hosts:
            raise ApiError(
                403,
                "the Host header names another host; use the address that the server printed, or "
                "start it with --allow-host NAME",
                code="host_not_allowed",
            )

    def _check_key(self, scope: Scope, programmatic: bool) -> None:
        if not self._keys or scope["path"] in OPEN_PATHS:
            return
        given = _given_key(get_header(scope, b"authorization"))
        # All keys are compared, each in constant time, so that the time says nothing.
        if not any([hmac.compare_digest(given, key) for key in self._keys]):
            found = "is wrong" if given else "is missing"
            raise ApiError(
                401,
                f"the API key {found}; send it as `Authorization: Bearer KEY`",
                code="invalid_api_key",
                headers={
                    "WWW-Authenticate": "Bearer"
                    if programmatic
                    else 'Basic realm="elmo", charset="UTF-8"'
                },
            )


METHODS = frozenset("GET HEAD POST PUT PATCH DELETE OPTIONS".split())


def _given_key(header: str) -> bytes:
    """Return the key of an `Authorization` header; for browsers, the password of Basic."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode("latin-1")
    if scheme.lower() == "basic":
        try:
            return b64decode(value.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return b""
    return b""


def _has_unread_body(scope: Scope) -> bool:
    if scope["state"].get("body_read"):
        return False
    length = get_header(scope, b"content-length")
    return length not in ("", "0") or bool(get_header(scope, b"transfer-encoding"))


def _route(scope: Scope, status: int, programmatic: bool) -> str:
    """Return the pattern of the path, such as `/v1/models/{model}`, which has no text in it."""
    route: str | None = scope["state"].get("route")
    return route or ("other" if programmatic or status >= 400 else "/page")


def loopback_hosts(extra: Sequence[str] = ()) -> list[str]:
    """Return the names under which a server on the loopback interface is reached."""
    return ["localhost", "127.0.0.1", "::1", *extra]
