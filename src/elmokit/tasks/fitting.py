"""The loop that trains every task model: train an epoch, score the development set, keep the best.

Everything random comes from the seed, and everything that a step depends on is in a checkpoint: a
run that is interrupted and resumed ends in the same model. Knows no task.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmokit.elmo import Elmo
from elmokit.errors import FormatError, TrainingError
from elmokit.nn.threads import torch_threads
from elmokit.progress import ProgressCallback, ignore_progress
from elmokit.storage import explain_write_errors, write_text
from elmokit.tasks.display import fit_display
from elmokit.tasks.layer_store import LayerStore
from elmokit.tasks.plan import LOG, TRAINING, begin_run, undo_failed_start
from elmokit.tasks.settings import NONE, Settings
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.task import Examples, TrainingConfig
from elmokit.tasks.trained import Trained
from elmokit.tasks.word_embedding import frequent_words
from elmokit.train import checkpoint
from elmokit.train.interrupt import defer_interrupts
from elmokit.train.run_lock import RunLock, hold_run
from elmokit.train.schedule import learning_rate

POOL_BATCHES = 50
"""Number of batches whose examples are sorted by length together."""
FINETUNING_SCALE = 0.1
"""Factor of the learning rate for a biLM that is fine-tuned, so that it does not forget."""


@dataclass
class FitProgress:
    """How far a run is: the part of a checkpoint that is not tensors."""

    step: int = 0
    """Optimizer steps done."""
    epoch: int = 0
    """Epochs done."""
    batch: int = 0
    """Batches of the current epoch done."""
    loss: float = 0.0
    """Sum of the losses of these batches."""
    seconds: float = 0.0
    """Training time so far."""
    best: dict[str, float] = field(default_factory=dict)
    """Scores of the best epoch so far."""
    best_epoch: int = 0
    """Number of the best epoch so far, from 1."""
    epochs: list[dict[str, Any]] = field(default_factory=list)
    """The record of each epoch, as `on_epoch` received it."""
    max_epochs: int = 0
    """Maximum number of epochs of this run."""

    @property
    def epochs_since_best(self) -> int:
        """Epochs since the best one."""
        return self.epoch - self.best_epoch


StepCallback = Callable[[FitProgress, int], None]
"""Called after each step with the progress and the number of batches per epoch."""
EpochCallback = Callable[[Mapping[str, Any]], None]
"""Called after each epoch with its record: epoch, loss, rate, seconds, best, scores, weights."""


def _ignore_step(progress: FitProgress, batches: int) -> None:
    pass


def _ignore_epoch(record: Mapping[str, Any]) -> None:
    pass


def fit(
    settings: Settings,
    train: Examples[Any],
    dev: Examples[Any],
    out: str | Path,
    *,
    elmo: Elmo | None = None,
    static: StaticVectors | None = None,
    resume: bool = False,
    checkpoint_minutes: float = 2.0,
    threads: int = 1,
    progress: bool | None = None,
    on_layers: ProgressCallback = ignore_progress,
    on_step: StepCallback = _ignore_step,
    on_epoch: EpochCallback = _ignore_epoch,
) -> Trained:
    """Train a task model, save it in a directory and return it.

    The command `elmo task train` does this. Ctrl-C stops between two steps, after a checkpoint was
    written; call again with `resume` to continue.

    Args:
        settings: The task and how its model is trained.
        train: Training examples, as `read` returns them.
        dev: Development examples, which decide which epoch is the best and when to stop.
        out: Directory for the model. Its subdirectory training/ has the checkpoints during the run,
            and keeps epochs.jsonl.
        elmo: The ELMo model of the settings, if it is already loaded.
        static: The static word vectors of the settings, if they are already loaded.
        resume: Continue the interrupted run in `out`.
        checkpoint_minutes: Minutes between two checkpoints.
        threads: Threads for the task model; the layers of ELMo are computed on all cores.
        progress: Show progress on stderr: a bar on a terminal, a line now and then elsewhere. By
            default it is shown where stderr is a terminal.
        on_layers: Called with the number of words whose ELMo layers are computed, and their total.
        on_step: Called after each optimizer step.
        on_epoch: Called after each epoch.
    """
    directory = Path(out).expanduser()
    with (
        hold_run(directory / TRAINING) as lock,
        undo_failed_start(directory),
        fit_display(settings, progress) as shown,
        torch_threads(threads),
    ):
        layers = (on_layers, shown.on_layers) if shown else (on_layers,)
        steps = (on_step, shown.on_step) if shown else (on_step,)
        epochs = (on_epoch, shown.on_epoch) if shown else (on_epoch,)
        run = _Fitting(settings, train, dev, directory, elmo, static, resume, layers, lock)
        with defer_interrupts() as stop:
            while not run.finished:
                batches = run.epoch_batches()
                run.model.train()
                for indices in batches[run.progress.batch :]:
                    run.step(indices, len(batches))
                    for report_step in steps:
                        report_step(run.progress, len(batches))
                    if stop.is_set() or run.seconds_since_checkpoint > 60 * checkpoint_minutes:
                        run.save_checkpoint()
                        if stop.is_set():
                            raise KeyboardInterrupt
                record = run.end_epoch(len(batches))
                for report_epoch in epochs:
                    report_epoch(record)
        return run.finish()


class _Fitting:
    """One training run: the model, the optimizer, the data, and how far it is."""

    def __init__(
        self,
        settings: Settings,
        train: Examples[Any],
        dev: Examples[Any],
        directory: Path,
        elmo: Elmo | None,
        static: StaticVectors | None,
        resume: bool,
        on_layers: Sequence[ProgressCallback],
        lock: RunLock,
    ) -> None:
        preset, task = settings.effective_preset, settings.definition
        self.settings, self.config, self.task = settings, preset.training, task
        self.directory, self._lock = directory, lock
        self.train = task.prepare(take_share(train, settings), preset.sizes, True)
        self.dev = task.prepare(dev, preset.sizes, False)
        elmo = None if settings.baseline else elmo or Elmo.load(settings.elmo)
        begin_run(directory, settings, elmo, (self.train, self.dev), resume)
        torch.manual_seed(settings.seed)
        x = static or _load_vectors(settings, self.train)
        self.trained = Trained.assemble(settings, task.label_set(self.train.items), x, elmo)
        self.model = self.trained.model
        self._store_layers(on_layers)
        self.optimizer = _make_optimizer(self.config, self.model)
        whole = round(len(self.train) / settings.share)
        self.progress = FitProgress(max_epochs=preset.max_epochs(whole))
        self.best_state = self._copy_state()
        if resume and (path := checkpoint.find_newest(directory / TRAINING)) is not None:
            self.progress, self.best_state = _load_checkpoint(path, self.model, self.optimizer)
            if not self.progress.max_epochs:  # a run of 0.1.0 ends as it was begun
                self.progress.max_epochs = self.config.epochs
        self._parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self._lengths = [sum(map(len, example.texts)) for example in self.train.items]
        self._clock = self._saved_at = time.monotonic()

    def _store_layers(self, on_layers: Sequence[ProgressCallback]) -> None:
        """Compute the layers of all texts beforehand, if the biLM is frozen."""

        def report(done: int, total: int | None) -> None:
            for callback in on_layers:
                callback(done, total)

        source = self.model.words.elmo
        if isinstance(source, LayerStore):
            examples = (*self.train.items, *self.dev.items)
            source.add((text for example in examples for text in example.texts), report)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or too many of them brought nothing."""
        return (
            self.progress.epoch >= self.progress.max_epochs
            or self.progress.epochs_since_best >= self.config.patience
        )

    @property
    def seconds_since_checkpoint(self) -> float:
        """Seconds since the last checkpoint, or since the run began."""
        return time.monotonic() - self._saved_at

    def epoch_batches(self) -> list[list[int]]:
        """Return the batches of the current epoch."""
        return epoch_batches(self._lengths, self.config, self.settings.seed, self.progress.epoch)

    def step(self, indices: Sequence[int], batches: int) -> None:
        """Train on the examples of one batch."""
        progress = self.progress
        loss = self.model.loss([self.train.items[i] for i in indices])
        self._check_finite(loss)
        self.optimizer.zero_grad(set_to_none=True)
        (loss + self.model.words.penalty(self.settings.l2)).backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, self.config.clip)
        fraction = (progress.epoch + progress.batch / batches) / progress.max_epochs
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config.rate, fraction) * group["scale"]
        self.optimizer.step()
        progress.step += 1
        progress.batch += 1
        progress.loss += loss.item()
        self._count_time()

    def end_epoch(self, batches: int) -> dict[str, Any]:
        """Score the development set, keep the best parameters, and return the epoch's record."""
        progress = self.progress
        predictions = self.trained.predict_examples(self.dev.items)
        scores = self.task.score(self.dev.items, predictions)
        progress.epoch += 1
        if self._is_best(scores):
            progress.best, progress.best_epoch = scores, progress.epoch
            self.best_state = self._copy_state()
        self._count_time()
        record = {
            "epoch": progress.epoch,
            "loss": progress.loss / batches,
            "rate": self.optimizer.param_groups[0]["lr"],
            "seconds": round(progress.seconds, 2),
            "best": progress.best_epoch == progress.epoch,
            "scores": scores,
            "weights": self.model.words.layer_weights(),
        }
        progress.epochs.append(record)
        progress.batch, progress.loss = 0, 0.0
        return record

    def _is_best(self, scores: Mapping[str, float]) -> bool:
        """Return whether no earlier epoch is as good.

        Until an epoch scores above 0 each one counts as the best, so that patience cannot run out.
        """
        main = self.task.main_score
        best = self.progress.best.get(main, 0.0)
        return scores[main] > best or not best

    def finish(self) -> Trained:
        """Save and return the model of the best epoch, and remove the checkpoints."""
        progress, trained = self.progress, self.trained
        self.model.load_state_dict(self.best_state)
        self.model.eval()
        trained.scores = progress.best
        trained.metadata = {
            "best_epoch": progress.best_epoch,
            "epochs": progress.epoch,
            "seconds": round(progress.seconds, 1),
            "train": {"examples": len(self.train), "skipped": dict(self.train.skipped)},
            "dev": {"examples": len(self.dev), "skipped": dict(self.dev.skipped)},
            "unseen_labels": dict(unseen_labels(self.settings, self.train, self.dev)),
        }
        self._lock.check()
        lines = "".join(json.dumps(record) + "\n" for record in progress.epochs)
        training = self.directory / TRAINING
        with explain_write_errors(self.directory, kept=lambda: checkpoint.describe_kept(training)):
            write_text(training / LOG, lines)
            trained.save(self.directory)
        for path in (self.directory / TRAINING).glob("step-*"):
            shutil.rmtree(path, ignore_errors=True)
        return trained

    def save_checkpoint(self) -> None:
        """Write everything that the rest of the run depends on."""
        self._lock.check()
        tensors = _checkpoint_tensors(self.model, self.optimizer, self.best_state)
        directory = self.directory / TRAINING
        checkpoint.save(directory, self.progress.step, tensors, asdict(self.progress))
        self._saved_at = time.monotonic()

    def _copy_state(self) -> dict[str, Tensor]:
        return {name: tensor.clone() for name, tensor in self.trained.state_dict().items()}

    def _count_time(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._clock
        self._clock = now

    def _check_finite(self, loss: Tensor) -> None:
        if not torch.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss.item()}: the learning rate is too high, or the data is broken. "
                f"Start again with a lower --rate, and in another directory than {self.directory}"
            )


def take_share(train: Examples[Any], settings: Settings) -> Examples[Any]:
    """Return a random part of the training set, of the size that the settings ask for.

    Equal seeds give equal parts.
    """
    count = max(1, round(settings.share * len(train)))
    if count == len(train):
        return train
    generator = torch.Generator().manual_seed(settings.seed)
    chosen = torch.randperm(len(train), generator=generator)[:count].sort().values
    return Examples([train.items[i] for i in chosen.tolist()], train.skipped)


def epoch_batches(
    lengths: Sequence[int], config: TrainingConfig, seed: int, epoch: int
) -> list[list[int]]:
    """Return the batches of an epoch: indices of examples of similar lengths, in random order.

    An epoch reads every example once; or several times, if there would be too few steps otherwise.

    Args:
        lengths: Number of words of each example.
        config: Batch size and minimum number of steps per epoch.
        seed: Random seed of the run.
        epoch: Number of the epoch, from 0; each one has its own order.
    """
    size = config.batch
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    passes = math.ceil(config.steps / math.ceil(len(lengths) / size))
    ordered = []
    for _ in range(passes):
        order = torch.randperm(len(lengths), generator=generator).tolist()
        batches = []
        for start in range(0, len(order), POOL_BATCHES * size):
            pool = sorted(order[start : start + POOL_BATCHES * size], key=lambda i: lengths[i])
            batches += [pool[i : i + size] for i in range(0, len(pool), size)]
        shuffled = torch.randperm(len(batches), generator=generator).tolist()
        ordered += [batches[k] for k in shuffled]
    return ordered


def unseen_labels(settings: Settings, train: Examples[Any], dev: Examples[Any]) -> Counter[str]:
    """Count the labels of the development set that training never shows: none can be predicted."""
    labels = settings.definition.labels
    known = {label for example in train.items for label in labels(example)}
    return Counter(
        label for example in dev.items for label in labels(example) if label not in known
    )


def _load_vectors(settings: Settings, train: Examples[Any]) -> StaticVectors | list[str]:
    """Return the static vectors, or the words to learn vectors for."""
    if settings.vectors == NONE:
        return frequent_words(text for example in train.items for text in example.texts)
    return StaticVectors.load(settings.vectors)


def _make_optimizer(config: TrainingConfig, model: Any) -> torch.optim.Optimizer:
    kinds: dict[str, Any] = {
        "adam": torch.optim.Adam,
        "adagrad": torch.optim.Adagrad,
        "adadelta": torch.optim.Adadelta,
    }
    own: list[torch.nn.Parameter] = []
    finetuned: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (finetuned if name.startswith("words.elmo.") else own).append(parameter)
    groups = [{"params": own, "scale": 1.0}, {"params": finetuned, "scale": FINETUNING_SCALE}]
    optimizer: torch.optim.Optimizer = kinds[config.optimizer](
        [group for group in groups if group["params"]], lr=config.rate
    )
    return optimizer


# -- checkpoints -----------------------------------------------------------------------------------


def _checkpoint_tensors(
    model: Any, optimizer: torch.optim.Optimizer, best: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    tensors = {f"model/{name}": a for name, a in model.state_dict().items()}
    tensors |= {f"best/{name}": a for name, a in best.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": torch.as_tensor(a) for name, a in state.items()}
    return {**tensors, "random": torch.get_rng_state()}


def _load_checkpoint(
    path: Path, model: Any, optimizer: torch.optim.Optimizer
) -> tuple[FitProgress, dict[str, Tensor]]:
    """Restore model, optimizer and random state; return the progress and the best parameters."""
    tensors, progress = checkpoint.load(path)
    try:
        return _restore(tensors, progress, model, optimizer)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FormatError(
            f"the checkpoint {path} is damaged: {error!r}. Delete it to go on from the one before"
        ) from None


def _restore(
    tensors: Mapping[str, Tensor],
    progress: Mapping[str, Any],
    model: Any,
    optimizer: torch.optim.Optimizer,
) -> tuple[FitProgress, dict[str, Tensor]]:
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}}
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition("/")
        if kind in ("optimizer", "optimiser"):  # the second in older checkpoints
            number, _, field_name = rest.partition("/")
            states.setdefault(int(number), {})[field_name] = tensor
        elif kind in parts:
            parts[kind][rest] = tensor
    model.load_state_dict(parts["model"])
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    torch.set_rng_state(tensors["random"])
    return FitProgress(**progress), parts["best"]
