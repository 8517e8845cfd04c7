"""Processes find those of the same start, whatever earlier ones have left in the store."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from elmokit.train.joining import agree_on_token


class FakeStore:
    """A store of `torch.distributed` in memory."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)


def start(store: Any, world: int, delays: list[float]) -> list[str]:
    tokens = [""] * world

    def join(rank: int) -> None:
        time.sleep(delays[rank])
        tokens[rank] = agree_on_token(store, rank, world, 10)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tokens


def test_restarts_with_the_same_store() -> None:
    store, seen = FakeStore(), set()
    for delays in ([0, 0, 0], [0.2, 0, 0.1], [0, 0.2, 0], [0.1, 0, 0.3]):
        tokens = start(store, 3, delays)
        assert len(set(tokens)) == 1 and tokens[0]
        seen.add(tokens[0])
    assert len(seen) == 4


def test_somebody_is_missing() -> None:
    store = FakeStore()
    start(store, 3, [0, 0, 0])
    with pytest.raises(TimeoutError, match="no sign of process 1, 2 within"):
        agree_on_token(store, 0, 3, 0.2)
    with pytest.raises(TimeoutError, match="no sign of process 0 within"):
        agree_on_token(store, 1, 3, 0.2)
