"""Kills commands at random moments, and compares what they finally write with an undisturbed run.

    python benchmarks/attack/kill.py --cases 50
    python benchmarks/attack/kill.py --only embed-h5 --only convert --cases 1000 --seed 7

A case runs a command several times in a directory of its own. All but the last run get SIGKILL:
half of them after a random time, half of them before a random step that changes the disk (a rename,
a removal, a new directory, a flush), so that the moments between two renames are hit too. The last
run must succeed. Then the directory must hold the same files as after an undisturbed run, byte for
byte, and nothing else. `convert` and `overwrite-pair` replace a model that exists: after every kill
the old or the new one must load, never none and never a mixture. `server` is killed while it starts
and while it answers; the next one must take its port and give the same vectors.

The commands run in forked children of one process, which has imported everything; so a case takes
a fraction of a second, and hundreds of thousands are possible.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import http.server
import importlib
import json
import mmap
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tally import Tally, parse_arguments

import elmokit.cli
from elmokit import Elmo
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.random import random_bilm

STEPS = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync")
"""Functions of `os` before which a process may die."""
SECONDS = 300
"""Time after which a run hangs."""
KILLS = 3
"""Number of killed runs of a case at most."""
WORDS = "ant bee cat dog elk fox gnu hen ibex jay kite lynx".split()
SERVER = "server"
"""Name of the scenario in which a server is killed."""
PREPARED = ("elmokit", "torch", "numpy", "h5py", "pyarrow", "usearch", "safetensors", "scipy")
"""Packages that are imported before a process is forked."""
IGNORED = ("*.lock",)
"""Files that are never removed and have no content."""


@dataclass(frozen=True)
class Scenario:
    """A command to kill."""

    arguments: Callable[[Path], list[str]]
    """Arguments of `elmo` for the next run in a directory."""
    compare: tuple[str, ...] = ("out*",)
    """Patterns of the files in the directory that must equal those of an undisturbed run."""
    setup: Callable[[Path], None] = lambda directory: None
    """Prepares the directory of a case."""
    check: Callable[[Path], None] = lambda directory: None
    """Called after every kill; raises if a promise is broken."""


# -- running and killing -----------------------------------------------------------------------


def run(
    arguments: list[str],
    directory: Path,
    step: int | None,
    delay: float | None,
    *,
    log: Path | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> int:
    """Run `elmo` in a forked child and return its exit code, negative if it was killed.

    Args:
        arguments: Arguments of the command.
        directory: Its working directory.
        step: Die before this step that changes the disk.
        delay: Die after so many seconds.
        log: File of everything that it prints; by default the file `log` of the directory.
        prepare: Called in the child before the command.
    """
    child = os.fork()
    if child == 0:
        _run_in_child(arguments, directory, step, log, prepare)
    deadline = time.monotonic() + (SECONDS if delay is None else delay)
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            if delay is None:
                raise TimeoutError(f"elmo {' '.join(arguments)} hangs")
            return -signal.SIGKILL
        time.sleep(0.001)


def _run_in_child(
    arguments: list[str],
    directory: Path,
    step: int | None,
    log: Path | None = None,
    prepare: Callable[[], None] = lambda: None,
) -> None:
    code = 70
    try:
        os.chdir(directory)
        opened = os.open(log or directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(opened, descriptor)
        os.close(opened)
        prepare()
        if step is not None:
            _die_before(step)
        try:
            elmokit.cli.main(arguments)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die_before(step: int) -> None:
    remaining = step

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(real)
        def call(*arguments: object, **options: object) -> object:
            nonlocal remaining
            remaining -= 1
            if remaining < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, dying(getattr(os, name)))


def _count_steps(counter: mmap.mmap) -> None:
    """Count the steps of this process in memory that another one shares."""
    steps = 0

    def counting(real: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(real)
        def call(*arguments: object, **options: object) -> object:
            nonlocal steps
            steps += 1
            counter[:8] = steps.to_bytes(8, "little")
            return real(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, counting(getattr(os, name)))


def _report_modules(path: Path) -> None:
    """Write the names of all modules that this process has imported when it ends."""
    end = os._exit

    def report(code: int) -> None:
        path.write_text("\n".join(sys.modules))
        end(code)

    os._exit = report  # type: ignore[assignment]


def import_from(path: Path) -> None:
    """Import the modules that another process has imported, so that the next ones need not."""
    for name in path.read_text().splitlines():
        if name.partition(".")[0] in PREPARED and name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def contents(directory: Path, patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the checksum of every file of a directory that patterns select, hidden ones too."""
    files = {}
    for pattern in patterns:
        for top in (*directory.glob(pattern), *directory.glob(f".{pattern}")):
            for path in [top] if top.is_file() else top.rglob("*"):
                name = path.relative_to(directory).as_posix()
                if path.is_dir():
                    files[f"{name}/"] = ""
                elif not any(path.match(ignored) for ignored in IGNORED):
                    files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return files


def all_names(directory: Path) -> set[str]:
    """Return the names of everything in the directory of a case, but what every run writes."""
    found = set()
    for path in directory.rglob("*"):  # which follows no links
        if path.name != "log" and not any(path.match(ignored) for ignored in IGNORED):
            found.add(path.relative_to(directory).as_posix())
    return found


class ServerAttack:
    """A server that is killed at random moments, also while it answers, and started again."""

    steps = 0

    def __init__(self, root: Path, material: Path) -> None:
        """Start the server undisturbed, to learn its answer and how long it takes to start."""
        self.root, self.material = root, material
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        start = time.monotonic()
        child = self.start()
        self.wanted = self.wait_for_answer()
        self.duration = time.monotonic() - start
        self.stop(child)

    def start(self) -> int:
        """Start the server in a forked child."""
        child = os.fork()
        if child == 0:
            options = ["--model", str(self.material / "model"), "--port", str(self.port)]
            _run_in_child(["serve", *options], self.root, None)
        return child

    def stop(self, child: int) -> None:
        """Kill the server."""
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    def ask(self) -> list[list[float]]:
        """Return the vectors that the server answers; raise `OSError` if it does not."""
        body = json.dumps({"model": "model", "input": ["a cat sat .", "it rains"]}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/embeddings",
            body,
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return [entry["embedding"] for entry in json.loads(answer.read())["data"]]

    def wait_for_answer(self) -> list[list[float]]:
        """Ask until the server answers."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return self.ask()
            except (OSError, ValueError, http.client.HTTPException) as error:
                if time.monotonic() > deadline:
                    log = (self.root / "log").read_text(errors="replace")[-1500:]
                    raise AssertionError(f"the server does not answer: {error!r}: {log}") from None
                time.sleep(0.02)

    def case(self, number: int, source: random.Random, tally: Tally) -> str | None:
        """Kill some servers while they start or answer; the last one must answer as ever."""
        for _ in range(source.randint(1, KILLS)):
            child = self.start()
            killer = threading.Timer(source.uniform(0, 1.5 * self.duration), self.stop, (child,))
            killer.start()
            while killer.is_alive():
                with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                    if self.ask() != self.wanted:
                        killer.join()
                        return f"case {number}: other vectors before the kill"
                time.sleep(0.005)
            tally.outcomes["killed"] += 1
        child = self.start()
        try:
            found = self.wait_for_answer()
        except AssertionError as error:
            return f"case {number}: {error}"
        finally:
            self.stop(child)
        return None if found == self.wanted else f"case {number}: other vectors"


class Attack:
    """One scenario: its undisturbed result, and cases."""

    def __init__(self, scenario: Scenario, root: Path, material: Path) -> None:
        """Run the command undisturbed, to learn its result, its duration and its steps."""
        self.scenario, self.root, self.material = scenario, root, material
        modules = root / "modules"
        counter = mmap.mmap(-1, 8)  # shared
        self.duration = 0.0
        for name, prepare in (
            ("calm", lambda: _report_modules(modules)),
            ("calm-again", lambda: _count_steps(counter)),
        ):
            directory = self.new_directory(name)
            start = time.monotonic()
            self.finish(directory, prepare)
            self.duration = time.monotonic() - start
            self.wanted = contents(directory, scenario.compare)
            self.names = all_names(directory)
            shutil.rmtree(directory)
            import_from(modules)
        assert self.wanted, "the command writes nothing"
        self.steps = int.from_bytes(counter[:8], "little")

    def new_directory(self, name: str) -> Path:
        """Make a directory with everything that the command reads."""
        directory = self.root / name
        directory.mkdir()
        for path in self.material.iterdir():
            (directory / path.name).symlink_to(path)
        self.scenario.setup(directory)
        return directory

    def finish(self, directory: Path, prepare: Callable[[], None] = lambda: None) -> None:
        """Run the command to its end; raise `AssertionError` if it fails."""
        arguments = self.scenario.arguments(directory)
        code = run(arguments, directory, None, None, prepare=prepare)
        if code != 0:
            log = (directory / "log").read_text(errors="replace")[-1500:]
            raise AssertionError(f"elmo {' '.join(arguments)} ends with {code}: {log}")

    def case(self, number: int, source: random.Random, tally: Tally) -> str | None:
        """Kill some runs, finish the last, and return what is wrong, if anything."""
        directory = self.new_directory(f"case-{number}")
        moments = []
        try:
            for _ in range(source.randint(1, KILLS)):
                step, delay = None, None
                if source.random() < 0.5:
                    step = source.randrange(self.steps)
                else:
                    delay = source.uniform(0, 1.1 * self.duration)
                moments.append(f"step {step}" if delay is None else f"{delay:.3f} s")
                code = run(self.scenario.arguments(directory), directory, step, delay)
                tally.outcomes["killed" if code < 0 else "ended before the kill"] += 1
                if code > 0:
                    log = (directory / "log").read_text(errors="replace")[-1500:]
                    return f"case {number}, after {moments}: exit code {code}: {log}"
                self.scenario.check(directory)
            self.finish(directory)
            self.scenario.check(directory)
        except Exception as error:
            return f"case {number}, after {moments}: {error!r}"
        found = contents(directory, self.scenario.compare)
        more = all_names(directory) - self.names
        shutil.rmtree(directory)
        if more:
            return f"case {number}, after {moments}: leftovers: {sorted(more)}"
        if found != self.wanted:
            names = {n for n in {*found, *self.wanted} if found.get(n) != self.wanted.get(n)}
            return f"case {number}, after {moments}: other files: {sorted(names)}"
        return None


# -- scenarios ---------------------------------------------------------------------------------


def embed(name: str, *options: str) -> Scenario:
    """Embed a text to a file."""
    command = ["embed", "-m", "model", "--threads", "1", "--file", "text.txt", "--out", name]
    return Scenario(lambda directory: [*command, *options])


def resumed(command: list[str], again: list[str], begun: str, *patterns: str) -> Scenario:
    """A command that is continued by another one once a file exists in its directory."""
    return Scenario(
        lambda directory: again if (directory / begun).exists() else command,
        patterns,
    )


def replace_model(target: str, format: str) -> Scenario:
    """Convert a model over another one that exists."""

    def setup(directory: Path) -> None:
        Elmo(random_bilm(TINY, seed=1), threads=1).save(directory / target, format)

    def check(directory: Path) -> None:
        found = Elmo.load(directory / target, threads=1).bilm.fingerprint
        assert found in fingerprints(), f"a model that is neither the old nor the new one: {found}"

    command = ["convert", "model", target, "--format", format, "--force"]
    return Scenario(lambda directory: command, (f"{target.partition('.')[0]}*",), setup, check)


@functools.cache
def fingerprints() -> tuple[str, str]:
    """Return the fingerprints of the two models that replace each other."""
    return tuple(random_bilm(TINY, seed=seed).fingerprint for seed in (0, 1))  # type: ignore[return-value]


TINY = BiLMConfig(
    char_cnn=CharCNNConfig(
        filters=((1, 4), (2, 5)), highways=1, embedding_dim=4, max_characters=12
    ),
    lstm=LSTMConfig(cells=16, width=8),
)


def scenarios(address: str) -> dict[str, Scenario]:
    """Return all scenarios by name.

    Args:
        address: Where the model can be downloaded from.
    """
    ner = ["task", "train", "ner", "--train", "ner.conll", "--dev", "ner.conll", "--elmo", "model"]
    ner += ["--vectors", "none", "--epochs", "2", "--size", "hidden=8"]
    pretrain = ["pretrain", "corpus", "--config", "config.json", "--epochs", "4", "--shards", "1"]
    pretrain += ["--batch", "150", "--negatives", "10", "--checkpoint-minutes", "0"]
    finetune = ["finetune", "trained", "text.txt", "--tokenized", "--epochs", "2", "--shards", "1"]
    neighbors = ["neighbors", "cat", "--in", "a cat .", "-m", "model", "--threads", "1"]
    neighbors += ["--corpus", "text.txt", "--index", "out"]
    shards = ["embed", "-m", "model", "--threads", "1", "--file", "text.txt", "--out", "out"]
    shards += ["--shards", "3", "--workers", "1", "--reduce", "sentence"]
    return {
        "embed-h5": embed("out.h5"),
        "embed-npz": embed("out.npz"),
        "embed-parquet": embed("out.parquet"),
        "embed-words": embed("out.parquet", "--rows", "words"),
        "corpus": Scenario(
            lambda directory: (
                ["corpus", "text.txt", "--tokenized", "--out", "out"]
                + (["--force"] if (directory / "out").exists() else [])
            )
        ),
        "convert": replace_model("out", "native"),
        "overwrite-pair": replace_model("out.hdf5", "allennlp"),
        "pretrain": resumed(
            [*pretrain, "--out", "out"],
            [*pretrain, "--out", "out", "--resume"],
            "out/training/run.json",
            "out/*.safetensors",
            "out/*.json",
            "out/*.txt",
        ),
        "finetune": resumed(
            [*finetune, "--out", "out"],
            ["finetune", "trained", "text.txt", "--out", "out", "--resume"],
            "out/training/run.json",
            "out/*.safetensors",
            "out/*.json",
            "out/*.txt",
        ),
        "pretrain-again": Scenario(
            lambda directory: [*pretrain, "--out", "out", "--auto-resume"],
            ("out/*.safetensors", "out/*.json", "out/*.txt"),
        ),
        "finetune-again": Scenario(
            lambda directory: [*finetune, "--out", "out", "--auto-resume"],
            ("out/*.safetensors", "out/*.json", "out/*.txt"),
        ),
        "neighbors": Scenario(lambda directory: neighbors),
        "shards": Scenario(
            lambda directory: shards,
            ("out/*.npz", "out/*/*", "out/.*"),  # plan.json names the directory of the text
        ),
        "task": resumed(
            [*ner, "--out", "out"],
            [*ner, "--out", "out", "--resume"],
            "out/training/plan.json",
            "out/*.safetensors",
        ),
        "download": Scenario(
            lambda directory: ["embed", "-m", f"{address}/model.zip", "--out", "out.npz", "a cat"],
            ("out*", "cache"),
            setup=lambda directory: os.environ.update(ELMOKIT_CACHE=str(directory / "cache")),
        ),
    }


@contextlib.contextmanager
def make_material() -> Iterator[tuple[Path, str]]:
    """Make the models and texts that the commands read; yield their directory and an address."""
    source = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        lines = [" ".join(source.choices(WORDS, k=source.randint(2, 8))) for _ in range(400)]
        (root / "text.txt").write_text("\n".join(lines) + "\n")
        pairs = ((word, "B-BIRD" if word in ("hen", "jay", "kite") else "O") for word in WORDS)
        entities = [f"{word} -X- _ {label}" for word, label in pairs]
        (root / "ner.conll").write_text("\n\n".join("\n".join(entities) for _ in range(30)) + "\n")
        Elmo(random_bilm(TINY, seed=0), threads=1).save(root / "model")
        Elmo(random_bilm(TINY, seed=0), threads=1).save(root / "model.zip")
        (root / "config.json").write_text(json.dumps(TINY.to_dict()))
        cwd = root / "making"
        cwd.mkdir()
        for command in (
            ["corpus", str(root / "text.txt"), "--tokenized", "--out", str(root / "corpus")],
            [
                *("pretrain", str(root / "corpus"), "--config", str(root / "config.json")),
                *("--epochs", "1", "--out", str(root / "trained"), "--shards", "1"),
            ],
        ):
            code = run(command, cwd, None, None)
            assert code == 0, (cwd / "log").read_text()
        shutil.rmtree(cwd)
        handler = functools.partial(_QuietHandler, directory=str(root))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield root, f"http://127.0.0.1:{server.server_port}"
            server.shutdown()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *message: object) -> None:
        """Print nothing."""


def main() -> None:
    """Attack all scenarios, or those of the command line."""
    names = [*scenarios(""), SERVER]
    arguments = parse_arguments(__doc__ or "", names, 50)
    import torch  # before the forks, which have one thread

    torch.set_num_threads(1)
    tally = Tally("kill", arguments.seed, arguments.seconds)
    with make_material() as (material, address), tempfile.TemporaryDirectory() as root:
        for name in arguments.only or names:
            source = random.Random(f"{arguments.seed} {name}")
            directory = Path(root) / name
            directory.mkdir()
            attack: Attack | ServerAttack
            try:
                if name == SERVER:
                    attack = ServerAttack(directory, material)
                else:
                    attack = Attack(scenarios(address)[name], directory, material)
            except AssertionError as error:
                tally.add(name, f"an undisturbed run fails: {error}")
                continue
            for number in range(arguments.cases):
                if tally.is_over:
                    break
                tally.add(name, attack.case(number, source, tally))
            print(
                f"{name}: {tally.counts[name]} cases, {attack.steps} steps, "
                f"{attack.duration:.2f} s undisturbed",
                flush=True,
            )
    tally.finish()


if __name__ == "__main__":
    main()
