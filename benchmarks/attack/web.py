"""Sends hostile requests to a running server, at any scale.

    python benchmarks/attack/web.py --cases 2000
    python benchmarks/attack/web.py --only bytes --cases 100000 --seed 7

body        bodies of JSON that are damaged, deep, enormous in a number, or say what no client would
request     the bytes of a whole request: its line, its headers, its length
cut         connections that are closed, or go silent, in the middle
many        several clients at the same time that do all of this

The server must answer, or close the connection; never with an error of its own (500), never with a
traceback in its log, and in bounded time and memory. Between the attacks a client that means no
harm must get the vectors of an undisturbed server.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from kill import _run_in_child
from lies import lie_in_json
from mutations import TOKENS, mutate, mutate_json
from seeds import SEEDS, tiny_model
from tally import Tally, parse_arguments

from elmokit import Elmo

KINDS = ["body", "request", "cut", "many"]
SECONDS = 60
"""Time after which a request hangs."""
PATIENCE = 2.0
"""Seconds after which the end of a request is sent that is shorter than it says."""
MEMORY = 1 << 30
"""Bytes of memory at most by which the server may grow."""
CHECK_EVERY = 50
"""Number of cases after which a client that means no harm asks."""
QUESTIONS: list[tuple[str, dict[str, object]]] = [
    ("/v1/embeddings", {"model": "model", "input": ["a cat sat .", "it rains"]}),
    ("/v1/embeddings", {"input": "a cat", "encoding_format": "base64", "dimensions": 6}),
    ("/v1/words", {"input": [["a", "cat"], ["sat"]], "layers": [0, 2]}),
    ("/v1/words", {"input": "a cat sat .", "layers": "mix", "model": "model"}),
    ("/v1/substitutes", {"input": ["The cat.", ["A", "b"]], "k": 3}),
    ("/v1/neighbors", {"input": "a cat sat", "word": "cat", "k": 3, "index": "small"}),
    ("/v1/tasks/names", {"inputs": [{"sentence": "Ada ran ."}]}),
    ("/page/layers", {"model": "model", "sentence": "a cat sat"}),
    ("/page/uses", {"model": "model", "word": "cat", "sentences": ["a cat", "the cat sat"]}),
    ("/page/neighbors", {"model": "model", "sentence": "a cat sat", "position": 1}),
]
"""Paths, and bodies that most of them take."""
PATHS = (
    *("/v1/models", "/v1/models/model", "/v1/models/%2e%2e", "/page/../../etc/passwd", "/metrics"),
    *("/page/%2e%2e/%2e%2e/app.py", "/page//etc/passwd", "/v1/tasks/a/b", "/" + "x" * 9000, "/%00"),
    *("/openapi.json", "/page/\xff", "/page/index.html/x", "//", "*", "http://example.org/"),
)


class Server:
    """A server in a child process, and what it answers undisturbed."""

    def __init__(self, root: Path) -> None:
        """Write what it serves, and start it."""
        self.root = root
        Elmo(tiny_model(), threads=1).save(root / "model")
        task, index = SEEDS["task-model"](root).path, SEEDS["index"](root).path
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["--model", f"model={root / 'model'}", "--task", f"names={task}"]
        options += ["--index", f"small={index}", "--port", str(self.port), "--threads", "1"]
        self.child = os.fork()
        if self.child == 0:
            _run_in_child(["serve", *options], root, None)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                self.wanted = self.ask()
                break
            except (OSError, ValueError):
                if time.monotonic() > deadline:
                    self.stop()
                    raise SystemExit(f"the server does not start: {self.log()}") from None
                time.sleep(0.05)
        self.memory = self._memory()

    def log(self) -> str:
        """Return the end of what the server has printed."""
        return (self.root / "log").read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        """End the server."""
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)

    def ask(self) -> bytes:
        """Return the vectors that a client gets who means no harm."""
        path, body = QUESTIONS[0]
        answer = self.send(make_request(path, json.dumps(body).encode()))
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ValueError(f"the answer to a good request is {answer[:300]!r}")
        content: bytes = json.dumps(json.loads(answer.partition(b"\r\n\r\n")[2])["data"]).encode()
        return content

    def send(self, data: bytes, *, half: bool = False, patience: float | None = None) -> bytes:
        """Send bytes and return the answer, to its end or to that of the connection.

        Args:
            data: What to send.
            half: Whether to close the connection without waiting for an answer.
            patience: Seconds after which nothing more is sent, so that the server need not wait.
        """
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as connection:
            with contextlib.suppress(ConnectionError):  # it may have refused before it read all
                connection.sendall(data)
                if half:
                    return b""
                if patience is not None and not select.select([connection], [], [], patience)[0]:
                    connection.shutdown(socket.SHUT_WR)  # it waits for more, which never comes
            answer = b""
            with contextlib.suppress(ConnectionError):
                while block := connection.recv(1 << 16):
                    answer += block
                    # The request may have lost what asks the server to close the connection.
                    if patience and not select.select([connection], [], [], patience)[0]:
                        break
            return answer

    def check(self) -> str | None:
        """Return what is wrong with the server, if anything."""
        if os.waitpid(self.child, os.WNOHANG)[0]:
            raise SystemExit(f"the server has died: {self.log()}")
        try:
            if self.ask() != self.wanted:
                return "other vectors"
        except (OSError, ValueError) as error:
            return f"a good request fails: {error!r}"
        if "Traceback" in self.log():
            found = self.log()
            (self.root / "log").write_text("")
            return f"a traceback in the log: {found[-1500:]}"
        if (memory := self._memory()) > self.memory + MEMORY:
            return f"the memory grew from {self.memory >> 20} to {memory >> 20} MB"
        return None

    def _memory(self) -> int:
        statm = Path(f"/proc/{self.child}/statm")
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_request(path: str, body: bytes, *headers: str, method: str = "POST") -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def hostile_body(source: random.Random) -> bytes:
    """Return a request whose body is damaged or says what no client would."""
    path, body = source.choice(QUESTIONS)
    data = json.dumps(body).encode()
    for _ in range(source.choice((1, 1, 2))):
        way = source.randrange(4)
        if way == 0:
            data = lie_in_json(data, source) or data
        elif way == 1:
            data = mutate_json(data, source) or data
        elif way == 2:
            data = mutate(data, source)
        else:
            text = source.choice(("a ", "\u0301", "\ud800", "\0", "😀", "a" * 5000, ".\n")) * (
                source.choice((1, 100, 20_000))
            )
            data = json.dumps({**body, source.choice(list(body)): text}).encode()
    return make_request(path, data)


def hostile_request(source: random.Random) -> bytes:
    """Return the damaged bytes of a request."""
    path, body = source.choice(QUESTIONS)
    if source.random() < 0.3:
        method = source.choice(("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "\0", "G" * 99))
        return make_request(source.choice(PATHS), b"", method=method)
    header = source.choice(
        (
            *("Transfer-Encoding: chunked", "Content-Length: -1", "Content-Length: 99999999999"),
            *("Content-Encoding: gzip", "Expect: 100-continue", "Upgrade: websocket", "Host: x\0y"),
            *("Accept: " + "a/b, " * 3000, "X: " + "y" * 70_000, "Range: bytes=0-", "A\r\n B: c"),
            *("Accept: */*;q=9e999", "Authorization: Bearer \xff", "Content-Type: text/plain"),
        )
    )
    data = make_request(path, json.dumps(body).encode(), header)
    if source.random() < 0.7:
        data = mutate(data, source, TOKENS)
    return data


def case(kind: str, server: Server, source: random.Random, tally: Tally) -> str | None:
    """Do a case; return what is wrong, if anything."""
    if kind == "many":
        return _many(server, source, tally)
    data = hostile_body(source) if kind == "body" or source.random() < 0.5 else b""
    if kind == "request" or not data:
        data = hostile_request(source)
    try:
        if kind == "cut":
            server.send(data[: source.randrange(len(data))], half=True)
            return None
        answer = server.send(data, patience=PATIENCE)
    except TimeoutError:
        return f"no answer within {SECONDS} s to {data[:1500]!r}"
    status = answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.") else "closed"
    tally.outcomes[status] += 1
    if status == "500":
        return f"answer {status} to {data[:1500]!r}"
    return None


def _many(server: Server, source: random.Random, tally: Tally) -> str | None:
    found: list[str] = []

    def attack(seed: int) -> None:
        own = random.Random(seed)
        for _ in range(5):
            finding = case(own.choice(KINDS[:3]), server, own, tally)
            if finding:
                found.append(finding)

    clients = [threading.Thread(target=attack, args=(source.random(),)) for _ in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return found[0] if found else None


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """Start a server, and end it."""
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name))
        try:
            yield server
        finally:
            server.stop()


def main() -> None:
    """Attack with all kinds, or those of the command line."""
    arguments = parse_arguments(__doc__, KINDS, 200, numbered=True)
    torch.set_num_threads(1)  # the server is a fork, which has one thread
    tally = Tally("web", arguments.seed, arguments.seconds)
    with running_server() as server:
        for kind in arguments.only or KINDS:
            for number in range(arguments.first, arguments.first + arguments.cases):
                if tally.is_over:
                    break
                source = random.Random(f"{arguments.seed} {kind} {number}")
                finding = case(kind, server, source, tally)
                if finding is None and number % CHECK_EVERY == CHECK_EVERY - 1:
                    finding = server.check()
                tally.add(kind, None if finding is None else f"case {number}: {finding}")
        if finding := server.check():
            tally.find("end", finding)
    tally.finish()


if __name__ == "__main__":
    main()
