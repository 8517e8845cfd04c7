from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from elmokit.tasks.coref.assignment import assign


def best_by_trying(gain_RC: np.ndarray) -> float:
    if gain_RC.shape[0] > gain_RC.shape[1]:
        gain_RC = gain_RC.T
    rows = range(gain_RC.shape[0])
    return max(
        sum(gain_RC[r, c] for r, c in zip(rows, columns, strict=True))
        for columns in permutations(range(gain_RC.shape[1]), len(rows))
    )


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 3), (4, 6), (6, 4), (6, 6)])
@pytest.mark.parametrize("kind", ["real", "ties", "negative", "sparse"])
def test_no_other_assignment_is_better(shape: tuple[int, int], kind: str) -> None:
    generator = np.random.default_rng(7)
    for _ in range(8):
        gain_RC = generator.random(shape)
        if kind == "ties":
            gain_RC = np.floor(3 * gain_RC)
        elif kind == "negative":
            gain_RC = -10 * gain_RC
        elif kind == "sparse":
            gain_RC[gain_RC < 0.7] = 0
        rows, columns = assign(gain_RC)
        assert len(rows) == len(columns) == min(shape)
        assert len(set(rows.tolist())) == len(set(columns.tolist())) == min(shape)
        assert rows.tolist() == sorted(rows.tolist())
        assert gain_RC[rows, columns].sum() == pytest.approx(best_by_trying(gain_RC))


def test_a_greedy_choice_is_not_enough() -> None:
    rows, columns = assign(np.array([[10.0, 9.0], [9.0, 1.0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])


def test_nothing_to_assign() -> None:
    for shape in ((0, 0), (0, 3), (3, 0)):
        rows, columns = assign(np.zeros(shape))
        assert len(rows) == len(columns) == 0


def test_a_large_one_is_as_good_as_its_prices_say() -> None:
    """A planted assignment that is the best by far in a matrix too large to try all."""
    generator = np.random.default_rng(1)
    planted = generator.permutation(150)
    gain_RC = generator.random((150, 150))
    gain_RC[np.arange(150), planted] += 2
    rows, columns = assign(gain_RC)
    assert rows.tolist() == list(range(150))
    assert columns.tolist() == planted.tolist()
