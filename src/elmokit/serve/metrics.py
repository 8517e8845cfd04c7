"""Counters, histograms and gauges of a server, in Prometheus' text format."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of the text format."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Buckets of times in seconds."""
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""Buckets of numbers of sentences and words."""

Labels = tuple[tuple[str, str], ...]


class MetricCounter:
    """A number that only grows, for each combination of labels."""

    def __init__(self, name: str, text: str) -> None:
        """Make a counter with its name and a sentence about it."""
        self._head = f"# HELP {name} {text}\n# TYPE {name} counter\n"
        self._name = name
        self._values: dict[Labels, float] = {}

    def add(self, amount: float, **labels: str) -> None:
        """Add to the number of these labels; in the thread of the server only."""
        key = tuple(labels.items())
        self._values[key] = self._values.get(key, 0) + amount

    def render(self) -> str:
        """Return the counter as text."""
        lines = (f"{self._name}{_braces(key)} {v:.15g}\n" for key, v in self._values.items())
        return self._head + "".join(lines)


class MetricHistogram:
    """How often a number was how large, for each combination of labels."""

    def __init__(self, name: str, text: str, buckets: Sequence[float]) -> None:
        """Make a histogram with its name, a sentence about it and its upper bounds."""
        self._head = f"# HELP {name} {text}\n# TYPE {name} histogram\n"
        self._name = name
        self._buckets = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def observe(self, value: float, **labels: str) -> None:
        """Count a number; from any thread."""
        key = tuple(labels.items())
        with self._lock:
            counts = self._counts.setdefault(key, [0] * (len(self._buckets) + 1))
            counts[bisect_left(self._buckets, value)] += 1
            self._sums[key] = self._sums.get(key, 0.0) + value

    def render(self) -> str:
        """Return the histogram as text."""
        lines = [self._head]
        with self._lock:
            for key, counts in self._counts.items():
                total = 0
                for bound, count in zip((*self._buckets, "+Inf"), counts, strict=True):
                    total += count
                    labels = _braces((*key, ("le", f"{bound}")))
                    lines.append(f"{self._name}_bucket{labels} {total}\n")
                lines.append(f"{self._name}_sum{_braces(key)} {self._sums[key]:.15g}\n")
                lines.append(f"{self._name}_count{_braces(key)} {total}\n")
        return "".join(lines)


class ServerMetrics:
    """All that a server counts."""

    def __init__(self) -> None:
        """Start from zero."""
        self.requests = MetricCounter("elmo_requests_total", "Requests answered.")
        self.seconds = MetricHistogram(
            "elmo_request_seconds", "Time from the head of a request to its answer.", SECONDS
        )
        self.words = MetricCounter("elmo_words_total", "Words embedded.")
        self._batch_sentences = MetricHistogram(
            "elmo_batch_sentences", "Sentences per computed batch.", SIZES
        )
        self._batch_words = MetricHistogram("elmo_batch_words", "Words per computed batch.", SIZES)
        self._queue: Callable[[], int] = lambda: 0
        self._loaded: Callable[[], Mapping[str, int]] = dict
        self._started = time.time()

    def watch(self, queue: Callable[[], int], loaded: Callable[[], Mapping[str, int]]) -> None:
        """Set where current numbers come from.

        Args:
            queue: Returns the number of requests that wait or are computed.
            loaded: Returns the bytes of everything that is loaded, by name.
        """
        self._queue, self._loaded = queue, loaded

    def observe_batch(self, sentences: int, words: int) -> None:
        """Count a batch; from any thread."""
        self._batch_sentences.observe(sentences)
        self._batch_words.observe(words)

    def render(self) -> str:
        """Return everything in Prometheus' text format."""
        parts = [
            self.requests.render(),
            self.seconds.render(),
            self.words.render(),
            self._batch_sentences.render(),
            self._batch_words.render(),
            _gauge(
                "elmo_queue_requests",
                "Requests that wait or are being computed.",
                {(): self._queue()},
            ),
            _gauge(
                "elmo_loaded_bytes",
                "Estimated memory of each model, task model and index in memory.",
                {(("name", name),): size for name, size in self._loaded().items()},
            ),
            _gauge(
                "process_start_time_seconds",
                "Start of the process since the Unix epoch.",
                {(): round(self._started, 3)},
            ),
        ]
        resident = _resident_bytes()
        if resident is not None:
            parts.append(
                _gauge("process_resident_memory_bytes", "Resident memory.", {(): resident})
            )
        return "".join(parts)


def _gauge(name: str, text: str, values: Mapping[Labels, float]) -> str:
    lines = (f"{name}{_braces(key)} {value:.15g}\n" for key, value in values.items())
    return f"# HELP {name} {text}\n# TYPE {name} gauge\n" + "".join(lines)


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = (
        f'{name}="{value}"'
        for name, value in (
            (name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
            for name, value in labels
        )
    )
    return "{" + ",".join(escaped) + "}"


def _resident_bytes() -> int | None:
    """Return the resident memory of this process; None where the system does not tell."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (ImportError, OSError, ValueError, IndexError):
        return None
