"""Projection of vectors onto a plane for a figure: their first two principal components (PCA).

Shape letters: N vectors, D size of a vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def project_to_plane(vectors_ND: npt.NDArray[Any]) -> list[tuple[float, float]]:
    """Return the coordinates of each vector; the same vectors always get the same coordinates."""
    centered_ND = np.asarray(vectors_ND, np.float64)
    centered_ND = centered_ND - centered_ND.mean(axis=0) if len(centered_ND) else centered_ND
    if min(centered_ND.shape) < 2:
        return [(0.0, 0.0)] * len(centered_ND)
    _, _, components = np.linalg.svd(centered_ND, full_matrices=False)
    points_N2 = centered_ND @ components[:2].T
    # Components have no sign of their own: the farthest vector is put to the right, and above.
    farthest = np.abs(points_N2).argmax(axis=0)
    signs = np.sign(points_N2[farthest, [0, 1]])
    return [(round(float(x), 4), round(float(y), 4)) for x, y in points_N2 * signs]
