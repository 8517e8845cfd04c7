"""Batches of requests: every vector is that of `Elmo.embed`, and nobody waits for the others."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from elmokit import Elmo
from elmokit.serve.batcher import PIECE_WORDS, RequestBatcher

WORDS = "the bank of river money play cell a b c".split()


def make_batcher(elmo: Elmo, executor: Any, **options: Any) -> RequestBatcher:
    return RequestBatcher(elmo, executor, **{"batch_words": 500, "batch_seconds": 0.005, **options})


def test_every_request_gets_its_own_vectors(elmo: Elmo) -> None:
    """Requests of different sizes and layers at once, some with empty sentences."""
    if elmo.engine.startswith("reference"):
        pytest.skip("only the compiled kernel gives the same bits whatever the batch")
    generator = random.Random(0)
    requests = [
        (
            [generator.choices(WORDS, k=generator.randint(0, 12)) for _ in range(size)],
            generator.choice(["mix", "all", "top", 0]),
        )
        for size in [1, 2, 30, 1, 7, 200, 1, 1, 3, 0] * 4
    ]
    batches: list[tuple[int, int]] = []

    async def main() -> list[list[np.ndarray]]:
        with ThreadPoolExecutor(2) as executor:
            batcher = make_batcher(elmo, executor, on_batch=lambda *sizes: batches.append(sizes))
            answers = await asyncio.gather(*(batcher.embed(*request) for request in requests))
            batcher.stop()
            return answers

    for (sentences, layers), answer in zip(requests, asyncio.run(main()), strict=True):
        expected = elmo.embed(sentences, layers)
        assert len(answer) == len(expected)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(answer, expected, strict=True))
    assert max(sentences for sentences, _ in batches) > 1  # they were gathered


def test_a_large_request_lets_others_pass(elmo: Elmo) -> None:
    finished: list[str] = []

    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            batcher = make_batcher(elmo, executor, batch_words=PIECE_WORDS)
            large = [["word"] * 100] * 200

            async def ask(name: str, sentences: list[list[str]]) -> None:
                await batcher.embed(sentences)
                finished.append(name)

            await asyncio.gather(ask("large", large), ask("small", [["one"]]))
            batcher.stop()

    asyncio.run(main())
    assert finished == ["small", "large"]


def test_a_request_that_fails_does_not_take_others_with_it(elmo: Elmo) -> None:
    def fail(vectors: object) -> None:
        raise RuntimeError("no")

    async def main() -> list[Any]:
        with ThreadPoolExecutor(1) as executor:
            batcher = make_batcher(elmo, executor)
            answers = await asyncio.gather(
                batcher.embed([["a"]]),
                batcher.embed([["b"]], reduce=fail),
                batcher.embed([["c"]]),
                return_exceptions=True,
            )
            batcher.stop()
            return answers

    first, second, third = asyncio.run(main())
    assert isinstance(second, RuntimeError)
    assert len(first) == len(third) == 1


def test_requests_of_clients_that_are_gone_are_not_computed(elmo: Elmo) -> None:
    release = threading.Event()
    computed: list[int] = []

    async def main() -> None:
        with ThreadPoolExecutor(1) as executor:
            executor.submit(release.wait)  # the executor is busy
            batcher = make_batcher(elmo, executor, on_batch=lambda n, words: computed.append(n))
            first = asyncio.ensure_future(batcher.embed([["a"]]))
            await asyncio.sleep(0.05)
            gone = asyncio.ensure_future(batcher.embed([["b"]] * 5))
            await asyncio.sleep(0)
            gone.cancel()
            last = asyncio.ensure_future(batcher.embed([["c"]]))
            release.set()
            await asyncio.gather(first, last)
            batcher.stop()

    asyncio.run(main())
    assert computed == [1, 1]
