"""The same network before it learned anything: what every probe of a trained one is held to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX
from elmokit.train.initialization import initial_weights


def untrained(bilm: BiLM, seed: int = 0) -> BiLM:
    """The same architecture with the numbers that training begins with."""
    weights = initial_weights(bilm.config, np.ones(1, np.int64), seed)
    network = {name: array for name, array in weights.items() if name not in SOFTMAX}
    return replace(bilm, weights=network, settled=State.zeros(bilm.config), mix=None, extra={})
