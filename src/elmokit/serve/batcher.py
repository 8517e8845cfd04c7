"""Requests of many clients, gathered into batches for one model.

While a batch is computed, the next one gathers; if nothing is computed, the first request waits a
few milliseconds for others. Large requests are divided into pieces that take turns with the others,
so that nobody waits long behind them. Batching does not change a bit of the vectors, because the
compiled kernel computes a sentence the same way whatever stands beside it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice

PIECE_WORDS = 2048
"""Words of a request that are computed before other requests have their turn."""

Reduce = Callable[[FloatArray], Any]
"""What is made of the vectors of a sentence as soon as they are there, such as their mean."""


@dataclass
class _Request:
    sentences: Sequence[Sequence[str]]
    layers: LayerChoice
    reduce: Reduce
    answer: asyncio.Future[list[Any]]
    results: list[Any] = field(default_factory=list)
    taken: int = 0

    def take(self) -> Sequence[Sequence[str]]:
        """Return the next sentences to compute, of about `PIECE_WORDS` words."""
        start, words = self.taken, 0
        while self.taken < len(self.sentences) and (not words or words < PIECE_WORDS):
            words += len(self.sentences[self.taken]) + 2
            self.taken += 1
        return self.sentences[start : self.taken]


_Piece = tuple[_Request, Sequence[Sequence[str]]]


class RequestBatcher:
    """Embeds the sentences of many requests in common batches."""

    def __init__(
        self,
        elmo: Elmo,
        executor: Executor,
        *,
        batch_words: int,
        batch_seconds: float,
        on_batch: Callable[[int, int], None] = lambda sentences, words: None,
    ) -> None:
        """Prepare to batch for a model; `stop` ends it.

        Args:
            elmo: The model.
            executor: Where the batches are computed.
            batch_words: Words from which on a batch is full.
            batch_seconds: How long a request waits for others, if nothing is being computed.
            on_batch: Called with the number of sentences and words of each batch.
        """
        self.elmo = elmo
        """The model."""
        self._executor = executor
        self._batch_words = batch_words
        self._batch_seconds = batch_seconds
        self._on_batch = on_batch
        self._waiting: deque[_Request] = deque()
        self._waiting_words = 0
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    async def embed(
        self,
        sentences: Sequence[Sequence[str]],
        layers: LayerChoice = "mix",
        reduce: Reduce = lambda vectors: vectors,
    ) -> list[Any]:
        """Return the vectors of sentences, as `Elmo.embed` does, reduced one by one.

        Args:
            sentences: Sentences as lists of words.
            layers: Which layers; see `Elmo.embed`.
            reduce: Called in the computing thread with the vectors of each sentence.
        """
        if not sentences:
            return []
        loop = asyncio.get_running_loop()
        if self._worker is None or self._worker.done() or self._worker.get_loop() is not loop:
            # A new loop, as in tests, has nothing to do with what waited in the old one.
            self._waiting.clear()
            self._waiting_words = 0
            self._arrived = asyncio.Event()
            self._worker = loop.create_task(self._work())
        request = _Request(sentences, layers, reduce, loop.create_future())
        self._waiting.append(request)
        self._waiting_words += sum(len(words) + 2 for words in sentences)
        self._arrived.set()
        return await request.answer

    def stop(self) -> None:
        """Stop for good; requests that wait are cancelled."""
        if self._worker is not None:
            self._worker.cancel()
        for request in self._waiting:
            request.answer.cancel()
        self._waiting.clear()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                await self._gather()
            pieces = self._take_batch()
            if not pieces:
                continue
            try:
                results = await loop.run_in_executor(self._executor, self._compute, pieces)
            except Exception:
                # A request that cannot be computed must not take the others with it.
                results = await loop.run_in_executor(self._executor, self._compute_each, pieces)
            for (request, _), outcome in zip(pieces, results, strict=True):
                if request.answer.done():
                    continue
                if isinstance(outcome, Exception):
                    request.answer.set_exception(outcome)
                    continue
                request.results += outcome
                if len(request.results) == len(request.sentences):
                    request.answer.set_result(request.results)

    async def _gather(self) -> None:
        """Wait for further requests until the deadline, or until a batch is full."""
        if not self._batch_seconds:
            return
        try:
            async with asyncio.timeout(self._batch_seconds):
                while self._waiting_words < self._batch_words:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            pass

    def _take_batch(self) -> list[_Piece]:
        """Return pieces of the requests in turn, until the batch is full."""
        pieces: list[_Piece] = []
        words = 0
        while self._waiting and words < self._batch_words:
            request = self._waiting.popleft()
            if request.answer.done():  # the client is gone, or its time is over
                rest = request.sentences[request.taken :]
                self._waiting_words -= sum(len(sentence) + 2 for sentence in rest)
                continue
            piece = request.take()
            size = sum(len(sentence) + 2 for sentence in piece)
            self._waiting_words -= size
            words += size
            pieces.append((request, piece))
            if request.taken < len(request.sentences):
                self._waiting.append(request)
        return pieces

    def _compute(self, pieces: list[_Piece]) -> list[list[Any] | Exception]:
        """Return the results of all pieces; in a thread of the executor."""
        results: dict[int, list[Any] | Exception] = {}
        by_layers: dict[LayerChoice, list[int]] = {}
        for i, (request, _) in enumerate(pieces):
            by_layers.setdefault(request.layers, []).append(i)
        for layers, indices in by_layers.items():
            sentences = [words for i in indices for words in pieces[i][1]]
            self._on_batch(len(sentences), sum(map(len, sentences)))
            vectors = self.elmo.stream(sentences, layers)
            for i in indices:
                request, piece = pieces[i]
                results[i] = [request.reduce(next(vectors)) for _ in piece]
        return [results[i] for i in range(len(pieces))]

    def _compute_each(self, pieces: list[_Piece]) -> list[list[Any] | Exception]:
        """Return the results of the pieces, computed one by one, or what they raise."""
        results: list[list[Any] | Exception] = []
        for piece in pieces:
            try:
                results += self._compute([piece])
            except Exception as error:
                results.append(error)
        return results
