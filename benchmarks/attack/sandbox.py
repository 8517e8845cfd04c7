"""Runs cases in forked children with bounded memory and time, and survives what happens there.

A case is a function of its number, and everything random in it comes from that number, so that a
finding can be repeated with `--first NUMBER --cases 1`. A child does many cases; one that crashes,
hangs or fills its memory is a finding, and the next child goes on behind it.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import resource
import select
import signal
import struct
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tally import Tally

from elmokit.errors import ElmoError

CHUNK = 2000
"""Cases that one child does."""
SECONDS = 60
"""Time after which a case hangs; far more than one takes, since the machine may be busy."""
MEMORY = 1 << 30
"""Memory in bytes that a child may map beyond what it was forked with."""
LONGEST_MESSAGE = 2000
"""Characters that an error message may have."""
FORBIDDEN_EVENTS = (
    *("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class"),
    *("socket.connect", "socket.getaddrinfo", "ctypes.dlopen", "os.fork"),
)
"""Audit events of Python that no file may cause."""
_NUMBER = struct.Struct("<q")

Case = Callable[[int, Counter[str]], str | None]
"""Does a case, given its number; counts its outcome, and returns what it found, if anything."""


def run_cases(
    tally: Tally,
    kind: str,
    case: Case,
    numbers: range,
    *,
    memory: int | None = MEMORY,
    seconds: float = SECONDS,
    guard: Path | None = None,
) -> None:
    """Do cases of one kind in children.

    Args:
        tally: Where they are counted.
        kind: Name of the kind.
        case: Does one case.
        numbers: Numbers of the cases.
        memory: What a child may map in addition; None for no limit.
        seconds: What one case may take.
        guard: The only directory in which files may be opened.
    """
    position = numbers.start
    while position < numbers.stop and not tally.is_over:
        end = min(numbers.stop, position + CHUNK)
        position = _run_child(tally, kind, case, range(position, end), memory, seconds, guard)


def _run_child(
    tally: Tally,
    kind: str,
    case: Case,
    numbers: range,
    memory: int | None,
    seconds: float,
    guard: Path | None,
) -> int:
    """Run one child and return the number of the first case that was not done."""
    current = mmap.mmap(-1, _NUMBER.size)  # shared: the case that the child is busy with
    current[:] = _NUMBER.pack(numbers.start)
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(case, numbers, memory, guard, current, writer)
    os.close(writer)
    received, last, since, hangs, stopped = b"", numbers.start, time.monotonic(), False, False
    while True:
        ready, _, _ = select.select([reader], [], [], 0.2)
        if ready:
            data = os.read(reader, 1 << 16)
            if not data:
                break
            received += data
        number = _NUMBER.unpack(current[:])[0]
        if number != last:
            last, since = number, time.monotonic()
        if not stopped and (time.monotonic() - since > seconds or tally.is_over):
            stopped = True
            hangs = not tally.is_over
            os.kill(child, signal.SIGKILL)
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    last = _NUMBER.unpack(current[:])[0]
    for line in received.decode("utf-8", "replace").splitlines():
        with contextlib.suppress(ValueError):  # the child died while it wrote the line
            message = json.loads(line)
            tally.outcomes.update(message.get("outcomes", {}))
            if "finding" in message:
                tally.find(kind, f"case {message['case']}: {message['finding']}")
    done = last - numbers.start
    if status != 0 and not (stopped and not hangs):
        what = f"no end within {seconds:.0f} s" if hangs else f"the process died with {status}"
        tally.find(kind, f"case {last}: {what}")
        done += 1
        last += 1
    tally.counts[kind] += done
    return last


def _child(
    case: Case,
    numbers: range,
    memory: int | None,
    guard: Path | None,
    current: mmap.mmap,
    writer: int,
) -> None:
    outcomes: Counter[str] = Counter()
    code = 1
    try:
        warnings.simplefilter("ignore")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            limit_memory(memory)
        watch = _AuditHook(guard) if guard is not None else None
        for number in numbers:
            current[:] = _NUMBER.pack(number)
            finding = case(number, outcomes)
            if watch is not None and watch.seen:
                finding = f"{finding or ''} it did: {', '.join(sorted(watch.seen))}"
                watch.seen.clear()
            if finding:
                _send(writer, {"case": number, "finding": finding})
        current[:] = _NUMBER.pack(numbers.stop)
        code = 0
    except BaseException:
        text = traceback.format_exc()
        _send(writer, {"case": _NUMBER.unpack(current[:])[0], "finding": text})
    finally:
        _send(writer, {"outcomes": outcomes})
        os._exit(code)


def _send(writer: int, message: object) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(writer, data) :]


def limit_memory(more: int) -> None:
    """Limit what this process may map to what it has mapped and so many bytes more."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more, mapped + more))


class _AuditHook:
    """Notes what Python code does that a file must not make it do."""

    def __init__(self, directory: Path) -> None:
        self.seen: set[str] = set()
        self._allowed = (str(directory), "/proc/", "/sys/", "/dev/null", sys.prefix, *_libraries())
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path = arguments[0]
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            if isinstance(path, str) and not path.startswith(self._allowed):
                self.seen.add(f"open {path[:200]!r}")
        elif event in FORBIDDEN_EVENTS:
            self.seen.add(f"{event} {arguments!r:.200}")


def _libraries() -> Iterator[str]:
    """Yield where modules are imported from, which happens at first use."""
    import sysconfig

    imported = {path for path in sys.path if path.endswith("-packages")}
    yield from {*sysconfig.get_paths().values(), *imported, str(Path(__file__).parents[2])}


def outcome_of(read: Callable[[], object], outcomes: Counter[str]) -> str | None:
    """Do something that must succeed or raise an `ElmoError`; return what is wrong, if anything.

    Args:
        read: What to do.
        outcomes: Where `read` and `refused` are counted.
    """
    try:
        read()
    except ElmoError as error:
        outcomes["refused"] += 1
        message = str(error)
        if not message.strip():
            return f"an empty message: {error!r}"
        if len(message) > LONGEST_MESSAGE:
            return f"a message of {len(message):,} characters: {message[:300]}…"
        return None
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        return " | ".join(line.strip() for line in (*lines[-12:-1], lines[-1][:300]))
    outcomes["read"] += 1
    return None


def choose(names: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """Return the kinds that the command line asks for, in their order."""
    return [name for name in names if not only or name in only]
