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
from elmokit.probe.results import Json, Picture, measurement
from elmokit.probe.tables import Table
from elmokit.probe.tasks import seeds as over_seeds

if TYPE_CHECKING:
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Files, Hear, Outcome

SHARES = (0.001, 0.01, 0.1, 1.0)
SYSTEMS = ("baseline", "elmo")
NAMES = {"baseline": "baseline", "elmo": "with ELMo"}
COLORS = {"baseline": 2, "elmo": 0}


@dataclass(frozen=True)
class Efficiency:
    """What came of both systems with parts of the training set."""

    settings: Settings
    files: Files
    seeds: Sequence[int]
    shares: Sequence[float]
    """From small to large."""
    baseline: Sequence[list[Outcome]]
    """For each share, of each seed."""
    elmo: Sequence[list[Outcome]]

    def measured(self) -> Json:
        """As a measurement."""
        from elmokit.probe.tasks.runs import signature, summary

        sizes = []
        for share, *both in zip(self.shares, self.baseline, self.elmo, strict=True):
            systems = _both(self.settings, share)
            of = {n: summary(s, o) for n, s, o in zip(SYSTEMS, systems, both, strict=True)}
            examples = of["elmo"]["examples"]
            base, elmo = (of[name]["mean"] for name in SYSTEMS)
            sizes.append(
                {
                    "share": share,
                    "examples": examples,
                    "readings": readings(self.settings, examples),
                    **of,
                    "gain": elmo - base,
                    "relative_error_reduction": 100 * (elmo - base) / max(100 - base, 1e-9),
                }
            )
        every = [system for share in self.shares for system in _both(self.settings, share)]
        return measurement(
            "efficiency",
            signature(self.settings, every, self.files, self.seeds),
            task=self.settings.task,
            score=self.settings.sister.SCORE,
            of="dev" if self.files.test is None else "test",
            seeds=list(self.seeds),
            sizes=sizes,
            enough=enough(sizes),
            epochs=epochs(sizes[-1]),
        )


def sample_efficiency(
    settings: Settings,
    files: Files,
    runs: str | Path,
    *,
    shares: Sequence[float] = SHARES,
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int | None = None,
    hear: Hear = lambda moment: None,
) -> Efficiency:
    """Train both systems with each seed, for each share of the training set.

    Args:
        settings: of the runs with ELMo, but for the share.
        files: training, development and test data.
        runs: where the runs are kept; called again, what is done is not done again.
        shares: parts of the training set; development scores by epoch are those of the largest.
        seeds: of the runs; a seed also says which examples a share consists of.
        jobs: how many runs at a time.
        hear: who looks on.
    """
    from elmokit.probe.tasks.runs import check_elmo, run_systems

    check_elmo(settings)
    ordered = sorted(set(shares))
    if not ordered:
        raise InputError("no share of the training set was given; expected at least one")
    systems = [system for share in ordered for system in _both(settings, share)]
    found = run_systems(systems, files, runs, seeds=seeds, jobs=jobs, hear=hear)
    return Efficiency(settings, files, tuple(seeds), ordered, found[0::2], found[1::2])


def _both(settings: Settings, share: float) -> tuple[Settings, Settings]:
    from elmokit.tasks.systems import without_elmo

    with_elmo = settings.replace(share=share)
    return without_elmo(with_elmo), with_elmo


# -- what is computed ----------------------------------------------------------------------------


def readings(settings: Settings, examples: int) -> int:
    """How often an epoch reads a training set: a small one more than once."""
    from elmokit.tasks.fitting import batches_of

    batches = batches_of([1] * examples, settings.chosen.schooling, seed=0, epoch=0)
    return sum(map(len, batches)) // examples


def enough(sizes: Sequence[Json]) -> list[Json]:
    """For each size of the baseline's training set, with how little ELMo is as good.

    `measured` is the smallest share that was, and `between` the share at which a straight line over
    the logarithm of the share, between what was measured, first reaches the baseline. Both are None
    where ELMo never does, and `between` where the smallest does already.
    """
    points = [(size["share"], size["elmo"]["mean"]) for size in sizes]
    found = []
    for size in sizes:
        goal = size["baseline"]["mean"]
        first = next((k for k, (_, score) in enumerate(points) if score >= goal), None)
        between = None
        if first:
            (low, below), (high, above) = points[first - 1 : first + 1]
            part = (goal - below) / (above - below)
            between = math.exp(math.log(low) + part * (math.log(high) - math.log(low)))
        found.append(
            {
                "share": size["share"],
                "measured": None if first is None else points[first][0],
                "between": between,
            }
        )
    return found


def epochs(size: Json) -> Json:
    """The development score by epoch of one size: for each seed, when ELMo passes the baseline."""
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
    """Over the seeds; a run that stopped before the others counts with the best that it kept."""
    length = max(map(len, curves))
    longer = [[*curve, *[max(curve)] * (length - len(curve))] for curve in curves]
    return [mean(each) for each in zip(*longer, strict=True)]


def _first_above(curve: Sequence[float], goal: float) -> int | None:
    return next((k for k, score in enumerate(curve, start=1) if score > goal), None)


# -- what is shown -------------------------------------------------------------------------------


def tables(found: Json) -> list[Table]:
    """By size of the training set, and by epoch."""
    return [_by_size(found), _by_epoch(found)]


def pictures(found: Json) -> list[Picture]:
    """The same as lines."""
    by_size = [
        figures.Line(
            NAMES[name],
            [(size["share"], size[name]["mean"]) for size in found["sizes"]],
            COLORS[name],
            spread=[
                (
                    size[name]["mean"] - size[name]["spread"],
                    size[name]["mean"] + size[name]["spread"],
                )
                for size in found["sizes"]
            ],
        )
        for name in SYSTEMS
    ]
    panel = figures.Panel(f"{found['score']} on {_set(found)}", by_size, 300, digits=1)
    ticks = {size["share"]: _share(size["share"]) for size in found["sizes"]}
    title = f"How much data {found['task']} needs, with ELMo and without"
    across = f"part of the training set ({over_seeds.count(found['seeds'])})"
    drawn = figures.lines(title, [panel], across=across, log=True, ticks=ticks)
    return [Picture("sizes", drawn), Picture("epochs", _epochs_picture(found))]


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember: epochs."""
    noted = found["epochs"]
    if None in noted["elmo_passes"]:
        return None
    needed = mean(noted["baseline_best_epoch"])
    told = f"epochs of {found['task']} with ELMo for what the baseline needs {needed:.3g}"
    return f"{mean(noted['elmo_passes']):.3g}", told


def _by_size(found: Json) -> Table:
    sizes = found["sizes"]
    rows = []
    for size, one in zip(sizes, found["enough"], strict=True):
        base, elmo = size["baseline"], size["elmo"]
        rows.append(
            [
                _share(size["share"]),
                f"{size['examples']:,}",
                over_seeds.score(base["scores"]),
                over_seeds.score(elmo["scores"]),
                *over_seeds.gain(elmo["scores"], base["scores"]),
                f"{round(-size['relative_error_reduction'], 1) + 0.0:+.1f} %",
                _needed(one, sizes),
            ]
        )
    return Table(
        f"{found['task']}: {found['score']} on {found['of']} by size of the training set "
        f"({over_seeds.count(found['seeds'])})",
        ["data", "examples", *NAMES.values(), "gain", "won", "error", "enough"],
        rows,
        note=_size_note(found),
        bold=[(max(range(len(sizes)), key=lambda k: float(sizes[k]["gain"])), 4)],
    )


def _needed(one: Json, sizes: Sequence[Json]) -> str:
    """The part of the data with which ELMo is as good as the baseline with this part."""
    if one["measured"] is None:
        return f"> {_share(sizes[-1]['share'])}"
    if one["between"] is None:
        return f"≤ {_share(sizes[0]['share'])}"
    return f"≈ {100 * one['between']:.2g} %"


def _size_note(found: Json) -> str:
    told = [
        f"with ELMo {_share(one['measured'])} is as good as {_share(one['share'])} without"
        for one in found["enough"]
        if one["measured"] is not None and one["measured"] < one["share"]
    ]
    sentences = [f"{text[0].upper()}{text[1:]}." for text in told]
    sentences.append(
        "Enough: the part of the data with which ELMo equals the baseline with this part, on a "
        "straight line over log(part) between the sizes that were measured. Won: seeds that gain. "
        "The paper (SRL): 1 % with ELMo about as good as 10 % without."
    )
    often = [size for size in found["sizes"] if size["readings"] > 1]
    if often:
        times = ", ".join(f"{_share(size['share'])} {size['readings']} times" for size in often)
        sentences.append(
            "So that small sets are learned from at all, an epoch reads them more than once, with "
            f"ELMo and without: {times}."
        )
    return " ".join(sentences)


def _by_epoch(found: Json) -> Table:
    noted = found["epochs"]
    passed = noted["elmo_passes"]
    rows = [
        [
            str(seed),
            f"{noted['baseline_best'][k]:.2f}",
            str(noted["baseline_best_epoch"][k]),
            "never" if passed[k] is None else str(passed[k]),
            f"{noted['elmo_best'][k]:.2f}",
            str(noted["elmo_best_epoch"][k]),
        ]
        for k, seed in enumerate(found["seeds"])
    ]
    last = found["sizes"][-1]
    longest = max(len(curve) for name in SYSTEMS for curve in last[name]["curves"])
    times = last["readings"]
    read = "reads the training set once" if times == 1 else f"reads the training set {times} times"
    return Table(
        f"{found['task']}: {found['score']} on dev by epoch, {_share(noted['share'])} of the data",
        ["seed", "baseline's best", "at epoch", "ELMo passes it at", "ELMo's best", "at epoch"],
        rows,
        note=f"{_epoch_finding(noted)} At most {longest} epochs were run; an epoch {read}, and the "
        "learning rate falls to zero over all of them. The paper (SRL): the baseline's best at "
        "epoch 486, ELMo passes it at epoch 10.",
        bold=[(k, 3) for k in range(len(rows)) if passed[k] is not None],
    )


def _epoch_finding(noted: Json) -> str:
    passed, needed = noted["elmo_passes"], noted["baseline_best_epoch"]
    seeds = over_seeds.count(passed)
    if None in passed:
        those = len(passed) - passed.count(None)
        return f"ELMo passes the baseline's best with {those} of {seeds}."
    return (
        f"ELMo passes at epoch {mean(passed):.3g} what the baseline needs {mean(needed):.3g} for"
        f"{' (means over the seeds)' if len(passed) > 1 else ''}."
    )


def _epochs_picture(found: Json) -> str:
    noted, last = found["epochs"], found["sizes"][-1]
    drawn = []
    for name in SYSTEMS:
        curve = noted["mean"][name]
        seeds = [c for c in last[name]["curves"] if len(c) == len(curve)]
        drawn.append(
            figures.Line(
                NAMES[name],
                list(enumerate(curve, start=1)),
                COLORS[name],
                spread=[(min(each), max(each)) for each in zip(*seeds, strict=True)]
                if len(seeds) == len(last[name]["curves"]) > 1
                else (),
            )
        )
    longest = max(len(curve) for curve in noted["mean"].values())
    top = max(noted["mean"]["baseline"])
    drawn.append(
        figures.Line("baseline's best", [(1, top), (longest, top)], 2, dots=False, dashed=True)
    )
    step = max(1, math.ceil(longest / 12))
    return figures.lines(
        f"How many epochs {found['task']} needs, with ELMo and without",
        [figures.Panel(f"{found['score']} on the development set", drawn, 300, digits=1)],
        across=f"epoch ({_share(noted['share'])} of the data, {over_seeds.count(found['seeds'])})",
        ticks={k: str(k) for k in range(1, longest + 1, step)},
        right=170,
    )


def _share(share: float) -> str:
    return f"{100 * share:g} %"


def _set(found: Json) -> str:
    return "the test set" if found["of"] == "test" else "the development set"
