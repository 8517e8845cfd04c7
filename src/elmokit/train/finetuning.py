"""A biLM adapted to a domain: go on with it on the domain's text, and keep the best.

    DIR/                     the adapted model
    DIR/training/            as `run.py` has it, and
    DIR/training/finetune.json    which model it began with, and what was asked for
    DIR/training/corpus/     the domain's text in the model's vocabulary, until the run has ended
    DIR/training/softmax/    if the model had no softmax: a run of its own that learned one

A model without a softmax, such as the published HDF5 files, first learns one while its network
stays as it is; then everything learns together.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.elmo import Elmo, locate
from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.lm import Perplexity, perplexity
from elmokit.lm.softmax import Softmax
from elmokit.nn.state import TensorState
from elmokit.text.files import write_text
from elmokit.text.vocabulary import Vocabulary
from elmokit.train.adapt import EVALUATION_WORDS, Adapting
from elmokit.train.budget import Budget
from elmokit.train.build import VOCABULARY_SIZE, Report
from elmokit.train.corpus import Corpus
from elmokit.train.distributed import Alone, local_device, processes
from elmokit.train.domain import Domain, make_corpus, open_corpus, sentences_in
from elmokit.train.extend import extended_softmax, with_more_words
from elmokit.train.initialization import initial_softmax
from elmokit.train.learner import Learner
from elmokit.train.loop import Loop
from elmokit.train.memory import keep_memory
from elmokit.train.pretraining import new_place, sampler_of, target_counts
from elmokit.train.recipe import Recipe
from elmokit.train.run import TRAINING, Plan
from elmokit.train.stream import reader_of

ADAPT = Recipe(batch=1120, rate=4e-3, warm_up=100, dropout=0.1)
"""What we found to lower a domain's perplexity most in a few minutes, for a model of 512 cells."""
ADAPT_CELLS = 512
SOFTMAX_RATE = 1e-2
"""The learning rate of a softmax that is learned alone."""
SOFTMAX_PART = 0.3
"""How much of the budget that takes."""
PATIENCE = 3

FACTS, CORPUS, SOFTMAX_RUN = "finetune.json", "corpus", "softmax"


@dataclass(frozen=True)
class Adapted:
    """What came of it. Perplexities are by the full softmax, of the same text before and after."""

    elmo: Elmo
    before: Perplexity
    """Of the domain's held-out text."""
    after: Perplexity
    general: tuple[Perplexity, Perplexity] | None
    """Of other text, before and after."""
    steps: int
    best_step: int
    """The step whose weights these are; 0 if nothing was better than the model as it was."""
    stopped_early: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        pairs = {"domain": (self.before, self.after)}
        if self.general is not None:
            pairs["general"] = self.general
        found: dict[str, Any] = {
            name: {"before": before.to_dict(), "after": after.to_dict()}
            for name, (before, after) in pairs.items()
        }
        rest = {name: getattr(self, name) for name in ("steps", "best_step", "stopped_early")}
        return found | rest | {"vocabulary": len(self.elmo.bilm.vocabulary or ())}


@dataclass(frozen=True)
class _Facts:
    """What finetune.json says."""

    model: str
    """The fingerprint of the model that it began with."""
    extend: int
    patience: int
    evaluation_words: int
    own_corpus: bool
    """Whether the corpus was made for this run."""

    def write(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / FACTS, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, directory: Path) -> _Facts:
        path = directory / FACTS
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise InputError(
                f"{directory.parent} has no fine-tuning to resume: there is no "
                f"{directory.name}/{FACTS} in it"
            ) from None
        except (ValueError, TypeError) as error:
            raise FormatError(f"{path} is damaged: {error!r}") from None


def finetune(
    model: str | Path | BiLM,
    domain: Domain,
    out: str | Path,
    *,
    budget: Budget,
    recipe: Recipe | None = None,
    extend: int = 0,
    vocabulary: int | Vocabulary | None = None,
    general: Sequence[str] = (),
    patience: int = PATIENCE,
    evaluation_words: int = EVALUATION_WORDS,
    device: str = "cpu",
    report: Report | None = None,
    **how: Any,
) -> Adapted:
    """Adapt a model to a domain; the result lies in `out`, in our own format.

    Args:
        model: as `Elmo.load` takes it.
        domain: its text.
        out: a directory to make.
        budget: how long, at most.
        recipe: how; that of `recipe_for` if None.
        extend: how many frequent words of the domain become part of the vocabulary.
        vocabulary: for a model without softmax: the words it is to predict, or how many.
        general: text of another domain, to see what was lost there.
        patience: stop after so many evaluations that found nothing better.
        evaluation_words: of held-out text, each time.
        device: `"cpu"` or `"cuda"`.
        report: is told how far the corpus is, see `train.build`.
        how: `checkpoint_minutes`, `evaluations` and `watch` of `train.run.Run`.
    """
    out = new_place(out)
    if extend < 0 or patience < 1:
        raise InputError(
            f"extend is {extend} and patience {patience}; expected from 0 and from 1 up"
        )
    base = load_model(model)
    words = _vocabulary(base, vocabulary, extend)
    other = _general_text(domain, general, evaluation_words)
    given = domain.corpus
    if given is None:
        corpus = make_corpus(domain, out / TRAINING / CORPUS, words, report)
    else:
        corpus = open_corpus(given, words if isinstance(words, Vocabulary) else None)
    facts = _Facts(base.fingerprint, extend, patience, evaluation_words, given is None)
    facts.write(out / TRAINING)
    recipe = recipe or recipe_for(base)
    plan = Plan(base.config, recipe, budget, corpus.fingerprint, "finetune")
    plan.write(out / TRAINING)
    return _go(out, facts, plan, base, corpus, other, device, **how)


def resume(
    model: str | Path | BiLM,
    domain: Domain,
    out: str | Path,
    *,
    general: Sequence[str] = (),
    device: str = "cpu",
    **how: Any,
) -> Adapted:
    """Go on with a fine-tuning that was stopped, as if it had not been.

    The model, and the corpus if one was given, have to be the same. Text files are not read again.
    """
    out = Path(out).expanduser()
    facts, plan = _Facts.read(out / TRAINING), Plan.read(out / TRAINING)
    base = load_model(model)
    if base.fingerprint != facts.model:
        raise TrainingError(
            f"{out} was begun with another model: its fingerprint is {facts.model[:12]}…, that of "
            f"{model} {base.fingerprint[:12]}…"
        )
    other = _general_text(domain, general, facts.evaluation_words)
    place = out / TRAINING / CORPUS if facts.own_corpus else domain.corpus
    if place is None:
        raise TrainingError(f"{out} was begun with a corpus, not with text: give that corpus")
    if facts.own_corpus and not place.exists():
        raise InputError(f"{out} has ended: there is nothing to resume. Give another name")
    corpus = Corpus.open(place)
    if corpus.fingerprint != plan.corpus:
        raise TrainingError(
            f"{out} was begun with another corpus: its fingerprint is {plan.corpus[:12]}…, that of "
            f"{place} {corpus.fingerprint[:12]}…"
        )
    return _go(out, facts, plan, base, corpus, other, device, **how)


def _general_text(domain: Domain, paths: Sequence[str], words: int) -> list[list[str]]:
    """The beginning of other text, read before anything is learned, as the domain's is read."""
    sentences: list[list[str]] = []
    for sentence in sentences_in(paths, domain.form, domain.column):
        sentences.append(sentence)
        words -= len(sentence)
        if words <= 0:
            break
    if paths and not sentences:
        raise InputError(f"there are no words in {', '.join(paths)}, which was to be general text")
    return sentences


def load_model(model: str | Path | BiLM) -> BiLM:
    """A model that can be adapted, or an error."""
    if processes() > 1:
        raise TrainingError("fine-tuning runs in one process: start it without torchrun")
    bilm = model if isinstance(model, BiLM) else formats.read(locate(model))
    if bilm.config.char_cnn.scheme != "bytes" or bilm.config.words is not None:
        raise InputError(
            "this model reads characters by an alphabet of its own (ELMoForManyLangs); only models "
            "that read bytes, as those of bilm-tf and AllenNLP, can be adapted"
        )
    if bilm.settled is None:  # sentences start from here, when it learns as when it embeds
        bilm = replace(bilm, settled=Elmo(bilm).settled)
    return bilm


def recipe_for(bilm: BiLM) -> Recipe:
    """The recipe of an adaptation: a large model bears smaller steps only."""
    return ADAPT.replace(rate=ADAPT.rate * min(1.0, ADAPT_CELLS / bilm.config.lstm.cells))


def _vocabulary(bilm: BiLM, asked: int | Vocabulary | None, extend: int) -> int | Vocabulary:
    """The words to predict, or how many of the domain's."""
    if SOFTMAX[0] in bilm.weights:
        if asked is not None:
            raise InputError(
                f"the model has a vocabulary, of {len(bilm.weights[SOFTMAX[1]]):,} words; more can "
                "be added with --extend, but it cannot be replaced"
            )
        return Softmax(bilm).vocabulary
    if extend:
        raise InputError(
            "the model has no softmax, so there is no vocabulary to extend: --vocabulary says how "
            "many words of the text it is to predict"
        )
    if asked is None and bilm.vocabulary is not None and not bilm.vocabulary.missing_marks():
        return bilm.vocabulary
    return VOCABULARY_SIZE if asked is None else asked


def _go(
    out: Path,
    facts: _Facts,
    plan: Plan,
    base: BiLM,
    corpus: Corpus,
    general: list[list[str]],
    device: str,
    **how: Any,
) -> Adapted:
    keep_memory()
    if SOFTMAX[0] not in base.weights:
        base = _learn_softmax(out / TRAINING / SOFTMAX_RUN, facts, plan, base, corpus, device, how)
        plan = replace(plan, budget=part_of(plan.budget, 1 - SOFTMAX_PART))
    elif facts.extend:
        corpus = with_more_words(corpus, facts.extend)
        softmax = extended_softmax(base.weights, corpus)
        base = replace(base, weights={**base.weights, **softmax}, vocabulary=corpus.vocabulary)
    run = _run(out, facts, plan, base, corpus, device, how)
    elmo = run.go()
    if run.before is None or run.best is None:
        raise TrainingError("the held-out text has no words: nothing could be measured")
    measured = [perplexity(each, general) for each in (Elmo(base), elmo) if general]
    if facts.own_corpus:
        shutil.rmtree(out / TRAINING / CORPUS, ignore_errors=True)
    return Adapted(
        elmo,
        run.before,
        run.best,
        (measured[0], measured[1]) if measured else None,
        run.steps,
        run.best_step,
        run.stopped_early,
    )


def _learn_softmax(
    out: Path,
    facts: _Facts,
    plan: Plan,
    base: BiLM,
    corpus: Corpus,
    device: str,
    how: dict[str, Any],
) -> BiLM:
    """The model with a softmax; the network is as it was.

    A run of its own: one that has ended ends at once if it is resumed.
    """
    counts = target_counts(corpus)
    source = np.random.default_rng([plan.recipe.seed, 0])
    softmax = initial_softmax(base.config, counts, source)
    speaking = replace(base, weights={**base.weights, **softmax}, vocabulary=corpus.vocabulary)
    alone = replace(
        plan,
        recipe=plan.recipe.replace(rate=SOFTMAX_RATE, dropout=0.0),
        budget=part_of(plan.budget, SOFTMAX_PART),
        kind="softmax",
    )
    alone.write(out / TRAINING)
    run = _run(out, facts, alone, speaking, corpus, device, how, only_softmax=True)
    return run.go().bilm


def _run(
    out: Path,
    facts: _Facts,
    plan: Plan,
    base: BiLM,
    corpus: Corpus,
    device: str,
    how: dict[str, Any],
    *,
    only_softmax: bool = False,
) -> Adapting:
    place, group, recipe = local_device(device), Alone(), plan.recipe
    weights = {name: np.asarray(array, np.float32) for name, array in base.weights.items()}
    loop = Loop(
        Learner(base.config, weights, recipe, group, place, only_softmax=only_softmax),
        corpus,
        reader_of(corpus, recipe),
        sampler_of(recipe, target_counts(corpus)),
        base.characters,
        plan.budget,
        group,
        None if base.settled is None else TensorState.of(base.settled),
    )
    return Adapting(
        out,
        plan,
        loop,
        corpus,
        base,
        patience=facts.patience,
        evaluation_words=facts.evaluation_words,
        **how,
    )


def part_of(budget: Budget, part: float) -> Budget:
    """Some of it."""
    ((name, value),) = budget.to_dict().items()
    scaled = value * part
    return Budget(**{name: max(1, round(scaled)) if name == "tokens" else scaled})
