"""Errors as answers: a status and a message in the shape of OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
"""Types of errors by status; others are `invalid_request_error`, or `server_error` from 500 on."""


class ApiError(Exception):
    """An error that is sent to the client as it is, so it names no path and nothing private."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Make an error.

        Args:
            status: HTTP status.
            message: What was found, what was expected, what to do.
            code: A name that programs can compare, such as `model_not_found`.
            param: Field of the request that is wrong.
            headers: Further headers of the answer, such as `Retry-After`.
        """
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the body of the answer."""
        default = "server_error" if self.status >= 500 else "invalid_request_error"
        return {
            "error": {
                "message": self.message,
                "type": TYPES.get(self.status, default),
                "param": self.param,
                "code": self.code,
            }
        }


def not_found(kind: str, name: str, available: list[str], param: str | None = None) -> ApiError:
    """Return the 404 for a name that is not served.

    Args:
        kind: `"model"`, `"task"` or `"index"`.
        name: The name that was asked for.
        available: The names that are served.
        param: Field of the request that has the name.
    """
    shown = name if len(name) <= 100 else name[:100] + "…"
    plural = {"index": "indexes"}.get(kind, f"{kind}s")
    message = f"the {kind} {shown!r} does not exist; available: {', '.join(available)}"
    if not available:
        message = f"this server has no {plural}; start it with --{kind} NAME=DIR"
    return ApiError(
        404,
        message,
        code=f"{kind}_not_found",
        param=param,
    )
