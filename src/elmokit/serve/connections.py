"""Connections that cannot be held open: slow heads, unread answers and idle clients are cut off.

uvicorn closes connections that are idle between two requests, and nothing else. The time for a body
is kept by the application, which can answer; what happens before a request is complete, and after
its answer, is kept here.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from elmokit.serve.settings import ServerLimits

HEAD_BYTES = 64 << 10
"""Largest size of the head of a request: its address and its headers."""
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
HEAD_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n"
_END = b"content-length: 0\r\nconnection: close\r\n\r\n"


def bounded_protocol(limits: ServerLimits) -> type[asyncio.Protocol]:
    """Return a protocol for uvicorn whose connections keep to the limits."""

    class BoundedProtocol(HttpToolsProtocol):
        """One connection of a client."""

        _head_timer: asyncio.TimerHandle | None = None
        _send_timer: asyncio.TimerHandle | None = None
        _head_bytes = 0

        def connection_made(self, transport: Any) -> None:
            """Start the clock for the first request, or refuse a connection too many."""
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                self._refuse(BUSY)
            else:
                self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop all clocks."""
            self._stop_head_timer()
            self._stop_send_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """Read data, and refuse a head that does not end."""
            if self.transport.is_closing():
                return
            awaited = self._head_timer
            super().data_received(data)
            if awaited is not None and self._head_timer is awaited:
                self._head_bytes += len(data)
                if self._head_bytes > HEAD_BYTES:
                    self._refuse(HEAD_TOO_LARGE)

        def on_message_begin(self) -> None:
            """Start the clock for the head of a request, unless it runs since the connection."""
            super().on_message_begin()
            if self._head_timer is None:
                self._expect_head()

        def on_headers_complete(self) -> None:
            """Stop the clock: the head is there."""
            self._stop_head_timer()
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            """Close the connection of a client that still sends what nobody reads."""
            if not self.pipeline and self.cycle.more_body:
                self.transport.close()
            super().on_response_complete()

        def pause_writing(self) -> None:
            """Start the clock for a client that does not read its answer."""
            super().pause_writing()
            self._stop_send_timer()
            self._send_timer = self.loop.call_later(limits.send_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            """Stop the clock: the client reads."""
            self._stop_send_timer()
            super().resume_writing()

        def _expect_head(self) -> None:
            self._head_bytes = 0
            self._head_timer = self.loop.call_later(limits.header_seconds, self._cut_off)

        def _cut_off(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._expect_head()  # it is the server that makes the client wait
            elif self._head_bytes:
                self._refuse(HEAD_TOO_SLOW)
            else:
                self.transport.close()

        def _refuse(self, status: bytes) -> None:
            self._stop_head_timer()
            self.transport.write(status + _END)
            self.transport.close()

        def _stop_head_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _stop_send_timer(self) -> None:
            if self._send_timer is not None:
                self._send_timer.cancel()
                self._send_timer = None

    return BoundedProtocol
