"""`elmo pretrain`: a new biLM from a corpus."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.bars import told_bar, watched

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig
    from elmokit.elmo import Elmo
    from elmokit.train.budget import Budget
    from elmokit.train.recipe import Recipe
    from elmokit.train.run import Report

SIZES = ("tiny", "small", "medium", "original")
LINE_SECONDS = 30
"""Between two lines of progress where there is no terminal."""


@click.command("pretrain", short_help="Train a new model on a corpus.")
@click.argument("corpus")
@click.option("-o", "--out", required=True, type=click.Path(), help="The directory to make.")
@click.option("--size", type=click.Choice(SIZES), help="The architecture.  [default: tiny]")
@click.option("--config", type=click.Path(), help="An options.json or config.json to take it from.")
@click.option("--minutes", type=float, help="How long, by the clock.")
@click.option("--tokens", type=int, help="How long, in words read.")
@click.option("--epochs", type=float, help="How long, in readings of the whole text.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out where it was stopped.")
@click.option(
    "--recipe", type=click.Choice(["recommended", "bilm-tf"]), help="[default: recommended]"
)
@click.option("--rate", type=float, help="The highest learning rate.")
@click.option("--schedule", type=click.Choice(["linear", "trapezoid", "constant"]))
@click.option("--warm-up", type=int, metavar="STEPS", help="In which the rate rises.")
@click.option("--dropout", type=float, help="The part of what a layer reads that is dropped.")
@click.option("--clip", type=float, help="The largest norm of a gradient.")
@click.option("--sampler", type=click.Choice(["poisson", "log-uniform", "full"]))
@click.option("--negatives", type=int, help="Words a step compares the right ones with.")
@click.option(
    "--text",
    type=click.Choice(["sentences", "stream"]),
    help="Whole sentences, or a stream with carried state.",
)
@click.option("--batch", type=int, metavar="WORDS", help="Of a step, if the text is sentences.")
@click.option("--lanes", type=int, help="Places that are read side by side, if it is a stream.")
@click.option("--window", type=int, metavar="WORDS", help="Of a lane in a step, likewise.")
@click.option("--shards", type=int, help="Parts of a step.  [default: one a processor]")
@click.option("--seed", type=int, help="Of all that is random.  [default: 0]")
@click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True, help="Where."
)
@click.option(
    "--checkpoint-minutes",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Between two checkpoints.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as a line of JSON.")
def command(
    corpus: str,
    out: str,
    size: str | None,
    config: str | None,
    minutes: float | None,
    tokens: int | None,
    epochs: float | None,
    resume: bool,
    recipe: str | None,
    device: str,
    checkpoint_minutes: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Train a new model on CORPUS, a directory that `elmo corpus` made.

    How long is up to you: --minutes, --tokens or --epochs. Ctrl-C stops between two steps; with
    --resume the run goes on from there, also after a crash, and ends in the same model as if it had
    never stopped. Then everything is taken from the run itself; only how long may be said anew.

    On a terminal it shows the loss of the last steps, in nats a word and of a sample of the
    vocabulary, and the perplexity of held-out text, forward and backward, by the full softmax.
    --out gets the model, and in training/ metrics.jsonl, curve.svg and the checkpoints.

    The recipe is the recommended one, or bilm-tf's; other options change it.

    \b
    elmo corpus books/ --out corpus
    elmo pretrain corpus --out model --minutes 10
    elmo pretrain corpus --out model --resume
    elmo pretrain corpus --out big --size small --epochs 10 --dropout 0.1
    torchrun --nproc-per-node 2 -m elmokit pretrain corpus --out model --epochs 5
    """
    given = {name: value for name, value in given.items() if value is not None}
    if size and config:
        raise click.UsageError("give --size or --config, not both")
    _check_corpus(corpus)
    budget = _budget(minutes, tokens, epochs)
    if budget is None and not resume:
        raise click.UsageError(
            "say how long to train: --minutes, --tokens or --epochs. --minutes 10 gives a first "
            "impression, --epochs 5 a model"
        )
    architecture = _architecture(size, config)

    from elmokit.train import pretraining as train

    watching = _Watching(quiet=os.environ.get("RANK", "0") != "0")
    how: dict[str, Any] = {
        "budget": budget,
        "device": device,
        "checkpoint_minutes": checkpoint_minutes,
        "watch": watching.hear,
    }
    begin: Callable[..., Elmo] = train.resume
    if resume:
        _check_same(out, architecture, recipe, given)
    else:
        begin = train.pretrain
        how["config"] = architecture or _architecture(SIZES[0], None)
        how["recipe"] = _recipe(recipe, given, device)
    try:
        with watching:
            elmo = begin(corpus, out, **how)
    except KeyboardInterrupt:
        if watching.quiet or watching.last is None:
            raise
        words = watching.last.progress.tokens
        click.echo(
            f"stopped after {words:,} words; to go on: elmo pretrain {corpus} --out {out} --resume",
            err=True,
        )
        sys.exit(130)
    if not watching.quiet and watching.last is not None:
        facts = _facts(elmo, Path(out), watching.last)
        click.echo(json.dumps(facts) if as_json else summary(facts))


# -- what was asked for --------------------------------------------------------------------------


def _check_corpus(corpus: str) -> None:
    """A text is not a corpus yet."""
    path = Path(corpus).expanduser()
    if path.exists() and not (path / "corpus.json").exists():
        raise click.UsageError(
            f"{corpus} is {'a directory without corpus.json' if path.is_dir() else 'a file'}, not "
            f"a corpus. If it is text, make it ready first: elmo corpus {corpus} --out CORPUS"
        )


def _budget(minutes: float | None, tokens: int | None, epochs: float | None) -> Budget | None:
    from elmokit.train.budget import Budget

    given = {"minutes": minutes, "tokens": tokens, "epochs": epochs}
    names = [f"--{name}" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise click.UsageError(f"give {' or '.join(names)}, not both")
    return Budget(minutes=minutes, tokens=tokens, epochs=epochs) if names else None


def _architecture(size: str | None, file: str | None) -> BiLMConfig | None:
    """By name, or from a file; none if nothing was asked for."""
    from elmokit.bilm import sizes
    from elmokit.bilm.config import BiLMConfig
    from elmokit.errors import FormatError

    if file is None:
        return sizes.SIZES[size] if size else None
    try:
        data = json.loads(Path(file).expanduser().read_text(encoding="utf-8"))
        theirs = "projection_dim" in data["lstm"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{file} is no architecture ({error!r}); expected an options.json, or the config.json "
            "of a model"
        ) from None
    if theirs:
        found = BiLMConfig.from_options(data)
    else:
        own = {name: data[name] for name in data if name not in ("format", "version", "mix")}
        found = BiLMConfig.from_dict(own)
    return replace(found, extra={})  # what its authors noted is not about the new model


def _recipe(name: str | None, given: dict[str, Any], device: str) -> Recipe:
    from elmokit.engine.native import usable_processors
    from elmokit.train.distributed import processes
    from elmokit.train.recipe import recipe_named, shards_for

    recipe = recipe_named(name or "recommended").replace(**{"shards": 1, **given})
    idle = {"lanes", "window"} if recipe.text == "sentences" else {"batch"}
    if recipe.sampler == "full":
        idle.add("negatives")
    idle &= set(given)
    if idle:
        raise click.UsageError(
            f"{_options(idle)} would have no effect with --text {recipe.text}, "
            f"--sampler {recipe.sampler}"
        )
    if "shards" in given:
        return recipe
    workers = usable_processors() if device == "cpu" else 1
    return recipe.replace(shards=shards_for(recipe, workers, processes()))


def _check_same(
    out: str, architecture: BiLMConfig | None, recipe: str | None, given: dict[str, Any]
) -> None:
    """A run goes on with the choices that it began with."""
    from elmokit.train.recipe import recipe_named
    from elmokit.train.run import RUN, TRAINING, Plan

    place = Path(out).expanduser() / TRAINING
    begun = Plan.read(place)
    was = begun.recipe.to_dict()
    named = recipe_named(recipe).to_dict() if recipe else was
    different = {name for name, value in given.items() if value != was[name]}
    if any(named[name] != was[name] for name in was if name not in {*given, "shards"}):
        different.add("recipe")
    if architecture is not None and architecture != begun.config:
        different |= {"size", "config"}
    if different:
        raise click.UsageError(
            f"{_options(different)} cannot change when a run is resumed; what it began with is in "
            f"{place / RUN}"
        )


def _options(names: set[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in sorted(names))


# -- what is shown -------------------------------------------------------------------------------


class _Watching:
    """A bar on stderr while the model learns; without a terminal a line now and then."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.last: Report | None = None
        self._lines = not watched()
        self._bar = told_bar(disable=quiet or self._lines)
        self._task = self._bar.add_task("", total=1.0, told="opening the corpus")
        self._began: tuple[float, float] | None = None
        self._printed = time.monotonic()

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def hear(self, report: Report) -> None:
        """After every step."""
        now = time.monotonic()
        if self._began is None:
            self._began = now, report.spent
        self.last = report
        gained = report.spent - self._began[1]
        left = (1 - report.spent) * (now - self._began[0]) / gained if gained > 0 else None
        self._bar.update(self._task, completed=report.spent, told=told(report, left))
        if self._lines and not self.quiet and now - self._printed >= LINE_SECONDS:
            self._printed = now
            click.echo(f"{report.spent:6.1%}  {told(report, left)}", err=True)


def told(report: Report, left: float | None) -> str:
    """How far a run is, in a line; `left` are seconds."""
    from elmokit.figures.axes import short

    parts = [
        f"{short(report.progress.tokens)} words",
        f"{report.speed:,.0f}/s",
        f"loss {report.loss:.2f}",
    ]
    if report.held_out is not None:
        parts.append(f"held out {report.held_out.forward:.1f}/{report.held_out.backward:.1f}")
    if left is not None:
        parts.append(f"{_clock(left)} left")
    return "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _facts(elmo: Elmo, out: Path, report: Report) -> dict[str, Any]:
    """The result, for JSON."""
    from elmokit.train.run import CURVE, TRAINING

    progress, found = report.progress, report.held_out
    return {
        "model": str(out),
        "fingerprint": elmo.bilm.fingerprint,
        "tokens": progress.tokens,
        "epochs": report.epochs,
        "steps": progress.step,
        "seconds": progress.seconds,
        "held_out": None if found is None else found.to_dict(),
        "curve": str(out / TRAINING / CURVE),
    }


def summary(facts: dict[str, Any]) -> str:
    """The result, for a person."""
    model, found, seconds = facts["model"], facts["held_out"], facts["seconds"]
    speed = facts["tokens"] / max(seconds, 1e-9)
    rows = [
        ("words", f"{facts['tokens']:,} read, {facts['epochs']:.3g} times the text"),
        ("time", f"{_clock(seconds)}, {speed:,.0f} words/s"),
        (
            "held out",
            "no text to measure it with"
            if found is None
            else f"perplexity {found['forward']:.1f} forward, {found['backward']:.1f} backward "
            f"({found['words']:,} words, {found['oov']:.2%} <UNK>)",
        ),
        ("curve", facts["curve"]),
        ("next", f"elmo embed -m {model} 'A sentence.'"),
        ("", f"elmo perplexity {model} TEXT"),
        ("", f"elmo convert {model} export --format allennlp"),
    ]
    return "\n".join([model, *(f"  {name:<10}{value}" for name, value in rows)])
