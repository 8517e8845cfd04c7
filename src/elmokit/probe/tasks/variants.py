"""Which layers, how much λ, and which placement of ELMo help a task.

`compare_layers` is the paper's Table 2, `compare_placements` its Table 3, for any task and data.
Tables and figures are rendered from the numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from elmokit import figures
from elmokit.probe.results import Figure, Measurement, argmax, layer_name, make_measurement
from elmokit.probe.tables import Table
from elmokit.probe.tasks.seeds import differences, format_gain, format_score, format_seeds, spread

if TYPE_CHECKING:
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.task import Placement
    from elmokit.tasks.trials import Outcome, TaskFiles, TrialCallback

PLACEMENTS: tuple[Placement, ...] = ("input", "output", "both")
"""The placements that `compare_placements` compares."""
LAMBDAS = (1.0, 0.001)
"""The values of λ that `compare_layers` compares by default."""
BASELINE, LAST = "baseline", "last"

_BASELINES = {"qa": 80.8, "nli": 88.1, "srl": 81.6}
PAPER: dict[str, dict[str, dict[str, float]]] = {
    "layers": {
        "qa": {LAST: 84.7, "1": 85.0, "0.001": 85.2},
        "nli": {LAST: 89.1, "1": 89.3, "0.001": 89.5},
        "srl": {LAST: 84.1, "1": 84.6, "0.001": 84.8},
    },
    "place": {
        "qa": dict(zip(PLACEMENTS, (85.1, 84.8, 85.6), strict=True)),
        "nli": dict(zip(PLACEMENTS, (88.9, 88.7, 89.5), strict=True)),
        "srl": dict(zip(PLACEMENTS, (84.7, 80.9, 84.3), strict=True)),
    },
}
"""The paper's Tables 2 and 3: scores on development sets, by task and variant."""
PAPER_DATASETS = {"qa": "SQuAD", "nli": "SNLI", "srl": "SRL"}
"""The datasets of these scores, by task."""


@dataclass(frozen=True)
class Variant:
    """One of the systems that are compared."""

    key: str
    """What is varied: `baseline`, `last`, a λ, or a placement."""
    name: str
    """Name in tables and figures."""
    settings: Settings
    """Settings of the system."""


@dataclass(frozen=True)
class VariantComparison:
    """The outcomes of all variants, the baseline first."""

    kind: str
    """Kind of the measurement: `layers` or `place`."""
    settings: Settings
    """The settings that the variants differ from."""
    files: TaskFiles
    """Training, development and test data."""
    seeds: Sequence[int]
    """Random seeds."""
    outcomes: Sequence[tuple[Variant, list[Outcome]]]
    """Each variant with the outcomes of its seeds."""

    @property
    def _placement(self) -> str:
        """The placement in all variants; where placements are compared, that of the paper."""
        if self.kind == "place":
            return self.settings.definition.placement
        return self.settings.effective_placement

    def measured(self) -> Measurement:
        """Return the comparison as a measurement."""
        from elmokit.probe.tasks.runs import analysis_signature, summarize

        systems = [variant.settings for variant, _ in self.outcomes]
        return make_measurement(
            self.kind,
            analysis_signature(self.settings, systems, self.files, self.seeds),
            task=self.settings.task,
            score=self.settings.definition.main_score,
            of="dev" if self.files.test is None else "test",
            place=self._placement,
            choices=[
                {
                    "choice": variant.key,
                    "name": variant.name,
                    **summarize(variant.settings, outcomes),
                }
                for variant, outcomes in self.outcomes
            ],
        )


def compare_layers(
    settings: Settings,
    files: TaskFiles,
    runs: str | Path,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int | None = None,
    callback: TrialCallback | None = None,
) -> VariantComparison:
    """Train the baseline, a model with the last layer only, and one with all layers for each λ.

    The command `elmo analyze layers` does this.

    Args:
        settings: Settings of the runs with ELMo; `layers` and `l2` are varied.
        files: Training, development and test data.
        runs: Directory for the runs; runs that are in it already are not done again.
        lambdas: Strengths of the penalty that keeps the layer weights close to each other.
        seeds: Random seeds; each variant is trained once with each of them.
        jobs: Number of runs at a time; one per core by default.
        callback: Called with each report about a run, from another thread.
    """
    variants = [
        Variant(LAST, "last layer only", settings.replace(layers="last")),
        *(
            Variant(f"{l2:g}", f"all layers, λ={l2:g}", settings.replace(layers="all", l2=l2))
            for l2 in dict.fromkeys(lambdas)
        ),
    ]
    return _compare("layers", settings, variants, files, runs, seeds, jobs, callback)


def compare_placements(
    settings: Settings,
    files: TaskFiles,
    runs: str | Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int | None = None,
    callback: TrialCallback | None = None,
) -> VariantComparison:
    """Train the baseline, and models with ELMo at the input, at the output, and at both.

    The command `elmo analyze place` does this.

    Args:
        settings: Settings of the runs with ELMo; `placement` is varied.
        files: Training, development and test data.
        runs: Directory for the runs; runs that are in it already are not done again.
        seeds: Random seeds; each variant is trained once with each of them.
        jobs: Number of runs at a time; one per core by default.
        callback: Called with each report about a run, from another thread.
    """
    names = {"both": "input and output"}
    variants = [
        Variant(placement, names.get(placement, placement), settings.replace(placement=placement))
        for placement in PLACEMENTS
    ]
    return _compare("place", settings, variants, files, runs, seeds, jobs, callback)


def _compare(
    kind: str,
    settings: Settings,
    variants: Sequence[Variant],
    files: TaskFiles,
    runs: str | Path,
    seeds: Sequence[int],
    jobs: int | None,
    callback: TrialCallback | None,
) -> VariantComparison:
    from elmokit.probe.tasks.runs import check_elmo, run_systems
    from elmokit.tasks.systems import without_elmo
    from elmokit.tasks.trials import ignore_update

    check_elmo(settings)
    variants = [Variant(BASELINE, "baseline", without_elmo(settings)), *variants]
    systems = [variant.settings for variant in variants]
    outcomes = run_systems(
        systems, files, runs, seeds=seeds, jobs=jobs, callback=callback or ignore_update
    )
    pairs = list(zip(variants, outcomes, strict=True))
    return VariantComparison(kind, settings, files, tuple(seeds), pairs)


# -- rendering -----------------------------------------------------------------------------------


def render_tables(results: Measurement) -> list[Table]:
    """Return a table of the scores, and one of the layer weights."""
    tables = [_scores_table(results)]
    if weights := list(_layer_weights(results)):
        tables.append(_weights_table(results, weights))
    return tables


def render_figures(results: Measurement) -> list[Figure]:
    """Return a figure of the gains over the baseline, here and in the paper, and of the weights."""
    subject = "Which layers, how much λ" if results["kind"] == "layers" else "Where ELMo enters"
    base = results["choices"][0]
    paper = _paper_scores(results)
    groups = []
    for variant in results["choices"][1:]:
        gains = differences(variant["scores"], base["scores"])
        bars = [figures.Bar("here", mean(gains), spread(gains))]
        if variant["choice"] in paper:
            gain = paper[variant["choice"]] - paper[BASELINE]
            bars.append(figures.Bar(f"the paper, {PAPER_DATASETS[results['task']]}", gain))
        label = f"{results['score']} {variant['mean']:.2f}"
        groups.append(figures.BarGroup(variant["name"], bars, label))
    lowest = min(bar.value - bar.spread for group in groups for bar in group.bars)
    rendered = [
        Figure(
            "",
            figures.draw_bar_chart(
                f"{subject}: {results['task']}",
                groups,
                low=min(0.0, 1.1 * lowest),
                x_label=f"gain in {results['score']} over the baseline, which has "
                f"{base['mean']:.2f} ({_dataset_name(results)}, {format_seeds(base['scores'])})",
                digits=2,
                colors=(0, 2),
            ),
        )
    ]
    if weights := list(_layer_weights(results)):
        layers = len(weights[0][2]["shares"])
        divisions = [
            figures.StackedBar(
                _label(variant, place), learned["shares"], f"γ {learned['gamma']:.2f}"
            )
            for variant, place, learned in weights
        ]
        names = [layer_name(j) for j in range(layers)]
        title = f"Layer weights: {results['task']}"
        rendered.append(Figure("weights", figures.draw_stacked_bars(title, divisions, names)))
    return rendered


def headline(results: Measurement) -> tuple[str, str] | None:
    """Return the gain of all layers over the last one; None where placements were compared."""
    variants = {variant["choice"]: variant for variant in results["choices"]}
    if LAST not in variants:
        return None
    all_layers = variants[min(variants.keys() - {BASELINE, LAST}, key=float)]
    gain, _ = format_gain(all_layers["scores"], variants[LAST]["scores"])
    return gain, f"{results['score']} of {results['task']}: all layers over the last alone"


def _scores_table(results: Measurement) -> Table:
    variants, paper = results["choices"], _paper_scores(results)
    base = variants[0]
    last = next((variant for variant in variants if variant["choice"] == LAST), None)
    test = results["of"] == "test"
    columns = ["", results["score"], "gain"]
    columns += [] if last is None else ["over last"]
    columns += ["dev"] if test else []
    columns += ["paper"] if paper else []
    rows = []
    for variant in variants:
        key = variant["choice"]
        row = [variant["name"], format_score(variant["scores"])]
        row += [_gain_over(variant, other) for other in (base, last) if other is not None]
        row += [f"{mean(variant['dev']):.2f}"] if test else []
        row += [f"{paper[key]:.1f}" if key in paper else ""] if paper else []
        rows.append(row)
    title = "where ELMo enters" if last is None else "which layers, how much λ"
    best = max(variant["mean"] for variant in variants)
    return Table(
        f"{results['task']}: {title} ({results['score']} on {results['of']}, "
        f"{format_seeds(base['scores'])})",
        columns,
        rows,
        note=_scores_note(results),
        bold=[(r, 1) for r, variant in enumerate(variants) if variant["mean"] == best],
    )


def _scores_note(results: Measurement) -> str:
    seeds = len(results["choices"][0]["scores"])
    variants = {variant["choice"]: variant for variant in results["choices"]}
    if LAST in variants:
        sentences = [
            _layers_finding(variants),
            f"ELMo at {_placement_phrase(results['place'])}.",
        ]
    else:
        best = max(variants[placement]["mean"] for placement in PLACEMENTS)
        tied = [_placement_phrase(p) for p in PLACEMENTS if variants[p]["mean"] == best]
        finding = f"Best at {tied[0]}" if len(tied) == 1 else f"Equally good at {', '.join(tied)}"
        own = _placement_phrase(results["place"])
        sentences = [f"{finding}; the paper's placement for this task is {own}."]
    sentences.append(
        f"{variants[BASELINE]['examples']:,} training examples. In brackets: seeds with a gain."
    )
    sentences.append(
        "With a single seed, differences of some tenths are chance."
        if seeds == 1
        else "±: standard deviation over the seeds."
    )
    if results["task"] in PAPER_DATASETS:
        sentences.append(
            f"Paper: {PAPER_DATASETS[results['task']]}, development set, a larger biLM and task "
            "model."
        )
    return " ".join(sentences)


def _layers_finding(variants: dict[str, Measurement]) -> str:
    """Return a sentence on all layers with the smallest λ against the last layer."""
    smallest = min(variants.keys() - {BASELINE, LAST}, key=float)
    scores, last_scores = variants[smallest]["scores"], variants[LAST]["scores"]
    gains = differences(scores, last_scores)
    change = mean(gains)
    verdict = "better than" if change > 0 else "worse than" if change < 0 else "as good as"
    if len(gains) > 1 and abs(change) <= spread(gains):
        verdict = "not distinguishable from"  # the seeds differ by more
    gain, wins = format_gain(scores, last_scores)
    seeds = f", better with {wins} seeds" if len(gains) > 1 else ""
    return f"All layers (λ={smallest}) are {verdict} the last alone: {gain}{seeds}."


def _weights_table(
    results: Measurement, weights: Sequence[tuple[Measurement, str, Measurement]]
) -> Table:
    layers = len(weights[0][2]["shares"])
    return Table(
        f"{results['task']}: layer weights (softmax of s, mean over the seeds)",
        ["", *(layer_name(j) for j in range(layers)), "γ", "from equal"],
        [
            [
                _label(variant, place),
                *(f"{share:.3f}" for share in learned["shares"]),
                f"{learned['gamma']:.2f}",
                f"{max(abs(share - 1 / layers) for share in learned['shares']):.3f}",
            ]
            for variant, place, learned in weights
        ],
        note=f"From equal: the largest difference of a weight from 1/{layers}; a large λ makes it "
        "zero.",
        bold=[(r, 1 + argmax(learned["shares"])) for r, (_, _, learned) in enumerate(weights)],
    )


def _layer_weights(results: Measurement) -> Iterator[tuple[Measurement, str, Measurement]]:
    """Yield variant, place and layer weights, except where there is one layer only."""
    for variant in results["choices"]:
        if variant["choice"] != LAST:
            for place, learned in variant["weights"].items():
                if max(learned["shares"]) < 1:
                    yield variant, place, learned


def _label(variant: Measurement, place: str) -> str:
    return place if variant["name"] == place else f"{variant['name']}: {place}"


def _paper_scores(results: Measurement) -> dict[str, float]:
    """Return the paper's scores of the task by variant; empty if it has none."""
    scores = PAPER[results["kind"]].get(results["task"])
    return {} if scores is None else {BASELINE: _BASELINES[results["task"]], **scores}


def _gain_over(variant: Measurement, other: Measurement) -> str:
    """Return the gain over another variant; empty for the baseline and the variant itself."""
    if variant["choice"] in (BASELINE, other["choice"]):
        return ""
    gain, wins = format_gain(variant["scores"], other["scores"])
    return f"{gain} ({wins})"


def _dataset_name(results: Measurement) -> str:
    return "test set" if results["of"] == "test" else "development set"


def _placement_phrase(placement: str) -> str:
    return "input and output" if placement == "both" else f"the {placement}"
