"""A biLM from a corpus: put the parts of a run together and let it go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from elmokit.bilm.config import BiLMConfig
from elmokit.elmo import Elmo
from elmokit.errors import InputError, TrainingError
from elmokit.formats.detect import NATIVE_NAMES
from elmokit.formats.native import MANIFEST
from elmokit.nn.softmax import Everything, LogUniform, Poisson, Sampler
from elmokit.text.characters import Bytes
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import Group, join, local_device, processes
from elmokit.train.initialization import initial_weights
from elmokit.train.learner import Learner
from elmokit.train.loop import Loop
from elmokit.train.memory import keep_memory
from elmokit.train.recipe import Recipe
from elmokit.train.run import EVALUATIONS, RUN, TRAINING, Plan, Run
from elmokit.train.stream import Marks, reader_of


def pretrain(
    corpus: str | Path,
    out: str | Path,
    *,
    config: BiLMConfig,
    recipe: Recipe,
    budget: Budget,
    device: str = "cpu",
    **how: Any,
) -> Elmo:
    """Teach a new biLM; returns it, and leaves it in `out`.

    Args:
        corpus: a directory that `elmo corpus` made.
        out: a directory to make.
        config: the architecture; `bilm.sizes.SIZES` has some.
        recipe: how; `train.recipe.RECIPES` has two.
        budget: how long.
        device: `"cpu"` or `"cuda"`.
        how: `checkpoint_minutes`, `evaluation_words` and `watch` of `train.run.Run`.
    """
    out = new_place(out)
    opened = Corpus.open(corpus)
    plan = Plan(config, recipe, budget, opened.fingerprint)
    if config.char_cnn.scheme != "bytes" or config.words is not None:
        raise InputError("a new model reads characters as bytes; the configuration asks for others")
    return _go(out, plan, opened, device, **how)


def resume(
    corpus: str | Path,
    out: str | Path,
    *,
    budget: Budget | None = None,
    device: str = "cpu",
    **how: Any,
) -> Elmo:
    """Go on with a run that was stopped, as if it had not been; `budget` may change how long."""
    out = Path(out).expanduser()
    plan = Plan.read(out / TRAINING)
    opened = Corpus.open(corpus)
    if opened.fingerprint != plan.corpus:
        raise TrainingError(
            f"{out} was begun with another corpus: its fingerprint is {plan.corpus[:12]}…, that of "
            f"{corpus} {opened.fingerprint[:12]}…"
        )
    if budget is not None:
        plan = Plan(plan.config, plan.recipe, budget, plan.corpus, plan.kind)
    return _go(out, plan, opened, device, **how)


def _go(out: Path, plan: Plan, corpus: Corpus, device: str, **how: Any) -> Elmo:
    recipe, place = plan.recipe, local_device(device)
    if recipe.shards % processes():
        raise TrainingError(
            f"{recipe.shards} shards cannot be divided among {processes()} processes; "
            f"give --shards {processes()} or a multiple of it"
        )
    keep_memory()
    group = join(place)
    try:
        return _run(out, plan, corpus, place, group, **how)
    finally:
        group.close()


def _run(
    out: Path, plan: Plan, corpus: Corpus, place: torch.device, group: Group, **how: Any
) -> Elmo:
    config, recipe = plan.config, plan.recipe
    if plan.budget.minutes is not None:  # looking takes a few seconds, which are not learned in
        how.setdefault("evaluations", max(2, min(EVALUATIONS, round(plan.budget.minutes))))
    if group.any(group.agree(plan.number) != plan.number):
        raise TrainingError(
            "the processes have different recipes, budgets or corpora: give all of them the same "
            "options, --shards too"
        )
    if group.rank == 0:
        plan.write(out / TRAINING)
    counts = target_counts(corpus)
    weights = initial_weights(config, counts, recipe.seed)
    loop = Loop(
        Learner(config, weights, recipe, group, place),
        corpus,
        reader_of(corpus, recipe),
        sampler_of(recipe, counts),
        Bytes(config.char_cnn.max_characters),
        plan.budget,
        group,
    )
    return Run(out, plan, loop, corpus, group, **how).go()


def new_place(out: str | Path) -> Path:
    """A directory that a new run may use; what is there already is found before hours go by."""
    out = Path(out).expanduser()
    if (out / TRAINING / RUN).exists() or (out / MANIFEST).exists():
        raise InputError(f"{out} has a run or a model already: resume it, or give another name")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; expected a directory, or a name for a new one")
    if taken := sorted(name for name in NATIVE_NAMES if (out / name).exists()):
        raise InputError(f"{out} has {', '.join(taken)} of something else; give another name")
    return out


def target_counts(corpus: Corpus) -> npt.NDArray[np.int64]:
    """How often each word of the vocabulary is to be predicted, the marks included.

    The end of a sentence is predicted forward, its beginning backward: each half as often as there
    are sentences, since both directions share one softmax.
    """
    marks = Marks.of(corpus)
    counts = corpus.counts[: len(corpus.vocabulary)].copy()
    counts[marks.unknown] += corpus.counts[len(corpus.vocabulary) :].sum()
    counts[[marks.begin, marks.end]] = corpus.train.sentences // 2
    return counts


def sampler_of(recipe: Recipe, counts: npt.NDArray[np.int64]) -> Sampler:
    """The recipe's; all words where there are no more than it would draw."""
    if recipe.sampler == "full" or recipe.negatives >= len(counts):
        return Everything(len(counts))
    if recipe.sampler == "poisson":
        return Poisson(counts, recipe.negatives)
    return LogUniform(len(counts), recipe.negatives)
