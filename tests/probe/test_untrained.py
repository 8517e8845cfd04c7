"""Untrained copies of networks."""

from __future__ import annotations

from elmokit import Elmo
from elmokit.bilm.model import BiLM
from elmokit.probe.untrained import untrained_copy


def test_the_untrained_network(bilm: BiLM) -> None:
    one, two, other = untrained_copy(bilm), untrained_copy(bilm), untrained_copy(bilm, seed=1)
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert one.config == bilm.config and one.fingerprint != bilm.fingerprint
    assert one.settled is not None and not one.settled.cell.any()
    assert Elmo(one).embed("a b").shape == (2, bilm.config.dim)
