"""The layer weights of trained task models, s_j and γ: the paper's Figure 2."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import elmokit
from elmokit import figures
from elmokit.bilm.config import MAX_LAYERS
from elmokit.errors import FormatError, InputError
from elmokit.figures.stacked_bars import PART_COLORS
from elmokit.probe.results import Figure, Measurement, argmax, layer_name, make_measurement
from elmokit.probe.tables import Table
from elmokit.probe.tasks.seeds import spread

if TYPE_CHECKING:
    from elmokit.probe.tasks.models import ModelWeights


@dataclass(frozen=True)
class LearnedWeights:
    """The layer weights of the task models in some directories."""

    models: Sequence[ModelWeights]
    """The models that have layer weights."""
    skipped: Mapping[str, int]
    """Number of models without layer weights, by reason."""

    def measured(self, *, by_epoch: bool = False) -> Measurement:
        """Return the weights as a measurement.

        Args:
            by_epoch: Include the weights after each epoch.
        """
        bilms = {model.biLM for model in self.models}
        if not bilms:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in self.skipped.items())
            raise InputError(
                f"no model with layer weights was found ({reasons or 'no models'}); expected "
                "directories of models that were trained with ELMo and --layers all"
            )
        if len(bilms) > 1:
            raise InputError(
                f"these task models were trained with {len(bilms)} different biLMs "
                f"({', '.join(sorted(each[:12] for each in bilms))}); expected models with the "
                "same one"
            )
        signature = {
            "model": bilms.pop(),
            "data": {"task models": sorted({model.checksum for model in self.models})},
            "elmokit": elmokit.__version__,
        }
        systems = [
            {**system, "epochs": _mean_by_epoch(models)} if by_epoch else system
            for system, models in _group_by_system(self.models)
        ]
        return make_measurement("weights", signature, systems=systems, skipped=dict(self.skipped))


def learned_weights(directories: Sequence[str | Path]) -> LearnedWeights:
    """Return the layer weights of all task models in directories and their subdirectories.

    The command `elmo analyze weights` does this.

    Args:
        directories: Directories that `elmokit.tasks.fit`, `elmokit.tasks.compare` or the other
            analyses wrote.
    """
    from elmokit.probe.tasks.models import read_model_weights

    return LearnedWeights(*read_model_weights(directories))


def _group_by_system(
    models: Sequence[ModelWeights],
) -> Iterator[tuple[Measurement, list[ModelWeights]]]:
    """Yield one system for all models that differ only in their seeds, with these models."""
    groups: dict[str, list[ModelWeights]] = {}
    for model in models:
        groups.setdefault(model.group, []).append(model)
    names = [(group[0].task, group[0].system) for group in groups.values()]
    for group in groups.values():
        first = group[0]
        variant = first.system.removeprefix("elmo").replace("-", ", ").replace("l2=", "λ=")
        name = f"{first.task}{variant}"
        if names.count((first.task, first.system)) > 1:
            name = f"{name} ({first.where})"
        places = []
        for place in first.weights:
            by_layer = list(zip(*(m.weights[place]["shares"] for m in group), strict=True))
            places.append(
                {
                    "place": place,
                    "shares": [mean(shares) for shares in by_layer],
                    "spread": max(spread(shares) for shares in by_layer),
                    "gamma": mean(m.weights[place]["gamma"] for m in group),
                }
            )
        system = {
            "name": name,
            "task": first.task,
            "system": first.system,
            "seeds": [model.seed for model in group],
            "places": places,
        }
        yield system, group


def _mean_by_epoch(models: Sequence[ModelWeights]) -> list[Measurement]:
    """Return the mean shares over the seeds after each epoch that all of them ran."""
    return [
        {
            place: [mean(part) for part in zip(*(w[place]["shares"] for w in epoch), strict=True)]
            for place in epoch[0]
        }
        for epoch in zip(*(model.epochs for model in models), strict=False)
    ]


# -- rendering -----------------------------------------------------------------------------------


def render_tables(results: Measurement) -> list[Table]:
    """Return a table with one row per place of each system; and one by epoch, if it is measured."""
    rows = _rows(results)
    layers = max(len(place["shares"]) for _, place in rows)
    if layers > MAX_LAYERS:  # all rows become as long as the longest
        raise FormatError(f"a measurement has weights of {layers:,} layers; expected a few")
    names = [layer_name(j) for j in range(layers)]
    render_tables = [
        Table(
            "Layer weights of trained task models",
            ["task", "place", *names, "γ", "seeds", "spread"],
            [
                [
                    system["name"],
                    place["place"],
                    *_share_cells(place["shares"], layers),
                    f"{place['gamma']:.2f}",
                    str(len(system["seeds"])),
                    f"{place['spread']:.3f}" if len(system["seeds"]) > 1 else "",
                ]
                for system, place in rows
            ],
            note=_note(results, rows),
            left=(0, 1),
            bold=[(r, 2 + argmax(place["shares"])) for r, (_, place) in enumerate(rows)],
        )
    ]
    by_epoch = [
        [
            system["name"],
            place["place"],
            str(epoch),
            *_share_cells(weights[place["place"]], layers),
        ]
        for system, place in rows
        for epoch, weights in _select_epochs(system.get("epochs", ()))
    ]
    if by_epoch:
        title = "Layer weights by epoch"
        note = "Selected epochs, mean over the seeds; before the first epoch all are equal."
        columns = ["task", "place", "epoch", *names]
        render_tables.append(Table(title, columns, by_epoch, note, left=(0, 1)))
    return render_tables


def render_figures(results: Measurement) -> list[Figure]:
    """Return a figure with one bar per place of each system; and one by epoch, if measured."""
    rows = _rows(results)
    layers = max(len(place["shares"]) for _, place in rows)
    names = [layer_name(j) for j in range(layers)]
    divisions = [
        figures.StackedBar(
            f"{system['name']}: {place['place']}", place["shares"], f"γ {place['gamma']:.2f}"
        )
        for system, place in rows
    ]
    title = "How tasks weigh the layers of ELMo"
    rendered = [Figure("", figures.draw_stacked_bars(title, divisions, names))]
    panels = [
        figures.Panel(
            f"{system['name']}: {place['place']}",
            [
                figures.Line(
                    names[j],
                    [
                        (epoch, weights[place["place"]][j])
                        for epoch, weights in enumerate(_from_initial(system, place))
                    ],
                    PART_COLORS[j % len(PART_COLORS)],
                )
                for j in range(len(place["shares"]))
            ],
            height=130,
            digits=2,
        )
        for system, place in rows
        if system.get("epochs")
    ]
    if panels:
        across = "epoch; initially all layers have equal weights (each panel has its own scale)"
        title = "Layer weights by epoch"
        longest = max(len(system.get("epochs", ())) for system in results["systems"])
        ticks = {float(k): str(k) for k in range(0, longest + 1, math.ceil(longest / 15))}
        rendered.append(
            Figure("epochs", figures.draw_line_chart(title, panels, x_label=across, ticks=ticks))
        )
    return rendered


def _rows(results: Measurement) -> list[tuple[Measurement, Measurement]]:
    """Return each system with each of its places."""
    return [(system, place) for system in results["systems"] for place in system["places"]]


def _from_initial(system: Measurement, place: Measurement) -> list[dict[str, list[float]]]:
    """Return the equal weights before the first epoch, then those after each epoch."""
    equal = [1 / len(place["shares"])] * len(place["shares"])
    return [{place["place"]: equal}, *system["epochs"]]


def _select_epochs(epochs: Sequence[Measurement]) -> Iterator[tuple[int, Measurement]]:
    """Yield some of the first epochs, and the last one: weights change early."""
    for number, weights in enumerate(epochs, start=1):
        if number in (1, 2, 4, 8, 16, 32, len(epochs)):
            yield number, weights


def _share_cells(shares: Iterable[float], count: int) -> list[str]:
    cells = [f"{share:.3f}" for share in shares]
    return [*cells, *[""] * (count - len(cells))]


def _note(results: Measurement, rows: Sequence[tuple[Measurement, Measurement]]) -> str:
    # λ=1 or little data leave the weights almost equal: the default systems are what counts.
    default = [row for row in rows if row[0]["system"] == "elmo"] or rows
    at_input = [place["shares"] for _, place in default if place["place"] == "input"]
    sentences = []
    if at_input:
        first = sum(argmax(shares) == 1 for shares in at_input)
        sentences.append(
            f"At the input the first LSTM layer has the largest weight in {first} of "
            f"{len(at_input)} (in the paper: mostly; and almost equal weights at the output)."
        )
    sentences.append(
        "Weights are softmax(s), means over the seeds; spread: the largest standard deviation of a "
        "layer."
    )
    if results["skipped"]:
        skipped = ", ".join(f"{count} {reason}" for reason, count in results["skipped"].items())
        sentences.append(f"Skipped: {skipped}.")
    return " ".join(sentences)
