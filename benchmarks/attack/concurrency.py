"""Forks, spawns, exits and interrupts processes while they embed, at any scale.

    python benchmarks/attack/concurrency.py --cases 100
    python benchmarks/attack/concurrency.py --only fork --cases 10000 --seconds 3600

The kinds of cases, which take turns:

fork       a process whose other threads embed forks; the child embeds and must get the same bits
exit       a process ends while its daemon threads embed; its exit code must be 0
threads    several threads use several models at once; every vector has the same bits
interrupt  Ctrl-C comes at a random moment; the model must work afterwards, with the same bits
failure    memory runs out at a random moment in a random thread; likewise
models     models are made, used and dropped; memory and threads must not grow
spawn      worker processes load the model from a file and embed; the same bits

A child that does not answer within two minutes hangs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from tally import Tally, parse_arguments

from elmokit import Elmo
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.random import random_bilm
from elmokit.engine import native

SENTENCES = [["all", "children", "embed", "this"], ["and", "this", "one", "too", "."]]
CONFIG = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 8), (3, 24)), highways=1),
    lstm=LSTMConfig(cells=96, width=24),
)
KINDS = ["fork", "exit", "threads", "interrupt", "failure", "models", "spawn"]
DOCUMENT = ["word"] * 200_000
"""Text that takes half a second, for `interrupt`."""
TIMEOUT = 120
"""Seconds after which a process or a thread hangs."""
LEAK = 32 << 20
"""Growth of memory in bytes, over all cases of `models`, that counts as a leak."""


class Finding(Exception):
    """What a case has found."""


def new_model(seed: int = 0, threads: int = 2, dtype: str = "float32") -> Elmo:
    """Return a small model."""
    return Elmo(random_bilm(CONFIG, seed=seed), threads=threads, dtype=dtype)


def digest(elmo: Elmo) -> str:
    """Return a checksum of the vectors of the sentences."""
    vectors = elmo.embed(SENTENCES, layers="all")
    return hashlib.sha256(b"".join(array.tobytes() for array in vectors)).hexdigest()


@contextlib.contextmanager
def busy(elmo: Elmo, threads: int = 2) -> Iterator[None]:
    """Embed words that are not cached in other threads, within the block."""
    stop = threading.Event()

    def work(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            with contextlib.suppress(MemoryError):  # of `failure`
                elmo.embed([[f"{number}-{turn}-{i}" for i in range(20)]])

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        stop.set()
        for worker in workers:
            worker.join()


class Attack:
    """The models under attack, and the cases."""

    def __init__(self, seed: int) -> None:
        """Load the models.

        Args:
            seed: Random seed.
        """
        self.random = random.Random(seed)
        self.elmo = new_model()
        self.wanted = digest(self.elmo)
        self.others = [
            new_model(seed, threads, dtype)
            for seed, threads, dtype in ((0, 1, "float32"), (1, 2, "int8"), (2, 3, "float32"))
        ]
        self.wanted_of_others = [digest(other) for other in self.others]
        self.memory = 0
        self.directory = tempfile.TemporaryDirectory()

    def check(self, elmo: Elmo | None = None) -> None:
        """Raise a finding if a model does not compute what it did."""
        if digest(elmo or self.elmo) != self.wanted:
            raise Finding("other vectors than before")

    def fork(self) -> None:
        """Fork once; the caller keeps other threads busy."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, digest(self.elmo).encode())
            finally:
                os._exit(0)
        os.close(writer)
        ready, _, _ = select.select([reader], [], [], TIMEOUT)
        answer = os.read(reader, 100).decode() if ready else ""
        os.close(reader)
        if not ready:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if not ready:
            raise Finding(f"a child hangs: no answer within {TIMEOUT} s")
        if status:
            raise Finding(f"a child died with status {status}")
        if answer != self.wanted:
            raise Finding("a child computed other vectors")

    def exit(self) -> None:
        """Let a process with daemon threads end at a random moment."""
        code = (
            "import sys, threading, time; import concurrency as c\n"
            "elmo = c.new_model()\n"
            "def work(n):\n"
            "    while True: elmo.embed([[f'{n}-{time.monotonic()}-{i}' for i in range(20)]])\n"
            "for n in range(3): threading.Thread(target=work, args=(n,), daemon=True).start()\n"
            f"time.sleep({self.random.uniform(0, 0.1)})\n"
        )
        done = self.run_script(code)
        if done.returncode or done.stderr:
            raise Finding(f"exit code {done.returncode}: {done.stderr[-300:]!r}")

    def run_script(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run a script that can import this one in a new process."""
        path = [str(Path(__file__).parent), *(part for part in sys.path if part)]
        try:
            return subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            )
        except subprocess.TimeoutExpired:
            raise Finding(f"a process hangs: no end within {TIMEOUT} s") from None

    def threads(self) -> None:
        """Use all models in several threads each."""
        wrong: list[int] = []

        def work(number: int) -> None:
            for _ in range(5):
                if digest(self.others[number]) != self.wanted_of_others[number]:
                    wrong.append(number)
                self.others[number].clear_word_cache()

        workers = [threading.Thread(target=work, args=(i % 3,)) for i in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(TIMEOUT)
            if worker.is_alive():
                raise Finding("a thread hangs")
        if wrong:
            raise Finding(f"other vectors in {len(wrong)} of 30 calls")

    def interrupt(self) -> None:
        """Send Ctrl-C to this process while it embeds a long document."""
        timer = threading.Timer(self.random.uniform(0, 0.5), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            self.elmo.embed([DOCUMENT])
            timer.join()
            time.sleep(0.01)  # for a signal that comes after the last instruction
        except KeyboardInterrupt:
            pass
        timer.join()
        self.check()

    def failure(self) -> None:
        """Let memory run out at a random synchronization of a random thread."""
        after = self.random.randrange(60)
        native._native.inject_failure(worker=bool(self.random.randrange(2)), after=after)
        with contextlib.suppress(MemoryError):
            digest(self.elmo)
        native._native.inject_failure(worker=False, after=-1)
        self.check()

    def models(self) -> None:
        """Make, use and drop models."""
        for i in range(10):
            self.check(new_model(threads=1 + i % 4))
        if not Path("/proc/self/statm").exists() or "ELMOKIT_SANITIZER" in os.environ:
            return
        if not self.memory:
            self.elmo.embed([DOCUMENT])  # what `interrupt` takes is no leak
        self.elmo.clear_word_cache()  # the other threads fill it up to its bound
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        self.memory = self.memory or memory
        if memory - self.memory > LEAK:
            raise Finding(f"memory grew from {self.memory >> 20} to {memory >> 20} MB")

    def spawn(self) -> None:
        """Load the model from a file in a new process."""
        path = Path(self.directory.name) / "model"
        if not path.exists():
            self.elmo.save(path)
        code = (
            "import concurrency as c; from elmokit import Elmo\n"
            f"print(c.digest(Elmo.load({str(path)!r}, threads=2)))"
        )
        done = self.run_script(code)
        if done.stdout.strip() != self.wanted:
            raise Finding(f"a new process computed other vectors: {done.stderr[-300:]!r}")


def main() -> None:
    """Run the attack."""
    arguments = parse_arguments(__doc__, KINDS, cases=10)
    warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork, about threads
    tally = Tally("concurrency", arguments.seed, arguments.seconds)
    attack = Attack(arguments.seed)
    with busy(attack.elmo):
        for _ in range(arguments.cases):
            for kind in arguments.only or KINDS:
                if tally.is_over:
                    break
                try:
                    getattr(attack, kind)()
                except Finding as finding:
                    tally.add(kind, str(finding))
                else:
                    tally.add(kind)
    tally.finish()


if __name__ == "__main__":
    main()
