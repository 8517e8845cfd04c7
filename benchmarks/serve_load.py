"""Many clients at once: does the server lose or mix up anything, and how much speed does it cost?

    python benchmarks/serve_load.py                             # 200 clients × 100 requests
    python benchmarks/serve_load.py --clients 50 --requests 20
    python benchmarks/serve_load.py --sentences 1 --size original

Starts `elmo serve` in a process of its own and sends requests from several processes. Every vector
is compared bit by bit with that of `Elmo.encode`. Prints latencies, the memory of the server after
half of the requests and at the end, and its throughput as a share of `elmo bench` ("natural order,
one call") on the same sentences, measured in the same run before and after, because a machine is
seldom the same twice. Exits with 1 if an answer is missing or wrong, or if memory grows. Nothing
else should run meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from elmokit import Elmo
from elmokit.bench import synthetic_sentences
from elmokit.bilm.random import random_bilm

GROWTH = 1.1
"""Memory at the end, as a multiple of that after half of the requests, that is too much."""


async def send(port: int, body: bytes, streams: Any) -> tuple[int, bytes]:
    """Send one request on an open connection, and return status and body of the answer."""
    reader, writer = streams
    head = (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(re.search(r"content-length: (\d+)", lines)[1])  # type: ignore[index]
    return int(lines.split()[1]), await reader.readexactly(length)


async def run_clients(
    port: int, clients: int, requests: int, first: int, texts: list[list[str]]
) -> tuple[list[float], list[tuple[int, list[str]]], int]:
    """Return the seconds of all requests, which texts gave which vectors, and the failures."""
    seconds: list[float] = []
    answers: list[tuple[int, list[str]]] = []
    failures = 0

    async def run_client(client: int) -> None:
        nonlocal failures
        streams = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
        for i in range(requests):
            number = ((first + client) * 7919 + i) % len(texts)
            body = json.dumps({"input": texts[number], "encoding_format": "base64"}).encode()
            started = time.perf_counter()
            status, content = await send(port, body, streams)
            seconds.append(time.perf_counter() - started)
            if status != 200:
                failures += 1
                continue
            answers.append((number, [each["embedding"] for each in json.loads(content)["data"]]))
        streams[1].close()

    await asyncio.gather(*(run_client(client) for client in range(clients)))
    return seconds, answers, failures


def work(
    port: int, clients: int, requests: int, first: int, texts: list[list[str]], expected: list[Any]
) -> tuple[list[float], int, int]:
    """Run some of the clients in this process; return seconds, failures and wrong vectors."""
    seconds, answers, failures = asyncio.run(run_clients(port, clients, requests, first, texts))
    wrong = sum(
        [base64.b64decode(each) for each in vectors] != expected[number]
        for number, vectors in answers
    )
    return seconds, failures, wrong


def load(
    arguments: argparse.Namespace,
    port: int,
    requests: int,
    texts: list[list[str]],
    expected: list[Any],
) -> list[tuple[list[float], int, int]]:
    """Run all clients, divided among processes, and return what each process returns."""
    parts = arguments.processes
    shares = [arguments.clients * (i + 1) // parts for i in range(parts)]
    with ProcessPoolExecutor(parts) as pool:
        jobs = [
            pool.submit(work, port, stop - start, requests, start, texts, expected)
            for start, stop in zip([0, *shares], shares, strict=False)
        ]
        return [job.result() for job in jobs]


def bench(elmo: Elmo, sentences: list[str]) -> float:
    """Return the words per second of one call with all sentences, as `elmo bench` measures it."""
    words = list(elmo.words(sentences))
    elmo.clear_word_cache()
    started = time.perf_counter()
    elmo.embed(words)
    return sum(map(len, words)) / (time.perf_counter() - started)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024  # type: ignore[index]


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=200, help="parallel clients")
    parser.add_argument("--requests", type=int, default=100, help="requests per client")
    parser.add_argument("--sentences", type=int, default=16, help="sentences per request")
    parser.add_argument("--processes", type=int, default=2, help="processes of clients")
    parser.add_argument("--size", help="serve random weights of this size, not the built-in model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        model = "builtin"
        if arguments.size:
            model = str(Path(directory) / "model")
            Elmo(random_bilm(arguments.size)).save(model)
        return measure(arguments, model)


def measure(arguments: argparse.Namespace, model: str) -> int:
    """Run server and clients, print the results, and return the exit code."""
    elmo = Elmo.load(model)
    generated = islice(synthetic_sentences(), 100 * arguments.sentences)
    sentences = [" ".join(words) for words in generated]
    texts = [
        sentences[i : i + arguments.sentences]
        for i in range(0, len(sentences), arguments.sentences)
    ]
    expected = [[vector.tobytes() for vector in elmo.encode(each)] for each in texts]
    speeds = [bench(elmo, sentences)]
    command = [sys.executable, "-m", "elmokit", "serve", "-m", f"model={model}", "--port", "0"]
    server = subprocess.Popen([*command, "--log", "none"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(re.search(r":(\d+) ", server.stdout.readline())[1])  # type: ignore[index]
    try:
        asyncio.run(run_clients(port, 8, 25, 0, texts))  # loads the model
        started = time.perf_counter()
        half = arguments.requests // 2
        results = load(arguments, port, half, texts, expected)
        before = resident_bytes(server.pid)
        results += load(arguments, port, arguments.requests - half, texts, expected)
        after = resident_bytes(server.pid)
        elapsed = time.perf_counter() - started
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(60)
    speeds.append(bench(elmo, sentences))
    seconds = sorted(each for result in results for each in result[0])
    failures, wrong = (sum(result[i] for result in results) for i in (1, 2))
    total = arguments.clients * arguments.requests
    words = total * statistics.mean(len(" ".join(each).split()) for each in texts)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    ranks = {name: seconds[int(share * (len(seconds) - 1))] for name, share in shares.items()}
    share = words / elapsed / statistics.mean(speeds)
    print(
        f"requests      {total:,} of {arguments.sentences} sentences, {arguments.clients} clients"
    )
    print(f"answers       {len(seconds):,}; failed {failures}; with a wrong vector {wrong}")
    print("latency       " + ", ".join(f"{name} {1000 * s:.1f} ms" for name, s in ranks.items()))
    print(f"memory        {before / 2**20:.0f} MB, at the end {after / 2**20:.0f} MB")
    print(
        f"throughput    {words / elapsed:,.0f} words/s: {100 * share:.0f} % of elmo bench "
        f"({speeds[0]:,.0f} words/s before, {speeds[1]:,.0f} after)"
    )
    print(f"stopped       with exit code {code}")
    complete = len(seconds) == total and not failures and not wrong and not code
    return 0 if complete and after <= GROWTH * before else 1


if __name__ == "__main__":
    sys.exit(main())
