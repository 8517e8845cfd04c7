"""The models of a server: loaded when they are needed, unloaded when memory is short.

    models = Models(ServeConfig(models={"builtin": "builtin"}))
    for sentence in await models.embed("builtin", ["She went to the bank."]):
        print(sentence.words, sentence.vectors.shape)

Everything that is computed goes through here, so that one bound holds for all requests: whoever
comes when the queue is full gets the error 429. Nothing here deals with HTTP otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeVar

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Sentence
from elmokit.engine.native import usable_processors
from elmokit.errors import InputError
from elmokit.inspect import ModelInfo, inspect_model
from elmokit.serve.batcher import Reduce, RequestBatcher
from elmokit.serve.errors import ApiError, not_found
from elmokit.serve.loading import MemoryBudget, Slot, model_slot, served_index, served_task
from elmokit.serve.logs import log_event
from elmokit.serve.metrics import ServerMetrics
from elmokit.serve.settings import ServeConfig
from elmokit.text.tokenize import Token, tokenize
from elmokit.threads import ThreadPool

T = TypeVar("T")

INLINE_CHARACTERS = 20_000
"""Characters up to which texts are split into words at once, instead of in another thread."""


class ServedSentence(NamedTuple):
    """A sentence with its words, their positions and what was computed for it."""

    words: list[Token]
    """The words; positions are character offsets in the text, or -1 if words were given."""
    vectors: FloatArray
    """One vector per word, (T, D), or (L+1, T, D) with `layers="all"`."""


class Models:
    """Models, task models and indexes by name, computed within the limits of a server."""

    def __init__(self, config: ServeConfig, metrics: ServerMetrics | None = None) -> None:
        """Check all models and indexes, without loading them yet.

        Args:
            config: What to serve.
            metrics: Where to count; by default nowhere that is seen.
        """
        self.config = config
        self.limits = config.limits
        self.metrics = metrics or ServerMetrics()
        self.info: dict[str, ModelInfo] = {
            name: inspect_model(path) for name, path in config.models.items()
        }
        """What is known about each model; see `elmokit.inspect_model`."""
        self.draining = False
        """Whether the server is about to stop."""
        self.ready = True
        """Whether everything is loaded that has to be loaded at the start."""
        self._executor = ThreadPool(max(2, usable_processors()), "elmo-compute")
        self._budget = MemoryBudget(config.max_memory, self._forget)
        self._models = {
            name: model_slot(name, path, config) for name, path in config.models.items()
        }
        self._tasks = {name: served_task(name, path) for name, path in config.tasks.items()}
        self._indexes = {
            name: served_index(name, path, self.info) for name, path in config.indexes.items()
        }
        self._batchers: dict[str, RequestBatcher] = {}
        self._admitted = 0
        self._seconds = 0.1
        self.metrics.watch(lambda: self._admitted, self._loaded_bytes)

    # -- names -----------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the models; the first one is the default."""
        return list(self._models)

    @property
    def tasks(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """The task of each task model, and the names of the texts that it takes."""
        return {name: (each.task, each.arguments) for name, each in self._tasks.items()}

    @property
    def indexes(self) -> dict[str, str]:
        """Name of the model that each index was made with, by the name of the index."""
        return {name: each.model for name, each in self._indexes.items()}

    @property
    def loaded(self) -> list[str]:
        """Names of the models, tasks and indexes that are in memory."""
        return [slot.name for slot in self._slots() if slot.value is not None]

    def model_info(self, name: str, param: str | None = "model") -> ModelInfo:
        """Return what is known about a model, or raise the error 404."""
        if name not in self.info:
            raise not_found("model", name, self.names, param)
        return self.info[name]

    # -- computing -------------------------------------------------------------------------------

    async def embed(
        self,
        name: str,
        sentences: Sequence[Sentence],
        layers: LayerChoice = "mix",
        reduce: Reduce | None = None,
    ) -> list[ServedSentence]:
        """Return words and vectors of sentences; the vectors are those of `Elmo.embed`.

        Args:
            name: Name of the model.
            sentences: Texts, which are split into words, or lists of words.
            layers: Which layers; see `Elmo.embed`.
            reduce: Called with the vectors of each sentence, to replace them by what it returns.
        """
        self._check_layers(name, layers)
        return await self.embed_words(name, await self.split(sentences), layers, reduce)

    async def embed_words(
        self,
        name: str,
        sentences: Sequence[list[Token]],
        layers: LayerChoice = "mix",
        reduce: Reduce | None = None,
    ) -> list[ServedSentence]:
        """Return words and vectors of sentences that `split` has returned; see `embed`."""
        self._check_layers(name, layers)
        with self._admission():
            async with self._use_model(name) as elmo:
                vectors = await self._batcher(name, elmo).embed(
                    [[token.text for token in each] for each in sentences],
                    layers,
                    reduce or (lambda vectors: vectors),
                )
            self.metrics.words.add(sum(map(len, sentences)), model=name)
            return [ServedSentence(*pair) for pair in zip(sentences, vectors, strict=True)]

    async def run(self, name: str, function: Callable[[Elmo], T]) -> T:
        """Return what a function computes with a model, in another thread.

        Args:
            name: Name of the model.
            function: Called with the model. It must not change the model.
        """
        self.model_info(name)
        with self._admission():
            async with self._use_model(name) as elmo:
                return await self._in_thread(lambda: function(elmo))

    async def predict(self, name: str, texts: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Return the predictions of a task model, one per example.

        Args:
            name: Name of the task model.
            texts: For each example the texts that the task takes, such as premise and hypothesis.
        """
        task = self._tasks.get(name)
        if task is None:
            raise not_found("task", name, list(self._tasks))
        with self._admission():
            async with self._use(task.slot) as trained:
                return await self._in_thread(lambda: task.predict(trained, texts))

    async def predict_text(self, name: str, text: str) -> list[dict[str, Any]]:
        """Return the predictions of a task model for every sentence of a running text."""
        task = self._tasks.get(name)
        if task is None:
            raise not_found("task", name, list(self._tasks))
        with self._admission():
            async with self._use(task.slot) as trained:
                return await self._in_thread(lambda: trained.predict_text(text))

    async def search(self, name: str, function: Callable[[Elmo, Any], T]) -> T:
        """Return what a function computes with the model of an index, and the index.

        Args:
            name: Name of the index.
            function: Called with the `Elmo` and the `elmokit.probe.Index`.
        """
        index = self._indexes.get(name)
        if index is None:
            raise not_found("index", name, list(self._indexes), "index")
        with self._admission():
            async with self._use_model(index.model) as elmo, self._use(index.slot) as opened:
                return await self._in_thread(lambda: function(elmo, opened))

    async def split(self, sentences: Sequence[Sentence]) -> list[list[Token]]:
        """Return the words of sentences, or raise the error 422 if they are too many."""
        size = sum(len(each) for each in sentences)
        if size <= INLINE_CHARACTERS:
            words = [_tokens(each) for each in sentences]
        else:
            words = await self._in_thread(lambda: [_tokens(each) for each in sentences])
        count = sum(map(len, words))
        if count > self.limits.words:
            raise ApiError(
                422,
                f"the texts have {count:,} words; expected at most {self.limits.words:,} per "
                "request: send them in several requests",
                code="too_many_words",
                param="input",
            )
        return words

    # -- beginning and end -----------------------------------------------------------------------

    async def preload(self) -> None:
        """Load everything now, as far as the memory bound allows; what fails is logged."""
        self.ready = False
        failed = False
        for slot in self._slots():
            try:
                async with self._use(slot):
                    pass
            except ApiError:
                failed = True
        self.ready = not failed

    async def close(self) -> None:
        """Stop computing and forget all models."""
        for batcher in self._batchers.values():
            batcher.stop()
        self._batchers.clear()
        await asyncio.to_thread(self._executor.shutdown)
        for slot in self._slots():
            slot.value = None

    # -- inside ----------------------------------------------------------------------------------

    def _slots(self) -> Iterator[Slot[Any]]:
        yield from self._models.values()
        yield from (each.slot for each in self._tasks.values())
        yield from (each.slot for each in self._indexes.values())

    def _loaded_bytes(self) -> dict[str, int]:
        return {slot.name: slot.size for slot in self._slots() if slot.value is not None}

    def _check_layers(self, name: str, layers: LayerChoice) -> None:
        count = self.model_info(name)["layers"]
        if isinstance(layers, int) and not 0 <= layers < count:
            raise ApiError(
                400,
                f"layers is {layers}; the model {name} has {count}: 0 (word vectors) to "
                f"{count - 1} (top)",
                param="layers",
            )

    @contextmanager
    def _admission(self) -> Iterator[None]:
        """Count a request while it is under way, or raise the error 429 if there are too many."""
        if self._admitted >= self.limits.queue:
            raise ApiError(
                429,
                f"{self._admitted:,} requests are under way, which is the limit; try again later",
                code="queue_full",
                headers={"Retry-After": str(self.retry_seconds)},
            )
        self._admitted += 1
        started = time.monotonic()
        try:
            yield
        finally:
            self._admitted -= 1
            self._seconds += (time.monotonic() - started - self._seconds) / 16

    @property
    def retry_seconds(self) -> int:
        """Seconds after which a refused client should try again: about what a request takes."""
        return min(60, max(1, math.ceil(self._seconds)))

    def _batcher(self, name: str, elmo: Elmo) -> RequestBatcher:
        batcher = self._batchers.get(name)
        if batcher is None or batcher.elmo is not elmo:
            batcher = self._batchers[name] = RequestBatcher(
                elmo,
                self._executor,
                batch_words=self.limits.batch_words,
                batch_seconds=self.limits.batch_seconds,
                on_batch=self.metrics.observe_batch,
            )
        return batcher

    @asynccontextmanager
    async def _use_model(self, name: str) -> AsyncIterator[Elmo]:
        self.model_info(name)
        async with self._use(self._models[name]) as elmo:
            yield elmo

    @asynccontextmanager
    async def _use(self, slot: Slot[T]) -> AsyncIterator[T]:
        """Load what a slot holds unless it is loaded, and keep it loaded meanwhile."""
        slot.users += 1
        try:
            if slot.value is None:
                if slot.loading is None:
                    slot.loading = asyncio.get_running_loop().create_task(self._load(slot))
                # A client that gives up does not stop the loading, since others wait for it too.
                await asyncio.shield(slot.loading)
            slot.used = time.monotonic()
            assert slot.value is not None  # nothing is unloaded that somebody uses
            yield slot.value
        finally:
            slot.users -= 1
            self._budget.make_room(None, list(self._slots()))

    async def _load(self, slot: Slot[Any]) -> None:
        self._budget.make_room(slot, list(self._slots()))
        started = time.monotonic()
        try:
            slot.value = await self._in_thread(slot.load)
        except Exception as error:
            kind = slot.name if " " in slot.name else f"model {slot.name}"
            log_event("load failed", level=logging.ERROR, error=error, name=slot.name)
            raise ApiError(
                503,
                f"the {kind} could not be loaded; the log of the server says why",
                code="unavailable",
            ) from error
        finally:
            slot.loading = None
        slot.size = slot.measure(slot.value)
        seconds = round(time.monotonic() - started, 3)
        log_event("loaded", name=slot.name, seconds=seconds, bytes=slot.size)
        self._budget.make_room(None, list(self._slots()))

    def _forget(self, slot: Slot[Any]) -> None:
        """Stop the batcher of a model that was unloaded; it has nothing to do any more."""
        log_event("unloaded", name=slot.name, bytes=slot.size)
        batcher = self._batchers.pop(slot.name, None) if slot in self._models.values() else None
        if batcher is not None:
            batcher.stop()

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)


def _tokens(sentence: Sentence) -> list[Token]:
    if isinstance(sentence, str):
        return tokenize(sentence)
    if not all(isinstance(word, str) for word in sentence):
        raise InputError("a sentence is neither a string nor a list of words")
    return [Token(word, -1, -1) for word in sentence]
