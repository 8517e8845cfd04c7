"""Worker processes: functions of this package, run side by side in other processes.

A worker is a new interpreter that imports this package and nothing of the caller's program. So a
script needs no `if __name__ == "__main__"` around a call that uses workers, as it would with a pool
of the standard library, whose workers import the script again; a notebook, `python -c` and a script
on stdin work as well. Workers are not forked either: the caller may have threads, whose locks a
fork would copy as they are.

A worker gets its calls through its stdin and sends messages and results through its stdout, as
pickles that only the two processes see. What a function prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from elmokit.errors import ElmoError
from elmokit.threads import ThreadPool

R = TypeVar("R")

MessageCallback = Callable[[Any], None]
"""Called with each message of a function, in a thread of the pool."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from elmokit.workers import serve; serve()"
)
_STOPPED = 128 + signal.SIGTERM
"""Exit code of a worker that was asked to stop and saved its work first."""
_MESSAGE, _RESULT, _ERROR = "message", "result", "error"


class WorkerDied(ElmoError):
    """A worker process ended before it returned a result."""


class WorkerPool:
    """Some worker processes, started when they are needed; use it in a `with` block.

    At the end of the block the pool waits for the calls that were submitted; after an error or
    Ctrl-C it asks the workers to stop (SIGTERM), and waits until they have.
    """

    def __init__(self, processes: int) -> None:
        """Prepare a pool of at most this many processes."""
        self._threads = ThreadPool(processes, "elmokit-worker")
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._stopped = False
        self._lock = threading.Lock()

    def submit(
        self, function: Callable[..., R], *args: Any, on_message: MessageCallback | None = None
    ) -> Future[R]:
        """Call a function in a worker; return the future of its result.

        Args:
            function: A function of a module that a worker can import: not of the caller's script.
            args: Its arguments; they are pickled.
            on_message: Called with each message. The function then gets one more argument, the
                last: a function that sends a message.
        """
        return self._threads.submit(self._call, function, args, on_message)

    def stop(self) -> None:
        """Ask all workers to stop, and wait until they have; calls without a result fail."""
        with self._lock:
            self._stopped = True
            for worker in self._workers:
                worker.terminate()
        self._close(cancel=True)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._close()
        else:
            self.stop()

    def _close(self, cancel: bool = False) -> None:
        self._threads.shutdown(cancel_futures=cancel)
        for worker in self._workers:
            worker.close()

    def _call(self, function: Callable[..., R], args: Any, on_message: MessageCallback | None) -> R:
        # Pickled first, so that an error leaves no worker in the middle of a call.
        data = pickle.dumps((function, args, on_message is not None))
        worker = self._take()
        try:
            kind, content = worker.call(data, on_message)
        except BaseException:
            worker.terminate()
            raise
        self._idle.put(worker)
        if kind == _ERROR:
            raise content
        result: R = content
        return result

    def _take(self) -> _Worker:
        """Return an idle worker, or a new one: there is never more than one for each thread."""
        with contextlib.suppress(queue.Empty):
            return self._idle.get_nowait()
        with self._lock:
            if self._stopped:
                raise WorkerDied("the worker processes were stopped")
            self._workers.append(worker := _Worker())
        return worker


class _Worker:
    """A worker process, as the process that started it sees it."""

    def __init__(self) -> None:
        if not sys.executable:
            raise ElmoError(
                "this program has no Python interpreter to start worker processes with "
                "(sys.executable is empty); use one process"
            )
        paths = [path or os.getcwd() for path in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def call(self, data: bytes, on_message: MessageCallback | None) -> tuple[str, Any]:
        """Send a call, pass on its messages, and return the kind and the content of its result."""
        calls, answers = self._process.stdin, self._process.stdout
        assert calls is not None and answers is not None  # they are pipes
        try:
            calls.write(data)
            calls.flush()
        except OSError:
            raise WorkerDied(_describe_end(self._process.wait())) from None
        while True:
            try:
                kind, content = pickle.load(answers)
            except (EOFError, OSError, pickle.UnpicklingError):
                raise WorkerDied(_describe_end(self._process.wait())) from None
            if kind != _MESSAGE:
                return kind, content
            if on_message is not None:
                on_message(content)

    def terminate(self) -> None:
        """Ask the process to stop."""
        if self._process.poll() is None:
            self._process.terminate()

    def close(self) -> None:
        """Let the process end, as it does when its stdin ends, and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()


def _describe_end(code: int) -> str:
    if code in (-signal.SIGTERM, _STOPPED):
        return "a worker process was stopped (SIGTERM)"
    if code < 0:
        memory = ", probably because memory ran out" if code == -9 else ""
        return f"a worker process died: signal {-code} ({signal.strsignal(-code)}){memory}"
    return f"a worker process died with exit code {code}; what it printed is above"


# -- in the worker ---------------------------------------------------------------------------------


def serve() -> None:
    """Do the calls that arrive on stdin until it ends: the main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C too, and stops workers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls: queue.SimpleQueue[tuple[Callable[..., Any], Any, bool]] = queue.SimpleQueue()
    threading.Thread(target=_read_calls, args=(calls,), daemon=True).start()

    def send(kind: str, content: Any) -> None:
        data = pickle.dumps((kind, content))
        answers.write(data)
        answers.flush()

    while True:
        function, args, sends_messages = calls.get()
        try:
            if sends_messages:
                args = (*args, lambda content: send(_MESSAGE, content))
            send(_RESULT, function(*args))
        except BrokenPipeError:
            os._exit(1)
        except KeyboardInterrupt:  # SIGTERM, deferred until the work was saved
            os._exit(_STOPPED)
        except BaseException as error:
            send(_ERROR, _portable(error))


def _read_calls(calls: queue.SimpleQueue[Any]) -> None:
    """Pass on the calls; end this process when there can be no more: the parent may have died."""
    try:
        while True:
            calls.put(pickle.load(sys.stdin.buffer))
    except EOFError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _portable(error: BaseException) -> BaseException:
    """Return an error that can be sent; one that no user should meet brings its traceback."""
    if not isinstance(error, ElmoError):
        error.add_note("".join(["in a worker process:\n", *traceback.format_exception(error)]))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return ElmoError(f"{type(error).__name__} in a worker process: {error}")
    return error
