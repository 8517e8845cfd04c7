"""A training run on disk: metrics, evaluations, checkpoints, and the model at the end.

    DIR/                     the model, once the run has ended
    DIR/training/run.json    architecture, recipe, budget, and the fingerprint of the corpus
    DIR/training/metrics.jsonl
    DIR/training/curve.svg
    DIR/training/checkpoints/step-00001234/

A run can be stopped at any moment and resumed. The training itself is in `loop.py`.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import elmokit
from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.formats.detect import NATIVE_NAMES
from elmokit.formats.native import MANIFEST
from elmokit.json_text import check_seal, parse_json, seal
from elmokit.lm import Perplexity, perplexity
from elmokit.storage import explain_write_errors, write_text
from elmokit.train import checkpoint
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.curve import draw_curve
from elmokit.train.distributed import ProcessGroup
from elmokit.train.early_stopping import EarlyStopping
from elmokit.train.interrupt import defer_interrupts
from elmokit.train.loop import StepMetrics, TrainingLoop, TrainingProgress
from elmokit.train.metrics import MetricsLog, read_metrics
from elmokit.train.recipe import Recipe

TRAINING, RUN, CHECKPOINTS, CURVE = "training", "run.json", "checkpoints", "curve.svg"
VERSION = 2
"""Version of run.json; version 1 has no checksum."""
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


@dataclass(frozen=True)
class RunPlan:
    """What determines a run, as run.json has it."""

    config: BiLMConfig
    """Architecture."""
    recipe: Recipe
    """How to train."""
    budget: Budget
    """How long to train."""
    corpus: str
    """Fingerprint of the corpus."""
    kind: str = "pretrain"
    """What the run does: "pretrain", "finetune" or "softmax"."""

    def to_json(self) -> str:
        """Return the contents of run.json."""
        values = {
            "format": "elmokit run",
            "version": VERSION,
            "elmokit": elmokit.__version__,
            "kind": self.kind,
            "corpus": self.corpus,
            "budget": self.budget.to_dict(),
            "recipe": self.recipe.to_dict(),
            "config": self.config.to_dict(),
        }
        return json.dumps(seal(values), indent=2) + "\n"

    @property
    def checksum(self) -> int:
        """Checksum by which processes compare their plans."""
        return zlib.crc32(self.to_json().encode())

    def write(self, directory: Path) -> None:
        """Write run.json to a directory, atomically."""
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / RUN, self.to_json())

    @classmethod
    def read(cls, directory: Path) -> RunPlan:
        """Read run.json from a directory."""
        try:
            values = parse_json((directory / RUN).read_text(encoding="utf-8"))
            if values["version"] != 1:  # files of version 1 have no checksum
                check_seal(values)
            return cls(
                BiLMConfig.from_dict(values["config"]),
                Recipe.from_dict(values["recipe"]),
                Budget(**values["budget"]),
                values["corpus"],
                values["kind"],
            )
        except FileNotFoundError:
            raise InputError(
                f"{directory.parent} has no run to resume: it has no {directory.name}/{RUN}"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{directory / RUN} is damaged: {error!r}") from None

    def check_corpus(self, corpus: Corpus, out: Path) -> None:
        """Raise if the corpus is not the one that the run in `out` was started with."""
        if corpus.fingerprint != self.corpus:
            raise TrainingError(
                f"{out} was started with another corpus: its fingerprint is {self.corpus[:12]}…, "
                f"that of {corpus.path} is {corpus.fingerprint[:12]}…"
            )


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
        """
        self._out, self._loop, self._corpus = out, loop, corpus
        self._group, self._is_first = group, group.rank == 0
        self._model, self._options, self._early_stopping = model, options, early_stopping
        self._checkpoints = out / TRAINING / CHECKPOINTS
        self._losses, self._loss = list[float](), math.nan
        self._held_out: Perplexity | None = None
        self._load_checkpoint()
        if group.any(group.broadcast(loop.progress.step) != loop.progress.step):
            raise TrainingError(
                f"the processes find different checkpoints in {self._checkpoints}; expected a "
                "directory that all of them share"
            )
        if self._is_first:
            self._metrics = MetricsLog(out / TRAINING, loop.progress.step)
        self._speed_start = time.monotonic(), loop.progress.tokens
        self._checkpoint_seconds = loop.progress.seconds
        self._evaluations_done = int(loop.spent * options.evaluations)

    def train(self) -> Elmo:
        """Train until the budget is spent or early stopping ends the run; return the saved model.

        Ctrl-C and SIGTERM stop between two steps, with a checkpoint. With early stopping, the best
        model so far is saved too.
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
                if self._group.any(stop_requested.is_set()):
                    raise KeyboardInterrupt

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
                self._evaluate(self._options.evaluation_words)
                self._speed_start = time.monotonic(), progress.tokens
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
        self._group.broadcast(0.0)  # wait for the first process
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
            checkpoint.save(self._checkpoints, progress.step, arrays, values)

    def _load_checkpoint(self) -> None:
        newest = checkpoint.find_newest(self._checkpoints)
        if newest is None:
            return
        arrays, values = checkpoint.load(newest)
        try:
            self._loop.load(arrays, TrainingProgress.from_dict(values["progress"]))
            self._losses += values.get("losses", [])
            if self._early_stopping is not None:
                self._early_stopping.load(arrays, values)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise FormatError(f"the checkpoint {newest} is damaged: {error!r}") from None

    def _save_model(self, elmo: Elmo) -> None:
        if not (self._out / MANIFEST).exists():  # an earlier session died while it wrote the model
            for name in NATIVE_NAMES:
                (self._out / name).unlink(missing_ok=True)
        formats.write(elmo.bilm, self._out, "native")
        metrics, name = read_metrics(self._metrics.path), self._out.resolve().name
        draw_curve(metrics, self._out / TRAINING / CURVE, name)
        self._metrics.close()
