"""Many training runs of one task that differ in a setting or two, side by side, one per core.

Each run has a directory of its own, and its outcome is written there last: an interrupted call that
is repeated with the same arguments continues where it stopped.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import elmokit
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.json_text import check_seal, parse_json, seal
from elmokit.storage import checksum, write_text
from elmokit.tasks.fitting import FitProgress, fit
from elmokit.tasks.plan import LOG, PLAN, TRAINING
from elmokit.tasks.settings import Settings, with_current_keys
from elmokit.tasks.task import read
from elmokit.train.run_lock import remove_lock_of_dead
from elmokit.workers import WorkerPool

OUTCOME_FILE = "outcome.json"


@dataclass(frozen=True)
class TaskFiles:
    """The dataset files of a task."""

    train: str
    """Training data."""
    dev: str
    """Development data, which decide which epoch is the best and when to stop."""
    test: str | None = None
    """Test data that all models are scored on; None for the development data."""

    def fingerprints(self) -> dict[str, str]:
        """Return a checksum of each file or directory."""
        paths = {name: path for name, path in asdict(self).items() if path is not None}
        return {name: checksum(path) for name, path in paths.items()}


@dataclass(frozen=True)
class Trial:
    """A training run to do."""

    system: str
    """Name of the system; runs of one system differ only in their seeds."""
    settings: Settings
    """The settings of the run."""

    @property
    def name(self) -> str:
        """Name of the run and of its directory."""
        return f"{self.system}-{self.settings.seed}".replace(" ", "_").replace("/", "_")


@dataclass(frozen=True)
class Outcome:
    """The result of a training run."""

    system: str
    """Name of the system."""
    seed: int
    """Random seed of the run."""
    dev: dict[str, float]
    """Scores of the best epoch on the development set."""
    test: dict[str, float]
    """Scores on the test set; empty without one."""
    weights: dict[str, Any]
    """Learned layer weights of each place where ELMo enters."""
    curve: list[float]
    """Main score on the development set after each epoch."""
    best_epoch: int
    """Number of the best epoch, from 1."""
    seconds: float
    """Training time."""
    examples: int
    """Number of training examples."""

    def main(self, score: str) -> float:
        """Return a score on the test set, or on the development set if there is no test set."""
        return (self.test or self.dev)[score]


@dataclass(frozen=True)
class TrialUpdate:
    """A report about a run that is going on."""

    run: str
    """Name of the run."""
    done: float
    """Fraction of the maximum number of epochs that is done, from 0 to 1."""
    text: str
    """What the run is doing, or its result."""
    ended: bool = False
    """Whether the run has ended."""


TrialCallback = Callable[[TrialUpdate], None]
"""Called with each report about a run."""


def ignore_update(update: TrialUpdate) -> None:
    """Accept a report and do nothing: the default of functions that train several models."""


def run_trials(
    trials: Sequence[Trial],
    files: TaskFiles,
    out: str | Path,
    *,
    jobs: int | None = None,
    callback: TrialCallback = ignore_update,
) -> list[Outcome]:
    """Do all runs that are not done yet, and return their outcomes in the order of `trials`.

    Args:
        trials: The runs; their names must differ.
        files: The data of all runs.
        out: Directory in which each run has a directory of its own.
        jobs: Number of runs at a time, each with one thread; one per core by default.
        callback: Called with each report about a run, from another thread.
    """
    from elmokit.engine.native import usable_processors

    directory = Path(out).expanduser()
    if len({trial.name for trial in trials}) < len(trials):
        raise InputError("two of the runs have the same name")
    data = files.fingerprints()
    jobs = min(jobs or usable_processors(), len(trials))
    models = {trial.settings.elmo for trial in trials if not trial.settings.baseline}
    bilms = {model: Elmo.load(model).bilm.fingerprint for model in models}
    outcomes: dict[str, Outcome] = {}
    waiting = []
    for trial in trials:
        bilm = bilms.get(trial.settings.elmo)
        if (outcome := read_outcome(directory / trial.name, trial, data, bilm)) is None:
            waiting.append(trial)
        else:
            outcomes[trial.name] = outcome
            remove_lock_of_dead(directory / trial.name / TRAINING)
            callback(TrialUpdate(trial.name, 1.0, "done before", ended=True))
    if waiting:
        # Runs that take longer come first, so that no core waits long for the last one.
        waiting.sort(key=lambda trial: (-trial.settings.share, trial.settings.baseline))
        outcomes |= _run_in_processes(waiting, files, data, directory, jobs, callback)
    return [outcomes[trial.name] for trial in trials]


def _run_in_processes(
    trials: Sequence[Trial],
    files: TaskFiles,
    data: Mapping[str, str],
    directory: Path,
    jobs: int,
    callback: TrialCallback,
) -> dict[str, Outcome]:
    """Do the runs in worker processes; return their outcomes by name."""
    outcomes: dict[str, Outcome] = {}
    one_at_a_time = threading.Lock()

    def report(update: TrialUpdate) -> None:
        with one_at_a_time:
            callback(update)

    with WorkerPool(jobs) as pool:
        runs = {
            pool.submit(run_trial, trial, files, data, directory, on_message=report): trial
            for trial in trials
        }
        for run in as_completed(runs):
            outcomes[runs[run].name] = run.result()
    return outcomes


def run_trial(
    trial: Trial,
    files: TaskFiles,
    data: Mapping[str, str],
    directory: Path,
    callback: TrialCallback = ignore_update,
) -> Outcome:
    """Do one run in this process, and write its outcome to its directory.

    Args:
        trial: The run.
        files: Its data.
        data: Checksums of the files.
        directory: Directory of all runs.
        callback: Called with each report about the run.
    """
    path = directory / trial.name
    train, dev = (read(trial.settings.task, name) for name in (files.train, files.dev))
    reporter = _Reporter(trial, callback)
    trained = fit(
        trial.settings,
        train,
        dev,
        path,
        resume=(path / TRAINING / PLAN).exists(),
        progress=False,
        on_layers=reporter.on_layers,
        on_step=reporter.on_step,
        on_epoch=reporter.on_epoch,
    )
    test = {}
    if files.test is not None:
        reporter.report(1.0, "scoring the test set")
        test = trained.evaluate(read(trial.settings.task, files.test))
    main = trial.settings.definition.main_score
    lines = (path / TRAINING / LOG).read_text(encoding="utf-8").splitlines()
    outcome = Outcome(
        system=trial.system,
        seed=trial.settings.seed,
        dev=trained.scores,
        test=test,
        weights=trained.model.words.layer_weights(),
        curve=[parse_json(line)["scores"][main] for line in lines],
        best_epoch=trained.metadata["best_epoch"],
        seconds=trained.metadata["seconds"],
        examples=trained.metadata["train"]["examples"],
    )
    content = {
        "elmokit": elmokit.__version__,
        "run": trial.settings.to_full_dict(),
        "biLM": None if trained.elmo is None else trained.elmo.bilm.fingerprint,
        "data": dict(data),
        "outcome": asdict(outcome),
    }
    write_text(path / OUTCOME_FILE, json.dumps(seal(content), indent=1) + "\n")
    reporter.report(1.0, f"{main} {outcome.main(main):.2f}", ended=True)
    return outcome


def read_outcome(
    directory: Path, trial: Trial, data: Mapping[str, str], bilm: str | None
) -> Outcome | None:
    """Return the outcome of a run that is done already, or None if it is not.

    Args:
        directory: Directory of the run.
        trial: The run that is wanted; one of other settings in the directory is an error.
        data: Checksums of its data.
        bilm: Fingerprint of its biLM; None for a baseline.
    """
    try:
        content = parse_json((directory / OUTCOME_FILE).read_text(encoding="utf-8"))
        if set(content) != {"elmokit", "run", "biLM", "data", "outcome"}:  # of version 0.1
            check_seal(content)
        wanted = (trial.settings.to_full_dict(), dict(data), bilm)
        if (with_current_keys(content["run"]), content["data"], content["biLM"]) == wanted:
            return Outcome(**content["outcome"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{directory / OUTCOME_FILE} is damaged: {error!r}; delete {directory} to repeat the "
            "run"
        ) from None
    raise InputError(
        f"{directory} holds a run with other settings, data or biLM; give another directory, or "
        "delete it"
    )


class _Reporter:
    """The callbacks of `fit` for a run, which turn everything into one line of text."""

    def __init__(self, trial: Trial, callback: TrialCallback) -> None:
        self._name, self._callback = trial.name, callback
        self._main = trial.settings.definition.main_score
        self._best = ""

    def report(self, done: float, text: str, ended: bool = False) -> None:
        self._callback(TrialUpdate(self._name, done, text, ended))

    def on_layers(self, done: int, total: int | None) -> None:
        self.report(0.0, f"ELMo layers of {done:,} of {total:,} words")

    def on_step(self, progress: FitProgress, batches: int) -> None:
        if progress.batch % 10 == 0 or progress.batch == batches:
            done = (progress.epoch + progress.batch / batches) / progress.max_epochs
            self.report(done, f"epoch {progress.epoch + 1}/{progress.max_epochs} {self._best}")

    def on_epoch(self, record: Mapping[str, Any]) -> None:
        if record["best"]:
            self._best = f"best {record['scores'][self._main]:.2f}"
