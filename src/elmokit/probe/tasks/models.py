"""The layer weights of trained task models on disk.

Only task.json and the log of a directory are read: no network is built, no biLM is loaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmokit.errors import FormatError, InputError
from elmokit.json_text import parse_json
from elmokit.tasks.plan import LOG, PLAN, TRAINING
from elmokit.tasks.settings import Settings
from elmokit.tasks.systems import canonical, system_name
from elmokit.tasks.trained import MODEL_FILE, TASK_FILE, read_task_file
from elmokit.tasks.trials import OUTCOME_FILE

LayerWeights = dict[str, dict[str, Any]]
"""By place, `"input"` or `"output"`: `shares` (softmax-normalized s_j) and `gamma`."""


@dataclass(frozen=True)
class ModelWeights:
    """The layer weights of a trained task model, and what identifies the model."""

    task: str
    """Name of the task."""
    system: str
    """Name of the system, such as `elmo-l2=1`."""
    seed: int
    """Random seed of the run."""
    where: str
    """Name of its directory; for one of many runs, of the directory with all of them."""
    group: str
    """Equal for models that differ only in their seeds."""
    biLM: str
    """Fingerprint of the biLM."""
    checksum: str
    """Checksum of the learned parameters."""
    weights: LayerWeights
    """The layer weights."""
    epochs: Sequence[LayerWeights]
    """The layer weights after each epoch; empty if they were not logged."""


def read_model_weights(
    directories: Sequence[str | Path],
) -> tuple[list[ModelWeights], Counter[str]]:
    """Read the layer weights of all task models in directories and their subdirectories.

    Returns:
        The models with layer weights, and the number of models without them by reason.
    """
    models, skipped = [], Counter[str]()
    for path in dict.fromkeys(_find_models(directories)):
        content = read_task_file(path)
        settings = Settings.from_dict(content["settings"], str(path / TASK_FILE))
        if reason := _reason_without_weights(settings):
            skipped[reason] += 1
            continue
        common = canonical(settings).replace(seed=0).to_full_dict()
        try:
            weights = _parse_weights(content["weights"])
            model = ModelWeights(
                task=settings.task,
                system=system_name(settings),
                seed=settings.seed,
                where=(path.parent if (path / OUTCOME_FILE).exists() else path).name,
                group=json.dumps([common, content["biLM"], _dataset(path)], sort_keys=True),
                biLM=content["biLM"],
                checksum=content["files"][MODEL_FILE]["sha256"],
                weights=weights,
                epochs=_read_log(path, weights),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"{path / TASK_FILE} has no layer weights ({error}); it was written by another "
                "version of elmokit: train the model again"
            ) from None
        models.append(model)
    return models, skipped


def _find_models(directories: Sequence[str | Path]) -> Iterator[Path]:
    for directory in directories:
        root = Path(directory).expanduser().resolve()
        if not root.is_dir():
            raise InputError(
                f"{directory} is not a directory; expected one that `elmo task train` wrote"
            )
        # Models that are being written are in hidden directories.
        models = sorted(
            path.parent
            for path in root.rglob(TASK_FILE)
            if not any(part.startswith(".") for part in path.relative_to(root).parts)
        )
        if not models:
            raise InputError(
                f"{directory} has no trained task model in it; train one: elmo task train NAME "
                "--train FILE --dev FILE --out DIR"
            )
        yield from models


def _reason_without_weights(settings: Settings) -> str:
    """Return why a model has no layer weights; empty if it has some."""
    if settings.baseline:
        return "without ELMo"
    return {"last": "one layer only", "projection": "a matrix over all layers"}.get(
        settings.layers, ""
    )


def _dataset(path: Path) -> str:
    """Return what identifies the dataset: a checksum of the development set, else the directory.

    That of the training set would not do, since a share of it differs from seed to seed.
    """
    try:
        plan = parse_json((path / TRAINING / PLAN).read_text(encoding="utf-8"))
        return str(plan["data"][1])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return str(path.parent)


def _read_log(directory: Path, weights: LayerWeights) -> list[LayerWeights]:
    """Return the weights after each epoch, which must have the shape of the final weights."""
    path = directory / TRAINING / LOG
    if not path.is_file():
        return []
    epochs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            epochs.append(_parse_weights(parse_json(line)["weights"]))
            if _shape(epochs[-1]) != _shape(weights):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise FormatError(
                f"{path}:{number}: expected a JSON object with the weights after an epoch, as "
                f"in {TASK_FILE}; delete the file to do without it"
            ) from None
    return epochs


def _shape(weights: LayerWeights) -> dict[str, int]:
    return {place: len(learned["shares"]) for place, learned in weights.items()}


def _parse_weights(data: Any) -> LayerWeights:
    if not data:
        raise ValueError("empty")
    return {
        str(place): {
            "shares": [float(share) for share in learned["shares"]],
            "gamma": float(learned["gamma"]),
        }
        for place, learned in dict(data).items()
    }
