"""`elmo pretrain`: train a new biLM on a corpus."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmokit.cli.paths import PATH
from elmokit.cli.training_display import (
    TrainingDisplay,
    describe_stop,
    format_duration,
    warnings_at_the_end,
)
from elmokit.cli.training_options import (
    batch_option,
    budget_options,
    check_resume,
    dropout_option,
    json_option,
    machine_options,
    parse_budget,
    rate_option,
    resume_options,
    suggest_products,
    without_none,
)
from elmokit.json_text import parse_json

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig
    from elmokit.elmo import Elmo
    from elmokit.train.recipe import Recipe
    from elmokit.train.run import TrainingReport

SIZES = ("tiny", "small", "medium", "original")


@click.command("pretrain", short_help="Train a new model on a corpus.")
@click.argument("corpus")
@click.option("-o", "--out", required=True, type=PATH, help="Directory to create.")
@click.option("--size", type=click.Choice(SIZES), help="Size of the model.  [default: tiny]")
@click.option(
    "--config",
    type=PATH,
    help="An options.json or config.json with the architecture, instead of --size.",
)
@click.option(
    "--start",
    metavar="MODEL",
    help="Model to start from instead of random weights, with the vocabulary of CORPUS. It may "
    "have fewer LSTM cells and a smaller width than the new one.",
)
@budget_options()
@resume_options
@click.option(
    "--recipe",
    type=click.Choice(["recommended", "bilm-tf"]),
    help="Recipe that the following options change.  [default: recommended]",
)
@click.option(
    "--optimizer",
    type=click.Choice(["adam", "adagrad", "muon"]),
    help="Optimization algorithm. muon learns the matrices of the LSTMs by Muon, and everything "
    "else by Adam.  [default: adam; bilm-tf: adagrad]",
)
@rate_option("0.005; bilm-tf: 0.2")
@click.option(
    "--schedule",
    type=click.Choice(["linear", "trapezoid", "constant"]),
    help="How the learning rate falls: over the whole budget, over its last quarter, or not.  "
    "[default: linear; bilm-tf: constant]",
)
@click.option(
    "--warm-up",
    type=int,
    metavar="STEPS",
    help="Steps in which the learning rate rises.  [default: 500; bilm-tf: 0]",
)
@dropout_option("0; bilm-tf: 0.1")
@click.option("--clip", type=float, help="Largest norm of the gradient.  [default: 1; bilm-tf: 10]")
@click.option(
    "--sampler",
    type=click.Choice(["poisson", "log-uniform", "full"]),
    help="How the softmax samples the vocabulary; full takes all of it.  "
    "[default: poisson; bilm-tf: log-uniform]",
)
@click.option(
    "--negatives",
    type=int,
    metavar="WORDS",
    help="Words per step that the softmax samples.  [default: 2048; bilm-tf: 8192]",
)
@click.option(
    "--text",
    type=click.Choice(["sentences", "passages", "stream"]),
    help="Train on whole sentences, on passages of a few sentences, or on one stream of text with "
    "the LSTM state carried on.  [default: sentences; bilm-tf: stream]",
)
@batch_option("4480")
@click.option(
    "--passage",
    type=int,
    metavar="SENTENCES",
    help="Sentences of the longest passages of --text passages.  [default: 8]",
)
@click.option(
    "--lanes",
    type=int,
    help="Parts of the text that --text stream reads in parallel.  [default: 128]",
)
@click.option(
    "--window",
    type=int,
    metavar="WORDS",
    help="Words per lane and optimizer step of --text stream.  [default: 20]",
)
@machine_options
@click.option(
    "--checkpoint-minutes",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Minutes of training between two checkpoints.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="With torchrun: stop when another process has not answered for so long.",
)
@json_option
def command(
    corpus: str,
    out: str,
    size: str | None,
    config: str | None,
    start: str | None,
    minutes: float | None,
    tokens: int | None,
    epochs: float | None,
    resume: bool,
    auto_resume: bool,
    recipe: str | None,
    optimizer: str | None,
    rate: float | None,
    schedule: str | None,
    warm_up: int | None,
    dropout: float | None,
    clip: float | None,
    sampler: str | None,
    negatives: int | None,
    text: str | None,
    batch: int | None,
    passage: int | None,
    lanes: int | None,
    window: int | None,
    products: str | None,
    shards: int | None,
    seed: int | None,
    device: str,
    checkpoint_minutes: float,
    timeout: float,
    as_json: bool,
) -> None:
    """Train a new model on CORPUS, a directory that `elmo corpus` made.

    Set the budget with --minutes, --tokens or --epochs. Ctrl-C stops between two steps. With
    --resume the run continues from there, also after a crash, and ends in the same model as if it
    had never stopped; it keeps all its options, only the budget may be changed.

    SIGTERM and SIGUSR1, which schedulers send before they end a job, stop it in the same way with
    exit code 0. With --auto-resume the same command starts the run, continues it, and does nothing
    once it has ended. Processes that torchrun restarts (--max-restarts) continue by themselves.

    While it trains, the command shows the loss of the last steps in nats per word, by the sampled
    softmax, and the forward and backward perplexity of held-out text, by the full softmax. --out
    gets the model, and in training/ the files metrics.jsonl, curve.svg and the checkpoints.

    \b
    elmo corpus books/ --out corpus
    elmo pretrain corpus --out model --minutes 10
    elmo pretrain corpus --out model --resume
    elmo pretrain corpus --out big --size small --epochs 10 --dropout 0.1
    elmo pretrain corpus --out model --minutes 120 --optimizer muon
    elmo pretrain corpus --out wider --start model --config wider.json --epochs 5
    torchrun --nproc-per-node 2 --max-restarts 3 -m elmokit pretrain corpus --out model --epochs 5

    In Python: `elmokit.train.pretrain` and `elmokit.train.resume`.
    """
    changes = without_none(
        {
            "optimizer": optimizer,
            "rate": rate,
            "schedule": schedule,
            "warm_up": warm_up,
            "dropout": dropout,
            "clip": clip,
            "sampler": sampler,
            "negatives": negatives,
            "text": text,
            "batch": batch,
            "passage": passage,
            "lanes": lanes,
            "window": window,
            "products": products,
            "shards": shards,
            "seed": seed,
        }
    )
    check_resume(resume, auto_resume)
    if size and config:
        raise click.UsageError("give --size or --config, not both")
    if start and resume:
        raise click.UsageError("--start begins a run; with --resume the run continues without it")
    _check_corpus(corpus)
    budget = parse_budget(minutes, tokens, epochs)
    if budget is None and not resume:
        raise click.UsageError(
            "set how long to train: --minutes, --tokens or --epochs. --minutes 10 gives a first "
            "impression, --epochs 5 a model"
        )
    architecture = _read_architecture(size, config)

    if "RANK" in os.environ:  # PyTorch's traces of broken connections; our errors say it better
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

    from elmokit.train import TrainingStopped, pretrain
    from elmokit.train import resume as resume_run

    display = TrainingDisplay("opening the corpus", quiet=os.environ.get("RANK", "0") != "0")
    with warnings_at_the_end():
        try:
            if resume or budget is None:
                if not display.quiet:  # the other processes may see the run later
                    _check_unchanged(out, architecture, recipe, changes)
                with display:
                    elmo = resume_run(
                        corpus,
                        out,
                        budget=budget,
                        device=device,
                        checkpoint_minutes=checkpoint_minutes,
                        timeout=timeout,
                        on_step=display.on_step,
                    )
            else:
                new_recipe = _make_recipe(recipe, changes, device)
                if not (display.quiet or auto_resume):
                    suggest_products(products, device)
                with display:
                    elmo = pretrain(
                        corpus,
                        out,
                        budget=budget,
                        config=architecture,
                        recipe=new_recipe,
                        start=start,
                        device=device,
                        checkpoint_minutes=checkpoint_minutes,
                        auto_resume=auto_resume,
                        timeout=timeout,
                        on_step=display.on_step,
                    )
        except TrainingStopped:
            if not display.quiet:
                click.echo(describe_stop(Path(out).expanduser()), err=True)
            sys.exit(0)
        except KeyboardInterrupt:
            if display.quiet or display.last is None:
                raise
            words = display.last.progress.tokens
            click.echo(
                f"stopped after {words:,} words; to continue: elmo pretrain {corpus} --out {out} "
                "--resume",
                err=True,
            )
            sys.exit(130)
        if not display.quiet and display.last is not None:
            results = _collect_results(elmo, Path(out), display.last)
            click.echo(json.dumps(results) if as_json else render_results(results))
        elif not display.quiet:
            click.echo(f"{out}: the run has ended, and its model is there; nothing to do", err=True)


# -- options ---------------------------------------------------------------------------------------


def _check_corpus(corpus: str) -> None:
    """Raise if the path is text that is not a corpus yet."""
    path = Path(corpus).expanduser()
    if path.exists() and not (path / "corpus.json").exists():
        raise click.UsageError(
            f"{corpus} is {'a directory without corpus.json' if path.is_dir() else 'a file'}, not "
            f"a corpus. If it is text, build a corpus first: elmo corpus {corpus} --out CORPUS"
        )


def _read_architecture(size: str | None, file: str | None) -> BiLMConfig | None:
    """Return the architecture by its name or from a file; None if neither is given."""
    from elmokit.bilm import sizes
    from elmokit.bilm.config import BiLMConfig
    from elmokit.errors import FormatError

    if file is None:
        return sizes.SIZES[size] if size else None
    try:
        data = parse_json(Path(file).expanduser().read_text(encoding="utf-8"))
        is_options = "projection_dim" in data["lstm"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{file} has no architecture ({error!r}); expected an options.json, or the config.json "
            "of a model"
        ) from None
    if is_options:
        config = BiLMConfig.from_options(data)
    else:
        own = {name: data[name] for name in data if name not in ("format", "version", "mix")}
        config = BiLMConfig.from_dict(own)
    return replace(config, extra={})  # other keys describe the old model, not the new one


def _make_recipe(name: str | None, changes: dict[str, Any], device: str) -> Recipe:
    from elmokit.train.pretraining import with_shards
    from elmokit.train.recipe import get_recipe

    recipe = get_recipe(name or "recommended").replace(**{"shards": 1, **changes})
    unused = {
        "sentences": {"passage", "lanes", "window"},
        "passages": {"lanes", "window"},
        "stream": {"batch", "passage"},
    }[recipe.text]
    if recipe.sampler == "full":
        unused.add("negatives")
    unused &= set(changes)
    if unused:
        raise click.UsageError(
            f"{_option_names(unused)} would have no effect with --text {recipe.text}, "
            f"--sampler {recipe.sampler}"
        )
    return recipe if "shards" in changes else with_shards(recipe, device)


def _check_unchanged(
    out: str, architecture: BiLMConfig | None, recipe: str | None, changes: dict[str, Any]
) -> None:
    """Raise if the options differ from those that the run in `out` was started with."""
    from elmokit.train.recipe import get_recipe
    from elmokit.train.run_plan import RUN, TRAINING, RunPlan

    directory = Path(out).expanduser() / TRAINING
    plan = RunPlan.read(directory)
    old = plan.recipe.to_dict()
    named = get_recipe(recipe).to_dict() if recipe else old
    different = {name for name, value in changes.items() if value != old[name]}
    if any(named[name] != old[name] for name in old if name not in {*changes, "shards"}):
        different.add("recipe")
    if architecture is not None and architecture != plan.config:
        different |= {"size", "config"}
    if different:
        raise click.UsageError(
            f"{_option_names(different)} cannot change when a run is resumed; its options are in "
            f"{directory / RUN}"
        )


def _option_names(names: set[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in sorted(names))


# -- results ---------------------------------------------------------------------------------------


def _collect_results(elmo: Elmo, out: Path, report: TrainingReport) -> dict[str, Any]:
    """Return the results as a dictionary for JSON."""
    from elmokit.train.run import CURVE
    from elmokit.train.run_plan import TRAINING

    progress, held_out = report.progress, report.held_out
    return {
        "model": str(out),
        "fingerprint": elmo.bilm.fingerprint,
        "tokens": progress.tokens,
        "epochs": report.epochs,
        "steps": progress.step,
        "seconds": progress.seconds,
        "held_out": None if held_out is None else held_out.to_dict(),
        "curve": str(out / TRAINING / CURVE),
    }


def render_results(results: dict[str, Any]) -> str:
    """Return the results as text for a terminal."""
    model, held_out, seconds = results["model"], results["held_out"], results["seconds"]
    speed = results["tokens"] / max(seconds, 1e-9)
    rows = [
        ("words", f"{results['tokens']:,} read (epochs: {results['epochs']:.3g})"),
        ("time", f"{format_duration(seconds)}, {speed:,.0f} words/s"),
        (
            "held out",
            "no text to evaluate the model on"
            if held_out is None
            else f"perplexity {held_out['forward']:.1f} forward, {held_out['backward']:.1f} "
            f"backward ({held_out['words']:,} words, {held_out['oov']:.2%} <UNK>)",
        ),
        ("curve", results["curve"]),
        ("next", f"elmo embed -m {model} 'A sentence.'"),
        ("", f"elmo perplexity {model} TEXT"),
        ("", f"elmo convert {model} export --format allennlp"),
    ]
    return "\n".join([model, *(f"  {name:<10}{value}" for name, value in rows)])
