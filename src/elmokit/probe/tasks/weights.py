"""What trained task models have learned about the layers: s_j and γ, the paper's Figure 2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import elmokit
from elmokit import figures
from elmokit.errors import InputError
from elmokit.figures.shares import COLORS
from elmokit.probe.results import Json, Picture, best, layer_name, measurement
from elmokit.probe.tables import Table
from elmokit.probe.tasks.seeds import spread

if TYPE_CHECKING:
    from elmokit.probe.tasks.models import TaskModel


@dataclass(frozen=True)
class LearnedWeights:
    """What was found in directories."""

    models: Sequence[TaskModel]
    skipped: Mapping[str, int]
    """How many models have no weights, by reason."""

    def measured(self, *, by_epoch: bool = False) -> Json:
        """As a measurement."""
        found = {model.biLM for model in self.models}
        if not found:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in self.skipped.items())
            raise InputError(
                f"no model with weights of layers was found ({reasons or 'nothing there'}); give "
                "directories of models that were trained with ELMo and --layers all"
            )
        if len(found) > 1:
            raise InputError(
                f"these task models were trained with {len(found)} different biLMs "
                f"({', '.join(sorted(each[:12] for each in found))}); give those of one"
            )
        signature = {
            "model": found.pop(),
            "data": {"task models": sorted({model.checksum for model in self.models})},
            "elmokit": elmokit.__version__,
        }
        systems = [
            {**system, "epochs": _epochs(models)} if by_epoch else system
            for system, models in _systems(self.models)
        ]
        return measurement("weights", signature, systems=systems, skipped=dict(self.skipped))


def learned_weights(directories: Sequence[str | Path]) -> LearnedWeights:
    """Of all task models in directories, and in directories within them."""
    from elmokit.probe.tasks.models import task_models

    return LearnedWeights(*task_models(directories))


def _systems(models: Sequence[TaskModel]) -> Iterator[tuple[Json, list[TaskModel]]]:
    """Models that differ in their seeds alone become one."""
    groups: dict[str, list[TaskModel]] = {}
    for model in models:
        groups.setdefault(model.alike, []).append(model)
    heads = [(group[0].task, group[0].system) for group in groups.values()]
    for group in groups.values():
        first = group[0]
        told = first.system.removeprefix("elmo").replace("-", ", ").replace("l2=", "λ=")
        name = f"{first.task}{told}"
        if heads.count((first.task, first.system)) > 1:
            name = f"{name} ({first.where})"
        places = [
            {
                "place": place,
                "shares": [
                    mean(each)
                    for each in zip(*(m.weights[place]["shares"] for m in group), strict=True)
                ],
                "spread": max(
                    spread(each)
                    for each in zip(*(m.weights[place]["shares"] for m in group), strict=True)
                ),
                "gamma": mean(m.weights[place]["gamma"] for m in group),
            }
            for place in first.weights
        ]
        seeds = [model.seed for model in group]
        yield (
            {
                "name": name,
                "task": first.task,
                "system": first.system,
                "seeds": seeds,
                "places": places,
            },
            group,
        )


def _epochs(models: Sequence[TaskModel]) -> list[Json]:
    """Means over the seeds, as far as all of them ran."""
    found = []
    for each in zip(*(model.epochs for model in models), strict=False):
        found.append(
            {
                place: [
                    mean(part) for part in zip(*(w[place]["shares"] for w in each), strict=True)
                ]
                for place in each[0]
            }
        )
    return found


# -- what is shown -------------------------------------------------------------------------------


def tables(found: Json) -> list[Table]:
    """A row for each place of each system; and how the weights moved, if that was noted."""
    rows = [(system, place) for system in found["systems"] for place in system["places"]]
    layers = max(len(place["shares"]) for _, place in rows)
    names = [layer_name(j) for j in range(layers)]
    shown = [
        Table(
            "What task models have learned about the layers",
            ["task", "place", *names, "γ", "seeds", "spread"],
            [
                [
                    system["name"],
                    place["place"],
                    *_padded((f"{share:.3f}" for share in place["shares"]), layers),
                    f"{place['gamma']:.2f}",
                    str(len(system["seeds"])),
                    f"{place['spread']:.3f}" if len(system["seeds"]) > 1 else "",
                ]
                for system, place in rows
            ],
            note=_note(found, rows),
            left=(0, 1),
            bold=[(r, 2 + best(place["shares"])) for r, (_, place) in enumerate(rows)],
        )
    ]
    moved = [
        [
            system["name"],
            place["place"],
            str(epoch),
            *_padded((f"{share:.3f}" for share in weights[place["place"]]), layers),
        ]
        for system, place in rows
        for epoch, weights in _some(system.get("epochs", ()))
    ]
    if moved:
        title = "How they moved"
        note = "After some epochs, mean over the seeds; before the first all are equal."
        shown.append(Table(title, ["task", "place", "epoch", *names], moved, note, left=(0, 1)))
    return shown


def pictures(found: Json) -> list[Picture]:
    """A bar for each place of each system; and how the weights moved, if that was noted."""
    rows = [(system, place) for system in found["systems"] for place in system["places"]]
    layers = max(len(place["shares"]) for _, place in rows)
    names = [layer_name(j) for j in range(layers)]
    divisions = [
        figures.Division(
            f"{system['name']}: {place['place']}", place["shares"], f"γ {place['gamma']:.2f}"
        )
        for system, place in rows
    ]
    title = "How tasks weigh the layers of ELMo"
    drawn = [Picture("", figures.shares(title, divisions, names))]
    panels = [
        figures.Panel(
            f"{system['name']}: {place['place']}",
            [
                figures.Line(
                    names[j],
                    [
                        (epoch, weights[place["place"]][j])
                        for epoch, weights in enumerate(_from_even(system, place), start=0)
                    ],
                    COLORS[j % len(COLORS)],
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
        across = "epoch; before the first all layers weigh the same (every panel has its own scale)"
        title = "How the weights of the layers moved"
        longest = max(len(system.get("epochs", ())) for system in found["systems"])
        ticks = {float(k): str(k) for k in range(0, longest + 1, math.ceil(longest / 15))}
        drawn.append(Picture("epochs", figures.lines(title, panels, across=across, ticks=ticks)))
    return drawn


def _from_even(system: Json, place: Json) -> list[dict[str, list[float]]]:
    even = [1 / len(place["shares"])] * len(place["shares"])
    return [{place["place"]: even}, *system["epochs"]]


def _some(epochs: Sequence[Json]) -> Iterator[tuple[int, Json]]:
    """The first epochs and the last: weights move early."""
    for number, weights in enumerate(epochs, start=1):
        if number in (1, 2, 4, 8, 16, 32, len(epochs)):
            yield number, weights


def _padded(cells: Iterator[str], count: int) -> list[str]:
    found = list(cells)
    return [*found, *[""] * (count - len(found))]


def _note(found: Json, rows: Sequence[tuple[Json, Json]]) -> str:
    # λ=1 or little data leave the weights near to even: what counts are the usual systems.
    usual = [row for row in rows if row[0]["system"] == "elmo"] or rows
    at_input = [place["shares"] for _, place in usual if place["place"] == "input"]
    told = []
    if at_input:
        first = sum(best(shares) == 1 for shares in at_input)
        told.append(
            f"At the input the first LSTM layer weighs most in {first} of {len(at_input)} (the "
            "paper: mostly; and about even at the output)."
        )
    told.append("Shares are softmax(s), means over the seeds; spread: the largest of their layers.")
    if found["skipped"]:
        left = ", ".join(f"{count} {reason}" for reason, count in found["skipped"].items())
        told.append(f"Passed over: {left}.")
    return " ".join(told)
