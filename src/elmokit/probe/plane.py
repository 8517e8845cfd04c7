"""Vectors on a plane, for a picture: the two directions in which they differ most (PCA).

Shape letters: N vectors, D size of a vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def on_plane(vectors_ND: npt.NDArray[Any]) -> list[tuple[float, float]]:
    """A place for each vector; the same vectors always get the same places."""
    centered_ND = np.asarray(vectors_ND, np.float64)
    centered_ND = centered_ND - centered_ND.mean(axis=0) if len(centered_ND) else centered_ND
    if min(centered_ND.shape) < 2:
        return [(0.0, 0.0)] * len(centered_ND)
    _, _, directions = np.linalg.svd(centered_ND, full_matrices=False)
    places_N2 = centered_ND @ directions[:2].T
    # A direction has no sign of its own: the farthest vector lies to the right, and above.
    farthest = np.abs(places_N2).argmax(axis=0)
    signs = np.sign(places_N2[farthest, [0, 1]])
    return [(round(float(x), 4), round(float(y), 4)) for x, y in places_N2 * signs]
