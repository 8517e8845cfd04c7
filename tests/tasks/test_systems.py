"""Names of systems: what is the same has one name, what differs has another."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.tasks.settings import NONE, Settings
from elmokit.tasks.systems import canonical, make_trial, system_name, without_elmo


@pytest.mark.parametrize(
    ("task", "asked", "name"),
    [
        ("ner", {}, "elmo"),
        ("ner", {"elmo": NONE}, "baseline"),
        ("ner", {"layers": "last"}, "elmo-last"),
        ("ner", {"layers": "projection"}, "elmo-projection"),
        ("ner", {"l2": 1.0}, "elmo-l2=1"),
        ("ner", {"placement": "input"}, "elmo"),  # its own place
        ("ner", {"placement": "both"}, "elmo-both"),
        ("nli", {"placement": "both"}, "elmo"),
        ("nli", {"placement": "input"}, "elmo-input"),
        ("ner", {"share": 0.1}, "elmo-10%"),
        ("ner", {"share": 0.001, "elmo": NONE}, "baseline-0.1%"),
        ("ner", {"tune": True, "share": 0.5, "layers": "last"}, "elmo-last-tuned-50%"),
        ("ner", {"layers": "last", "l2": 1.0}, "elmo-last"),  # λ has nothing to draw together
        ("ner", {"elmo": NONE, "layers": "last", "l2": 1.0, "placement": "both"}, "baseline"),
        ("ner", {"epochs": 3, "seed": 4, "vectors": NONE}, "elmo"),
    ],
)
def test_names(task: str, asked: dict[str, object], name: str) -> None:
    settings = Settings(task=task, **asked)  # type: ignore[arg-type]
    assert system_name(settings) == name
    assert make_trial(settings).name == f"{name}-{settings.seed}"


def test_what_has_one_name_has_the_same_settings() -> None:
    """Otherwise one analysis would refuse the runs of another."""
    plain = Settings(task="nli", epochs=3)
    assert canonical(plain.replace(placement="both")) == canonical(plain) == plain
    assert canonical(plain.replace(layers="last", l2=1.0)) == plain.replace(layers="last")
    for system in (plain.replace(layers="last"), plain.replace(placement="output", l2=1.0)):
        assert without_elmo(system) == plain.replace(elmo=NONE)
