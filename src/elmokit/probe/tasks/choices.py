"""What of ELMo helps a task: which layers, how much λ, and at which place of the task's model.

`compare_layers` is the paper's Table 2, `compare_places` its Table 3, for any task and data. What
they find is shown here too, from the numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from elmokit import figures
from elmokit.probe.results import Json, Picture, best, layer_name, measurement
from elmokit.probe.tables import Table
from elmokit.probe.tasks import seeds as over_seeds

if TYPE_CHECKING:
    from elmokit.tasks.settings import Settings
    from elmokit.tasks.trials import Files, Hear, Outcome

PLACES = ("input", "output", "both")
LAMBDAS = (1.0, 0.001)
BASELINE, LAST = "baseline", "last"

_BASELINES = {"qa": 80.8, "nli": 88.1, "srl": 81.6}
PAPER: dict[str, dict[str, dict[str, float]]] = {
    "layers": {
        "qa": {LAST: 84.7, "1": 85.0, "0.001": 85.2},
        "nli": {LAST: 89.1, "1": 89.3, "0.001": 89.5},
        "srl": {LAST: 84.1, "1": 84.6, "0.001": 84.8},
    },
    "place": {
        "qa": dict(zip(PLACES, (85.1, 84.8, 85.6), strict=True)),
        "nli": dict(zip(PLACES, (88.9, 88.7, 89.5), strict=True)),
        "srl": dict(zip(PLACES, (84.7, 80.9, 84.3), strict=True)),
    },
}
"""The paper's Tables 2 and 3: scores on development sets, by task and choice."""
PAPER_SETS = {"qa": "SQuAD", "nli": "SNLI", "srl": "SRL"}


@dataclass(frozen=True)
class Choice:
    """A system that is compared with others."""

    key: str
    """Of the choice: `baseline`, `last`, a λ, or a place."""
    name: str
    """For people."""
    settings: Settings


@dataclass(frozen=True)
class Choices:
    """What came of the systems, the baseline first."""

    kind: str
    """`layers` or `place`."""
    settings: Settings
    files: Files
    seeds: Sequence[int]
    found: Sequence[tuple[Choice, list[Outcome]]]
    """Each system with what came of its seeds."""

    @property
    def _place(self) -> str:
        """Where ELMo is if nothing else is said; for places, where the paper has it."""
        return self.settings.sister.PLACE if self.kind == "place" else self.settings.where

    def measured(self) -> Json:
        """As a measurement."""
        from elmokit.probe.tasks.runs import signature, summary

        systems = [choice.settings for choice, _ in self.found]
        return measurement(
            self.kind,
            signature(self.settings, systems, self.files, self.seeds),
            task=self.settings.task,
            score=self.settings.sister.SCORE,
            of="dev" if self.files.test is None else "test",
            place=self._place,
            choices=[
                {"choice": choice.key, "name": choice.name, **summary(choice.settings, outcomes)}
                for choice, outcomes in self.found
            ],
        )


def compare_layers(
    settings: Settings,
    files: Files,
    runs: str | Path,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int | None = None,
    hear: Hear = lambda moment: None,
) -> Choices:
    """The baseline, the last layer alone, and all layers with each λ.

    Args:
        settings: of the runs with ELMo, but for layers and λ.
        files: training, development and test data.
        runs: where the runs are kept; called again, what is done is not done again.
        lambdas: how strongly the layers' weights are drawn together.
        seeds: of the runs.
        jobs: how many runs at a time.
        hear: who looks on.
    """
    wanted = [
        Choice(LAST, "last layer only", settings.replace(layers="last")),
        *(
            Choice(f"{l2:g}", f"all layers, λ={l2:g}", settings.replace(layers="all", l2=l2))
            for l2 in dict.fromkeys(lambdas)
        ),
    ]
    return _compare("layers", settings, wanted, files, runs, seeds, jobs, hear)


def compare_places(
    settings: Settings,
    files: Files,
    runs: str | Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    jobs: int | None = None,
    hear: Hear = lambda moment: None,
) -> Choices:
    """The baseline, and ELMo at the input, at the output, and at both.

    Args:
        settings: of the runs with ELMo, but for the place.
        files: training, development and test data.
        runs: where the runs are kept; called again, what is done is not done again.
        seeds: of the runs.
        jobs: how many runs at a time.
        hear: who looks on.
    """
    names = {"both": "input and output"}
    wanted = [
        Choice(place, names.get(place, place), settings.replace(place=place)) for place in PLACES
    ]
    return _compare("place", settings, wanted, files, runs, seeds, jobs, hear)


def _compare(
    kind: str,
    settings: Settings,
    wanted: Sequence[Choice],
    files: Files,
    runs: str | Path,
    seeds: Sequence[int],
    jobs: int | None,
    hear: Hear,
) -> Choices:
    from elmokit.probe.tasks.runs import check_elmo, run_systems
    from elmokit.tasks.systems import without_elmo

    check_elmo(settings)
    choices = [Choice(BASELINE, "baseline", without_elmo(settings)), *wanted]
    systems = [choice.settings for choice in choices]
    outcomes = run_systems(systems, files, runs, seeds=seeds, jobs=jobs, hear=hear)
    return Choices(kind, settings, files, tuple(seeds), list(zip(choices, outcomes, strict=True)))


# -- what is shown -------------------------------------------------------------------------------


def tables(found: Json) -> list[Table]:
    """The scores, and what the layers weigh."""
    shown = [_scores(found)]
    if weighed := list(_weighed(found)):
        shown.append(_weights(found, weighed))
    return shown


def pictures(found: Json) -> list[Picture]:
    """Gains over the baseline, the paper's beside them; and the layers' weights."""
    about = "Which layers, how much λ" if found["kind"] == "layers" else "Where ELMo enters"
    base = found["choices"][0]
    paper = _paper(found)
    groups = []
    for one in found["choices"][1:]:
        gains = over_seeds.differences(one["scores"], base["scores"])
        bars = [figures.Bar("here", mean(gains), over_seeds.spread(gains))]
        if one["choice"] in paper:
            gain = paper[one["choice"]] - paper[BASELINE]
            bars.append(figures.Bar(f"the paper, {PAPER_SETS[found['task']]}", gain))
        groups.append(figures.Group(one["name"], bars, f"{found['score']} {one['mean']:.2f}"))
    least = min(bar.value - bar.spread for group in groups for bar in group.bars)
    drawn = [
        Picture(
            "",
            figures.bars(
                f"{about}: {found['task']}",
                groups,
                low=min(0.0, 1.1 * least),
                across=f"gain in {found['score']} over the baseline, which has {base['mean']:.2f} "
                f"({_set(found)}, {over_seeds.count(base['scores'])})",
                digits=2,
                fill=(0, 2),
            ),
        )
    ]
    if weighed := list(_weighed(found)):
        layers = len(weighed[0][2]["shares"])
        divisions = [
            figures.Division(_label(one, place), learned["shares"], f"γ {learned['gamma']:.2f}")
            for one, place, learned in weighed
        ]
        names = [layer_name(j) for j in range(layers)]
        title = f"What the layers weigh: {found['task']}"
        drawn.append(Picture("weights", figures.shares(title, divisions, names)))
    return drawn


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember: what all layers bring over the last alone; of places, none."""
    choices = {one["choice"]: one for one in found["choices"]}
    if LAST not in choices:
        return None
    whole = choices[min(choices.keys() - {BASELINE, LAST}, key=float)]
    gain, _ = over_seeds.gain(whole["scores"], choices[LAST]["scores"])
    return gain, f"{found['score']} of {found['task']}: all layers over the last alone"


def _scores(found: Json) -> Table:
    choices, paper = found["choices"], _paper(found)
    base = choices[0]
    last = next((one for one in choices if one["choice"] == LAST), None)
    of_layers = last is not None
    test = found["of"] == "test"
    columns = ["", found["score"], "gain"]
    columns += ["over last"] if of_layers else []
    columns += ["dev"] if test else []
    columns += ["paper"] if paper else []
    rows = []
    for one in choices:
        row = [one["name"], over_seeds.score(one["scores"])]
        row += [_against(one, other) for other in (base, last) if other is not None]
        row += [f"{mean(one['dev']):.2f}"] if test else []
        row += [f"{paper[one['choice']]:.1f}" if one["choice"] in paper else ""] if paper else []
        rows.append(row)
    title = "which layers, how much λ" if of_layers else "where ELMo enters"
    seeds, top = over_seeds.count(base["scores"]), max(one["mean"] for one in choices)
    return Table(
        f"{found['task']}: {title} ({found['score']} on {found['of']}, {seeds})",
        columns,
        rows,
        note=_note(found),
        bold=[(r, 1) for r, one in enumerate(choices) if one["mean"] == top],
    )


def _note(found: Json) -> str:
    seeds = len(found["choices"][0]["scores"])
    choices = {one["choice"]: one for one in found["choices"]}
    if LAST in choices:
        weakest = min(choices.keys() - {BASELINE, LAST}, key=float)
        whole, last = choices[weakest]["scores"], choices[LAST]["scores"]
        found_by_seed = over_seeds.differences(whole, last)
        change, apart = mean(found_by_seed), over_seeds.spread(found_by_seed)
        word = "better than" if change > 0 else "worse than" if change < 0 else "as good as"
        if seeds > 1 and abs(change) <= apart:
            word = "not to be told from"  # the seeds differ by more
        gain, won = over_seeds.gain(whole, last)
        among = f", better with {won} seeds" if seeds > 1 else ""
        told = [
            f"All layers (λ={weakest}) are {word} the last alone: {gain}{among}.",
            f"ELMo at {_at(found['place'])}.",
        ]
    else:
        top = max(choices[place]["mean"] for place in PLACES)
        tied = [_at(place) for place in PLACES if choices[place]["mean"] == top]
        finding = f"Best at {tied[0]}" if len(tied) == 1 else f"Equally good at {', '.join(tied)}"
        told = [f"{finding}; the paper's place for this task is {_at(found['place'])}."]
    told.append(
        f"{choices[BASELINE]['examples']:,} training examples. In brackets: seeds that gain."
    )
    told.append(
        "One seed alone: differences of some tenths are chance."
        if seeds == 1
        else "±: standard deviation over the seeds."
    )
    if found["task"] in PAPER_SETS:
        told.append(
            f"Paper: {PAPER_SETS[found['task']]}, development set, a larger biLM and task model."
        )
    return " ".join(told)


def _weights(found: Json, weighed: Sequence[tuple[Json, str, Json]]) -> Table:
    layers = len(weighed[0][2]["shares"])
    return Table(
        f"{found['task']}: what the layers weigh (softmax of s, mean over the seeds)",
        ["", *(layer_name(j) for j in range(layers)), "γ", "from even"],
        [
            [
                _label(one, place),
                *(f"{share:.3f}" for share in learned["shares"]),
                f"{learned['gamma']:.2f}",
                f"{max(abs(share - 1 / layers) for share in learned['shares']):.3f}",
            ]
            for one, place, learned in weighed
        ],
        note=f"From even: how far the farthest share is from 1/{layers}; a large λ leaves nothing.",
        bold=[(r, 1 + best(learned["shares"])) for r, (_, _, learned) in enumerate(weighed)],
    )


def _weighed(found: Json) -> Iterator[tuple[Json, str, Json]]:
    """Choices with what a place has learned; the last layer alone has nothing to weigh."""
    for one in found["choices"]:
        if one["choice"] != LAST:
            for place, learned in one["weights"].items():
                if max(learned["shares"]) < 1:
                    yield one, place, learned


def _label(one: Json, place: str) -> str:
    return one["name"] if one["name"] == place else f"{one['name']}: {place}"


def _paper(found: Json) -> dict[str, float]:
    """The paper's scores of the task, by choice; nothing if it has none."""
    scores = PAPER[found["kind"]].get(found["task"])
    return {} if scores is None else {BASELINE: _BASELINES[found["task"]], **scores}


def _against(one: Json, other: Json) -> str:
    """The gain over another choice; nothing for what it is not to be compared with."""
    if one["choice"] in (BASELINE, other["choice"]):
        return ""
    gain, won = over_seeds.gain(one["scores"], other["scores"])
    return f"{gain} ({won})"


def _set(found: Json) -> str:
    return "test set" if found["of"] == "test" else "development set"


def _at(place: str) -> str:
    return "input and output" if place == "both" else f"the {place}"
