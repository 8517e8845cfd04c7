"""A web site on the loopback interface, with the habits and the failures of real ones."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """What a path answers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "application/octet-stream"
    etag: str | None = "content"
    """`"content"` is the checksum of the body in quotes."""
    modified: str | None = None
    ranges: bool = True
    heeds_if_range: bool = True
    length: bool = True
    """Whether Content-Length is sent."""
    cuts: list[int] = field(default_factory=list)
    """After how many bytes of the body the coming connections are cut, one after another."""
    gate: threading.Event | None = None
    """Waited for before the body is sent."""

    @property
    def tag(self) -> str | None:
        if self.etag != "content":
            return self.etag
        return '"' + hashlib.sha256(self.body).hexdigest()[:16] + '"'


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    body: bytes = b""
    sent: int = 0
    """How many bytes of a body the site sent."""


class Site:
    """Pages by path, and a log of who asked for what."""

    def __init__(self, port: int) -> None:
        self.pages: dict[str, Page] = {}
        self.requests: list[Request] = []
        self.address = f"http://127.0.0.1:{port}"

    def put(self, path: str, body: bytes = b"", **more: object) -> str:
        """Serve a page; returns its address."""
        self.pages[path] = Page(body, **more)  # type: ignore[arg-type]
        return self.address + path

    def asked(self, path: str) -> list[Request]:
        return [r for r in self.requests if r.path.partition("?")[0] == path]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        request = Request(
            handler.command, handler.path, {k.title(): v for k, v in handler.headers.items()}
        )
        request.body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        self.requests.append(request)
        page = self.pages.get(handler.path.partition("?")[0], Page(b"nothing here", 404))
        status, body = page.status, page.body
        asked = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        headers = {"Content-Type": page.kind, **page.headers}
        if page.tag:
            headers["ETag"] = page.tag
        if page.modified:
            headers["Last-Modified"] = page.modified
        fresh = request.headers.get("If-Range") in (None, page.tag, page.modified)
        if asked and page.ranges and status == 200 and (fresh or not page.heeds_if_range):
            start = int(asked[1])
            if start >= len(body):
                status, body = 416, b""
            else:
                status, body = 206, page.body[start:]
                headers["Content-Range"] = f"bytes {start}-{len(page.body) - 1}/{len(page.body)}"
        request.status = status
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if page.length:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if request.method == "HEAD":
            return
        if page.gate:
            page.gate.wait(10)
        cut = page.cuts.pop(0) if page.cuts and status in (200, 206) else None
        request.sent = len(body[:cut])  # before the client can see the end of it
        handler.wfile.write(body[:cut])


@contextmanager
def serving() -> Iterator[Site]:
    """A site as long as the context lasts; every connection serves one request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.answer(self)

        do_HEAD = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # clients hang up on purpose here

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
