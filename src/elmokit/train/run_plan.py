"""What determines a run, in run.json, and whether it has been begun or has ended.

Knows nothing about networks or training steps.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import elmokit
from elmokit.bilm.config import BiLMConfig
from elmokit.errors import FormatError, InputError, TrainingError
from elmokit.json_text import check_seal, parse_json, seal
from elmokit.storage import check_regular, write_json
from elmokit.train.budget import Budget
from elmokit.train.corpus import Corpus
from elmokit.train.launch import launch_id
from elmokit.train.recipe import Recipe

TRAINING, RUN, FINISHED = "training", "run.json", "finished.json"
VERSION = 2
"""Version of run.json; version 1 has no checksum."""


@dataclass(frozen=True)
class RunPlan:
    """What determines a run, as run.json has it."""

    config: BiLMConfig
    """Architecture."""
    recipe: Recipe
    """How to train."""
    budget: Budget
    """How long to train."""
    corpus: str
    """Fingerprint of the corpus."""
    kind: str = "pretrain"
    """What the run does: "pretrain", "finetune" or "softmax"."""
    start: str | None = None
    """Fingerprint of the model whose weights a pretraining run starts from; None if at random."""

    def to_json(self) -> str:
        """Return the contents of run.json."""
        values = {
            "format": "elmokit run",
            "version": VERSION,
            "elmokit": elmokit.__version__,
            "kind": self.kind,
            "corpus": self.corpus,
            "budget": self.budget.to_dict(),
            "recipe": self.recipe.to_dict(),
            "config": self.config.to_dict(),
        }
        if self.start is not None:
            values["start"] = self.start
        return json.dumps(values, indent=2) + "\n"

    @property
    def checksum(self) -> int:
        """Checksum by which processes compare their plans."""
        return zlib.crc32(self.to_json().encode())

    def write(self, directory: Path) -> None:
        """Write run.json to a directory, atomically, with the torchrun that trains it."""
        directory.mkdir(parents=True, exist_ok=True)
        launch = {} if launch_id() is None else {"launch": launch_id()}
        write_json(directory / RUN, seal(json.loads(self.to_json()) | launch))

    def write_finished(self, directory: Path, **values: Any) -> None:
        """Write finished.json to a directory: the run has spent its budget, and its model is saved.

        Args:
            directory: The directory `training` of the run.
            values: What else to keep.
        """
        write_json(directory / FINISHED, seal({"budget": self.budget.to_dict(), **values}))

    def read_finished(self, directory: Path) -> dict[str, Any] | None:
        """Return the contents of finished.json; None if the run has not ended with this budget."""
        try:
            values = parse_json((directory / FINISHED).read_text(encoding="utf-8"))
            check_seal(values)
        except FileNotFoundError:
            return None
        except (ValueError, AttributeError) as error:
            raise FormatError(f"{directory / FINISHED} is damaged: {error!r}") from None
        return dict(values) if values.get("budget") == self.budget.to_dict() else None

    @classmethod
    def from_json(cls, text: str) -> RunPlan:
        """Return the plan that `to_json` has written."""
        return cls._from_dict(parse_json(text))

    @classmethod
    def _from_dict(cls, values: dict[str, Any]) -> RunPlan:
        return cls(
            BiLMConfig.from_dict(values["config"]),
            Recipe.from_dict(values["recipe"]),
            Budget(**values["budget"]),
            values["corpus"],
            values["kind"],
            values.get("start"),
        )

    @classmethod
    def read(cls, directory: Path) -> RunPlan:
        """Read run.json from a directory."""
        check_regular(directory / RUN)
        try:
            values = parse_json((directory / RUN).read_text(encoding="utf-8"))
            if values["version"] != 1:
                check_seal(values)
            plan = cls._from_dict(values)
            if not isinstance(plan.corpus, str) or not isinstance(plan.kind, str):
                raise TypeError(f"its corpus is {plan.corpus!r:.80}")
            return plan
        except FileNotFoundError:
            raise InputError(
                f"{directory.parent} has no run to resume: it has no {directory.name}/{RUN}"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise FormatError(f"{directory / RUN} is damaged: {error!r}") from None

    def check_corpus(self, corpus: Corpus, out: Path) -> None:
        """Raise if the corpus is not the one that the run in `out` was started with."""
        if corpus.fingerprint != self.corpus:
            raise TrainingError(
                f"{out} was started with another corpus: its fingerprint is {self.corpus[:12]}…, "
                f"that of {corpus.path} is {corpus.fingerprint[:12]}…"
            )

    def check_unchanged(
        self, config: BiLMConfig, recipe: Recipe, out: Path, start: str | None = None
    ) -> None:
        """Raise if a run would continue with other options; it keeps its number of shards."""
        old, new = self.recipe.to_dict(), recipe.to_dict()
        different = {name for name in old if name != "shards" and new[name] != old[name]}
        if config != self.config:
            different |= {"size", "config"}
        if start != self.start:
            different.add("start")
        if different:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(different))
            raise InputError(
                f"{options} cannot change when a run is resumed; its options are in "
                f"{out / TRAINING / RUN}"
            )


def is_begun(out: Path, *, auto_resume: bool) -> bool:
    """Return whether a start in a directory continues the run that is there.

    Args:
        out: Directory of the run.
        auto_resume: Continue whatever run is there. Otherwise only one that the same torchrun has
            begun, which has restarted its processes.
    """
    path = out / TRAINING / RUN
    if not path.exists():
        return False
    if auto_resume:
        return True
    try:
        launch = parse_json(path.read_text(encoding="utf-8")).get("launch")
    except (ValueError, AttributeError):
        return False
    return launch is not None and launch == launch_id()
