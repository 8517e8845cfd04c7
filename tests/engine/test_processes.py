"""The kernel in threads and processes that fail, stop, fork and end.

The same at any scale: `benchmarks/attack/concurrency.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import small_config
from tests.engine.test_native import (
    ODD,
    in_child,
    make_inputs,
    make_state,
    make_weights,
    make_words,
)
from tests.engine.test_native import run as run_network

from elmokit import Elmo
from elmokit.bilm.random import random_bilm
from elmokit.bilm.state import State
from elmokit.engine import native
from elmokit.engine.batching import pack
from elmokit.engine.native import NativeNetwork

if not native.kernel_available():
    pytest.skip(f"the kernel is not built: {native.kernel_error()}", allow_module_level=True)

from elmokit import _native

SANITIZED = "ELMOKIT_SANITIZER" in os.environ
"""Whether .ci/sanitize runs the tests: sanitizers reserve memory and slow everything down."""
SENTENCES = [make_inputs(ODD, length, seed) for seed, length in enumerate([9, 4, 7, 1, 12])]
STATE = make_state(ODD, len(SENTENCES))
LONG = small_config(cells=256, width=3, projection_clip=None)
"""A network whose steps are quick: a call of a million steps runs for a long time."""


def layers_of(network: NativeNetwork) -> bytes:
    return b"".join(layers.tobytes() for layers in run_network(network, SENTENCES, STATE)[0])


def run_script(code: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process that imports what this one imports."""
    path = os.pathsep.join(part for part in sys.path if part)
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": path},
    )


# -- a task that throws ----------------------------------------------------------------------------


@pytest.fixture
def no_failure() -> Iterator[None]:
    yield
    _native.inject_failure(worker=False, after=-1)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("worker", [False, True])
@pytest.mark.parametrize("dtype", native.DTYPES)
def test_the_next_call_works_after_one_that_failed(
    threads: int, worker: bool, dtype: native.Dtype, no_failure: None
) -> None:
    if worker and threads == 1:
        pytest.skip("one thread has no workers")
    network = NativeNetwork(ODD, make_weights(ODD), threads, dtype=dtype)
    words = make_words(ODD, [3, 9, 30] * 20)
    calls: list[Callable[[], bytes]] = [
        lambda: layers_of(network),
        lambda: network.word_vectors(*words).tobytes(),
    ]
    for call in calls:
        wanted = call()
        for after in (0, 1, 2, 5):
            _native.inject_failure(worker=worker, after=after)
            try:
                assert call() == wanted  # fewer synchronizations than that
            except MemoryError:
                pass
            else:
                assert after > 0, "nothing failed"
            _native.inject_failure(worker=worker, after=-1)
            assert call() == wanted


@pytest.mark.skipif(SANITIZED, reason="sanitizers reserve terabytes of address space")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_threads_that_cannot_be_started() -> None:
    """Too little memory for their stacks: an error that says so; the next call works."""
    result = run_script("""
import resource
from tests.engine.test_native_arguments import *
network = make(threads=16)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size + (20 << 20), hard))
try:
    load(network)
except RuntimeError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
results = words(), words()
load(network).word_vectors(*results[0])
load(make(threads=1)).word_vectors(*results[1])
print((results[0][2] == results[1][2]).all())
""")
    first, last = result.stdout.splitlines()
    assert "cannot start thread" in first and "use fewer threads" in first
    assert last == "True"


def test_weights_are_loaded_when_no_call_runs() -> None:
    network = NativeNetwork(ODD, make_weights(ODD), 2)
    document, state = [make_inputs(ODD, 1000)], make_state(ODD, 1)
    before = run_network(network, document, state)[0][0]
    results: list[np.ndarray] = []
    busy = threading.Thread(
        target=lambda: results.append(run_network(network, document, state)[0][0])
    )
    busy.start()
    time.sleep(0.02)
    network._load(make_weights(ODD, seed=1))
    busy.join()
    wanted = run_network(NativeNetwork(ODD, make_weights(ODD, seed=1), 1), document, state)[0][0]
    after = run_network(network, document, state)[0][0]
    assert (after == wanted).all()
    assert (before != wanted).any()


# -- Ctrl-C ----------------------------------------------------------------------------------------


def long_call(network: NativeNetwork, steps: int = 1_000_000) -> Any:
    return network.contextualize(
        np.zeros((steps, LONG.lstm.width), np.float32), pack([steps]), State.zeros(LONG)
    )


def interrupt_after(seconds: float) -> list[float]:
    """Send this process Ctrl-C; return a list that will contain the time."""
    # A process that was started in the background ignores Ctrl-C, and its children do.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent: list[float] = []

    def send() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(seconds, send).start()
    return sent


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_a_long_call_and_the_model_works_afterwards(threads: int) -> None:
    network = NativeNetwork(LONG, make_weights(LONG), threads)
    wanted = long_call(network, 100)[0]
    sent = interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        long_call(network)
    # A quarter of a second on an idle machine; the whole call takes much longer than this bound.
    assert time.monotonic() - sent[0] < 10
    assert (long_call(network, 100)[0] == wanted).all()


def test_ctrl_c_while_waiting_for_another_thread() -> None:
    result = run_script("""
from tests.engine.test_processes import *
network = NativeNetwork(LONG, make_weights(LONG), 2)
threading.Thread(target=long_call, args=(network, 4_000_000), daemon=True).start()
time.sleep(0.5)
interrupt_after(0.3)
try:
    long_call(network)
except KeyboardInterrupt:
    print("stopped")
""")
    assert (result.returncode, result.stdout) == (0, "stopped\n"), result.stderr


def test_a_signal_handler_may_use_other_models_but_not_the_interrupted_one() -> None:
    network, other = (NativeNetwork(LONG, make_weights(LONG), 2) for _ in range(2))
    steps = 40_000
    wanted = long_call(network, steps)[0]
    errors: list[str] = []
    results: list[Any] = []

    def handle(number: int, frame: object) -> None:
        results.append(long_call(other, 10))
        try:
            long_call(network, 10)
        except RuntimeError as error:
            errors.append(str(error))

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        while not results:  # until the signal comes in the middle of a call
            found = long_call(network, steps)[0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (found == wanted).all()
    assert all("interrupted a call of the same model" in error for error in errors)


def test_a_signal_handler_that_forks() -> None:
    """The child has no threads to finish the call with: an error there, the result here."""
    result = run_script("""
from tests.engine.test_processes import *
network = NativeNetwork(LONG, make_weights(LONG), 2)
wanted = long_call(network, 100)[0]
children = []
def handle(number, frame):
    children.append(os.fork())
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    while not children:
        long_call(network, 60_000)
    if not children[0]:
        raise RuntimeError("forked between two calls")
except RuntimeError as error:
    print("child:", error, flush=True)
    print((long_call(network, 100)[0] == wanted).all(), flush=True)
    os._exit(0)
print(os.waitpid(children[0], 0)[1], (long_call(network, 100)[0] == wanted).all())
""")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("child: ") and "fork" in lines[0], result.stderr
    assert lines[1:] == ["True", "0 True"], result.stderr


# -- the end of the process, and children ----------------------------------------------------------


def test_a_process_may_end_while_daemon_threads_embed() -> None:
    """Python ends such threads when they ask for its lock; C++ must not abort the process then."""
    code = """
from tests.engine.test_processes import *
elmo = Elmo(random_bilm(ODD), threads=2)
def work(number):
    while True:
        elmo.embed([f"words {number} {time.monotonic()}"] * 3)
for number in range(3):
    threading.Thread(target=work, args=(number,), daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(3):
        result = run_script(code)
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_children_forked_while_other_threads_embed() -> None:
    """With every lock of the package held by some thread at some fork, no child hangs."""
    elmo = Elmo(random_bilm(small_config()), threads=2)
    sentence = "one sentence for all".split()
    wanted = elmo.embed([sentence])[0].tobytes()
    stop = threading.Event()

    def embed_new_words(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            elmo.embed([[f"{number}-{turn}-{i}" for i in range(50)]])

    threads = [threading.Thread(target=embed_new_words, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        results = [in_child(lambda: elmo.embed([sentence])[0].tobytes()) for _ in range(20)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert results == [wanted] * 20


# -- many models -----------------------------------------------------------------------------------


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep memory that was freed")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_models_that_are_gone_leave_no_memory_and_no_threads() -> None:
    weights = make_weights(ODD)
    words = make_words(ODD, [3, 9, 30])

    def use_models(count: int) -> None:
        for i in range(count):
            network = NativeNetwork(ODD, weights, 3, dtype="int8" if i % 2 else "float32")
            layers_of(network)
            network.word_vectors(*words)
            _native.inject_failure(worker=True, after=1)
            with pytest.raises(MemoryError):
                layers_of(network)

    use_models(10)
    before, threads = resident_bytes(), len(os.listdir("/proc/self/task"))
    use_models(100)
    _native.inject_failure(worker=False, after=-1)
    assert len(os.listdir("/proc/self/task")) == threads
    assert resident_bytes() - before < 20 << 20  # one model has about 2 MB


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep memory that was freed")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_many_threads_and_children_that_make_and_drop_models() -> None:
    """Models appear and disappear in several threads at once, while children do the same."""
    weights, wanted = make_weights(ODD), layers_of(NativeNetwork(ODD, make_weights(ODD), 1))
    wrong: list[int] = []

    def make_and_drop(count: int) -> None:
        for i in range(count):
            if layers_of(NativeNetwork(ODD, weights, 1 + i % 3)) != wanted:
                wrong.append(i)

    def use_threads(count: int) -> None:
        threads = [threading.Thread(target=make_and_drop, args=(count,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        children = [
            in_child(lambda: layers_of(NativeNetwork(ODD, weights, 2))) for _ in range(count // 3)
        ]
        for thread in threads:
            thread.join()
        assert children == [wanted] * len(children)

    use_threads(6)
    before, threads = resident_bytes(), len(os.listdir("/proc/self/task"))
    files = len(os.listdir("/proc/self/fd"))
    use_threads(30)
    assert not wrong
    deadline = time.monotonic() + 30  # a thread that was joined may need a moment to end
    while len(os.listdir("/proc/self/task")) > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) <= threads  # one of an earlier test may have ended
    assert len(os.listdir("/proc/self/fd")) <= files
    assert resident_bytes() - before < 40 << 20  # of 130 models with about 2 MB each


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep memory that was freed")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_functions_of_training_leave_no_memory() -> None:
    width, units, rng = 64, 128, np.random.default_rng(0)
    alive = np.array([3, 2], np.int64)

    def array(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.1, shape).astype(np.float32)

    weights = array(width, 4 * units), array(units, width)
    hidden, cell = array(3, width), array(3, units)
    gates, cells, inner, outputs = (array(5, n) for n in (4 * units, units, units, width))
    gradients = array(3, width), array(3, units), array(5, 4 * units), array(5, width)

    def run_steps(count: int) -> None:
        for _ in range(count):
            options = native.instruction_set(), alive, *weights, 3.0, 3.0
            _native.lstm_forward(*options, hidden, cell, gates, cells, inner, outputs)
            _native.lstm_backward(
                *options, cell, gates, cells, outputs, array(5, width), *gradients
            )

    run_steps(20)
    before = resident_bytes()
    run_steps(200)
    assert resident_bytes() - before < 10 << 20  # a step packs 0.3 MB of weights
