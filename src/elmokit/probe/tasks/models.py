"""Trained task models on disk, as far as their layers' weights go.

Directories are read as they are: no network is built, no biLM is loaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, InputError
from elmokit.tasks.fitting import LOG, PLAN, TRAINING
from elmokit.tasks.settings import Settings
from elmokit.tasks.systems import system_of, usual
from elmokit.tasks.trained import MODEL, TASK, read_about
from elmokit.tasks.trials import OUTCOME

Learned = dict[str, dict[str, Any]]
"""By place: the layers' shares (softmax-normalized s_j) and γ."""


@dataclass(frozen=True)
class TaskModel:
    """A trained task model, as far as it is looked at."""

    task: str
    system: str
    seed: int
    where: str
    """The name of its directory; of one of many runs, that of the directory with all of them."""
    alike: str
    """Equal for models that differ in their seeds alone."""
    biLM: str
    checksum: str
    """Of what it has learned."""
    weights: Learned
    epochs: Sequence[Learned]
    """The same after each epoch, if that was kept."""


def task_models(directories: Sequence[str | Path]) -> tuple[list[TaskModel], Counter[str]]:
    """All in directories, and in directories within them; and how many have no weights, and why."""
    found, skipped = [], Counter[str]()
    for place in dict.fromkeys(_places(directories)):
        about = read_about(place)
        settings = Settings.from_dict(about["settings"], str(place / TASK))
        if reason := _without(settings):
            skipped[reason] += 1
            continue
        common = usual(settings).replace(seed=0).determined()
        try:
            weights = _checked(about["weights"])
            model = TaskModel(
                task=settings.task,
                system=system_of(settings),
                seed=settings.seed,
                where=(place.parent if (place / OUTCOME).exists() else place).name,
                alike=json.dumps([common, about["biLM"], _data(place)], sort_keys=True),
                biLM=about["biLM"],
                checksum=about["files"][MODEL]["sha256"],
                weights=weights,
                epochs=_log(place, weights),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"{place / TASK} does not say what the layers weigh ({error}); it was written by "
                "another elmokit: train the model anew"
            ) from None
        found.append(model)
    return found, skipped


def _places(directories: Sequence[str | Path]) -> Iterator[Path]:
    for directory in directories:
        place = Path(directory).expanduser().resolve()
        if not place.is_dir():
            raise InputError(f"{directory} is no directory; expected one of `elmo task train`")
        # What is being written stands in a hidden directory.
        inside = sorted(
            path.parent
            for path in place.rglob(TASK)
            if not any(part.startswith(".") for part in path.relative_to(place).parts)
        )
        if not inside:
            raise InputError(
                f"{directory} has no trained task model in it; make one: elmo task train NAME "
                "--train FILE --dev FILE --out DIR"
            )
        yield from inside


def _without(settings: Settings) -> str:
    """Why a model has no weights of layers."""
    if settings.baseline:
        return "without ELMo"
    return {"last": "one layer only", "projection": "a matrix over all layers"}.get(
        settings.layers, ""
    )


def _data(place: Path) -> str:
    """What tells data sets apart: a checksum of the development set, else where the model stands.

    That of the training set would not do: a share of it differs from seed to seed.
    """
    try:
        plan = json.loads((place / TRAINING / PLAN).read_text(encoding="utf-8"))
        return str(plan["data"][1])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return str(place.parent)


def _log(place: Path, weights: Learned) -> list[Learned]:
    """The weights after each epoch, of the same layers at the same places."""
    path = place / TRAINING / LOG
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            found.append(_checked(json.loads(line)["weights"]))
            if _shape(found[-1]) != _shape(weights):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise FormatError(
                f"{path}:{number}: expected a JSON object with the weights after an epoch, as "
                f"in {TASK}; delete the file to do without it"
            ) from None
    return found


def _shape(weights: Learned) -> dict[str, int]:
    return {place: len(learned["shares"]) for place, learned in weights.items()}


def _checked(weights: Any) -> Learned:
    if not weights:
        raise ValueError("no place")
    return {
        str(place): {
            "shares": [float(share) for share in learned["shares"]],
            "gamma": float(learned["gamma"]),
        }
        for place, learned in dict(weights).items()
    }
