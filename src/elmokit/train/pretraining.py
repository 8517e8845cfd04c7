"""Pretraining: a new biLM from a corpus."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.sizes import SIZES
from elmokit.bilm.state import State
from elmokit.elmo import Elmo
from elmokit.engine import native
from elmokit.errors import InputError, TrainingError
from elmokit.formats.detect import NATIVE_NAMES
from elmokit.formats.native import MANIFEST
from elmokit.nn.samplers import CandidateSampler, FullSampler, LogUniformSampler, PoissonSampler
from elmokit.text.characters import ByteEncoder
from elmokit.train.advice import advise_on_run
from elmokit.train.batches import make_batch_reader
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import ProcessGroup, join_process_group, local_device, world_size
from elmokit.train.initialization import initial_weights
from elmokit.train.loop import TrainingLoop
from elmokit.train.malloc import keep_freed_memory
from elmokit.train.recipe import RECIPES, Recipe, count_shards
from elmokit.train.run import (
    CHECKPOINT_MINUTES,
    EVALUATION_WORDS,
    RUN,
    TRAINING,
    RunOptions,
    RunPlan,
    StepCallback,
    TrainingRun,
    ignore_report,
)
from elmokit.train.trainer import Trainer

PRETRAIN_EVALUATIONS = 20
"""Number of evaluations over the budget by default; fewer in a run of less than 20 minutes."""


def pretrain(
    corpus: str | Path,
    out: str | Path,
    *,
    budget: Budget,
    config: BiLMConfig | None = None,
    recipe: Recipe | None = None,
    device: str = "cpu",
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    evaluation_words: int = EVALUATION_WORDS,
    evaluations: int | None = None,
    on_step: StepCallback = ignore_report,
) -> Elmo:
    """Train a new biLM, save it in `out`, and return it. The command `elmo pretrain` does this.

    Args:
        corpus: Directory that `build_corpus` or `elmo corpus` made.
        out: Directory to create.
        budget: How long to train.
        config: Architecture, such as one of `SIZES`; `SIZES["tiny"]` if None.
        recipe: How to train; `RECIPES["recommended"]` with one shard per processor if None.
        device: Device to train on, `"cpu"` or `"cuda"`.
        checkpoint_minutes: Minutes of training between two checkpoints.
        evaluation_words: Held-out words per evaluation; the last evaluation takes all.
        evaluations: Number of evaluations, spread over the budget; 20 if None, or fewer in a run
            of less than 20 minutes.
        on_step: Called with a `TrainingReport` after every step, and at the end.
    """
    out = check_new_run_directory(out)
    opened = Corpus.open(corpus)
    config = config or SIZES["tiny"]
    recipe = recipe or with_shards(RECIPES["recommended"], device)
    plan = RunPlan(config, recipe, budget, opened.fingerprint)
    if config.char_cnn.scheme != "bytes" or config.words is not None:
        raise InputError(
            "the configuration reads characters by an alphabet or words by a table; a new model "
            'reads characters as bytes: char_cnn.scheme "bytes", and no words'
        )
    options = RunOptions(
        evaluations=_count_evaluations(evaluations, budget),
        evaluation_words=evaluation_words,
        checkpoint_minutes=checkpoint_minutes,
        on_step=on_step,
    )
    return _train(out, plan, opened, device, options)


def resume(
    corpus: str | Path,
    out: str | Path,
    *,
    budget: Budget | None = None,
    device: str = "cpu",
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    evaluation_words: int = EVALUATION_WORDS,
    evaluations: int | None = None,
    on_step: StepCallback = ignore_report,
) -> Elmo:
    """Continue a pretraining run that was stopped, as if it had not been.

    The command `elmo pretrain --resume` does this.

    Args:
        corpus: The corpus that the run was started with.
        out: Directory of the run.
        budget: How long to train in all; the budget of the run if None.
        device: Device to train on, `"cpu"` or `"cuda"`.
        checkpoint_minutes: Minutes of training between two checkpoints.
        evaluation_words: Held-out words per evaluation; the last evaluation takes all.
        evaluations: Number of evaluations, as in `pretrain`.
        on_step: Called with a `TrainingReport` after every step, and at the end.
    """
    out = Path(out).expanduser()
    plan = RunPlan.read(out / TRAINING)
    opened = Corpus.open(corpus)
    plan.check_corpus(opened, out)
    if budget is not None:
        plan = replace(plan, budget=budget)
    options = RunOptions(
        evaluations=_count_evaluations(evaluations, plan.budget),
        evaluation_words=evaluation_words,
        checkpoint_minutes=checkpoint_minutes,
        on_step=on_step,
    )
    return _train(out, plan, opened, device, options)


def _count_evaluations(evaluations: int | None, budget: Budget) -> int:
    if evaluations is not None:
        return evaluations
    if budget.minutes is None:
        return PRETRAIN_EVALUATIONS
    # An evaluation takes a few seconds in which nothing is learned.
    return max(2, min(PRETRAIN_EVALUATIONS, round(budget.minutes)))


def _train(out: Path, plan: RunPlan, corpus: Corpus, device: str, options: RunOptions) -> Elmo:
    shards, processes = plan.recipe.shards, world_size()
    if shards % processes:
        raise TrainingError(
            f"{shards} shards cannot be divided among {processes} processes; "
            f"give --shards {processes} or a multiple of it"
        )
    keep_freed_memory()
    group = join_process_group(local_device(device))
    try:
        return _train_in_group(out, plan, corpus, local_device(device), group, options)
    finally:
        group.close()


def _train_in_group(
    out: Path,
    plan: RunPlan,
    corpus: Corpus,
    device: torch.device,
    group: ProcessGroup,
    options: RunOptions,
) -> Elmo:
    config, recipe = plan.config, plan.recipe
    if group.any(group.broadcast(plan.checksum) != plan.checksum):
        raise TrainingError(
            "the processes have different recipes, budgets or corpora; give all of them the same "
            "options, --shards too"
        )
    if group.rank == 0:
        plan.write(out / TRAINING)
    counts = target_counts(corpus)
    weights = initial_weights(config, counts, recipe.seed)
    loop = TrainingLoop(
        Trainer(config, weights, recipe, group, device),
        corpus,
        make_batch_reader(corpus, recipe),
        make_sampler(recipe, counts),
        ByteEncoder(config.char_cnn.max_characters),
        plan.budget,
        group,
    )
    # Sentences start from the zero state, as in training; a model of a stream finds its own start.
    settled = State.zeros(config) if recipe.text == "sentences" else None
    model = BiLM(config, weights, corpus.vocabulary, settled)
    elmo = TrainingRun(out, loop, corpus, group, model, options).train()
    if group.rank == 0:
        for advice in advise_on_run(corpus, plan.budget, loop.progress.tokens):
            warnings.warn(advice, stacklevel=5)
    return elmo


def with_shards(recipe: Recipe, device: str) -> Recipe:
    """Return the recipe with as many shards as keep this machine's processors busy."""
    processors = native.usable_processors() if device == "cpu" else 1
    return recipe.replace(shards=count_shards(recipe, processors, world_size()))


def check_new_run_directory(out: str | Path) -> Path:
    """Return the path of a new run; raise now, not after hours, if its directory is in use."""
    out = Path(out).expanduser()
    if (out / TRAINING / RUN).exists() or (out / MANIFEST).exists():
        raise InputError(
            f"{out} has a run or a model already; continue the run with resume (--resume), or give "
            "another directory"
        )
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; expected a directory, or a name for a new one")
    if taken := sorted(name for name in NATIVE_NAMES if (out / name).exists()):
        raise InputError(
            f"{out} has {', '.join(taken)}, which the model would replace; give another directory"
        )
    return out


def target_counts(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Return how often each word of the vocabulary is a prediction target, marks included.

    The end of a sentence is predicted forward, its beginning backward. Both directions share one
    softmax, so each counts half as often as there are sentences.
    """
    special = corpus.special_ids
    counts = corpus.counts[: len(corpus.vocabulary)].copy()
    counts[special.unknown] += corpus.counts[len(corpus.vocabulary) :].sum()
    counts[[special.begin, special.end]] = corpus.train.sentences // 2
    return counts


def make_sampler(recipe: Recipe, counts: npt.NDArray[np.int64]) -> CandidateSampler:
    """Return the sampler of a recipe; the full softmax where the vocabulary is that small.

    Args:
        recipe: How to train.
        counts: How often each word of the vocabulary is a prediction target.
    """
    if recipe.sampler == "full" or recipe.negatives >= len(counts):
        return FullSampler(len(counts))
    if recipe.sampler == "poisson":
        return PoissonSampler(counts, recipe.negatives)
    return LogUniformSampler(len(counts), recipe.negatives)
