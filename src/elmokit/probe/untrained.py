"""An untrained copy of a network: the baseline of every probe of a trained one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX
from elmokit.train.initialization import initial_weights


def untrained_copy(bilm: BiLM, seed: int = 0) -> BiLM:
    """Return a biLM of the same architecture with the weights that training starts from.

    Args:
        bilm: The trained network.
        seed: Random seed of the weights.
    """
    weights = initial_weights(bilm.config, np.ones(1, np.int64), seed)
    network = {name: array for name, array in weights.items() if name not in SOFTMAX}
    return replace(bilm, weights=network, settled=State.zeros(bilm.config), mix=None, extra={})
