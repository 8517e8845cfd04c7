"""The page at `/`: its files, and what its scripts ask for.

The files are served as they are, with an `ETag`, so that a browser asks again and gets 304. The
questions of the scripts are in `page_questions.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from elmokit.serve.errors import ApiError
from elmokit.serve.models import Models
from elmokit.serve.page_questions import page_operations
from elmokit.serve.requests import OperationApp
from elmokit.serve.schema import verify_schema

PAGE = Path(__file__).parent / "page"
"""Directory of the page's files."""
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
"""Types of the page's files, by suffix; independent of what the machine's own table says."""


def page_routes(models: Models) -> list[Route]:
    """Return the routes of the page.

    Args:
        models: The models, task models and indexes of the server.
    """
    operations = page_operations(models)
    for operation in operations:
        if operation.request is not None:
            verify_schema(operation.request)
    return [
        Route("/", _send_file, methods=["GET"]),
        *(
            Route(operation.path, OperationApp(operation, models), methods=[operation.method])
            for operation in operations
        ),
        Route("/page/{path:path}", _send_file, methods=["GET"]),
    ]


@dataclass(frozen=True)
class PageFile:
    """A file of the page in memory."""

    content: bytes
    media_type: str
    tag: str
    """Its `ETag`: a hash of the content."""


@cache
def page_files() -> dict[str, PageFile]:
    """Return the files of the page by their path below `/page/`; `index.html` is at `/`."""
    files = {}
    for path in sorted(PAGE.rglob("*")):
        if path.suffix in MEDIA_TYPES and path.is_file():
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            name = path.relative_to(PAGE).as_posix()
            files[name] = PageFile(content, MEDIA_TYPES[path.suffix], tag)
    return files


async def _send_file(request: Request) -> Response:
    found = page_files().get(request.path_params.get("path", INDEX))
    if found is None:
        raise ApiError(404, "the page has no such file; it is at /")
    headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media_type)
