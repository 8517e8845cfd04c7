"""The best one-to-one assignment of rows to columns (the Hungarian method, Kuhn 1955).

Each row is added along a shortest augmenting path (Jonker and Volgenant 1987): exact, and
O(rows² · columns), with each step over all columns at once. Knows nothing about coreference.

Shape letters: R rows, C columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def assign(gain_RC: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns of the assignment with the largest sum of gains.

    Every row and column occurs at most once. There are as many pairs as the shorter side is long,
    in the order of the rows.
    """
    if gain_RC.shape[0] > gain_RC.shape[1]:
        columns, rows = assign(gain_RC.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    number_of_rows, number_of_columns = gain_RC.shape
    cost_RC = -gain_RC
    # Prices that keep every reduced cost ≥ 0; it is 0 for the chosen pairs, which proves them best.
    of_row = np.zeros(number_of_rows)
    of_column = np.zeros(number_of_columns)
    owner_C = np.full(number_of_columns, -1)
    for new in range(number_of_rows):
        shortest_C = np.full(number_of_columns, np.inf)
        before_C = np.full(number_of_columns, -1)  # the previous column on the shortest path
        done_C = np.zeros(number_of_columns, dtype=bool)
        row, column, length = new, -1, 0.0
        while True:
            step_C = length + cost_RC[row] - of_row[row] - of_column
            shorter_C = ~done_C & (step_C < shortest_C)
            shortest_C[shorter_C] = step_C[shorter_C]
            before_C[shorter_C] = column
            column = int(np.where(done_C, np.inf, shortest_C).argmin())
            length = shortest_C[column]
            if owner_C[column] < 0:
                break
            done_C[column] = True
            row = owner_C[column]
        of_row[new] += length
        of_row[owner_C[done_C]] += length - shortest_C[done_C]
        of_column[done_C] -= length - shortest_C[done_C]
        while column >= 0:  # every column on the path gets the owner of the previous one
            previous = before_C[column]
            owner_C[column] = new if previous < 0 else owner_C[previous]
            column = previous
    columns = np.flatnonzero(owner_C >= 0)
    rows = owner_C[columns]
    order = np.argsort(rows)
    return rows[order].astype(np.int64), columns[order].astype(np.int64)
