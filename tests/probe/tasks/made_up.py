"""Outcomes of runs that nobody ran."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

from tests.tasks import toy

from elmokit.tasks.trials import Outcome, TaskFiles


def outcome(score: float, *, seed: int = 0, **changes: object) -> Outcome:
    given: dict[str, object] = {
        "system": "any",
        "seed": seed,
        "dev": {"f1": score - 1},
        "test": {"f1": score},
        "weights": {},
        "curve": [score - 1],
        "best_epoch": 1,
        "seconds": 2.0,
        "examples": 60,
    }
    return Outcome(**(given | changes))  # type: ignore[arg-type]


def weights(*shares: float, gamma: float = 1.0, place: str = "input") -> dict[str, object]:
    return {place: {"shares": list(shares), "gamma": gamma}}


def files(directory: Path) -> TaskFiles:
    train, dev = toy.files(directory)
    return TaskFiles(str(train), str(dev), str(toy.write(directory / "test.conll", 8, 3)))


def words_in(svg: str) -> list[str]:
    """All that can be read in a picture, which must be a document."""
    found = xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [text.text or "" for text in found]
