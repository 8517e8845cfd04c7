"""Memory that the C library keeps."""

from __future__ import annotations

import pytest

from elmokit.train.malloc import keep_freed_memory


def test_the_largest_threshold_that_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    class Old:
        """A glibc that grants no more than 32 MiB."""

        def mallopt(self, what: int, size: int) -> int:
            asked.append((what, size))
            return int(what == -1 or size <= 1 << 25)

    monkeypatch.setattr("elmokit.train.malloc.ctypes.CDLL", lambda name: Old())
    assert keep_freed_memory()
    assert asked == [(-3, 1 << 30), (-3, 1 << 25), (-1, 1 << 30)]
    monkeypatch.setattr("elmokit.train.malloc.ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()
