"""Pretraining: a new biLM from a corpus, from random weights or from those of another biLM."""

from __future__ import annotations

import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.sizes import SIZES
from elmokit.bilm.state import State
from elmokit.elmo import Elmo, locate_model
from elmokit.engine import native
from elmokit.errors import ElmoError, InputError, TrainingError
from elmokit.formats.detect import NATIVE_NAMES
from elmokit.formats.native import MANIFEST
from elmokit.nn.samplers import CandidateSampler, FullSampler, LogUniformSampler, PoissonSampler
from elmokit.text.characters import ByteEncoder
from elmokit.train import checkpoint
from elmokit.train.advice import advise_on_run
from elmokit.train.batches import make_batch_reader
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import (
    TIMEOUT_SECONDS,
    ProcessGroup,
    ProcessLost,
    local_device,
    process_group,
    world_size,
)
from elmokit.train.initialization import initial_weights
from elmokit.train.interrupt import stop_on_scheduler_signals
from elmokit.train.loop import TrainingLoop
from elmokit.train.malloc import keep_freed_memory
from elmokit.train.recipe import RECIPES, Recipe, count_shards
from elmokit.train.run import (
    CHECKPOINT_MINUTES,
    CHECKPOINTS,
    EVALUATION_WORDS,
    RunOptions,
    StepCallback,
    TrainingRun,
    ignore_report,
)
from elmokit.train.run_lock import RunLock, remove_lock_of_dead
from elmokit.train.run_plan import RUN, TRAINING, RunPlan, is_begun
from elmokit.train.trainer import Trainer
from elmokit.train.widening import check_start, widen

VISIBLE_SECONDS = 120.0
"""Time that a network file system may take to show a file to other hosts."""
PRETRAIN_EVALUATIONS = 20
"""Number of evaluations over the budget by default; fewer in a run of less than 20 minutes."""


def pretrain(
    corpus: str | Path,
    out: str | Path,
    *,
    budget: Budget,
    config: BiLMConfig | None = None,
    recipe: Recipe | None = None,
    start: str | Path | BiLM | None = None,
    device: str = "cpu",
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    evaluation_words: int = EVALUATION_WORDS,
    evaluations: int | None = None,
    auto_resume: bool = False,
    timeout: float = TIMEOUT_SECONDS,
    on_step: StepCallback = ignore_report,
) -> Elmo:
    """Train a new biLM, save it in `out`, and return it. The command `elmo pretrain` does this.

    Args:
        corpus: Directory that `build_corpus` or `elmo corpus` made.
        out: Directory to create.
        budget: How long to train.
        config: Architecture, such as one of `SIZES`; if None, that of `start`, or `SIZES["tiny"]`.
        recipe: How to train; `RECIPES["recommended"]` with one shard per processor if None.
        start: Model to start from instead of random weights, or anything that `Elmo.load` takes. It
            has the vocabulary of the corpus, and may have fewer LSTM cells and a smaller width.
        device: Device to train on, `"cpu"` or `"cuda"`.
        checkpoint_minutes: Minutes of training between two checkpoints.
        evaluation_words: Held-out words per evaluation; the last evaluation takes all.
        evaluations: Number of evaluations, spread over the budget; 20 if None, or fewer in a run
            of less than 20 minutes.
        auto_resume: Continue the run in `out` if there is one, so that the same call can be
            repeated until it has ended; then it returns the saved model. A run that torchrun
            restarts continues in any case.
        timeout: Seconds after which another process of torchrun that does not answer is taken as
            lost.
        on_step: Called with a `TrainingReport` after every step, and at the end.

    Raises:
        TrainingStopped: SIGTERM or SIGUSR1 has stopped it, with a checkpoint.
    """
    out = Path(out).expanduser()
    model = formats.read(locate_model(start)) if isinstance(start, str | Path) else start
    if config is None:
        config = SIZES["tiny"] if model is None else replace(model.config, extra={})
    recipe = recipe or with_shards(RECIPES["recommended"], device)
    if config.char_cnn.scheme != "bytes" or config.words is not None:
        raise InputError(
            "the configuration reads characters by an alphabet or words by a table; a new model "
            'reads characters as bytes: char_cnn.scheme "bytes", and no words'
        )
    if not auto_resume:  # otherwise the run's own number counts
        _check_shards(recipe, world_size())

    fingerprint = None if model is None else model.fingerprint

    def find_run() -> RunPlan | None:
        if not is_begun(out, auto_resume=auto_resume):
            check_new_run_directory(out)
            return None
        plan = RunPlan.read(out / TRAINING)
        plan.check_unchanged(config, recipe, out, fingerprint)
        return plan

    def make_plan(begun: RunPlan | None, corpus: Corpus) -> RunPlan:
        if begun is None:
            return RunPlan(config, recipe, budget, corpus.fingerprint, start=fingerprint)
        return replace(begun, budget=budget)

    options = RunOptions(
        evaluations=_count_evaluations(evaluations, budget),
        evaluation_words=evaluation_words,
        checkpoint_minutes=checkpoint_minutes,
        on_step=on_step,
    )
    return _train(
        Path(corpus).expanduser(),
        out,
        find_run,
        make_plan,
        lambda _: options,
        device,
        timeout,
        start=model,
    )


def resume(
    corpus: str | Path,
    out: str | Path,
    *,
    budget: Budget | None = None,
    device: str = "cpu",
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    evaluation_words: int = EVALUATION_WORDS,
    evaluations: int | None = None,
    timeout: float = TIMEOUT_SECONDS,
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
        timeout: Seconds after which another process of torchrun that does not answer is taken as
            lost.
        on_step: Called with a `TrainingReport` after every step, and at the end.
    """
    out = Path(out).expanduser()

    def find_run() -> RunPlan:
        plan = RunPlan.read(out / TRAINING)
        if plan.start and checkpoint.find_newest(out / TRAINING / CHECKPOINTS) is None:
            raise TrainingError(
                f"{out} was started from the weights of another model, and has no checkpoint yet; "
                "remove it and start the run again"
            )
        return plan

    def make_plan(begun: RunPlan | None, corpus: Corpus) -> RunPlan:
        plan = begun or RunPlan.read(out / TRAINING)
        return plan if budget is None else replace(plan, budget=budget)

    def make_options(plan: RunPlan) -> RunOptions:
        return RunOptions(
            evaluations=_count_evaluations(evaluations, plan.budget),
            evaluation_words=evaluation_words,
            checkpoint_minutes=checkpoint_minutes,
            on_step=on_step,
        )

    return _train(
        Path(corpus).expanduser(),
        out,
        find_run,
        make_plan,
        make_options,
        device,
        timeout,
        again=True,
    )


def _count_evaluations(evaluations: int | None, budget: Budget) -> int:
    if evaluations is not None:
        return evaluations
    if budget.minutes is None:
        return PRETRAIN_EVALUATIONS
    # An evaluation takes a few seconds in which nothing is learned.
    return max(2, min(PRETRAIN_EVALUATIONS, round(budget.minutes)))


def _train(
    corpus_path: Path,
    out: Path,
    find_run: Callable[[], RunPlan | None],
    make_plan: Callable[[RunPlan | None, Corpus], RunPlan],
    make_options: Callable[[RunPlan], RunOptions],
    device: str,
    timeout: float,
    *,
    start: BiLM | None = None,
    again: bool = False,
) -> Elmo:
    """Start a run or continue it, together with the other processes.

    Args:
        corpus_path: Directory of the corpus.
        out: Directory of the run.
        find_run: Returns the plan of the run in `out` if it is to be continued, or raises. Only the
            first process calls it.
        make_plan: Returns the plan of this process, given the one found.
        make_options: Returns how to evaluate, save and report.
        device: Device to train on.
        timeout: Seconds after which another process that does not answer is taken as lost.
        start: Model to start from; None for random weights, or to continue a run.
        again: Continue a run that has ended too, to evaluate and save its model anew.
    """
    keep_freed_memory()
    own_device = local_device(device)
    with stop_on_scheduler_signals(), process_group(own_device, timeout) as group:
        try:
            begun, corpus = _open_together(corpus_path, out, find_run, group, timeout)
            plan = make_plan(begun, corpus)
            if start is not None:
                check_start(start, plan.config, corpus.vocabulary)
            _check_plan(plan, group)
            is_over = begun is not None and not again
            if is_over and group.share(lambda: plan.read_finished(out / TRAINING)) is not None:
                remove_lock_of_dead(out / TRAINING)
                return Elmo.load(out)
            with _hold_in_first(out, begun, plan, group) as lock:
                options = make_options(plan)
                return _train_in_group(out, plan, corpus, own_device, group, options, lock, start)
        except ProcessLost as error:
            raise explain_lost(error, out) from error


def _open_together(
    path: Path,
    out: Path,
    find_run: Callable[[], RunPlan | None],
    group: ProcessGroup,
    timeout: float,
) -> tuple[RunPlan | None, Corpus]:
    """Return the plan of the run in `out`, if it is continued, and the corpus.

    The first process looks at the directories; a network file system may show the others an
    earlier state for a while.
    """
    opened: Corpus | None = None

    def look() -> tuple[str | None, str]:
        nonlocal opened
        plan = find_run()
        opened = Corpus.open(path)
        if plan is not None:
            plan.check_corpus(opened, out)
        return None if plan is None else plan.to_json(), opened.fingerprint

    text, fingerprint = group.share(look)
    if opened is None:
        opened = _open_when_visible(path, fingerprint, min(VISIBLE_SECONDS, timeout / 2))
    group.wait_for_all()
    return None if text is None else RunPlan.from_json(text), opened


def _open_when_visible(path: Path, fingerprint: str, seconds: float) -> Corpus:
    """Open a corpus that another process has seen, after waiting until it is visible here too."""
    end = time.monotonic() + seconds
    while True:
        try:
            corpus = Corpus.open(path)
            if corpus.fingerprint == fingerprint:
                return corpus
            problem = f"its fingerprint is {corpus.fingerprint[:12]}…, not {fingerprint[:12]}…"
        except (ElmoError, OSError) as error:
            problem = str(error)
        if time.monotonic() > end:
            raise TrainingError(
                f"{socket.gethostname()} does not see the corpus that the first process sees, even "
                f"after {seconds:g} seconds: {problem}. All hosts need the same files at {path}"
            )
        time.sleep(0.5)


def _check_plan(plan: RunPlan, group: ProcessGroup) -> None:
    """Raise if the plan cannot be carried out together, in all processes alike."""
    if group.any(group.broadcast(plan.checksum) != plan.checksum):
        raise TrainingError(
            "the processes have different recipes, budgets or corpora; give all of them the same "
            "options, --shards too"
        )
    _check_shards(plan.recipe, group.world)


def _check_shards(recipe: Recipe, processes: int) -> None:
    if recipe.shards % processes:
        raise TrainingError(
            f"{recipe.shards} shards cannot be divided among {processes} processes; "
            f"give --shards {processes} or a multiple of it"
        )


@contextmanager
def _hold_in_first(
    out: Path, begun: RunPlan | None, plan: RunPlan, group: ProcessGroup
) -> Iterator[RunLock | None]:
    """Let the first process lock the run and write run.json; yield its lock, None in the others."""
    lock: RunLock | None = None

    def begin() -> None:
        nonlocal lock
        lock = RunLock(out / TRAINING)
        if begun is None:
            check_new_run_directory(out)  # again, since time has passed
        plan.write(out / TRAINING)

    try:
        group.share(begin)
        yield lock
    finally:
        if lock is not None:
            lock.release()


def explain_lost(error: ProcessLost, out: Path) -> ProcessLost:
    """Return the error with what is kept of the run, and what to type."""
    newest = checkpoint.find_newest(out / TRAINING / CHECKPOINTS)
    kept = "no checkpoint was written yet" if newest is None else f"{newest.name} is kept"
    return ProcessLost(
        f"{error}. In {out}, {kept}. When all hosts are up, start all processes again with the "
        "same command and --auto-resume"
    )


def _train_in_group(
    out: Path,
    plan: RunPlan,
    corpus: Corpus,
    device: torch.device,
    group: ProcessGroup,
    options: RunOptions,
    lock: RunLock | None,
    start: BiLM | None,
) -> Elmo:
    config, recipe = plan.config, plan.recipe
    counts = target_counts(corpus)
    weights = initial_weights(config, counts, recipe.seed)
    if start is not None:
        weights = widen(start.weights, weights)
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
    settled = State.zeros(config) if recipe.text != "stream" else None
    model = BiLM(config, weights, corpus.vocabulary, settled)
    elmo = TrainingRun(out, loop, corpus, group, model, options, lock=lock).train()
    if group.rank == 0:
        plan.write_finished(out / TRAINING, steps=loop.progress.step)
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
