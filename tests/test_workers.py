"""Worker processes: calls, messages, errors, deaths; and scripts without a main guard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from elmokit.errors import InputError
from elmokit.workers import WorkerDied, WorkerPool


def square(x: int) -> int:
    print("a worker may print")
    return x * x


def count(to: int, send: Any) -> int:
    for k in range(to):
        send(k)
    return to


def fail(kind: str) -> None:
    if kind == "user":
        raise InputError("line 3 is bad")
    if kind == "bug":
        raise KeyError("a bug")
    os.kill(os.getpid(), signal.SIGKILL)


def wait(path: Path) -> None:
    path.write_text(str(os.getpid()))
    time.sleep(60)


def test_results_and_messages(capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerPool(2) as pool:
        futures = [pool.submit(square, x) for x in range(5)]
        assert [future.result() for future in futures] == [0, 1, 4, 9, 16]
        messages: list[int] = []
        assert pool.submit(count, 3, on_message=messages.append).result() == 3
        assert messages == [0, 1, 2]
    assert capfd.readouterr().out == ""


def test_errors_come_back_and_the_worker_goes_on() -> None:
    with WorkerPool(1) as pool:
        with pytest.raises(InputError, match="line 3 is bad"):
            pool.submit(fail, "user").result()
        with pytest.raises(KeyError) as caught:
            pool.submit(fail, "bug").result()
        assert "in fail" in caught.value.__notes__[0]
        assert pool.submit(square, 3).result() == 9


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_a_killed_worker_is_named_and_replaced() -> None:
    with WorkerPool(1) as pool:
        with pytest.raises(WorkerDied, match=r"signal 9 .*memory"):
            pool.submit(fail, "die").result()
        assert pool.submit(square, 3).result() == 9


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_an_error_stops_the_other_workers(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), WorkerPool(2) as pool:
        call = pool.submit(wait, tmp_path / "pid")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.02)
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 30
    with pytest.raises(WorkerDied):
        call.result()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from elmokit.workers import WorkerPool; "
        "from tests.test_workers import wait\n"
        "with WorkerPool(1) as pool: pool.submit(wait, pathlib.Path(sys.argv[1])).result()"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "pid")])
    timer = threading.Timer(60, parent.kill)
    timer.start()
    while not (tmp_path / "pid").exists() or not (pid := (tmp_path / "pid").read_text()):
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    timer.cancel()
    for _ in range(500):
        # A zombie of a container without an init still has its number, but no command line.
        cmdline = Path(f"/proc/{pid}/cmdline")
        if not cmdline.exists() or not cmdline.read_bytes():
            return
        time.sleep(0.02)
    pytest.fail("the worker lives on")


# -- scripts without a main guard ------------------------------------------------------------------

CORPUS = """
from elmokit.train import CorpusOptions, build_corpus
print("begins")
corpus = build_corpus(["text.txt"], "corpus", CorpusOptions(size=50), processes=3, chunk_bytes=4000)
print(corpus.metadata["train"]["tokens"] + corpus.metadata["valid"]["tokens"])
"""
COMPARE = """
from elmokit import tasks
settings = tasks.Settings(
    task="ner", elmo="bilm", vectors="none", epochs=1, batch=4, sizes={"hidden": 8, "filters": 6}
)
print("begins")
files = tasks.TaskFiles("train.conll", "dev.conll")
found = tasks.compare(settings, files, "runs", seeds=[0], jobs=2)
print(len(found.outcomes))
"""


def run_script(directory: Path, script: str, stdin: bool) -> str:
    """Run a script from a file or from stdin, and return what it prints."""
    path = directory / "script.py"
    path.write_text(script)
    result = subprocess.run(
        [sys.executable, "-" if stdin else path.name],
        input=script if stdin else None,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "ELMOKIT_CACHE": str(directory / "cache")},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("stdin", [False, True])
def test_a_script_without_a_guard_builds_a_corpus(tmp_path: Path, stdin: bool) -> None:
    lines = (f"Sentence {k} is about the {k % 7} seas ." for k in range(1000))
    (tmp_path / "text.txt").write_text("\n".join(lines))
    assert run_script(tmp_path, CORPUS, stdin).split() == ["begins", "8000"]


def test_a_script_without_a_guard_compares(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    from tests.tasks import toy

    toy.files(tmp_path)
    toy.model(tmp_path)
    assert run_script(tmp_path, COMPARE, False).split() == ["begins", "2"]
