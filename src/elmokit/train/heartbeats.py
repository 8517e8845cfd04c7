"""Signs of life between the processes that train together.

A thread of every process writes a beat to the store of torchrun every few seconds, and reads those
of the others. So a process that works for long (it evaluates, or writes a large checkpoint to a
slow disk) can be told from one that is dead or cut off, and an error can name it.

Only that thread uses the store: a call may block for as long as the network is down.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from elmokit.threads import BackgroundThread

BEAT_SECONDS = 2.0
"""Time between two beats."""
POLL_SECONDS = 0.05
"""Time between two beats while somebody waits for another process."""


@dataclass
class Beat:
    """What a process tells the others about itself."""

    host: str
    """Name of its machine."""
    number: int = 0
    """Grows with every beat."""
    arrived: int = 0
    """Number of meeting points that the process has reached."""
    left: bool = False
    """Whether it has left the group, at its end or because of an error."""


class Heartbeats:
    """The beats of this process and of all others."""

    def __init__(self, store: Any, rank: int, world: int) -> None:
        """Write the first beat; `start` begins to read those of the others.

        Args:
            store: A `torch.distributed` store that all processes share.
            rank: Number of this process.
            world: Number of processes.
        """
        self._store, self._name = store, "beat/{}".format
        self._rank = rank
        self._own = Beat(socket.gethostname())
        self._beats: dict[int, Beat] = {}
        self._changed: dict[int, float] = {}
        self._others = [other for other in range(world) if other != rank]
        self._wake, self._ended = threading.Event(), threading.Event()
        self._read = 0.0
        self._interval = BEAT_SECONDS
        self._publish()

    def start(self) -> None:
        """Begin to read; all processes must have written their first beat."""
        self._read_others()
        BackgroundThread(self._run, "heartbeats").start()

    def arrive(self) -> int:
        """Tell the others that this process is at the next meeting point; return its number."""
        self._own.arrived += 1
        self._wake.set()
        return self._own.arrived

    def missing(self, meeting: int) -> list[int]:
        """Return the processes that have not reached a meeting point yet."""
        return [other for other in self._others if self._beats[other].arrived < meeting]

    def silence(self, rank: int) -> float:
        """Return how many seconds ago a process was last heard from."""
        return time.monotonic() - self._changed[rank]

    def has_left(self, rank: int) -> bool:
        """Return whether a process has said that it leaves."""
        return self._beats[rank].left

    def name(self, rank: int) -> str:
        """Return the name of a process for messages, such as `process 1 (on node02)`."""
        return f"process {rank} (on {self._beats[rank].host})"

    def wait_faster(self, waiting: bool) -> None:
        """Beat and read more often while this process waits for others."""
        self._interval = POLL_SECONDS if waiting else BEAT_SECONDS
        self._wake.set()

    def find_silent(self) -> tuple[list[int], list[int]]:
        """Return the processes that no longer answer, and those that have left; takes seconds.

        All others are taken as silent if the store itself no longer answers.
        """
        asked = time.monotonic()
        self.wait_faster(True)
        while time.monotonic() < asked + 2.5 * BEAT_SECONDS:
            time.sleep(POLL_SECONDS)
        left = [other for other in self._others if self.has_left(other)]
        since = asked + BEAT_SECONDS / 4  # what a dead process has written before is read till then
        silent = [o for o in self._others if o not in left and self._changed[o] < since]
        return silent, left

    @property
    def store_answers(self) -> bool:
        """Whether the store has answered lately."""
        return time.monotonic() - self._read < 2 * BEAT_SECONDS

    @property
    def store_is_gone(self) -> bool:
        """Whether the connection to the store is broken: whoever has held it is dead."""
        return self._ended.is_set()

    def leave(self) -> None:
        """Tell the others that this process leaves, if the store can be reached, and stop."""
        self._own.left = True
        self._wake.set()
        self._ended.wait(BEAT_SECONDS)

    def _run(self) -> None:
        try:
            while True:
                self._wake.wait(self._interval)
                self._wake.clear()
                is_last = self._own.left
                self._publish()
                if is_last:
                    return
                self._read_others()
        except Exception:  # the store is gone; whoever waits sees that nobody beats
            pass
        finally:
            self._ended.set()

    def _publish(self) -> None:
        self._own.number += 1
        self._store.set(self._name(self._rank), json.dumps(asdict(self._own)))

    def _read_others(self) -> None:
        values = self._store.multi_get([self._name(other) for other in self._others])
        self._read = time.monotonic()
        for other, value in zip(self._others, values, strict=True):
            beat = Beat(**json.loads(value))
            if other not in self._beats or beat.number != self._beats[other].number:
                self._beats[other], self._changed[other] = beat, self._read
