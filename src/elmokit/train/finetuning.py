"""Fine-tuning: an existing biLM adapted to other text, with early stopping.

    DIR/                     the fine-tuned model
    DIR/training/            as in `run.py`, and
    DIR/training/finetune.json    fingerprint of the base model, and the settings
    DIR/training/corpus/     the text in the model's vocabulary, until the run has ended
    DIR/training/softmax/    if the model had no softmax: the run that trained one

A model without a softmax, such as the published HDF5 files, first trains one while its network
stays unchanged; then everything is trained together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.elmo import Elmo, locate_model
from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.json_text import SEAL, check_seal, parse_json, seal
from elmokit.lm import Perplexity, perplexity
from elmokit.lm.softmax import Softmax
from elmokit.nn.state import TensorState
from elmokit.storage import remove_directory, remove_leftovers, write_text
from elmokit.text.vocabulary import Vocabulary
from elmokit.train.batches import make_batch_reader
from elmokit.train.budget import Budget
from elmokit.train.build import VOCABULARY_SIZE, CorpusCallback
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import SingleProcess, local_device, world_size
from elmokit.train.early_stopping import EarlyStopping
from elmokit.train.initialization import initial_softmax
from elmokit.train.interrupt import stop_on_scheduler_signals
from elmokit.train.loop import TrainingLoop
from elmokit.train.malloc import keep_freed_memory
from elmokit.train.pretraining import (
    check_new_run_directory,
    make_sampler,
    target_counts,
    with_shards,
)
from elmokit.train.recipe import Recipe
from elmokit.train.run import (
    CHECKPOINT_MINUTES,
    EVALUATION_WORDS,
    RunOptions,
    StepCallback,
    TrainingRun,
    ignore_report,
)
from elmokit.train.run_lock import RunLock, hold_run, remove_lock_of_dead
from elmokit.train.run_plan import RUN, TRAINING, RunPlan, is_begun
from elmokit.train.text_reader import TextReader
from elmokit.train.text_source import TextSource, build_source_corpus, open_source_corpus
from elmokit.train.trainer import Trainer
from elmokit.train.vocabulary_extension import extend_softmax, extend_vocabulary

FINETUNE_RECIPE = Recipe(batch=1120, rate=4e-3, warm_up=100, dropout=0.1)
"""Recipe that lowers the perplexity of a domain most in a few minutes, for 512 LSTM cells."""
FINETUNE_RECIPE_CELLS = 512
SOFTMAX_RATE = 1e-2
"""Peak learning rate of a softmax that is trained alone."""
SOFTMAX_FRACTION = 0.3
"""Fraction of the budget for training a softmax alone."""
FINETUNE_EVALUATIONS = 10
"""Number of evaluations over the budget by default."""
PATIENCE = 3
"""Evaluations without improvement after which to stop, by default."""
EPOCHS = 3.0
"""Budget by default, in passes over the text; early stopping may end a run before."""

SETTINGS, CORPUS, SOFTMAX_RUN = "finetune.json", "corpus", "softmax"


@dataclass(frozen=True)
class FinetuneResult:
    """The outcome of fine-tuning; perplexities before and after are of the same text."""

    elmo: Elmo
    """The fine-tuned model."""
    before: Perplexity
    """Perplexity of the domain's held-out text before training."""
    after: Perplexity
    """Perplexity of the domain's held-out text by the fine-tuned model."""
    general: tuple[Perplexity, Perplexity] | None
    """Perplexity of general text before and after; None if no such text was given."""
    steps: int
    """Optimizer steps taken."""
    best_step: int
    """Step of the weights that were kept; 0 if the model did not improve."""
    stopped_early: bool
    """Whether the run ended before its budget was spent."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result without the model as a dictionary for JSON."""
        pairs = {"domain": (self.before, self.after)}
        if self.general is not None:
            pairs["general"] = self.general
        perplexities: dict[str, Any] = {
            name: {"before": before.to_dict(), "after": after.to_dict()}
            for name, (before, after) in pairs.items()
        }
        return perplexities | {
            "steps": self.steps,
            "best_step": self.best_step,
            "stopped_early": self.stopped_early,
            "vocabulary": len(self.elmo.bilm.vocabulary or ()),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], elmo: Elmo) -> FinetuneResult:
        """Restore what `to_dict` returned, with the model."""

        def pair(name: str) -> tuple[Perplexity, Perplexity]:
            before, after = (_restore(values[name][when]) for when in ("before", "after"))
            return before, after

        return cls(
            elmo,
            *pair("domain"),
            pair("general") if "general" in values else None,
            values["steps"],
            values["best_step"],
            values["stopped_early"],
        )


def _restore(values: dict[str, Any]) -> Perplexity:
    names = ("forward", "backward", "words", "sentences", "signature")
    own = {name: values[name] for name in names}
    return Perplexity(unknown=round(values["oov"] * values["words"]), **own)


@dataclass(frozen=True)
class _FinetuneSettings:
    """The contents of finetune.json."""

    model: str
    """Fingerprint of the base model."""
    extend: int
    patience: int
    evaluation_words: int
    own_corpus: bool
    """Whether the corpus was made for this run."""

    def check_unchanged(self, extend: int, patience: int, evaluation_words: int) -> None:
        """Raise if a run would continue with other settings."""
        given = {"extend": extend, "patience": patience, "evaluation_words": evaluation_words}
        for name, value in given.items():
            if value != getattr(self, name):
                raise InputError(
                    f"--{name.replace('_', '-')} cannot change when a run is resumed: it was "
                    f"started with {getattr(self, name)}, and {value} was given"
                )

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / SETTINGS, json.dumps(seal(asdict(self)), indent=2) + "\n")

    @classmethod
    def read(cls, directory: Path) -> _FinetuneSettings:
        path = directory / SETTINGS
        try:
            values = parse_json(path.read_text(encoding="utf-8"))
            if SEAL in values:  # since version 0.2; any other new key is refused below
                check_seal(values)
                del values[SEAL]
            return cls(**values)
        except FileNotFoundError:
            raise InputError(
                f"{directory.parent} has no fine-tuning to resume: it has no "
                f"{directory.name}/{SETTINGS}"
            ) from None
        except (ValueError, TypeError) as error:
            raise FormatError(f"{path} is damaged: {error!r}") from None


@dataclass(frozen=True)
class _FinetuneRun:
    """What the runs of a fine-tuning have in common."""

    settings: _FinetuneSettings
    corpus: Corpus
    device: str
    options: RunOptions
    lock: RunLock

    def start(
        self, out: Path, plan: RunPlan, base: BiLM, *, only_softmax: bool = False
    ) -> tuple[Elmo, EarlyStopping, int]:
        """Train a model in `out`; return the best model, how it was found, and the steps taken."""
        group, corpus, recipe = SingleProcess(), self.corpus, plan.recipe
        weights = {name: np.asarray(array, np.float32) for name, array in base.weights.items()}
        loop = TrainingLoop(
            Trainer(
                base.config,
                weights,
                recipe,
                group,
                local_device(self.device),
                only_softmax=only_softmax,
            ),
            corpus,
            make_batch_reader(corpus, recipe),
            make_sampler(recipe, target_counts(corpus)),
            base.characters,
            plan.budget,
            group,
            None if base.settled is None else TensorState.from_state(base.settled),
        )
        # Sentences start from the state that they started from in training.
        settled = base.settled if recipe.text != "stream" else None
        model = replace(base, vocabulary=corpus.vocabulary, settled=settled)
        stopping = EarlyStopping(self.settings.patience)
        run = TrainingRun(out, loop, corpus, group, model, self.options, stopping, self.lock)
        return run.train(), stopping, loop.progress.step


def finetune(
    model: str | Path | BiLM,
    source: TextSource,
    out: str | Path,
    *,
    budget: Budget | None = None,
    recipe: Recipe | None = None,
    extend: int = 0,
    vocabulary: int | Vocabulary | None = None,
    general: Sequence[str] = (),
    patience: int = PATIENCE,
    device: str = "cpu",
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    evaluation_words: int = EVALUATION_WORDS,
    evaluations: int = FINETUNE_EVALUATIONS,
    auto_resume: bool = False,
    on_chunk: CorpusCallback | None = None,
    on_step: StepCallback = ignore_report,
) -> FinetuneResult:
    """Fine-tune a model on other text, and save the best in `out`.

    The command `elmo finetune` does this.

    Args:
        model: Model to start from, as `Elmo.load` takes it.
        source: Text to fine-tune on.
        out: Directory to create.
        budget: How long to train at most; three epochs if None.
        recipe: How to train; `default_recipe` of the model with one shard per processor if None.
        extend: Number of frequent words of the text to add to the model's vocabulary.
        vocabulary: For a model without a softmax: the words to predict, or how many.
        general: Files of other text, to see how much the model forgets.
        patience: Evaluations without improvement after which to stop.
        device: Device to train on, `"cpu"` or `"cuda"`.
        checkpoint_minutes: Minutes of training between two checkpoints.
        evaluation_words: Held-out words per evaluation, and words of `general`.
        evaluations: Number of evaluations, spread evenly over the budget.
        auto_resume: Continue the run in `out` if there is one, so that the same call can be
            repeated until it has ended; then it returns the result again. A run that torchrun
            restarts continues in any case.
        on_chunk: Called while the text is read; see `build_corpus`.
        on_step: Called with a `TrainingReport` after every step.

    Raises:
        TrainingStopped: SIGTERM or SIGUSR1 has stopped it, with a checkpoint.
    """
    out = Path(out).expanduser()
    if extend < 0 or patience < 1:
        raise InputError(
            f"extend is {extend} and patience is {patience}; expected extend from 0 up and "
            "patience from 1 up"
        )
    base = load_trainable(model)
    recipe = recipe or with_shards(default_recipe(base), device)
    budget = budget or Budget(epochs=EPOCHS)
    if is_begun(out, auto_resume=auto_resume):
        plan = RunPlan.read(out / TRAINING)
        plan.check_unchanged(base.config, recipe, out)
        _FinetuneSettings.read(out / TRAINING).check_unchanged(extend, patience, evaluation_words)
        if plan.budget != budget:
            raise InputError("the budget of fine-tuning cannot change when a run is resumed")
        finished = plan.read_finished(out / TRAINING)
        if finished is not None:
            clean_up(out)
            return FinetuneResult.from_dict(finished["result"], Elmo.load(out))
        return resume_finetune(
            base,
            source,
            out,
            general=general,
            device=device,
            checkpoint_minutes=checkpoint_minutes,
            evaluations=evaluations,
            on_step=on_step,
        )
    check_new_run_directory(out)
    words = _choose_vocabulary(base, vocabulary, extend)
    general_sentences = _read_general(source, general, evaluation_words)
    directory = source.corpus
    with stop_on_scheduler_signals(), hold_run(out / TRAINING) as lock:
        check_new_run_directory(out)  # again, since somebody else may have been faster
        if directory is None:
            corpus = build_source_corpus(source, out / TRAINING / CORPUS, words, on_chunk)
        else:
            corpus = open_source_corpus(directory, words if isinstance(words, Vocabulary) else None)
        settings = _FinetuneSettings(
            base.fingerprint, extend, patience, evaluation_words, own_corpus=directory is None
        )
        settings.write(out / TRAINING)
        plan = RunPlan(base.config, recipe, budget, corpus.fingerprint, "finetune")
        plan.write(out / TRAINING)
        options = RunOptions(
            evaluations=evaluations,
            evaluation_words=evaluation_words,
            checkpoint_minutes=checkpoint_minutes,
            on_step=on_step,
        )
        run = _FinetuneRun(settings, corpus, device, options, lock)
        return _train(out, run, plan, base, general_sentences)


def resume_finetune(
    model: str | Path | BiLM,
    source: TextSource,
    out: str | Path,
    *,
    general: Sequence[str] = (),
    device: str = "cpu",
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    evaluations: int = FINETUNE_EVALUATIONS,
    on_step: StepCallback = ignore_report,
) -> FinetuneResult:
    """Continue a fine-tuning run that was stopped, as if it had not been.

    The command `elmo finetune --resume` does this. Text files are not read again.

    Args:
        model: The model that the run was started with.
        source: The text or the corpus that the run was started with.
        out: Directory of the run.
        general: Files of other text, to see how much the model forgets.
        device: Device to train on, `"cpu"` or `"cuda"`.
        checkpoint_minutes: Minutes of training between two checkpoints.
        evaluations: Number of evaluations that the run was started with.
        on_step: Called with a `TrainingReport` after every step.
    """
    out = Path(out).expanduser()
    settings, plan = _FinetuneSettings.read(out / TRAINING), RunPlan.read(out / TRAINING)
    base = load_trainable(model)
    if base.fingerprint != settings.model:
        raise TrainingError(
            f"{out} was started with another model: its fingerprint is {settings.model[:12]}…, "
            f"that of {model} is {base.fingerprint[:12]}…"
        )
    general_sentences = _read_general(source, general, settings.evaluation_words)
    directory = out / TRAINING / CORPUS if settings.own_corpus else source.corpus
    if directory is None:
        raise TrainingError(f"{out} was started with a corpus, not with text; give that corpus")
    if settings.own_corpus and not directory.exists():
        remove_leftovers(directory)
        raise InputError(
            f"the run in {out} has ended, so there is nothing to resume; give another directory"
        )
    corpus = Corpus.open(directory)
    plan.check_corpus(corpus, out)
    options = RunOptions(
        evaluations=evaluations,
        evaluation_words=settings.evaluation_words,
        checkpoint_minutes=checkpoint_minutes,
        on_step=on_step,
    )
    with stop_on_scheduler_signals(), hold_run(out / TRAINING) as lock:
        plan.write(out / TRAINING)
        run = _FinetuneRun(settings, corpus, device, options, lock)
        return _train(out, run, plan, base, general_sentences)


def has_finished(out: Path) -> bool:
    """Return whether a fine-tuning run has ended, so that nothing is left to resume."""
    directory = out / TRAINING
    if not (directory / SETTINGS).is_file() or not (directory / RUN).is_file():
        return False
    if RunPlan.read(directory).read_finished(directory) is not None:
        return True
    # Runs of 0.1.0 have no finished.json. Their own corpus is removed at the end.
    own_corpus = _FinetuneSettings.read(directory).own_corpus
    return own_corpus and not (directory / CORPUS).exists() and (out / "manifest.json").is_file()


def clean_up(out: Path) -> None:
    """Remove what a run that has ended needs no more, if it was killed before it could do so."""
    if _FinetuneSettings.read(out / TRAINING).own_corpus:
        remove_directory(out / TRAINING / CORPUS)
    remove_lock_of_dead(out / TRAINING)


def load_trainable(model: str | Path | BiLM) -> BiLM:
    """Load a model, and raise if it cannot be fine-tuned."""
    if world_size() > 1:
        raise TrainingError("fine-tuning runs in one process; start it without torchrun")
    bilm = model if isinstance(model, BiLM) else formats.read(locate_model(model))
    if bilm.config.char_cnn.scheme != "bytes" or bilm.config.words is not None:
        raise InputError(
            "this model reads characters by an alphabet of its own (ELMoForManyLangs); only models "
            "that read bytes, as those of bilm-tf and AllenNLP, can be fine-tuned"
        )
    if bilm.settled is None:  # sentences start from here, in training as in embedding
        bilm = replace(bilm, settled=Elmo(bilm).settled)
    return bilm


def default_recipe(bilm: BiLM) -> Recipe:
    """Return the recipe for fine-tuning a model: large models need smaller steps."""
    scale = min(1.0, FINETUNE_RECIPE_CELLS / bilm.config.lstm.cells)
    return FINETUNE_RECIPE.replace(rate=FINETUNE_RECIPE.rate * scale)


def _read_general(source: TextSource, paths: Sequence[str], words: int) -> list[list[str]]:
    """Return the first sentences of general text, which has the form of the source."""
    sentences: list[list[str]] = []
    for sentence in TextReader(paths, source.form, source.column):
        sentences.append(sentence)
        words -= len(sentence)
        if words <= 0:
            break
    if paths and not sentences:
        raise InputError(f"there are no words in {', '.join(paths)}; expected general text")
    return sentences


def _choose_vocabulary(
    bilm: BiLM, vocabulary: int | Vocabulary | None, extend: int
) -> int | Vocabulary:
    """Return the words to predict, or how many to take from the text."""
    if SOFTMAX[0] in bilm.weights:
        if vocabulary is not None:
            raise InputError(
                f"the model has a vocabulary of {len(bilm.weights[SOFTMAX[1]]):,} words, which "
                "cannot be replaced; add words to it with --extend"
            )
        return Softmax(bilm).vocabulary
    if extend:
        raise InputError(
            "the model has no softmax, so there is no vocabulary to extend; set how many words of "
            "the text to predict with --vocabulary"
        )
    if vocabulary is None and bilm.vocabulary is not None and not bilm.vocabulary.missing_marks():
        return bilm.vocabulary
    return VOCABULARY_SIZE if vocabulary is None else vocabulary


def _train(
    out: Path, run: _FinetuneRun, plan: RunPlan, base: BiLM, general: list[list[str]]
) -> FinetuneResult:
    keep_freed_memory()
    if SOFTMAX[0] not in base.weights:
        base = _train_softmax(out / TRAINING / SOFTMAX_RUN, run, plan, base)
        plan = replace(plan, budget=plan.budget.scaled(1 - SOFTMAX_FRACTION))
    elif run.settings.extend:
        run = replace(run, corpus=extend_vocabulary(run.corpus, run.settings.extend))
        softmax = extend_softmax(base.weights, run.corpus)
        base = replace(base, weights={**base.weights, **softmax}, vocabulary=run.corpus.vocabulary)
    elmo, stopping, steps = run.start(out, plan, base)
    if stopping.initial is None or stopping.best is None:
        raise TrainingError("the held-out text has no words, so nothing could be evaluated")
    measured = [perplexity(each, general) for each in (Elmo(base), elmo) if general]
    result = FinetuneResult(
        elmo,
        stopping.initial,
        stopping.best,
        (measured[0], measured[1]) if measured else None,
        steps,
        stopping.best_step,
        stopping.exhausted,
    )
    RunPlan.read(out / TRAINING).write_finished(out / TRAINING, result=result.to_dict())
    clean_up(out)
    return result


def _train_softmax(out: Path, run: _FinetuneRun, plan: RunPlan, base: BiLM) -> BiLM:
    """Return the model with a new softmax, trained in a run of its own; the network is unchanged.

    If that run has ended already, resuming it ends at once.
    """
    rng = np.random.default_rng([plan.recipe.seed, 0])
    softmax = initial_softmax(base.config, target_counts(run.corpus), rng)
    with_softmax = replace(
        base, weights={**base.weights, **softmax}, vocabulary=run.corpus.vocabulary
    )
    plan = replace(
        plan,
        recipe=plan.recipe.replace(rate=SOFTMAX_RATE, dropout=0.0),
        budget=plan.budget.scaled(SOFTMAX_FRACTION),
        kind="softmax",
    )
    plan.write(out / TRAINING)
    elmo, _, _ = run.start(out, plan, with_softmax, only_softmax=True)
    return elmo.bilm
