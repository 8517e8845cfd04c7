"""Real servers in processes of their own: start, slow clients, and the end."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo

pytest.importorskip("uvicorn", reason="needs the extra serve")

Start = Callable[..., Any]


def request_bytes(body: bytes) -> bytes:
    head = f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + body


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    connection.settimeout(30)
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_sigterm_finishes_what_was_accepted(start_server: Start) -> None:
    """A request whose body is still on its way is answered; new connections are refused."""
    server = start_server("--log", "json")
    assert server.greeting == f"elmokit serves plain at {server.address} (Ctrl-C stops it)\n"
    assert json.load(urlopen(f"{server.address}/readyz")) == {"status": "ready"}
    content = request_bytes(b'{"input": "private words"}')
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(content[:-5])
        time.sleep(0.5)
        server.terminate()
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", server.port)).close()
            except ConnectionRefusedError:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the server still takes connections")
        connection.sendall(content[-5:])
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"connection: close" in head.lower()
    expected = Elmo.load(GOLDEN / "models" / "plain").encode("private words")
    assert np.array_equal(json.loads(body)["data"][0]["embedding"], expected)
    code, log = server.wait()
    events = [json.loads(line) for line in log.splitlines()]
    assert code == 0 and "private" not in log
    assert [each["event"] for each in events][-2:] == ["request", "stop"]


def test_slow_and_endless_heads_are_cut_off() -> None:
    from elmokit.serve.connections import HEAD_BYTES
    from elmokit.serve.settings import ServerLimits

    with ServerInThread(ServerLimits(header_seconds=0.5, body_seconds=0.5)) as port:
        for sent, answer in [
            (b"", b""),
            (b"GET / HTTP/1.1\r\nHost: ", b"HTTP/1.1 408"),
            (b"GET / HTTP/1.1\r\nX: " + b"x" * 2 * HEAD_BYTES, b"HTTP/1.1 431"),
            (request_bytes(b"{}")[:-1], b"HTTP/1.1 408"),
            (b"nonsense\r\n\r\n", b"HTTP/1.1 400"),
        ]:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(sent)
                assert read_all(connection).startswith(answer), sent[:20]
        # A client that sends a body nobody reads does not keep its connection.
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n"
            )
            assert read_all(connection).startswith(b"HTTP/1.1 200")


def test_too_many_connections_are_refused() -> None:
    from elmokit.serve.settings import ServerLimits

    with ServerInThread(ServerLimits(connections=2)) as port:
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            assert read_all(connection).startswith(b"HTTP/1.1 503")
        for each in held:
            each.close()


class ServerInThread:
    """A server in a thread, for limits that the command line does not have."""

    def __init__(self, limits: Any) -> None:
        import threading

        from elmokit.serve import ServeConfig, server

        self._config = ServeConfig(models={"plain": GOLDEN / "models" / "plain"}, limits=limits)
        self._module = server
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._port = 0

    def _run(self) -> None:
        def started(address: str) -> None:
            self._port = int(address.rpartition(":")[2])
            self._started.set()

        self._module.run_server(
            self._config,
            port=0,
            log="none",
            on_start=started,
            on_server=lambda server: setattr(self, "_server", server),
        )

    def __enter__(self) -> int:
        self._thread.start()
        assert self._started.wait(60)
        return self._port

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)


def elmo_serve(*options: str, **environment: str) -> str:
    """What `elmo serve` says when it does not start."""
    import os

    done = subprocess.run(
        [sys.executable, "-m", "elmokit", "serve", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    return done.stderr


def test_other_machines_need_a_decision_and_a_key() -> None:
    assert "--allow-remote" in elmo_serve("--host", "0.0.0.0")
    assert "no API key" in elmo_serve("--host", "0.0.0.0", "--allow-remote")


def test_what_prevents_a_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} of 127.0.0.1 is in use" in elmo_serve("--port", port)
    assert "no address of this machine" in elmo_serve("--host", "no.such.host.invalid")
    assert "twice" in elmo_serve("-m", "builtin", "-m", "builtin=builtin")
    assert "expected one such as" in elmo_serve("--max-memory", "lots")
