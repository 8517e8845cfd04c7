"""A run that begins with a model and ends with the best that was found: early stopping.

Held-out text is measured before the first step and now and then after it, by the full softmax. The
best weights so far are remembered, in checkpoints too; they are the result, whether the budget is
spent, nothing has got better for a while, or someone has pressed Ctrl-C.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.lm import Perplexity
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import Alone
from elmokit.train.loop import Loop
from elmokit.train.run import Plan, Run

EVALUATIONS = 10
"""How often held-out text is looked at, over the whole budget."""
EVALUATION_WORDS = 10_000


class _Enough(Exception):
    """Nothing has got better for a while."""


class Adapting(Run):
    """A run whose result is the best of it."""

    before: Perplexity | None = None
    """Of held-out text, as it was at the beginning."""
    best: Perplexity | None = None
    """The lowest, of the weights that are the result."""
    best_step = 0

    def __init__(
        self,
        out: Path,
        plan: Plan,
        loop: Loop,
        corpus: Corpus,
        base: BiLM,
        *,
        patience: int,
        evaluations: int = EVALUATIONS,
        evaluation_words: int = EVALUATION_WORDS,
        **how: Any,
    ) -> None:
        """`base` is the model as it was; after `patience` evaluations in vain the run stops."""
        self._base, self._patience, self._waited = base, patience, 0
        self._best_parameters: Tensor | None = None
        self._measured = -1
        super().__init__(
            out,
            plan,
            loop,
            corpus,
            Alone(),
            evaluations=evaluations,
            evaluation_words=evaluation_words,
            **how,
        )

    @property
    def stopped_early(self) -> bool:
        """Whether it has waited in vain."""
        return self._waited >= self._patience

    @property
    def steps(self) -> int:
        """How many it has taken."""
        return self._loop.progress.step

    def go(self) -> Elmo:
        """Learn, and return the best model, which then lies in the directory."""
        if self.before is None:
            self._evaluate(None)
        try:
            if self.stopped_early:
                self._loop.close()
            else:
                self._learn()
        except _Enough:
            pass
        except KeyboardInterrupt:
            self._finish()
            raise
        return self._finish()

    def model(self) -> Elmo:
        """As it is now: the old one with other weights.

        Its sentences start from where they started when it learned; a stream settles by itself.
        """
        return Elmo(
            replace(
                self._base,
                weights=self._loop.learner.weights(),
                vocabulary=self._corpus.vocabulary,
                settled=self._base.settled if self._plan.recipe.text == "sentences" else None,
            )
        )

    def _evaluate(self, words: int | None) -> None:
        """The same sentences every time, or the best would not be comparable."""
        step = self._loop.progress.step
        if self._measured == step:
            return
        super()._evaluate(self._evaluation_words)
        self._measured, found = step, self._held_out
        if found is None:
            return
        self.before = self.before or found
        if self.best is None or found.mean < self.best.mean:
            self.best, self.best_step, self._waited = found, step, 0
            self._best_parameters = self._loop.learner.flat.detach().clone()
            return
        self._waited += 1
        if self.stopped_early:
            raise _Enough

    def _finish(self) -> Elmo:
        if self._loop.spent >= 1 and not self.stopped_early:
            with suppress(_Enough):
                self._evaluate(None)
        if self._best_parameters is not None:
            self._loop.learner.flat.copy_(self._best_parameters)
        elmo = self.model()
        self._save(elmo)
        self._metrics.close()
        return elmo

    def _memory(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        if self.best is None or self.before is None or self._best_parameters is None:
            return {}, {}
        facts = {
            "before": asdict(self.before),
            "best": asdict(self.best),
            "best_step": self.best_step,
            "waited": self._waited,
            "measured": self._measured,
        }
        return {"best": self._best_parameters}, facts

    def _recall(self, arrays: dict[str, Tensor], facts: dict[str, Any]) -> None:
        if "best" not in arrays:
            return
        self._best_parameters = arrays["best"].to(self._loop.learner.flat)
        self.before, self.best = Perplexity(**facts["before"]), Perplexity(**facts["best"])
        self.best_step, self._waited = facts["best_step"], facts["waited"]
        self._measured = facts["measured"]
