"""How much data and how many epochs a task needs, with ELMo and without: the paper's Figure 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from elmokit import figures
from elmokit.errors import InputError
from elmokit.probe.results import Figure, Measurement, make_measurement
from elmokit.probe.tables import Table
from elmokit.probe.tasks.seeds import format_gain, format_score, format_seeds

if TYPE_CHECKING:
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Outcome, TaskFiles, TrialCallback

SHARES = (0.001, 0.01, 0.1, 1.0)
"""Fractions of the training set that are compared by default."""
SYSTEMS = ("baseline", "elmo")
"""Keys of the two systems in a measurement."""
NAMES = {"baseline": "baseline", "elmo": "with ELMo"}
"""Names of the two systems in tables and figures."""
COLORS = {"baseline": 2, "elmo": 0}
"""Numbers of their colors in figures."""


@dataclass(frozen=True)
class SampleEfficiency:
    """The outcomes of the baseline and of ELMo with parts of the training set."""

    settings: Settings
    """Settings of the runs with ELMo."""
    files: TaskFiles
    """Training, development and test data."""
    seeds: Sequence[int]
    """Random seeds."""
    shares: Sequence[float]
    """Fractions of the training set, from small to large."""
    baseline: Sequence[list[Outcome]]
    """For each share, the outcomes of the baseline's seeds."""
    elmo: Sequence[list[Outcome]]
    """For each share, the outcomes of the seeds with ELMo."""

    def measured(self) -> Measurement:
        """Return the outcomes as a measurement."""
        from elmokit.probe.tasks.runs import analysis_signature, summarize

        sizes = []
        for share, *outcomes in zip(self.shares, self.baseline, self.elmo, strict=True):
            pairs = zip(_both_systems(self.settings, share), outcomes, strict=True)
            summaries = dict(zip(SYSTEMS, (summarize(*pair) for pair in pairs), strict=True))
            examples = summaries["elmo"]["examples"]
            base, elmo = (summaries[name]["mean"] for name in SYSTEMS)
            sizes.append(
                {
                    "share": share,
                    "examples": examples,
                    "readings": passes_per_epoch(self.settings, examples),
                    **summaries,
                    "gain": elmo - base,
                    "relative_error_reduction": 100 * (elmo - base) / max(100 - base, 1e-9),
                }
            )
        systems = [
            system for share in self.shares for system in _both_systems(self.settings, share)
        ]
        return make_measurement(
            "efficiency",
            analysis_signature(self.settings, systems, self.files, self.seeds),
            task=self.settings.task,
            score=self.settings.definition.main_score,
            of="dev" if self.files.test is None else "test",
            seeds=list(self.seeds),
            sizes=sizes,
            enough=shares_needed(sizes),
            epochs=epochs_needed(sizes[-1]),
        )


def sample_efficiency(
    settings: Settings,
    files: TaskFiles,
    runs: str | Path,
    *,
    shares: Sequence[float] = SHARES,
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int | None = None,
    callback: TrialCallback | None = None,
) -> SampleEfficiency:
    """Train the baseline and the model with ELMo on parts of the training set.

    The command `elmo analyze efficiency` does this.

    Args:
        settings: Settings of the runs with ELMo; `share` is varied.
        files: Training, development and test data.
        runs: Directory for the runs; runs that are in it already are not done again.
        shares: Fractions of the training set; scores by epoch are those of the largest.
        seeds: Random seeds, which also select the examples of a share.
        jobs: Number of runs at a time; one per core by default.
        callback: Called with each report about a run, from another thread.
    """
    from elmokit.probe.tasks.runs import check_elmo, run_systems
    from elmokit.tasks.trials import ignore_update

    check_elmo(settings)
    ordered = sorted(set(shares))
    if not ordered:
        raise InputError("no share of the training set was given; expected at least one")
    systems = [system for share in ordered for system in _both_systems(settings, share)]
    outcomes = run_systems(
        systems, files, runs, seeds=seeds, jobs=jobs, callback=callback or ignore_update
    )
    return SampleEfficiency(settings, files, tuple(seeds), ordered, outcomes[0::2], outcomes[1::2])


def _both_systems(settings: Settings, share: float) -> tuple[Settings, Settings]:
    from elmokit.tasks.systems import without_elmo

    with_elmo = settings.replace(share=share)
    return without_elmo(with_elmo), with_elmo


# -- numbers -------------------------------------------------------------------------------------


def passes_per_epoch(settings: Settings, examples: int) -> int:
    """Return how often an epoch reads a training set of this size: a small one more than once."""
    from elmokit.tasks.fitting import epoch_batches

    training = settings.effective_preset.training
    batches = epoch_batches([1] * examples, training, seed=0, epoch=0)
    return sum(map(len, batches)) // examples


def shares_needed(sizes: Sequence[Measurement]) -> list[Measurement]:
    """Return how little data ELMo needs to be as good as the baseline with each size.

    In each result, `measured` is the smallest share with which ELMo was as good, and `between` the
    share at which it first is on straight lines between the measured scores, over the logarithm of
    the share. Both are None where ELMo never is, and `between` where the smallest share is enough.
    """
    points = [(size["share"], size["elmo"]["mean"]) for size in sizes]
    needed = []
    for size in sizes:
        goal = size["baseline"]["mean"]
        first = next((k for k, (_, score) in enumerate(points) if score >= goal), None)
        between = None
        if first:
            (low, below), (high, above) = points[first - 1 : first + 1]
            part = (goal - below) / (above - below)
            between = math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
        needed.append(
            {
                "share": size["share"],
                "measured": None if first is None else points[first][0],
                "between": between,
            }
        )
    return needed


def epochs_needed(size: Measurement) -> Measurement:
    """Return, for one size and each seed, the epoch at which ELMo passes the baseline's best."""
    base, elmo = (size[name]["curves"] for name in SYSTEMS)
    return {
        "share": size["share"],
        "baseline_best": [max(curve) for curve in base],
        "baseline_best_epoch": [1 + curve.index(max(curve)) for curve in base],
        "elmo_passes": [_first_above(e, max(b)) for b, e in zip(base, elmo, strict=True)],
        "elmo_best": [max(curve) for curve in elmo],
        "elmo_best_epoch": [1 + curve.index(max(curve)) for curve in elmo],
        "mean": {name: mean_curve(size[name]["curves"]) for name in SYSTEMS},
    }


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean over the seeds; a run that stopped early counts with its best score."""
    length = max(map(len, curves))
    longer = [[*curve, *[max(curve)] * (length - len(curve))] for curve in curves]
    return [mean(each) for each in zip(*longer, strict=True)]


def _first_above(curve: Sequence[float], goal: float) -> int | None:
    return next((k for k, score in enumerate(curve, start=1) if score > goal), None)


# -- rendering -----------------------------------------------------------------------------------


def render_tables(results: Measurement) -> list[Table]:
    """Return the scores by size of the training set, and by epoch."""
    return [_size_table(results), _epoch_table(results)]


def render_figures(results: Measurement) -> list[Figure]:
    """Return the scores by size of the training set, and by epoch, as line charts."""
    by_size = [
        figures.Line(
            NAMES[name],
            [(size["share"], size[name]["mean"]) for size in results["sizes"]],
            COLORS[name],
            spread=[
                (
                    size[name]["mean"] - size[name]["spread"],
                    size[name]["mean"] + size[name]["spread"],
                )
                for size in results["sizes"]
            ],
        )
        for name in SYSTEMS
    ]
    panel = figures.Panel(f"{results['score']} on {_dataset_name(results)}", by_size, 300, digits=1)
    ticks = {size["share"]: _percent(size["share"]) for size in results["sizes"]}
    title = f"How much data {results['task']} needs, with ELMo and without"
    across = f"part of the training set ({format_seeds(results['seeds'])})"
    sizes_svg = figures.draw_line_chart(title, [panel], x_label=across, log=True, ticks=ticks)
    return [Figure("sizes", sizes_svg), Figure("epochs", _epochs_svg(results))]


def headline(results: Measurement) -> tuple[str, str] | None:
    """Return how many epochs ELMo needs for the baseline's best score, if it reaches it."""
    epochs = results["epochs"]
    if None in epochs["elmo_passes"]:
        return None
    needed = mean(epochs["baseline_best_epoch"])
    text = f"epochs of {results['task']} with ELMo for what the baseline needs {needed:.3g}"
    return f"{mean(epochs['elmo_passes']):.3g}", text


def _size_table(results: Measurement) -> Table:
    sizes = results["sizes"]
    rows = []
    for size, needed in zip(sizes, results["enough"], strict=True):
        base, elmo = size["baseline"], size["elmo"]
        rows.append(
            [
                _percent(size["share"]),
                f"{size['examples']:,}",
                format_score(base["scores"]),
                format_score(elmo["scores"]),
                *format_gain(elmo["scores"], base["scores"]),
                f"{round(-size['relative_error_reduction'], 1) + 0.0:+.1f} %",
                _needed_cell(needed, sizes),
            ]
        )
    return Table(
        f"{results['task']}: {results['score']} on {results['of']} by size of the training set "
        f"({format_seeds(results['seeds'])})",
        ["data", "examples", *NAMES.values(), "gain", "won", "error", "enough"],
        rows,
        note=_size_note(results),
        bold=[(max(range(len(sizes)), key=lambda k: float(sizes[k]["gain"])), 4)],
    )


def _needed_cell(needed: Measurement, sizes: Sequence[Measurement]) -> str:
    """Return the part of the data with which ELMo is as good as the baseline with this part."""
    if needed["measured"] is None:
        return f"> {_percent(sizes[-1]['share'])}"
    if needed["between"] is None:
        return f"≤ {_percent(sizes[0]['share'])}"
    return f"≈ {100 * needed['between']:.2g} %"


def _size_note(results: Measurement) -> str:
    sentences = [
        f"With ELMo {_percent(needed['measured'])} is as good as {_percent(needed['share'])} "
        "without."
        for needed in results["enough"]
        if needed["measured"] is not None and needed["measured"] < needed["share"]
    ]
    sentences.append(
        "Enough: the part of the data with which ELMo equals the baseline with this part, on a "
        "straight line over log(part) between the measured sizes. Won: seeds with a gain. "
        "The paper (SRL): 1 % with ELMo about as good as 10 % without."
    )
    repeated = [size for size in results["sizes"] if size["readings"] > 1]
    if repeated:
        times = ", ".join(
            f"{_percent(size['share'])} {size['readings']} times" for size in repeated
        )
        sentences.append(
            "So that small sets are learned at all, an epoch reads them more than once, with ELMo "
            f"and without: {times}."
        )
    return " ".join(sentences)


def _epoch_table(results: Measurement) -> Table:
    epochs = results["epochs"]
    passes = epochs["elmo_passes"]
    rows = [
        [
            str(seed),
            f"{epochs['baseline_best'][k]:.2f}",
            str(epochs["baseline_best_epoch"][k]),
            "never" if passes[k] is None else str(passes[k]),
            f"{epochs['elmo_best'][k]:.2f}",
            str(epochs["elmo_best_epoch"][k]),
        ]
        for k, seed in enumerate(results["seeds"])
    ]
    largest = results["sizes"][-1]
    longest = max(len(curve) for name in SYSTEMS for curve in largest[name]["curves"])
    times = "once" if largest["readings"] == 1 else f"{largest['readings']} times"
    return Table(
        f"{results['task']}: {results['score']} on dev by epoch, {_percent(epochs['share'])} of "
        "the data",
        ["seed", "baseline's best", "at epoch", "ELMo passes it at", "ELMo's best", "at epoch"],
        rows,
        note=f"{_epoch_finding(epochs)} At most {longest} epochs were run; an epoch reads the "
        f"training set {times}, and the learning rate falls to zero over all of them. The paper "
        "(SRL): the baseline's best at epoch 486, ELMo passes it at epoch 10.",
        bold=[(k, 3) for k in range(len(rows)) if passes[k] is not None],
    )


def _epoch_finding(epochs: Measurement) -> str:
    passes, needed = epochs["elmo_passes"], epochs["baseline_best_epoch"]
    if None in passes:
        passing = len(passes) - passes.count(None)
        return f"ELMo passes the baseline's best with {passing} of {format_seeds(passes)}."
    return (
        f"ELMo passes at epoch {mean(passes):.3g} what the baseline needs {mean(needed):.3g} for"
        f"{' (means over the seeds)' if len(passes) > 1 else ''}."
    )


def _epochs_svg(results: Measurement) -> str:
    epochs, largest = results["epochs"], results["sizes"][-1]
    lines = []
    for name in SYSTEMS:
        curve = epochs["mean"][name]
        curves = largest[name]["curves"]
        complete = [c for c in curves if len(c) == len(curve)]
        lines.append(
            figures.Line(
                NAMES[name],
                list(enumerate(curve, start=1)),
                COLORS[name],
                spread=[(min(each), max(each)) for each in zip(*complete, strict=True)]
                if len(complete) == len(curves) > 1
                else (),
            )
        )
    longest = max(len(curve) for curve in epochs["mean"].values())
    best = max(epochs["mean"]["baseline"])
    lines.append(
        figures.Line("baseline's best", [(1, best), (longest, best)], 2, dots=False, dashed=True)
    )
    step = max(1, math.ceil(longest / 12))
    share, seeds = _percent(epochs["share"]), format_seeds(results["seeds"])
    return figures.draw_line_chart(
        f"How many epochs {results['task']} needs, with ELMo and without",
        [figures.Panel(f"{results['score']} on the development set", lines, 300, digits=1)],
        x_label=f"epoch ({share} of the data, {seeds})",
        ticks={k: str(k) for k in range(1, longest + 1, step)},
        right_margin=170,
    )


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _dataset_name(results: Measurement) -> str:
    return "the test set" if results["of"] == "test" else "the development set"
