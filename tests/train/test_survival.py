"""Runs that are restarted, stopped by a scheduler, or lose a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.test_distributed import free_ports, needs_gloo  # noqa: E402
from tests.train.toy import SENTENCES, TINY, in_processes, toy_corpus  # noqa: E402

from elmokit.errors import InputError  # noqa: E402
from elmokit.train import heartbeats  # noqa: E402
from elmokit.train.budget import Budget  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.distributed import ProcessLost  # noqa: E402
from elmokit.train.interrupt import TrainingStopped  # noqa: E402
from elmokit.train.launch import launch_id  # noqa: E402
from elmokit.train.pretraining import _open_when_visible, pretrain  # noqa: E402
from elmokit.train.run import TrainingReport  # noqa: E402
from elmokit.train.run_plan import RunPlan  # noqa: E402

PLAN: dict[str, Any] = {"config": TINY, "recipe": SENTENCES, "budget": Budget(tokens=1200)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return toy_corpus(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def undisturbed(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("calm") / "model"
    pretrain(corpus.path, out, **PLAN)
    return model(out)


def model(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


def at_step(step: int, do: Callable[[], None]) -> Callable[[TrainingReport], None]:
    def on_step(report: TrainingReport) -> None:
        if report.progress.step == step:
            do()

    return on_step


# -- one process -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
def test_the_same_call_again_and_again(
    name: str, corpus: Corpus, undisturbed: bytes, tmp_path: Path
) -> None:
    out, number = tmp_path / "model", getattr(signal, name)
    before = signal.getsignal(number)
    for step in (2, 4):
        with pytest.raises(TrainingStopped):
            send = at_step(step, lambda: os.kill(os.getpid(), number))
            pretrain(corpus.path, out, **PLAN, auto_resume=True, on_step=send)
        assert not (out / "training/lock.json").exists()
    assert signal.getsignal(number) == before
    pretrain(corpus.path, out, **PLAN, auto_resume=True)
    assert model(out) == undisturbed
    steps: list[int] = []
    again = pretrain(
        corpus.path, out, **PLAN, auto_resume=True, on_step=lambda r: steps.append(r.progress.step)
    )
    assert steps == [] and again.bilm.fingerprint, "it has ended"
    longer = PLAN | {"budget": Budget(tokens=1500)}
    pretrain(
        corpus.path,
        out,
        **longer,
        auto_resume=True,
        on_step=lambda r: steps.append(r.progress.step),
    )
    assert steps, "with a larger budget it goes on"


def test_a_signal_before_the_first_step(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr("elmokit.train.pretraining.initial_weights", stop)
    with pytest.raises(TrainingStopped):
        pretrain(corpus.path, tmp_path / "model", **PLAN)


def test_other_options_are_refused(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "model"
    pretrain(corpus.path, out, **PLAN)
    with pytest.raises(InputError, match="has a run or a model already"):
        pretrain(corpus.path, out, **PLAN)
    other = PLAN | {"recipe": SENTENCES.replace(rate=0.1, warm_up=7)}
    with pytest.raises(InputError, match="--rate, --warm-up cannot change"):
        pretrain(corpus.path, out, **other, auto_resume=True)
    shards = PLAN | {"recipe": SENTENCES.replace(shards=4)}
    pretrain(corpus.path, out, **shards, auto_resume=True)  # another machine: the run keeps its own
    assert RunPlan.read(out / "training").recipe.shards == SENTENCES.shards


def test_a_restart_is_noticed(
    corpus: Corpus, undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert launch_id() == launch_id() != "none"
    out = tmp_path / "model"

    def fail() -> None:
        raise RuntimeError("a rank has died")

    with pytest.raises(RuntimeError, match="a rank has died"):
        pretrain(corpus.path, out, **PLAN, on_step=at_step(3, fail))
    pretrain(corpus.path, out, **PLAN)
    assert model(out) == undisturbed
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "another")
    with pytest.raises(InputError, match="has a run or a model already"):
        pretrain(corpus.path, out, **PLAN)


def test_a_corpus_that_appears_late(corpus: Corpus, tmp_path: Path) -> None:
    late = tmp_path / "late"
    link = f"import time, os; time.sleep(0.5); os.symlink({str(corpus.path)!r}, {str(late)!r})"
    linking = subprocess.Popen([sys.executable, "-c", link])
    assert _open_when_visible(late, corpus.fingerprint, 20).fingerprint == corpus.fingerprint
    linking.wait()
    with pytest.raises(Exception, match="does not see the corpus that the first process sees"):
        _open_when_visible(late, "another fingerprint", 0)


# -- several processes -----------------------------------------------------------------------------


def lose_one(rank: int, port: int, corpus: Path, out: Path, how: str) -> None:
    """The second process is killed, or no longer answers; the first must notice."""
    os.environ |= {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
    heartbeats.BEAT_SECONDS = 0.2
    from elmokit.train.run import TrainingRun

    plain_after = TrainingRun._after_step

    def after(self: TrainingRun, step: Any) -> None:
        plain_after(self, step)
        if rank == 1 and self._loop.progress.step == 3:
            os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGSTOP)

    TrainingRun._after_step = after  # type: ignore[method-assign]
    begin = time.monotonic()
    try:
        pretrain(corpus, out, **PLAN, checkpoint_minutes=0, timeout=3)
    except ProcessLost as error:
        (out / "message").write_text(str(error))
        os._exit(7 if time.monotonic() - begin < 60 else 8)


@needs_gloo
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_lost_process_is_named(
    how: str, corpus: Corpus, undisturbed: bytes, tmp_path: Path
) -> None:
    port, out = free_ports()[0], tmp_path / "model"
    arguments = [(rank, port, corpus.path, out, how) for rank in range(2)]
    codes = in_processes(lose_one, arguments, seconds=60)
    assert codes[0] == 7
    message = (out / "message").read_text()
    assert "process 1 (on " in message and "no longer answers" in message
    assert "step-0000000" in message and "is kept" in message and "--auto-resume" in message
    assert not (out / "training/lock.json").exists()
    pretrain(corpus.path, out, **PLAN, auto_resume=True)
    assert model(out) == undisturbed
