"""Many runs of one task that differ in a choice or two: side by side, each on a core of its own.

Every run has a directory, and what came of it is written there last: interrupted and called again
with the same arguments, it goes on where it stopped.
"""

from __future__ import annotations

import json
import multiprocessing
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import elmokit
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.tasks.fitting import LOG, PLAN, TRAINING, fit
from elmokit.tasks.settings import Settings, read
from elmokit.text.files import checksum, write_text

OUTCOME = "outcome.json"


@dataclass(frozen=True)
class Files:
    """The data of a task."""

    train: str
    dev: str
    test: str | None = None

    def fingerprints(self) -> dict[str, str]:
        """A checksum of each, directories included."""
        found = {name: path for name, path in asdict(self).items() if path is not None}
        return {name: checksum(path) for name, path in found.items()}


@dataclass(frozen=True)
class Trial:
    """A run that is wanted."""

    system: str
    """What it stands for in a table: runs of one system differ in their seeds only."""
    settings: Settings

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"{self.system}-{self.settings.seed}".replace(" ", "_").replace("/", "_")


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    system: str
    seed: int
    dev: dict[str, float]
    """Scores of the epoch that was kept."""
    test: dict[str, float]
    """Empty without a test set."""
    weights: dict[str, Any]
    """What the mix at each place has learned."""
    curve: list[float]
    """The main score on the development set, epoch by epoch."""
    best_epoch: int
    seconds: float
    examples: int
    """That it learned from."""

    def main(self, score: str) -> float:
        """The score that counts, on the test set if there is one."""
        return (self.test or self.dev)[score]


@dataclass(frozen=True)
class Moment:
    """What is heard of a run while it goes on."""

    run: str
    done: float
    """Part of the most that it can take."""
    text: str
    ended: bool = False


Hear = Callable[[Moment], None]


def run_trials(
    trials: Sequence[Trial],
    files: Files,
    out: str | Path,
    *,
    jobs: int | None = None,
    hear: Hear = lambda moment: None,
) -> list[Outcome]:
    """Run all, in the order of `trials`; `hear` is called from another thread.

    Args:
        trials: what to run; their names must differ.
        files: what all of them read.
        out: where each gets a directory.
        jobs: how many at a time, one thread each; one for each core by default.
        hear: who looks on.
    """
    from elmokit.engine.native import usable_processors

    place = Path(out).expanduser()
    if len({trial.name for trial in trials}) < len(trials):
        raise InputError("two of the runs have the same name")
    data = files.fingerprints()
    jobs = min(jobs or usable_processors(), len(trials))
    names = {trial.settings.elmo for trial in trials if not trial.settings.baseline}
    bilms = {name: Elmo.load(name).bilm.fingerprint for name in names}
    outcomes: dict[str, Outcome] = {}
    waiting = []
    for trial in trials:
        bilm = bilms.get(trial.settings.elmo)
        if (known := _known(place / trial.name, trial, data, bilm)) is None:
            waiting.append(trial)
        else:
            outcomes[trial.name] = known
            hear(Moment(trial.name, 1.0, "done before", ended=True))
    if waiting:
        context = multiprocessing.get_context("spawn")
        with context.Manager() as manager:
            moments = manager.Queue()
            ended = threading.Event()
            listener = threading.Thread(target=_listen, args=(moments, hear, ended), daemon=True)
            listener.start()
            pool = ProcessPoolExecutor(jobs, context, initializer=_one_thread)
            try:
                runs = {
                    pool.submit(_run, trial, files, data, place, moments): trial
                    for trial in waiting
                }
                for run in as_completed(runs):
                    outcomes[runs[run].name] = run.result()
            except BaseException:
                _stop(pool)
                raise
            finally:
                ended.set()
                listener.join()
                pool.shutdown(cancel_futures=True)
    return [outcomes[trial.name] for trial in trials]


def run_one(
    trial: Trial, files: Files, data: Mapping[str, str], place: Path, hear: Hear
) -> Outcome:
    """Run one in this process; what came of it is on disk afterwards."""
    directory = place / trial.name
    train, dev = (read(trial.settings.task, path) for path in (files.train, files.dev))
    watch = _Telling(trial, hear)
    trained = fit(
        trial.settings,
        train,
        dev,
        directory,
        resume=(directory / TRAINING / PLAN).exists(),
        watch=watch,
    )
    test = {}
    if files.test is not None:
        watch.say(1.0, "on the test set")
        test = trained.evaluate(read(trial.settings.task, files.test))
    main = trial.settings.sister.SCORE
    lines = (directory / TRAINING / LOG).read_text(encoding="utf-8").splitlines()
    outcome = Outcome(
        system=trial.system,
        seed=trial.settings.seed,
        dev=trained.scores,
        test=test,
        weights=trained.model.words.weights(),
        curve=[json.loads(line)["scores"][main] for line in lines],
        best_epoch=trained.about["best_epoch"],
        seconds=trained.about["seconds"],
        examples=trained.about["train"]["examples"],
    )
    whole = {
        "elmokit": elmokit.__version__,
        "run": trial.settings.determined(),
        "biLM": None if trained.elmo is None else trained.elmo.bilm.fingerprint,
        "data": dict(data),
        "outcome": asdict(outcome),
    }
    write_text(directory / OUTCOME, json.dumps(whole, indent=1) + "\n")
    watch.say(1.0, f"{main} {outcome.main(main):.2f}", ended=True)
    return outcome


class _Telling:
    """A `fit.Watch` that says in a line what it sees."""

    def __init__(self, trial: Trial, hear: Hear) -> None:
        self._trial, self._hear = trial, hear
        self._epochs = trial.settings.chosen.schooling.epochs
        self._best = ""

    def say(self, done: float, text: str, ended: bool = False) -> None:
        self._hear(Moment(self._trial.name, done, text, ended))

    def layers(self, done: int, of: int) -> None:
        """So many words have their layers."""
        self.say(0.0, f"layers of {done:,} of {of:,} words")

    def step(self, progress: Any, batches: int) -> None:
        """A batch was learned from."""
        if progress.batch % 10 == 0 or progress.batch == batches:
            done = (progress.epoch + progress.batch / batches) / self._epochs
            self.say(done, f"epoch {progress.epoch + 1}/{self._epochs} {self._best}")

    def epoch(self, noted: Mapping[str, Any]) -> None:
        """An epoch has ended."""
        if noted["best"]:
            main = self._trial.settings.sister.SCORE
            self._best = f"best {noted['scores'][main]:.2f}"


def _known(
    directory: Path, trial: Trial, data: Mapping[str, str], bilm: str | None
) -> Outcome | None:
    """What came of it in an earlier call with the same arguments."""
    try:
        found = json.loads((directory / OUTCOME).read_text(encoding="utf-8"))
        same = (trial.settings.determined(), dict(data), bilm)
        if (found["run"], found["data"], found["biLM"]) == same:
            return Outcome(**found["outcome"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(
        f"{directory} holds a run with other settings, data or biLM; give another directory, or "
        "delete it"
    )


def _run(trial: Trial, files: Files, data: Mapping[str, str], place: Path, moments: Any) -> Outcome:
    return run_one(trial, files, data, place, moments.put)


def _one_thread() -> None:
    """Small networks gain nothing from threads, and lose much when the cores are shared."""
    import torch

    torch.set_num_threads(1)


def _listen(moments: Any, hear: Hear, ended: threading.Event) -> None:
    while True:
        try:
            hear(moments.get(timeout=0.2))
        except queue.Empty:
            if ended.is_set():
                return
        except (EOFError, OSError):
            return


def _stop(pool: ProcessPoolExecutor) -> None:
    """Ask the running ones to keep what they have; they stop between two steps."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        if process.is_alive():
            process.terminate()
