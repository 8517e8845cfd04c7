"""The loop that teaches every task model: learn, look at the development set, keep the best.

Everything random comes from the seed, and all that a step depends on is in a checkpoint: a run that
dies and is resumed ends in the same model. Knows no task.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

import elmokit
from elmokit.elmo import Elmo
from elmokit.errors import InputError, TrainingError
from elmokit.tasks.layers import Layers
from elmokit.tasks.settings import NONE, Settings
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.task import Examples, Schooling
from elmokit.tasks.trained import TASK, Trained, prepare
from elmokit.tasks.word_embedding import frequent
from elmokit.train import checkpoint
from elmokit.train.interrupt import between_steps

TRAINING, PLAN, LOG = "training", "plan.json", "epochs.jsonl"
COMPARED = ("settings", "preset", "biLM", "data")
"""What a run that is resumed must have in common with the plan it began with."""
POOL = 50
"""Batches' worth of examples that are sorted by length together."""
TUNED_PART = 0.1
"""A biLM that learns with the task has so much of its rate: it knows a lot that it could forget."""


@dataclass
class Progress:
    """How far a run is; what a checkpoint has to remember besides arrays."""

    step: int = 0
    epoch: int = 0
    """How many are done."""
    batch: int = 0
    """How many of the epoch's batches are done."""
    loss: float = 0.0
    """The sum over them."""
    seconds: float = 0.0
    best: dict[str, float] = field(default_factory=dict)
    """The scores of the best epoch so far."""
    best_epoch: int = 0
    epochs: list[dict[str, Any]] = field(default_factory=list)
    """What was noted at the end of each."""

    @property
    def stale(self) -> int:
        """Epochs that brought nothing."""
        return self.epoch - self.best_epoch


class Watch(Protocol):
    """Who looks on."""

    def layers(self, done: int, of: int) -> None:
        """So many words have their layers."""

    def step(self, progress: Progress, batches: int) -> None:
        """A batch was learned from; the epoch has so many."""

    def epoch(self, noted: Mapping[str, Any]) -> None:
        """An epoch has ended."""


class Unseen:
    """Nobody looks on."""

    def layers(self, done: int, of: int) -> None:
        """Nothing."""

    def step(self, progress: Progress, batches: int) -> None:
        """Nothing."""

    def epoch(self, noted: Mapping[str, Any]) -> None:
        """Nothing."""


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
    watch: Watch | None = None,
) -> Trained:
    """Train a task model and save it in `out`.

    Args:
        settings: what is asked for.
        train: what it learns from; `settings.share` of it.
        dev: what says which epoch was the best, and when to stop.
        out: the directory; training/ in it has checkpoints, and epochs.jsonl for good.
        elmo: the biLM of the settings, if it is loaded already.
        static: the vectors of the settings, if they are loaded already.
        resume: go on with the run that stopped in `out`.
        checkpoint_minutes: between two checkpoints.
        watch: who looks on.
    """
    place, look = Path(out).expanduser(), watch or Unseen()
    schooling = settings.chosen.schooling
    train = prepare(settings, part(train, settings), training=True)
    dev = prepare(settings, dev, training=False)
    elmo = None if settings.baseline else elmo or Elmo.load(settings.elmo)
    _begin(place, settings, elmo, (train, dev), resume)
    torch.manual_seed(settings.seed)
    x = static or _x(settings, train)
    trained = Trained.assemble(settings, settings.sister.facts(train.items), x, elmo)
    model, source = trained.model, trained.model.words.elmo
    if isinstance(source, Layers):
        texts = (text for items in (train.items, dev.items) for e in items for text in e.texts)
        source.keep(texts, look.layers)
    optimizer = _optimizer(schooling, model)
    learning = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    progress = Progress()
    best = {name: a.clone() for name, a in trained.state().items()}
    if resume and (newest := checkpoint.newest(place / TRAINING)) is not None:
        progress, best = _load(newest, model, optimizer)
    lengths = [sum(map(len, example.texts)) for example in train.items]
    before, saved_at = time.monotonic(), time.monotonic()

    def save() -> None:
        checkpoint.save(
            place / TRAINING, progress.step, _arrays(model, optimizer, best), asdict(progress)
        )

    with between_steps() as stopped:
        while progress.epoch < schooling.epochs and progress.stale < schooling.patience:
            batches = batches_of(lengths, schooling, settings.seed, progress.epoch)
            model.train()
            for numbers in batches[progress.batch :]:
                loss = model.loss([train.items[i] for i in numbers])
                _check_finite(loss, place)
                optimizer.zero_grad(set_to_none=True)
                (loss + model.words.penalty(settings.l2)).backward()
                torch.nn.utils.clip_grad_norm_(learning, schooling.clip)
                done = (progress.epoch + progress.batch / len(batches)) / schooling.epochs
                for group in optimizer.param_groups:
                    group["lr"] = schooling.rate * (1 - done) * group["part"]
                optimizer.step()
                progress.step += 1
                progress.batch += 1
                progress.loss += loss.item()
                progress.seconds, before = progress.seconds + _since(before), time.monotonic()
                look.step(progress, len(batches))
                if stopped.is_set() or _since(saved_at) > 60 * checkpoint_minutes:
                    save()
                    saved_at = time.monotonic()
                    if stopped.is_set():
                        raise KeyboardInterrupt
            scores = settings.sister.score(dev.items, trained.predict(dev.items))
            main = settings.sister.SCORE
            progress.epoch += 1
            # While nothing is right there is nothing to be patient about.
            if not progress.best or scores[main] > progress.best[main] or not scores[main]:
                progress.best, progress.best_epoch = scores, progress.epoch
                best = {name: a.clone() for name, a in trained.state().items()}
            progress.seconds, before = progress.seconds + _since(before), time.monotonic()
            noted = {
                "epoch": progress.epoch,
                "loss": progress.loss / len(batches),
                "rate": optimizer.param_groups[0]["lr"],
                "seconds": round(progress.seconds, 2),
                "best": progress.best_epoch == progress.epoch,
                "scores": scores,
                "weights": model.words.weights(),
            }
            progress.epochs.append(noted)
            progress.batch, progress.loss = 0, 0.0
            look.epoch(noted)
    model.load_state_dict(best)
    model.eval()
    trained.scores = progress.best
    trained.about = {
        "best_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "seconds": round(progress.seconds, 1),
        "train": {"examples": len(train), "skipped": dict(train.skipped)},
        "dev": {"examples": len(dev), "skipped": dict(dev.skipped)},
        "unseen_labels": dict(unseen_labels(settings, train, dev)),
    }
    lines = "".join(json.dumps(noted) + "\n" for noted in progress.epochs)
    (place / TRAINING / LOG).write_text(lines, encoding="utf-8")
    trained.save(place)
    for left in (place / TRAINING).glob("step-*"):
        shutil.rmtree(left, ignore_errors=True)
    return trained


def part(train: Examples[Any], settings: Settings) -> Examples[Any]:
    """The share of a training set that the settings ask for: the same for equal seeds."""
    count = max(1, round(settings.share * len(train)))
    if count == len(train):
        return train
    generator = torch.Generator().manual_seed(settings.seed)
    chosen = torch.randperm(len(train), generator=generator)[:count].sort().values
    return Examples([train.items[i] for i in chosen.tolist()], train.skipped)


def batches_of(
    lengths: Sequence[int], schooling: Schooling, seed: int, epoch: int
) -> list[list[int]]:
    """An epoch's batches of examples of similar lengths, in an order that seed and epoch tell.

    An epoch reads everything once; a small training set so often that there are enough steps.
    """
    size = schooling.batch
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    passes = math.ceil(schooling.steps / math.ceil(len(lengths) / size))
    ordered = []
    for _ in range(passes):
        order = torch.randperm(len(lengths), generator=generator).tolist()
        batches = []
        for start in range(0, len(order), POOL * size):
            pool = sorted(order[start : start + POOL * size], key=lambda i: lengths[i])
            batches += [pool[i : i + size] for i in range(0, len(pool), size)]
        shuffled = torch.randperm(len(batches), generator=generator).tolist()
        ordered += [batches[k] for k in shuffled]
    return ordered


def unseen_labels(settings: Settings, train: Examples[Any], other: Examples[Any]) -> Counter[str]:
    """Labels in `other` that the training set never shows, so that no answer can be right."""
    known = {label for example in train.items for label in settings.sister.labels(example)}
    return Counter(
        label
        for example in other.items
        for label in settings.sister.labels(example)
        if label not in known
    )


def _begin(
    place: Path,
    settings: Settings,
    elmo: Elmo | None,
    data: Sequence[Examples[Any]],
    resume: bool,
) -> None:
    """Refuse to overwrite a model, or to go on with another run than the one that began."""
    plan = {
        "elmokit": elmokit.__version__,
        **settings.determined(),
        "biLM": None if elmo is None else elmo.bilm.fingerprint,
        "data": [_digest(examples) for examples in data],
    }
    path = place / TRAINING / PLAN
    if resume:
        try:
            began = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise TrainingError(f"there is no run in {place} to go on with") from None
        if any(began.get(name) != plan[name] for name in COMPARED):
            raise TrainingError(
                f"the run in {place} began with other settings or data ({_difference(began, plan)})"
                "; give the same, or another directory"
            )
        return
    if (place / TASK).exists() or path.exists():
        raise InputError(
            f"{place} has a task model or a run already; nothing was done. Go on with it "
            "(--resume), or give another directory"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")


def _difference(began: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    was, now = began["settings"], plan["settings"]
    names = [name for name in now if was.get(name) != now[name]]
    if names:
        return ", ".join(f"{n}: {was.get(n)}, now {now[n]}" for n in names)
    other = [name for name in COMPARED if began.get(name) != plan[name]]
    return f"other {', other '.join(other)}"


def _digest(examples: Examples[Any]) -> str:
    """Of all texts and labels."""
    digest = hashlib.sha256()
    for example in examples.items:
        digest.update(repr(replace(example, where="")).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _x(settings: Settings, train: Examples[Any]) -> StaticVectors | list[str]:
    if settings.vectors == NONE:
        return frequent(text for example in train.items for text in example.texts)
    return StaticVectors.load(settings.vectors)


def _optimizer(schooling: Schooling, model: Any) -> torch.optim.Optimizer:
    kinds: dict[str, Any] = {
        "adam": torch.optim.Adam,
        "adagrad": torch.optim.Adagrad,
        "adadelta": torch.optim.Adadelta,
    }
    own: list[torch.nn.Parameter] = []
    tuned: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (tuned if name.startswith("words.elmo.") else own).append(parameter)
    groups = [{"params": own, "part": 1.0}, {"params": tuned, "part": TUNED_PART}]
    optimizer: torch.optim.Optimizer = kinds[schooling.optimizer](
        [group for group in groups if group["params"]], lr=schooling.rate
    )
    return optimizer


def _check_finite(loss: Tensor, place: Path) -> None:
    if not torch.isfinite(loss):
        raise TrainingError(
            f"the loss is {loss.item()}: the rate is too high, or the data is strange. Begin "
            f"again with a lower --rate and another directory than {place}"
        )


def _since(moment: float) -> float:
    return time.monotonic() - moment


# -- what a checkpoint holds ---------------------------------------------------------------------


def _arrays(
    model: Any, optimizer: torch.optim.Optimizer, best: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    arrays = {f"model/{name}": a for name, a in model.state_dict().items()}
    arrays |= {f"best/{name}": a for name, a in best.items()}
    for number, state in optimizer.state_dict()["state"].items():
        arrays |= {f"optimizer/{number}/{name}": torch.as_tensor(a) for name, a in state.items()}
    return {**arrays, "random": torch.get_rng_state()}


def _load(
    path: Path, model: Any, optimizer: torch.optim.Optimizer
) -> tuple[Progress, dict[str, Tensor]]:
    arrays, facts = checkpoint.load(path)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}}
    states: dict[int, dict[str, Tensor]] = {}
    for name, array in arrays.items():
        kind, _, rest = name.partition("/")
        if kind == "optimizer":
            number, _, field_name = rest.partition("/")
            states.setdefault(int(number), {})[field_name] = array
        elif kind in parts:
            parts[kind][rest] = array
    model.load_state_dict(parts["model"])
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    torch.set_rng_state(arrays["random"])
    return Progress(**facts), parts["best"]
