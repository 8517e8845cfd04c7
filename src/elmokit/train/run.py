"""A training run on disk: metrics, evaluations, checkpoints, and the model at the end.

    DIR/                     the model, once the run has ended
    DIR/training/run.json    architecture, recipe, budget, and the fingerprint of the corpus
    DIR/training/lock.json   while it is trained: the process that writes here
    DIR/training/finished.json    once it has ended
    DIR/training/metrics.jsonl
    DIR/training/curve.svg
    DIR/training/checkpoints/step-00001234/

A run can be stopped at any moment and resumed. The training itself is in `loop.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import FormatError
from elmokit.formats.detect import NATIVE_NAMES
from elmokit.formats.native import MANIFEST
from elmokit.lm import Perplexity, perplexity
from elmokit.storage import explain_write_errors
from elmokit.train import checkpoint
from elmokit.train.corpus import Corpus
from elmokit.train.curve import draw_curve
from elmokit.train.distributed import ProcessGroup
from elmokit.train.early_stopping import EarlyStopping
from elmokit.train.interrupt import defer_interrupts, raise_stop
from elmokit.train.loop import StepMetrics, TrainingLoop, TrainingProgress
from elmokit.train.metrics import MetricsLog, read_metrics
from elmokit.train.run_lock import RunLock
from elmokit.train.run_plan import TRAINING

CHECKPOINTS, CURVE = "checkpoints", "curve.svg"
METRICS_STEPS = 25
"""Steps between two lines of metrics."""
CHECKPOINT_MINUTES = 5.0
"""Minutes between two checkpoints by default."""
EVALUATION_WORDS = 10_000
"""Held-out words per evaluation by default."""


@dataclass(frozen=True)
class TrainingReport:
    """What a callback learns after a training step."""

    progress: TrainingProgress
    """Steps, tokens and seconds so far."""
    spent: float
    """Fraction of the budget that is spent, from 0 to 1."""
    loss: float
    """Mean training loss since the last line of metrics in nats per word, by the sampled
    softmax."""
    words_per_second: float
    """Current training speed."""
    held_out: Perplexity | None
    """Last evaluation of this session; at the end, of all held-out text."""
    epochs: float
    """Number of passes over the text so far."""


StepCallback = Callable[[TrainingReport], None]
"""Called after every training step, and once more at the end of pretraining."""


def ignore_report(report: TrainingReport) -> None:
    """Accept a report and do nothing: the default callback."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is evaluated, saved and reported; none of it changes the weights of pretraining."""

    evaluations: int
    """Number of evaluations on held-out text, spread evenly over the budget."""
    evaluation_words: int = EVALUATION_WORDS
    """Held-out words per evaluation."""
    checkpoint_minutes: float = CHECKPOINT_MINUTES
    """Minutes of training between two checkpoints."""
    on_step: StepCallback = ignore_report
    """Called after every training step."""


class _StopEarly(Exception):
    """Nothing has improved for a while."""


class TrainingRun:
    """A training loop in a directory, with metrics, evaluations and checkpoints."""

    def __init__(
        self,
        out: Path,
        loop: TrainingLoop,
        corpus: Corpus,
        group: ProcessGroup,
        model: BiLM,
        options: RunOptions,
        early_stopping: EarlyStopping | None = None,
        lock: RunLock | None = None,
    ) -> None:
        """Prepare the run, and continue from its newest checkpoint if there is one.

        Args:
            out: Directory of the run.
            loop: Does the training.
            corpus: Text to train on, with held-out text for evaluations.
            group: The processes that train together.
            model: The model before training; the result differs from it in its weights.
            options: How the run is evaluated, saved and reported.
            early_stopping: Ends the run early, and chooses its result; None trains until the budget
                is spent. Needs a group of one process.
            lock: The lock of the run, if this process is the first and holds it.
        """
        self._out, self._loop, self._corpus = out, loop, corpus
        self._group, self._is_first = group, group.rank == 0
        self._model, self._options, self._early_stopping = model, options, early_stopping
        self._lock = lock
        self._checkpoints = out / TRAINING / CHECKPOINTS
        self._losses, self._loss = list[float](), math.nan
        self._held_out: Perplexity | None = None
        self._load_checkpoint()
        if self._is_first:
            self._metrics = MetricsLog(out / TRAINING, loop.progress.step)
        self._speed_start = time.monotonic(), loop.progress.tokens
        self._checkpoint_seconds = loop.progress.seconds
        self._evaluations_done = int(loop.spent * options.evaluations)

    def train(self) -> Elmo:
        """Train until the budget is spent or early stopping ends the run; return the saved model.

        Ctrl-C, SIGTERM and SIGUSR1 stop between two steps, with a checkpoint: all processes at the
        same step. With early stopping, the best model so far is saved too.
        """
        with explain_write_errors(
            self._out, kept=lambda: checkpoint.describe_kept(self._checkpoints)
        ):
            return self._train()

    def _train(self) -> Elmo:
        stopping = self._early_stopping
        if stopping is not None and stopping.initial is None:
            self._evaluate(self._options.evaluation_words)
        try:
            if stopping is not None and stopping.exhausted:  # resumed after it had stopped
                self._loop.close()
            else:
                self._run_loop()
        except _StopEarly:
            pass
        except KeyboardInterrupt:
            if stopping is not None:
                self._finish()
            raise
        return self._finish()

    def _run_loop(self) -> None:
        with defer_interrupts(repeatedly=self._group.world > 1) as stop_requested:

            def on_step(step: StepMetrics) -> None:
                self._after_step(step)
                raise_stop(self._group.largest(stop_requested.level))

            try:
                self._loop.run(on_step)
            except Exception:
                if self._group.world > 1:  # a checkpoint needs all processes
                    self._loop.intact = False
                raise
            finally:
                try:
                    if self._loop.intact:
                        self._save_checkpoint()
                finally:
                    self._loop.close()

    def _after_step(self, step: StepMetrics) -> None:
        progress = self._loop.progress
        if self._is_first:
            self._losses.append(step.loss)
            words_per_second = self._report()
            if progress.step % METRICS_STEPS == 0:
                self._write_metrics(step, words_per_second)
        due = int(self._loop.spent * self._options.evaluations)
        if due > self._evaluations_done and self._loop.spent < 1:
            self._evaluations_done = due
            if self._is_first:
                self._evaluate(self._options.evaluation_words)
                self._speed_start = time.monotonic(), progress.tokens
            self._group.wait_for_all()
        if progress.seconds - self._checkpoint_seconds > 60 * self._options.checkpoint_minutes:
            self._save_checkpoint()

    def _finish(self) -> Elmo:
        """Evaluate and save the result."""
        stopping = self._early_stopping
        if stopping is None:
            if self._is_first:
                self._evaluate(words=None)
        else:
            if self._loop.spent >= 1 and not stopping.exhausted:
                self._evaluate(self._options.evaluation_words)
            if stopping.best_parameters is not None:
                self._loop.trainer.parameters.copy_(stopping.best_parameters)
        elmo = self._current_model()
        if self._is_first:
            self._save_model(elmo)
            if stopping is None:
                self._report()
        self._group.wait_for_all()
        return elmo

    def _current_model(self) -> Elmo:
        return Elmo(replace(self._model, weights=self._loop.trainer.weights()))

    def _report(self) -> float:
        """Call the callback; return the current speed in words per second."""
        progress, (since, tokens) = self._loop.progress, self._speed_start
        words_per_second = (progress.tokens - tokens) / max(time.monotonic() - since, 1e-9)
        self._options.on_step(
            TrainingReport(
                progress,
                self._loop.spent,
                float(np.mean(self._losses)) if self._losses else self._loss,
                words_per_second,
                self._held_out,
                self._loop.epochs,
            )
        )
        return words_per_second

    def _write_metrics(self, step: StepMetrics, words_per_second: float) -> None:
        progress = self._loop.progress
        self._loss = float(np.mean(self._losses))
        self._metrics.write(
            progress.step,
            tokens=progress.tokens,
            seconds=round(progress.seconds, 1),
            epoch=progress.position.epoch,
            loss=self._loss,
            norm=step.norm,
            rate=step.rate,
            words_per_second=round(words_per_second),
        )
        self._losses.clear()
        self._speed_start = time.monotonic(), progress.tokens

    def _evaluate(self, words: int | None) -> None:
        """Measure the perplexity of held-out text, by the full softmax; all of it if None.

        Early stopping compares evaluations, so for it the text is the same every time, and nothing
        is measured twice. Raises `_StopEarly` when its patience is exhausted during training.
        """
        stopping, progress = self._early_stopping, self._loop.progress
        valid = self._corpus.valid
        if valid is None or not valid.sentences:
            return
        if stopping is not None and stopping.evaluated_step == progress.step:
            return
        result = perplexity(self._current_model(), self._corpus.held_out_sentences(words))
        self._held_out = result
        self._metrics.write(
            progress.step,
            tokens=progress.tokens,
            seconds=round(progress.seconds, 1),
            held_out_words=result.words,
            forward=result.forward,
            backward=result.backward,
            perplexity=result.mean,
            **({"end": True} if self._loop.spent >= 1 else {}),
        )
        if stopping is not None:
            stopping.update(progress.step, result, self._loop.trainer.parameters)
            if stopping.exhausted and self._loop.spent < 1:
                raise _StopEarly

    def _save_checkpoint(self) -> None:
        self._checkpoint_seconds = self._loop.progress.seconds
        arrays, values = self._early_stopping.state() if self._early_stopping else ({}, {})
        arrays = self._loop.arrays() | arrays
        if self._is_first:
            progress = self._loop.progress
            values |= {"progress": progress.to_dict(), "losses": self._losses}
            self._check_lock()
            checkpoint.save(self._checkpoints, progress.step, arrays, values)
        self._group.wait_for_all()

    def _load_checkpoint(self) -> None:
        """Continue from the newest checkpoint, which the first process reads for all."""
        found: dict[str, Tensor] | None = None

        def read() -> tuple[str, dict[str, Any]] | None:
            nonlocal found
            newest = checkpoint.find_newest(self._checkpoints)
            if newest is None:
                return None
            found, values = checkpoint.load(newest)
            return newest.name, values

        shared = self._group.share(read)
        if shared is None:
            return
        newest, values = shared
        arrays = self._group.share_arrays(found)
        try:
            self._loop.load(arrays, TrainingProgress.from_dict(values["progress"]))
            self._losses += values.get("losses", [])
            if self._early_stopping is not None:
                self._early_stopping.load(arrays, values)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise FormatError(
                f"the checkpoint {self._checkpoints / newest} is damaged: {error!r}"
            ) from None

    def _check_lock(self) -> None:
        if self._lock is not None:
            self._lock.check()

    def _save_model(self, elmo: Elmo) -> None:
        self._check_lock()
        if not (self._out / MANIFEST).exists():  # an earlier session died while it wrote the model
            for name in NATIVE_NAMES:
                (self._out / name).unlink(missing_ok=True)
        formats.write(elmo.bilm, self._out, "native")
        metrics, name = read_metrics(self._metrics.path), self._out.resolve().name
        draw_curve(metrics, self._out / TRAINING / CURVE, name)
        self._metrics.close()
