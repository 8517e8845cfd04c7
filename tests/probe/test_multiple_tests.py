from __future__ import annotations

import numpy as np
import pytest

from elmokit.probe.multiple_tests import benjamini_hochberg


def test_q_values_by_hand() -> None:
    # 0.01 * 4/1, 0.02 * 4/2, 0.03 * 4/3 and 0.5 * 4/4; each at most the next.
    assert benjamini_hochberg([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.04, 0.04])
    assert benjamini_hochberg([0.04, None, 0.05]) == [0.05, None, 0.05]
    assert benjamini_hochberg([]) == [] and benjamini_hochberg([None]) == [None]


def test_few_false_alarms() -> None:
    random = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        q_values = benjamini_hochberg(random.random(40).tolist())
        alarms += any(q is not None and q <= 0.05 for q in q_values)
    assert alarms / 400 == pytest.approx(0.05, abs=0.035)
