"""What all tests share: small models, made here, and where data outside the repository may be."""

from __future__ import annotations

import os

# The workers of pytest-xdist share the cores; small networks gain nothing from more threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest
from hypothesis import settings

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo

# Examples are timed by the whole run, not one by one: the machine may be busy.
settings.register_profile("elmokit", deadline=None, max_examples=40)
settings.load_profile("elmokit")

REPOSITORY = Path(__file__).parent.parent
SHARED = REPOSITORY.parent / "shared"
GOLDEN = Path(__file__).parent / "golden"


def small_config(**changes: object) -> BiLMConfig:
    """A network of a few numbers with every part; `changes` are fields of its two halves."""
    cnn: dict[str, object] = {
        "filters": ((1, 4), (2, 6), (3, 7)),
        "embedding_dim": 5,
        "highways": 1,
        "max_characters": 20,
    }
    lstm: dict[str, object] = {"cells": 11, "width": 6}
    for name, value in changes.items():
        (cnn if name in CharCNNConfig.__dataclass_fields__ and name != "projection" else lstm)[
            name
        ] = value
    return BiLMConfig(char_cnn=CharCNNConfig(**cnn), lstm=LSTMConfig(**lstm))  # type: ignore[arg-type]


@pytest.fixture
def bilm() -> BiLM:
    return random_bilm(small_config())


@pytest.fixture
def elmo(bilm: BiLM) -> Elmo:
    return Elmo(bilm)


@pytest.fixture
def shared() -> Path:
    """The directory of data and fixtures that is not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the data beside the repository ({SHARED.name}/), which is not here")
    return SHARED
