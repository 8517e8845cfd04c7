"""A run on disk: it begins, notes what happens, can be stopped at any moment, resumed, and ends.

    DIR/                     the model, once the run has ended
    DIR/training/run.json    architecture, recipe, budget, and which corpus
    DIR/training/metrics.jsonl
    DIR/training/curve.svg
    DIR/training/checkpoints/step-00001234/

What is learned, and how, is `loop.py`.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import elmokit
from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.formats.detect import NATIVE_NAMES
from elmokit.formats.native import MANIFEST
from elmokit.lm import Perplexity, perplexity
from elmokit.text.files import write_text
from elmokit.train import checkpoint
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.curve import draw_curve
from elmokit.train.distributed import Group
from elmokit.train.interrupt import between_steps
from elmokit.train.loop import Loop, Progress, Step
from elmokit.train.metrics import Metrics, read_metrics
from elmokit.train.recipe import Recipe

TRAINING, RUN, CHECKPOINTS, CURVE = "training", "run.json", "checkpoints", "curve.svg"
NOTE_STEPS = 25
"""Steps between two lines of metrics."""
EVALUATIONS = 20
"""How often held-out text is looked at, over the whole budget."""


@dataclass(frozen=True)
class Report:
    """What somebody who watches a run hears after a step."""

    progress: Progress
    spent: float
    """Of the budget, 0 to 1."""
    loss: float
    """The mean since the last line of metrics, of a sample of the vocabulary."""
    speed: float
    """Words a second, lately."""
    held_out: Perplexity | None
    """The last evaluation of this sitting; at the end, of all held-out text."""
    epochs: float
    """How often the whole text was read."""


Watch = Callable[[Report], None]


@dataclass(frozen=True)
class Plan:
    """What a run is, as run.json says it."""

    config: BiLMConfig
    recipe: Recipe
    budget: Budget
    corpus: str
    """The fingerprint of its corpus."""
    kind: str = "pretrain"

    def to_json(self) -> str:
        """As run.json."""
        facts = {
            "format": "elmokit run",
            "version": 1,
            "elmokit": elmokit.__version__,
            "kind": self.kind,
            "corpus": self.corpus,
            "budget": self.budget.to_dict(),
            "recipe": self.recipe.to_dict(),
            "config": self.config.to_dict(),
        }
        return json.dumps(facts, indent=2) + "\n"

    @property
    def number(self) -> int:
        """The same for the same plan, for processes to compare."""
        return zlib.crc32(self.to_json().encode())

    def write(self, directory: Path) -> None:
        """To run.json, at once or not at all."""
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / RUN, self.to_json())

    @classmethod
    def read(cls, directory: Path) -> Plan:
        """From run.json."""
        try:
            facts = json.loads((directory / RUN).read_text(encoding="utf-8"))
            return cls(
                BiLMConfig.from_dict(facts["config"]),
                Recipe.from_dict(facts["recipe"]),
                Budget(**facts["budget"]),
                facts["corpus"],
                facts["kind"],
            )
        except FileNotFoundError:
            raise InputError(
                f"{directory.parent} has no run to resume: there is no {directory.name}/{RUN} in it"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{directory / RUN} is damaged: {error!r}") from None


class Run:
    """A loop that is watched, evaluated and kept."""

    def __init__(
        self,
        out: Path,
        plan: Plan,
        loop: Loop,
        corpus: Corpus,
        group: Group,
        *,
        checkpoint_minutes: float = 5.0,
        evaluation_words: int = 10_000,
        evaluations: int = EVALUATIONS,
        watch: Watch = lambda report: None,
    ) -> None:
        """Continues from the newest checkpoint, if there is one."""
        self._out, self._plan, self._loop, self._corpus = out, plan, loop, corpus
        self._group, self._first = group, group.rank == 0
        self._every, self._evaluation_words = 60 * checkpoint_minutes, evaluation_words
        self._evaluations, self._watch = evaluations, watch
        self._checkpoints = out / TRAINING / CHECKPOINTS
        self._losses, self._loss = list[float](), math.nan
        self._held_out: Perplexity | None = None
        found = checkpoint.newest(self._checkpoints)
        if found is not None:
            arrays, facts = checkpoint.load(found)
            try:
                loop.load(arrays, Progress.from_dict(facts["progress"]))
                self._losses += facts.get("losses", [])
                self._recall(arrays, facts)
            except (KeyError, TypeError) as error:
                raise FormatError(f"the checkpoint {found} is damaged: {error!r}") from None
        if group.any(group.agree(loop.progress.step) != loop.progress.step):
            raise TrainingError(
                f"the processes find different checkpoints in {self._checkpoints}: all of them "
                "have to see the same directory"
            )
        if self._first:
            self._metrics = Metrics(out / TRAINING, loop.progress.step)
        self._noted = time.monotonic(), loop.progress.tokens
        self._kept = loop.progress.seconds
        self._looked = int(loop.spent * evaluations)

    def go(self) -> Elmo:
        """Learn until the budget is spent; returns the model.

        Ctrl-C and SIGTERM stop it between two steps, with a checkpoint.
        """
        self._learn()
        return self._finish()

    def _learn(self) -> None:
        with between_steps(patient=self._group.world > 1) as stopped:

            def after(step: Step) -> None:
                self._after(step)
                if self._group.any(stopped.is_set()):
                    raise KeyboardInterrupt

            try:
                self._loop.run(after)
            except Exception:
                if self._group.world > 1:  # the others are not here, and a checkpoint needs them
                    self._loop.intact = False
                raise
            finally:
                if self._loop.intact:
                    self._keep()
                self._loop.close()

    def _finish(self) -> Elmo:
        """Measure and save what was learned."""
        elmo = self.model()
        if self._first:
            self._evaluate(words=None)
            self._save(elmo)
            self._metrics.close()
            self._tell()
        self._group.agree(0.0)  # wait for the first process
        return elmo

    def model(self) -> Elmo:
        """As it is now."""
        plan = self._plan
        # Whole sentences start from nothing, here as in training; a stream settles by itself.
        settled = State.zeros(plan.config) if plan.recipe.text == "sentences" else None
        weights = self._loop.learner.weights()
        return Elmo(BiLM(plan.config, weights, self._corpus.vocabulary, settled))

    def _after(self, step: Step) -> None:
        """Between two steps."""
        progress = self._loop.progress
        if self._first:
            self._losses.append(step.loss)
            speed = self._tell()
            if progress.step % NOTE_STEPS == 0:
                self._note(step, speed)
            due = int(self._loop.spent * self._evaluations)
            if due > self._looked and self._loop.spent < 1:
                self._looked = due
                self._evaluate(self._evaluation_words)
                self._noted = time.monotonic(), progress.tokens
        if progress.seconds - self._kept > self._every:
            self._keep()

    def _tell(self) -> float:
        """Let the watcher know; returns the speed."""
        progress, (since, tokens) = self._loop.progress, self._noted
        speed = (progress.tokens - tokens) / max(time.monotonic() - since, 1e-9)
        loss = float(np.mean(self._losses)) if self._losses else self._loss
        report = Report(progress, self._loop.spent, loss, speed, self._held_out, self._loop.epochs)
        self._watch(report)
        return speed

    def _note(self, step: Step, speed: float) -> None:
        progress = self._loop.progress
        self._loss = float(np.mean(self._losses))
        self._metrics.note(
            progress.step,
            tokens=progress.tokens,
            seconds=round(progress.seconds, 1),
            epoch=progress.place.epoch,
            loss=self._loss,
            norm=step.norm,
            rate=step.rate,
            words_per_second=round(speed),
        )
        self._losses.clear()
        self._noted = time.monotonic(), progress.tokens

    def _evaluate(self, words: int | None) -> None:
        """The perplexity of held-out text, by the full softmax."""
        valid, progress = self._corpus.valid, self._loop.progress
        if valid is None or not valid.sentences:
            return
        sentences = self._corpus.held_out(words)
        self._held_out = found = perplexity(self.model(), sentences)
        self._metrics.note(
            progress.step,
            tokens=progress.tokens,
            seconds=round(progress.seconds, 1),
            held_out_words=found.words,
            forward=found.forward,
            backward=found.backward,
            perplexity=found.mean,
            **({"end": True} if self._loop.spent >= 1 else {}),
        )

    def _keep(self) -> None:
        """A checkpoint."""
        self._kept = self._loop.progress.seconds
        more, facts = self._memory()
        arrays = self._loop.arrays() | more
        if self._first:
            progress = self._loop.progress
            facts |= {"progress": progress.to_dict(), "losses": self._losses}
            checkpoint.save(self._checkpoints, progress.step, arrays, facts)

    def _memory(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What a checkpoint holds besides the loop, for kinds of runs that have more."""
        return {}, {}

    def _recall(self, arrays: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Take it back from a checkpoint; called while the run is being made."""

    def _save(self, elmo: Elmo) -> None:
        if not (self._out / MANIFEST).exists():  # or killed while it was being written
            for name in NATIVE_NAMES:
                (self._out / name).unlink(missing_ok=True)
        formats.write(elmo.bilm, self._out, "native")
        metrics, name = read_metrics(self._metrics.path), self._out.resolve().name
        draw_curve(metrics, self._out / TRAINING / CURVE, name)
