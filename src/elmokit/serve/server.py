"""Running the application: addresses, signals, and the end of a server.

SIGTERM and Ctrl-C end a server in order: it takes no new connections, answers the requests that it
has accepted, and stops.
"""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import uvicorn

from elmokit.errors import ConfigError, InputError
from elmokit.serve.app import create_app
from elmokit.serve.connections import bounded_protocol
from elmokit.serve.gate import loopback_hosts
from elmokit.serve.logs import LogFormat, log_event, set_up_logs
from elmokit.serve.models import Models
from elmokit.serve.settings import ServeConfig, ServerLimits

BACKLOG = 1024
"""Connections that wait to be accepted."""
SPARE_FILES = 100
"""Open files that are kept for models and the rest of the process."""


def run_server(
    config: ServeConfig | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allow_remote: bool = False,
    log: LogFormat = "json",
    on_start: Callable[[str], None] = lambda address: None,
    on_server: Callable[[uvicorn.Server], None] = lambda server: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    The command `elmo serve` does this.

    Args:
        config: What to serve; by default the built-in model.
        host: Address to listen on. Any other than that of this machine alone (loopback) needs
            `allow_remote` and an API key.
        port: Port to listen on; 0 for a free one.
        allow_remote: Whether other machines may connect.
        log: `"json"` for one object per line on stderr, `"text"`, or `"none"`.
        on_start: Called with the address, such as `http://127.0.0.1:8000`, when the server answers.
        on_server: Called with uvicorn's server before it runs; its `should_exit` ends it.
    """
    config = config or ServeConfig()
    loopback = is_loopback(host)
    if not loopback:
        _check_remote(host, allow_remote, config)
    else:
        config = replace(config, hosts=loopback_hosts((host, *config.hosts)))
    set_up_logs(log)
    sockets = _bind(host, port)
    try:
        config = replace(config, limits=_within_open_files(config.limits))
        app = create_app(config)
        address = _address(host, sockets[0])
        server = _DrainingServer(
            uvicorn.Config(
                app,
                http=bounded_protocol(config.limits),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=max(1, round(config.limits.keep_alive_seconds)),
                timeout_graceful_shutdown=max(1, round(config.limits.drain_seconds)),
            ),
            app.state.models,
            lambda: on_start(address),
        )
        on_server(server)
        log_event("start", address=address, models=list(config.models))
        server.run(sockets=sockets)
        log_event("stop")
    finally:
        for each in sockets:
            each.close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to an address."""
    return all(
        ipaddress.ip_address(str(found[4][0]).partition("%")[0]).is_loopback
        for found in _resolve(host, 0)
    )


class _DrainingServer(uvicorn.Server):
    """uvicorn's server, which ends in order at a signal and does not raise the signal again."""

    def __init__(
        self, config: uvicorn.Config, models: Models, on_start: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._models = models
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            self._models.draining = True
            log_event("draining", signal=signal.Signals(sig).name)
        super().handle_exit(sig, frame)


def _check_remote(host: str, allow_remote: bool, config: ServeConfig) -> None:
    if not allow_remote:
        raise ConfigError(
            f"{host} can be reached from other machines; to allow that, give allow_remote=True "
            "(--allow-remote) and an API key (--api-key-file FILE, or ELMO_API_KEY)"
        )
    if not config.api_keys:
        raise ConfigError(
            f"{host} can be reached from other machines, and there is no API key; give one with "
            "--api-key-file FILE or ELMO_API_KEY"
        )


def _resolve(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str | int, ...]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError(
            f"the host {host!r} is no address of this machine; expected one such as 127.0.0.1, "
            "localhost or 0.0.0.0"
        ) from None
    return list(dict.fromkeys(found))  # type: ignore[arg-type]


def _bind(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of the host, all with the same port."""
    sockets: list[socket.socket] = []
    problem: OSError | None = None
    for family, kind, protocol, _, address in _resolve(host, port):
        try:
            each = socket.socket(family, kind, protocol)
        except OSError as error:  # such as IPv6 on a machine without it
            problem = error
            continue
        try:
            if hasattr(socket, "SO_REUSEPORT"):  # not on Windows, where it means something else
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            each.bind((address[0], port, *address[2:]))
            each.listen(BACKLOG)
            each.setblocking(False)
        except OSError as error:
            each.close()
            problem = error
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                break
            continue
        port = each.getsockname()[1]
        sockets.append(each)
    if not sockets or (problem is not None and problem.errno == errno.EADDRINUSE):
        for each in sockets:
            each.close()
        raise _explain(host, port, problem)
    return sockets


def _explain(host: str, port: int, problem: OSError | None) -> InputError:
    if problem is not None and problem.errno == errno.EADDRINUSE:
        return InputError(
            f"port {port} of {host} is in use by another program; choose another one with --port, "
            "or any free one with --port 0"
        )
    if problem is not None and problem.errno == errno.EACCES:
        return InputError(f"port {port} of {host} may not be used; choose one above 1023")
    reason = problem.strerror if problem is not None else "it has no address"
    return InputError(f"cannot listen on port {port} of {host}: {reason}")


def _address(host: str, listening: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}"


def _within_open_files(limits: ServerLimits) -> ServerLimits:
    """Return the limits with no more connections than files that the process may open."""
    try:
        import resource
    except ImportError:
        return limits
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=max(1, min(limits.connections, files - SPARE_FILES)))
